//! The admin listener: health and metrics without authentication, and commands below `/admin` for
//! callers with the admin token. `api-spec/admin.yaml` describes it.
//!
//! | path | answers |
//! |---|---|
//! | `/healthz` | 200 as long as the process runs |
//! | `/readyz` | 200 while requests are served, 503 with the reason while starting and draining |
//! | `/metrics` | the metrics of all roles in the text format of Prometheus |
//! | `/` | leads to `/partitions` |
//! | `/partitions` | the page of the partition map, the first of the console |
//! | `/login`, `/logout` | exchanges a code of `blockyard console` for a session; ends it |
//! | `/console/NAME` | what the pages load |
//! | `/admin/accounts` | accounts, their keys, roles and users |
//! | `/admin/console` | makes a login link |
//! | `/admin/partitions` | partitions of the index: list, history, split, merge, move, prepare |
//! | `/admin/disks` | disks: list, drain, remove |
//! | `/admin/backup` | makes a backup of the running node, and shows its progress |
//! | `/admin/keys` | master keys: list, rotate |
//! | `/admin/trace` | live requests, one JSON object per line |
//! | `/admin/faults` | the fault dial |
//!
//! 1. `state.rs`: what commands read and change. `readiness.rs`, `controls.rs`: what `node`
//!    provides for them.
//! 2. `connections.rs`: the connections; `server.rs`: the routes; `work.rs`: the limit of
//!    concurrent requests.
//! 3. `hosts.rs`: the host names that are answered; `token.rs`: authentication; `answer.rs`: how a
//!    command is refused; `audit_log.rs`: the audit log lines of commands.
//! 4. The commands: `accounts.rs` and `users.rs` over `account_store.rs` (with keys of
//!    `keygen.rs`), `trace.rs`, `faults.rs`, `disks.rs`, `backups.rs`, `keys.rs`, `partitions/`.
//!
//! 5. `console/`: the pages, their login and their sessions.
//! 6. `unserved.rs`: ports of services that are not served, under `blockyard azurite`.
//!
//! Invariants: no path outside of `/admin` changes anything but the sessions of the console, or
//! shows a key or the name of a blob. No path below `/admin` answers without the token; only the
//! list and the history of partitions also answer a session.

#![deny(clippy::indexing_slicing)]

mod account_store;
mod accounts;
mod answer;
mod audit_log;
mod backups;
mod connections;
mod console;
mod controls;
mod disks;
mod faults;
mod hosts;
mod keygen;
mod keys;
mod partitions;
mod readiness;
mod scopes;
mod server;
mod state;
mod token;
mod trace;
mod unserved;
mod users;
mod work;

pub use account_store::{
    AccountStore, AccountStoreParts, AssigneeKind, AssignmentView, Endpoints, KeySlot, NewAccount,
    NewKey, NewUser, StoreError,
};
pub use controls::{BackupControl, BackupView};
pub use controls::{DiskControl, DiskRefusal, DiskView};
pub use controls::{KeyControl, KeyRingView, MasterKeyView};
pub use keygen::{new_delegation_secret, new_key};
pub use partitions::{ChangeView, Made, MapView, PartitionView, StripeView};
pub(crate) use partitions::{Known, KnownContainer, key_text};
pub use partitions::{PartitionError, PartitionStore};
pub use readiness::{Phase, Readiness};
pub use server::AdminServer;
pub use state::{AdminState, Control};
pub use token::Token;
pub use unserved::{ErrorForm, UnservedServer};
