//! The partition engine stores the rows of a key range in a log, in memtables and in sorted runs.
//! Logs and runs are extents. The engine knows keys, values and families. A
//! [`Machine`](crate::index::rows::Machine) defines the meaning of rows.
//!
//! 1. `context.rs`: the parts that all partitions of a host use. `core.rs`: the state that the
//!    committer, the readers and the maintenance of one partition share. `sources.rs`: its
//!    memtables and runs. `failed.rs`: why durable work failed, and the consequence for the
//!    partition.
//! 2. `partition.rs`: the handle of an open partition. It reads from a snapshot (`view.rs`,
//!    `merge_rows.rs`), queues writes, and sends commands to the committer (`commands.rs`).
//!    `write.rs`: the path of a write up to the queue.
//! 3. `commit.rs`: the committer. It evaluates a batch of writes (`group_commit.rs`), appends it
//!    durably to the log (`persist.rs`, `log/`), publishes it and answers. `leases.rs` and
//!    `question.rs`: in a cluster, an answer counts only if no other process has the partition.
//!    `ahead.rs`: long writes are evaluated on a snapshot before their turn; `watches.rs` detects
//!    commits that change the rows they read. `pace.rs`: how many rows one answer may read.
//!    `answers.rs`: in a cluster, the answers to writes that may be sent again.
//! 4. `flush.rs` writes memtables (`table.rs`) to runs (`run/`, `write_run.rs`); `compact.rs`
//!    merges runs. Both result in an edit (`edit.rs`), which `install.rs` makes durable with a
//!    manifest record.
//! 5. `change/`: split, merge, and move to another host. `distribution.rs`: how the rows of a
//!    partition are distributed over its keys.
//! 6. `extents/`: which partitions use which logs and runs. An extent is removed only if the
//!    records in the coordinator allow it, in the background (`chores.rs`, `do_chores.rs`).
//! 7. `open.rs`, `recover.rs`, `replay.rs` open a partition from its descriptor in the coordinator.
//!    `offline.rs` opens a partition of a stopped store read-only, for the checker.
//! 8. `cut.rs`: the state of a partition at one instant, for a backup. `rewrite.rs`: rewrites files
//!    that hold old secrets. `untrusted.rs`: all decoders, for the fuzz target.
//!
//! Invariants: I2 only one owner extends a log (`recover.rs` claims and fences, `log/writer.rs`
//! compares and swaps the descriptor) · I6 readers see only durable rows, a write sees all writes
//! ordered before it (`commit.rs`) · I8 a split or merge is one transaction (`change/`) · I14
//! replay is idempotent (`replay.rs`) · I16 queue, batch, memtables and cache are bounded
//! (`config.rs`).
//!
//! `assertions.rs`: the assertions of the committer.
//!
//! Not here: which host owns which partition (`server/` and the coordinator), what rows mean
//! (`objects/`), when to split.

mod ahead;
mod answers;
mod assertions;

mod change;
mod chores;
mod codec;
mod commands;
mod commit;
mod compact;
mod config;
mod context;
mod core;
mod cut;
mod distribution;
mod do_chores;
mod edit;
mod extents;
mod failed;
mod failure;
mod flush;
mod group_commit;
mod install;
mod leases;
mod log;
mod merge_rows;
mod offline;
mod open;
mod pace;
mod partition;
mod persist;
mod question;
mod recover;
mod refusals;
mod replay;
mod rewrite;
mod run;
mod sources;

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
pub use context::Dependencies;
pub use cut::{CutPartition, KeptExtents};
pub use extents::{ExtentRecord, Loaded, UNRECORDED_KEY};
pub use offline::{Offline, open_offline};
pub use untrusted::decode_untrusted;

pub use change::TOO_MANY_RUNS;
pub(crate) use change::{NotChanged, NotMoved, give, hand_off, merge};
#[cfg(test)]
pub(crate) use chores::Chore;
pub(crate) use context::HostContext;
pub(crate) use core::Status;
pub(crate) use cut::Paused;
pub(crate) use extents::{Pins, upgrade};
pub(crate) use failed::Failed;
pub use failed::{NO_EXTENT_ID, RECORD_CHANGES};
pub(crate) use partition::Partition;
pub(crate) use recover::NotOpened;
pub(crate) use run::cache::Lookups;
pub(crate) use run::reader::RunSize;
