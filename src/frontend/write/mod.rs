//! Stores bodies in data extents. This front end is the single writer of each of its extents.
//!
//! | body | where | syncs |
//! |---|---|---|
//! | up to 4 KiB, blocks up to 512 bytes | in the index row | the row's |
//! | up to 1 MiB | `group_append.rs`: one append for the bodies of several requests | one for all |
//! | larger | `stream.rs`: deferred frames of 1 MiB | one at the end |
//!
//! A larger body has an extent of its own while there are enough open ones.
//!
//! After an error an extent is sealed and a new one is begun. Bytes of failed requests are freed.

mod budget;
mod extent;
mod group_append;
pub(super) mod join;
mod lane;
mod pool;
mod stored;
mod stream;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use budget::{BodyBudget, BodyMemory, BodyReservation, InMemory};
pub use pool::{WriteConfig, WritePool};
pub use stored::Stored;
pub use stream::StreamWriter;
