//! The admin listener: health and metrics for machines, open to whoever reaches it; commands below
//! `/admin`, for whoever shows the token. `api-spec/admin.yaml` describes it.
//!
//! | path | answers |
//! |---|---|
//! | `/healthz` | 200 as long as the process runs |
//! | `/readyz` | 200 while requests are served, 503 with the reason while starting and draining |
//! | `/metrics` | every role's metrics in the text form Prometheus scrapes |
//! | `/partitions` | a page that draws the partition map; it asks for the token |
//! | `/admin/accounts` | accounts, their keys and roles |
//! | `/admin/partitions` | partitions of the index: list, split, merge, move, prepare |
//! | `/admin/disks` | disks: list, drain, remove |
//! | `/admin/backup` | makes a backup of the running node, and shows how far it is |
//! | `/admin/keys` | master keys: list, rotate |
//! | `/admin/trace` | live requests, a JSON object a line |
//! | `/admin/faults` | the fault dial |
//!
//! 1. `state.rs`: what commands look at and change; `readiness.rs`, `controls.rs`: what `node`
//!    tells and does for them;
//! 2. `connections.rs`: who is served; `server.rs`: the routes; `work.rs`: how much at a time;
//! 3. `hosts.rs`: under which names it answers; `token.rs`: who may command; `answer.rs`: how a
//!    command is refused; `audit_log.rs`: what the audit log is told of it;
//! 4. `accounts.rs` over `account_store.rs` (with keys of `keygen.rs`), `trace.rs`, `faults.rs`,
//!    `disks.rs`, `backups.rs`, `keys.rs`, `partitions/`: the commands.
//!
//! Invariants: no path outside `/admin` changes anything or shows a key or a name of a blob; no
//! path below it answers without the token.

mod account_store;
mod accounts;
mod answer;
mod audit_log;
mod backups;
mod connections;
mod controls;
mod disks;
mod faults;
mod hosts;
mod keygen;
mod keys;
mod partitions;
mod readiness;
mod server;
mod state;
mod token;
mod trace;
mod work;

pub use account_store::{AccountStore, Endpoints};
pub use controls::{BackupControl, BackupView};
pub use controls::{DiskControl, DiskRefusal, DiskView};
pub use controls::{KeyControl, KeyRingView, MasterKeyView};
pub use keygen::{new_delegation_secret, new_key};
pub use partitions::{ChangeView, Made, MapView, PartitionView, StripeView};
pub(crate) use partitions::{Known, key_text};
pub use partitions::{PartitionError, PartitionStore};
pub use readiness::{Phase, Readiness};
pub use server::AdminServer;
pub use state::{AdminState, Control};
pub use token::Token;
