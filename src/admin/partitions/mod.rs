//! The admin commands for the partitions of the index.
//!
//! 1. `paths.rs`: the paths below `/admin/partitions`; `page.rs` and `page.html`: the page that
//!    draws what they answer.
//! 2. `store.rs`: the commands, carried out by the index; `views.rs`: their answers; `history.rs`:
//!    which partitions have changed since an earlier answer.
//! 3. `prepare.rs`: where to split the range of a prefix before a job fills it.
//! 4. `directory.rs`: accounts and containers by number and by name; `names.rs`: keys as text and
//!    back.
//!
//! Invariants: a boundary as shown can be sent as a key · the page holds no data and requests it
//! with the token · no boundary lies inside of an account's table of containers (the index refuses
//! it).
//!
//! Not here: how the map changes (`index/server/`), and when it changes automatically
//! (`index/load/`).

mod directory;
mod error;
mod history;
mod names;
pub(super) mod page;
pub(super) mod paths;
mod prepare;
mod store;
mod views;

pub use error::PartitionError;
pub(crate) use names::{Known, KnownContainer, text as key_text};
pub use store::PartitionStore;
pub use views::{ChangeView, Made, MapView, PartitionView, StripeView};
