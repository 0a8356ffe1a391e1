//! Limits of the partition engine.

/// What a host of partitions may use. Checked by `node::config`; the defaults suit a small machine.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Partitions made at the first start of a store; 1 or more. Default 1.
    pub initial_partitions: u64,
    /// Memtable bytes of all partitions together at which writes are refused; flushing starts at half of it.
    /// Default 64 MiB.
    pub memtable_bytes_max: usize,
    /// Unpacked run blocks kept for all partitions together. Default 64 MiB.
    pub block_cache_bytes: usize,
    /// A log extent is left for a new one at this length. Default 64 MiB.
    pub log_extent_bytes: u64,
    /// Writes waiting for one partition. Default 4096.
    pub queue_ops: usize,
    /// Bytes of writes waiting for one partition. Default 32 MiB.
    pub queue_bytes: usize,
    /// Writes of one group commit. Default 1024.
    pub batch_ops: usize,
    /// Bytes of the writes of one group commit. Default 1 MiB.
    pub batch_bytes: usize,
    /// Partitions opened or closed at the same time. Default 8.
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
            batch_ops: 1024,
            batch_bytes: 1 << 20,
            parallel_opens: 8,
        }
    }
}
