//! The journal of a new disk.

use std::sync::Arc;

use bytes::Bytes;

use crate::capacity::journal::layout::{Lsn, RING_AT, RingId, Superblock};
use crate::capacity::units::{index, page_up};
use crate::env::{Disk, DiskError};

/// The name of the journal file.
pub(crate) const JOURNAL: &str = "journal";

/// Length of the smallest journal file, bytes. Its ring holds a few batches.
const FILE_MIN: u64 = 256 * 1024;

/// Bytes written at a time.
const STEP: u64 = 1024 * 1024;

/// Makes a disk's journal, with a file of about `bytes`. Every byte is written once, so that later
/// syncs do not have to commit metadata of the file system.
pub(crate) async fn make_journal(
    disk: &Arc<dyn Disk>,
    bytes: u64,
    ring: RingId,
) -> Result<(), DiskError> {
    let size = page_up(bytes.max(FILE_MIN));
    let file = disk.create(JOURNAL).await?;
    file.allocate(0, size).await?;
    let zeros = Bytes::from(vec![0; index(STEP.min(size))]);
    let mut at = 0;
    while at < size {
        let len = STEP.min(size - at);
        file.write_at(at, vec![zeros.slice(..index(len))]).await?;
        at += len;
    }
    let lsn = Lsn::FIRST;
    let superblock = Superblock { generation: 1, ring, size, lsn, position: RING_AT };
    file.write_sync(superblock.offset().get(), vec![superblock.encode()]).await?;
    disk.sync_dir("").await
}
