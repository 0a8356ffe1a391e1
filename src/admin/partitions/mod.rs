//! The admin commands for the partitions of the index.
//!
//! 1. `paths.rs`: the paths below `/admin/partitions`. The page that draws what they answer is in
//!    `admin/console/`.
//! 2. `store.rs`: the commands, carried out by the index; `views.rs`: their answers; `history.rs`:
//!    which partitions have changed since an earlier answer.
//! 3. `prepare.rs`: where to split the range of a prefix before a job fills it.
//! 4. `load_history.rs`: the load of the last ten minutes; `load_views.rs`: the answer with it.
//! 5. `directory.rs`: accounts and containers by number and by name; `contents.rs`: where they lie;
//!    `names.rs`: keys as text and back.
//!
//! Invariants: a boundary as shown can be sent as a key · no boundary lies inside of an account's
//! table of containers (the index refuses it) · the history is bounded in time and in memory.
//!
//! Not here: how the map changes (`index/server/`), and when it changes automatically
//! (`index/load/`).

mod change_log;
mod contents;
mod directory;
mod error;
mod history;
mod load_history;
mod load_views;
mod names;
pub(super) mod paths;
mod prepare;
mod store;
mod views;

pub use error::PartitionError;
pub(crate) use names::{Known, KnownContainer, text as key_text};
pub use store::PartitionStore;
pub use views::{ChangeView, Made, MapView, PartitionView, StripeView};
