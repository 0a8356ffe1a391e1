//! Replay of the ring at a restart: the batches since the last checkpoint, up to a torn batch that
//! a crash may have left.

use std::sync::Arc;

use bytes::Bytes;

use crate::capacity::journal::layout::{
    BATCH_HEADER, BatchHeader, Lsn, RING_AT, Record, Superblock, batch_len, decode_body,
};
use crate::capacity::units::{FileOffset, PAGE, index, size};
use crate::env::{DiskError, DiskFile};

/// Why a ring cannot be replayed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum JournalError {
    /// Reading it failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Neither superblock is valid, so it is not known where replay starts.
    #[error("both superblocks of the journal are damaged")]
    Superblock,
    /// The file is shorter than its superblock says. The missing part may have held acknowledged
    /// data.
    #[error("the journal has {found} bytes instead of {size}: acknowledged data may be lost")]
    Short {
        /// Length with which the file was made, bytes.
        size: u64,
        /// Its length now, bytes.
        found: u64,
    },
    /// A batch is damaged although a later one was written. So its appends had been acknowledged.
    #[error(
        "journal batch {lsn} at byte {position} is damaged, yet batch {later} follows it: \
         acknowledged data is lost"
    )]
    Damaged {
        /// The damaged batch.
        lsn: u64,
        /// Where it was expected, bytes from the start of the journal file.
        position: u64,
        /// A later batch that was found.
        later: u64,
    },
}

/// An intact batch.
struct FoundBatch {
    records: Vec<Record>,
    /// Bytes of the ring that it takes.
    len: u64,
}

/// A walk over the batches of a ring.
#[derive(Debug)]
pub(crate) struct Replay {
    file: Arc<dyn DiskFile>,
    superblock: Superblock,
    lsn: Lsn,
    position: FileOffset,
}

impl Replay {
    /// Reads the superblocks.
    pub(crate) async fn open(file: Arc<dyn DiskFile>) -> Result<Self, JournalError> {
        let pages = file.read_at(0, index(RING_AT.get())).await?;
        let superblock = Superblock::latest(&pages).ok_or(JournalError::Superblock)?;
        let (lsn, position) = (superblock.lsn, superblock.position);
        Ok(Self { file, superblock, lsn, position })
    }

    /// The records of the next batch; `None` after the last one.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Record>>, JournalError> {
        for position in [self.position, RING_AT] {
            if let Some(FoundBatch { records, len }) = self.batch_at(position).await? {
                self.lsn = self.lsn.next();
                self.position = position + len;
                return Ok(Some(records));
            }
        }
        self.refuse_later_batch().await?;
        Ok(None)
    }

    /// The superblock that makes the ring start after all replayed batches. The next batch number
    /// is skipped, so that a torn batch with that number is never taken for a new one.
    pub(crate) fn restarted(&self) -> Superblock {
        Superblock {
            generation: self.superblock.generation + 1,
            lsn: self.lsn.next(),
            position: self.position,
            ..self.superblock
        }
    }

    async fn batch_at(&self, position: FileOffset) -> Result<Option<FoundBatch>, JournalError> {
        if (position + PAGE).get() > self.superblock.size {
            return Ok(None);
        }
        let page = self.file.read_at(position.get(), index(PAGE)).await?;
        let Some(header) = BatchHeader::decode(&page, self.superblock.ring) else {
            return Ok(None);
        };
        let len = batch_len(header.body);
        if header.lsn != self.lsn || (position + len).get() > self.superblock.size {
            return Ok(None);
        }
        let end = BATCH_HEADER + header.body;
        let bytes: Bytes =
            if end <= PAGE { page } else { self.file.read_at(position.get(), index(end)).await? };
        if size(bytes.len()) < end {
            return Ok(None);
        }
        let body = bytes.slice(index(BATCH_HEADER)..index(end));
        Ok(decode_body(&header, &body).map(|records| FoundBatch { records, len }))
    }

    /// Fails if the ring holds a later batch. One batch is in flight at a time, so a later batch
    /// proves that the missing one had been durable.
    async fn refuse_later_batch(&self) -> Result<(), JournalError> {
        const STEP: u64 = 1024 * 1024;
        let mut at = RING_AT.get();
        while at < self.superblock.size {
            let piece = self.file.read_at(at, index(STEP.min(self.superblock.size - at))).await?;
            let (size, found) = (self.superblock.size, at + size(piece.len()));
            if found < size.min(at + STEP) {
                return Err(JournalError::Short { size, found });
            }
            for page in piece.chunks(index(PAGE)) {
                let later = BatchHeader::decode(page, self.superblock.ring)
                    .map(|header| header.lsn)
                    .filter(|&lsn| lsn > self.lsn);
                if let Some(later) = later {
                    let (lsn, position) = (self.lsn.get(), self.position.get());
                    let later = later.get();
                    return Err(JournalError::Damaged { lsn, position, later });
                }
            }
            at += STEP;
        }
        Ok(())
    }
}
