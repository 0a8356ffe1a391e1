//! A workload: its operations, their number, and the number of connections.

/// A set of blobs that a workload needs before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Set {
    /// First part of the names.
    pub name: &'static str,
    /// Blobs in it; 0 means one for each operation of the workload.
    pub count: u64,
    /// Bytes of each.
    pub size: usize,
    /// How numbers are written in the names.
    pub order: Order,
}

/// How a blob's number is written in its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Eight digits.
    Counted,
    /// Sixteen digits: every new name is above all older ones.
    Growing,
    /// Sixteen digits in no order.
    Scattered,
    /// Between the names of `Counted` with the same number and the next one.
    Between,
}

/// The kind of an operation.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
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
    /// It writes in place of a delete while nothing is left to delete.
    Mixed(Set, Set),
    /// Stages this many blocks of the set's size as a new blob of the set and commits it.
    Blocks(Set, u32),
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
pub enum Unit {
    /// Operations.
    Op,
    /// Names listed.
    Key,
    /// MiB of bodies.
    MiB,
}

impl Unit {
    /// Its name in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Op => "op",
            Self::Key => "key",
            Self::MiB => "MiB",
        }
    }
}

/// One workload with its settings.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// Name on the command line and in reports.
    pub name: &'static str,
    /// The kind of an operation.
    pub kind: Kind,
    /// Operations of a full run.
    pub ops: u64,
    /// Connections, each with one request at a time.
    pub concurrency: usize,
    /// The unit by which CPU time is divided.
    pub unit: Unit,
}
