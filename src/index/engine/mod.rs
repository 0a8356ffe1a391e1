//! The partition engine: rows of a key range in a log, memtables and sorted runs, all of them
//! extents. It knows keys, values and families, and nothing about blobs: a
//! [`Machine`](crate::index::rows::Machine) does.
//!
//! 1. `shared.rs`: what all partitions of a host have in common; `core.rs`: what the committer,
//!    readers and maintenance of one share; `sources.rs`: where its rows are. `failed.rs`: why
//!    durable work failed, and what follows for the partition.
//! 2. `partition.rs`: the handle: reads from a snapshot (`view.rs`, `merge.rs`), a place in the
//!    queue, commands (`commands.rs`); `write.rs`: a write from the side of its caller.
//! 3. `commit.rs`: the committer: batch, evaluate, one durable append (`log/`), publish, answer;
//!    `ahead.rs`: writes that take long are evaluated before, and watch what they rest on
//!    (`watches.rs`). `pace.rs`: what one answer may cost.
//! 4. `flush.rs`, `compact.rs`: memtables (`table.rs`) to runs (`run/`, `write_run.rs`), runs to
//!    fewer runs; `install.rs` makes either (`edit.rs`) part of the partition by a manifest record.
//! 5. `change/`: one partition becomes several, several become one, one changes its host;
//!    `spread.rs`: how its rows are distributed over its keys.
//! 6. `extents/`: which logs and runs are whose; they are removed against records in the
//!    coordinator, as `chores.rs`, which nobody waits for (`do_chores.rs`).
//! 7. `open.rs`, `recover.rs`, `replay.rs`: from a descriptor in the coordinator to a serving
//!    partition; `offline.rs`: to a view for the checker, changing nothing.
//!
//! Invariants: I2 one owner extends a log (`recover.rs` claims and fences, `log/writer.rs` swaps) ·
//! I6 readers see only what is durable, writers see all that is ordered before them (`commit.rs`) ·
//! I8 a split or merge happens in one transaction (`change/`) · I14 replay is idempotent
//! (`replay.rs`) · I16 queue, batch, memtables and cache are bounded (`config.rs`).
//!
//! `assertions.rs`: what the committer asserts of itself.
//!
//! Not here: who owns which partition (`server/` and the coordinator), what rows mean (`objects/`),
//! when to split.

mod ahead;
mod assertions;
mod change;
mod chores;
mod codec;
mod commands;
mod commit;
mod compact;
mod config;
mod core;
mod cut;
mod do_chores;
mod edit;
mod extents;
mod failed;
mod failure;
mod flush;
mod install;
mod log;
mod merge;
mod offline;
mod open;
mod pace;
mod partition;
mod recover;
mod refusals;
mod replay;
mod rewrite;
mod run;
mod shared;
mod sources;
mod spread;
mod table;
mod untrusted;
mod view;
mod watches;
mod write;
mod write_run;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use config::Config;
pub use cut::{CutPartition, KeptExtents};
pub use extents::{ExtentRecord, Loaded};
pub use offline::{Offline, open_offline};
pub use shared::{ExtentIds, Parts};
pub use untrusted::decode_untrusted;

pub use change::TOO_MANY_RUNS;
pub(crate) use change::{NotChanged, NotMoved, hand_off, merge};
#[cfg(test)]
pub(crate) use chores::Chore;
pub(crate) use core::Status;
pub(crate) use cut::Paused;
pub(crate) use extents::{Pins, upgrade};
pub(crate) use failed::Failed;
pub(crate) use partition::Partition;
pub(crate) use recover::NotOpened;
pub(crate) use run::cache::Lookups;
pub(crate) use run::reader::RunSize;
pub(crate) use shared::Shared;
