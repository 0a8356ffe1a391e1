//! The table of workloads.

use blockyard::cli::bench::driver::workload::Kind;
use blockyard::cli::bench::driver::workload::Order;
use blockyard::cli::bench::driver::workload::Set;
use blockyard::cli::bench::driver::workload::Unit;
use blockyard::cli::bench::driver::workload::Workload;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

const fn set(name: &'static str, count: u64, size: usize) -> Set {
    Set { name, count, size, order: Order::Counted }
}

const fn ordered(name: &'static str, order: Order) -> Set {
    Set { name, count: 0, size: KIB, order }
}

const fn row(name: &'static str, kind: Kind, ops: u64, c: usize, unit: Unit) -> Workload {
    Workload { name, kind, ops, concurrency: c, unit }
}

const SMALL: Set = set("small", 2_000, 4 * KIB);
const NAMES: Set = set("names", 5_000, 64);
const BODIES: Set = set("bodies", 5_000, 4 * KIB);
const MEGA: Set = set("mega", 64, MIB);
const HUGE: Set = set("huge", 4, 16 * MIB);
/// Written once before the measurement, so that its figures do not include the first requests of a
/// server.
pub(crate) const WARM: Set = set("warm", 64, 4 * KIB);
/// Tiny blobs that fill the store before a restart is timed.
const FILL: Set = set("fill", 0, 64);
/// Blobs that are written and deleted between those of `FILL`.
const GONE: Set = Set { name: "fill", count: 0, size: 64, order: Order::Between };
/// The set of blobs that are written in blocks.
const BLOCKS: Set = set("blocks", 0, 8 * MIB);
/// The blobs that a burst of readers reads.
const SHARDS: Set = set("step-0900", 2_000, 4 * KIB);
/// The blobs that a burst of writers writes.
const RANKS: Set = set("step-0901", 0, KIB);
const GROWING: Set = ordered("growing", Order::Growing);
const SCATTERED: Set = ordered("scattered", Order::Scattered);

/// Every workload, in the order of the table of performance figures.
pub(crate) const ALL: [Workload; 27] = [
    row("idle", Kind::Idle, 1, 1, Unit::Op),
    row("put4k", Kind::Put(set("put4k", 0, 4 * KIB)), 20_000, 16, Unit::Op),
    row("sha4k", Kind::PutSigned(set("sha4k", 0, 4 * KIB)), 20_000, 16, Unit::Op),
    row("get4k", Kind::Get(SMALL), 40_000, 16, Unit::Op),
    row("hot4k", Kind::Get(set("hot", 1, 4 * KIB)), 40_000, 16, Unit::Op),
    row("head", Kind::Head(SMALL), 40_000, 16, Unit::Op),
    row("delete", Kind::Delete(set("delete", 0, 4 * KIB)), 10_000, 16, Unit::Op),
    row("list", Kind::List(NAMES, 1_000), 400, 4, Unit::Key),
    row("list4k", Kind::List(BODIES, 1_000), 400, 4, Unit::Key),
    row("mixed", Kind::Mixed(SMALL, set("mixed", 400, 4 * KIB)), 20_000, 16, Unit::Op),
    row("put1m", Kind::Put(set("put1m", 0, MIB)), 400, 4, Unit::MiB),
    row("block8m", Kind::Blocks(BLOCKS, 16), 12, 4, Unit::MiB),
    row("part8m", Kind::Blocks(BLOCKS, 16), 16, 16, Unit::MiB),
    row("get1m", Kind::Get(MEGA), 1_000, 4, Unit::MiB),
    row("get16m", Kind::Get(HUGE), 100, 4, Unit::MiB),
    row("range64k", Kind::Range(HUGE, 64 * KIB), 10_000, 16, Unit::Op),
    row("burst16m", Kind::Put(set("burst16m", 0, 16 * MIB)), 64, 64, Unit::MiB),
    row("burst-get", Kind::Get(SHARDS), 200_000, 2_000, Unit::Op),
    row("burst-put", Kind::Put(RANKS), 100_000, 2_000, Unit::Op),
    row("sequential", Kind::Put(GROWING), 200_000, 32, Unit::Op),
    row("random", Kind::Put(SCATTERED), 200_000, 32, Unit::Op),
    row("churn", Kind::Churn, 20_000, 16, Unit::Op),
    row("fill", Kind::Put(FILL), 100_000, 32, Unit::Op),
    row("gone", Kind::Delete(GONE), 100_000, 32, Unit::Op),
    row("pages", Kind::Pages(FILL, 1_000), 400, 1, Unit::Key),
    row("audit", Kind::Audit(FILL), 100_000, 32, Unit::Op),
    row("ready", Kind::Ready(FILL), 1, 1, Unit::Op),
];

/// The workload of that name.
pub(crate) fn find(name: &str) -> Option<Workload> {
    ALL.into_iter().find(|workload| workload.name == name)
}
