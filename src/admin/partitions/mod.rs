//! What operators see and do with the partitions of the index.
//!
//! 1. `paths.rs`: the paths below `/admin/partitions`; `page.rs` and `page.html`: the page that
//!    draws what they answer.
//! 2. `store.rs`: the commands, carried out by the index server; `views.rs`: what they answer; `looks.rs`:
//!    what has changed since the last look.
//! 3. `prepare.rs`: where to cut the range of a prefix before a job fills it.
//! 4. `directory.rs`: accounts and containers by number and by name; `names.rs`: keys as text and
//!    back.
//!
//! Invariants: what is shown as a bound can be given as a key · the page holds no data and asks
//! with the token · no border is put inside an account's table of containers (the index refuses).
//!
//! Not here: how the map changes (`index/server/`), and when it does by itself (`index/load/`).

mod directory;
mod error;
mod looks;
mod names;
pub(super) mod page;
pub(super) mod paths;
mod prepare;
mod store;
mod views;

pub use error::PartitionError;
pub(crate) use names::{Known, text as key_text};
pub use store::PartitionStore;
pub use views::{ChangeView, Made, MapView, PartitionView, StripeView};
