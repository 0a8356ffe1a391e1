//! The workloads: their operations, the number of operations, and the number of connections.

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// A set of blobs that a workload needs before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Set {
    /// First part of the names.
    pub(crate) name: &'static str,
    /// Blobs in it; 0 means one for each operation of the workload.
    pub(crate) count: u64,
    /// Bytes of each.
    pub(crate) size: usize,
    /// How numbers are written in the names.
    pub(crate) order: Order,
}

/// How a blob's number is written in its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Order {
    /// Eight digits.
    Counted,
    /// Sixteen digits: every new name is above all older ones.
    Growing,
    /// Sixteen digits in no order.
    Scattered,
    /// Between the names of `Counted` with the same number and the next one.
    Between,
}

/// What one operation does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Writes a new blob of a set.
    Put(Set),
    /// The same, with the SHA-256 of the body in the signature where the protocol has it (S3).
    PutSigned(Set),
    /// Reads a whole blob of a set, drawn at random.
    Get(Set),
    /// Reads `length` bytes of a blob of a set, at a random multiple of it.
    Range(Set, usize),
    /// Reads the properties of a blob of a set, drawn at random.
    Head(Set),
    /// Deletes the next blob of a set.
    Delete(Set),
    /// Lists the next page of a set, from the front again after the last page.
    List(Set, u32),
    /// The same, of a set that an earlier run has written.
    Pages(Set, u32),
    /// 45 % reads and 30 % properties of the first set, 15 % writes and 10 % deletes of the second.
    Mixed(Set, Set),
    /// Stages this many blocks of this size as a new blob and commits it.
    Blocks(u32, usize),
    /// Measures the memory of an idle server.
    Idle,
    /// Reads every blob of a set once. Blobs that a crash has lost are errors.
    Audit(Set),
    /// Each connection writes, reads, deletes and lists its own names, and verifies their content.
    Churn,
    /// Waits until the first blob of a set can be read: how long a restart takes.
    Ready(Set),
}

/// The unit by which CPU time is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Operations.
    Op,
    /// Names listed.
    Key,
    /// MiB of bodies.
    MiB,
}

impl Unit {
    /// Its name in tables.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Op => "op",
            Self::Key => "key",
            Self::MiB => "MiB",
        }
    }
}

/// One workload with its settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Workload {
    /// Name on the command line and in reports.
    pub(crate) name: &'static str,
    /// What one operation does.
    pub(crate) kind: Kind,
    /// Operations of a full run.
    pub(crate) ops: u64,
    /// Connections, each with one request at a time.
    pub(crate) concurrency: usize,
    /// The unit by which CPU time is divided.
    pub(crate) unit: Unit,
}

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
pub(crate) const BLOCKS: Set = set("blocks", 0, 0);
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
    row("block8m", Kind::Blocks(16, 8 * MIB), 12, 4, Unit::MiB),
    row("part8m", Kind::Blocks(16, 8 * MIB), 16, 16, Unit::MiB),
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
