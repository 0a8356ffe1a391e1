//! Limits of the partition engine.

use std::time::Duration;

/// What a host of partitions may use. Checked by `node::config`; the defaults suit a small machine.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Partitions made at the first start of a store; 1 or more. Default 1.
    pub initial_partitions: u64,
    /// Memtable bytes of all partitions together at which writes wait; flushing starts at half of
    /// it. Default 64 MiB.
    pub memtable_bytes_max: usize,
    /// Unpacked run blocks kept for all partitions together. Default 64 MiB.
    pub block_cache_bytes: usize,
    /// A log extent is left for a new one at this length. Default 64 MiB.
    pub log_extent_bytes: u64,
    /// Writes waiting for one partition. Default 4096.
    pub queue_ops: usize,
    /// Bytes of writes waiting for one partition. Default 32 MiB.
    pub queue_bytes: usize,
    /// How long a write may wait for its group commit to begin, pauses for changes of the map not
    /// counted; once the batch in the making has taken half of it, more writes are refused. Default
    /// 2 s: what a disk may stumble for without anybody being told to come back a second later.
    pub queue_wait_max: Duration,
    /// How long a write may wait that comes while few do: less than an eighth of `queue_ops` and
    /// `queue_bytes`. Default 15 s: a slow disk is not overload.
    pub queue_patience: Duration,
    /// Writes of one group commit. Default 1024.
    pub batch_ops: usize,
    /// A group commit takes no more writes once its record has so many bytes. Default 48 KiB: with
    /// one more write it still goes through a capacity node's journal (appends below 64 KiB), which
    /// syncs many times faster than a growing file.
    pub batch_bytes: usize,
    /// Memtable bytes of all partitions together beyond which rows replayed at a start go to runs.
    /// Default 64 MiB.
    pub replay_bytes_max: usize,
    /// Partitions opened or closed at the same time. Default 32.
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
