//! The records in the coordinator of the log and run extents that partitions have (ADR 0022). An
//! extent is removed only if these records allow it, never because one process does not use it.
//!
//! 1. `record.rs`: the record of a partition, the list of an extent's sharers, and their layouts.
//! 2. `reserve.rs`: the record of one open partition. Ids are recorded before an extent is created
//!    under them.
//! 3. `ids.rs`: records more ids when few are left, without the committer. `create.rs`: creates
//!    extents under them.
//! 4. `pass.rs`: the records of the partitions that a split or merge makes, as a part of its
//!    transaction.
//! 5. `release.rs`: a partition no longer uses an extent. The last one to release it removes the
//!    extent.
//! 6. `pins.rs`: delays the removal of runs that this process reads.
//! 7. `upgrade.rs`: makes the records of stores that older releases wrote.
//!
//! Invariants: an extent exists only while the record of some partition names it · a partition uses
//! only extents that its record names · an extent that several partitions may use has a list of
//! sharers, and each partition that uses it is on the list · an extent without a list is used by at
//! most one partition · an extent that is not used is never used again, and an id is used once.

mod create;
pub(crate) mod ids;
mod pass;
mod pins;
mod record;
mod release;
mod reserve;
mod upgrade;

pub(crate) use pass::{Heir, Passed, pass_on};
pub(crate) use pins::{Pin, PinnedExtent, Pins};
pub(crate) use record::RecordAt;
pub(crate) use record::Sharers;
pub use record::{ExtentRecord, Loaded, UNRECORDED_KEY};
pub(crate) use release::release;
pub(crate) use reserve::{Change, Extents, Owner};
pub(crate) use upgrade::upgrade;
