//! Limits of the partition engine.

use std::time::Duration;

/// Limits of a host. `node::config` checks them. The defaults suit a small machine.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Partitions made at the first start of a store; 1 or more. Default 1.
    pub initial_partitions: u64,
    /// Bytes of the memtables of all partitions at which writes wait. Flushing starts at half of
    /// it. Default 64 MiB.
    pub memtable_bytes_max: usize,
    /// Bytes of unpacked run blocks cached for all partitions. Default 64 MiB.
    pub block_cache_bytes: usize,
    /// The log rolls to a new extent at this length, in bytes. Default 64 MiB.
    pub log_extent_bytes: u64,
    /// The most writes waiting for one partition. Default 4096.
    pub queue_ops: usize,
    /// The most bytes of writes waiting for one partition. Default 32 MiB.
    pub queue_bytes: usize,
    /// How long a write may wait until its group commit begins. Pauses for changes of the map do
    /// not count. Once the oldest write of the batch in the making has waited for half of it,
    /// further writes are refused. Default 2 s: a disk may be slow for that long before clients get
    /// a 503.
    pub queue_wait_max: Duration,
    /// How long a write may wait that arrives while few wait: less than an eighth of `queue_ops`
    /// and of `queue_bytes`. Default 15 s: a slow disk is not overload.
    pub queue_patience: Duration,
    /// The most writes of one group commit. Default 1024.
    pub batch_ops: usize,
    /// A group commit takes no more writes once its record has this many bytes. Default 48 KiB:
    /// with one more write the record still fits in the journal of a capacity node (appends below
    /// 64 KiB), which syncs many times faster than a growing file.
    pub batch_bytes: usize,
    /// Bytes of the memtables of all partitions above which a start writes replayed rows to runs.
    /// Default 64 MiB.
    pub replay_bytes_max: usize,
    /// The most partitions opened or closed at the same time. Default 32.
    pub parallel_opens: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            initial_partitions: 1,
            memtable_bytes_max: 64 << 20,
            block_cache_bytes: 64 << 20,
            log_extent_bytes: 64 << 20,
            queue_ops: 4096,
            queue_bytes: 32 << 20,
            queue_wait_max: Duration::from_secs(2),
            queue_patience: Duration::from_secs(15),
            batch_ops: 1024,
            batch_bytes: 48 << 10,
            replay_bytes_max: 64 << 20,
            parallel_opens: 32,
        }
    }
}
