//! Stores bodies in data extents this front end is the single writer of.
//!
//! | body | where | syncs |
//! |---|---|---|
//! | up to 4 KiB, blocks up to 512 bytes | in the index row | the row's |
//! | up to 1 MiB | `shared.rs`: one append with other requests' bodies | one shared with them |
//! | larger | `stream.rs`: deferred frames of 1 MiB | one at the end |
//!
//! A larger body has an extent of its own while there are enough of them.
//!
//! After any trouble an extent is sealed and a new one begun (seal and roll); bytes of failed
//! requests are freed.

mod budget;
mod extent;
pub(super) mod join;
mod lane;
mod pool;
mod shared;
mod stored;
mod stream;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use budget::{BodyMemory, Budget, Held, InMemory};
pub use pool::{WriteConfig, WritePool};
pub use stored::Stored;
pub use stream::StreamWriter;
