//! The file of the audit log: lines are appended to it, and it is moved aside when it is full.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::env::Disk;
use crate::env::DiskError;
use crate::env::DiskFile;

/// Bytes written at a time.
const WRITE_BYTES: usize = 256 << 10;

/// A file of lines. Full files are kept under the same name with a number appended; 1 is the
/// newest.
#[derive(Debug)]
pub(super) struct LogFile {
    disk: Arc<dyn Disk>,
    name: String,
    /// A file is moved aside before it becomes larger.
    bytes_max: u64,
    /// Files kept, including the one that is being written.
    files: u32,
    /// The open file; `None` after a failure.
    open: Option<Arc<dyn DiskFile>>,
    /// The offset of the next line. Bytes beyond it are left from a failed write.
    end: u64,
    /// The length beyond which the file is moved aside; larger than `bytes_max` after a failure.
    move_at: u64,
}

impl LogFile {
    /// Opens or creates the file, and ends a last line that a crash left incomplete.
    ///
    /// # Errors
    /// Errors of the disk.
    pub(super) async fn open(
        disk: Arc<dyn Disk>,
        name: String,
        bytes_max: u64,
        files: u32,
    ) -> Result<Self, DiskError> {
        let mut file =
            Self { disk, name, bytes_max, files, open: None, end: u64::MAX, move_at: bytes_max };
        let open = file.opened().await?;
        if let Some(last) = file.end.checked_sub(1)
            && open.read_at(last, 1).await?.as_ref() != b"\n"
        {
            open.write_at(file.end, vec![Bytes::from_static(b"\n")]).await?;
            file.end += 1;
        }
        Ok(file)
    }

    /// Opens or creates the file if it is not open. Bytes beyond the last line will be overwritten.
    /// If another program truncated the file, the next line goes to its new end.
    async fn opened(&mut self) -> Result<Arc<dyn DiskFile>, DiskError> {
        let open = match &self.open {
            Some(open) => Arc::clone(open),
            None => match self.disk.open(&self.name).await {
                Err(DiskError::NotFound { .. }) => {
                    let new = self.disk.create(&self.name).await?;
                    self.disk.sync_dir("").await?;
                    new
                }
                found => found?,
            },
        };
        self.end = self.end.min(open.len().await?);
        self.open = Some(Arc::clone(&open));
        Ok(open)
    }

    /// Writes lines, and removes them from `lines` when they are written; with `durable`, when they
    /// are synced. After an error the caller writes the remaining lines again: they replace the
    /// remains of a failed write or sync.
    ///
    /// # Errors
    /// Errors of the disk.
    pub(super) async fn write(
        &mut self,
        lines: &mut VecDeque<Bytes>,
        durable: bool,
    ) -> Result<(), DiskError> {
        let written = self.write_lines(lines, durable).await;
        if written.is_err() {
            self.open = None;
        }
        written
    }

    async fn write_lines(
        &mut self,
        lines: &mut VecDeque<Bytes>,
        durable: bool,
    ) -> Result<(), DiskError> {
        let mut open = self.opened().await?;
        // Lines that are in the open file and not yet durable, and where they begin. A failed sync
        // may lose them although a later one succeeds.
        let (mut unsynced, mut from) = (0, self.end);
        while let Some(first) = lines.get(unsynced) {
            if self.end > 0 && self.end + first.len() as u64 > self.move_at {
                if unsynced > 0 {
                    self.sync(&open, from).await?;
                    lines.drain(..std::mem::take(&mut unsynced));
                }
                open = self.move_aside(open).await;
                from = self.end;
            }
            let most = usize::try_from(self.move_at.saturating_sub(self.end)).unwrap_or(usize::MAX);
            let most = most.min(WRITE_BYTES);
            let (mut pieces, mut bytes) = (Vec::new(), 0);
            for line in lines.iter().skip(unsynced) {
                if !pieces.is_empty() && bytes + line.len() > most {
                    break;
                }
                bytes += line.len();
                pieces.push(line.clone());
            }
            let count = pieces.len();
            if let Err(error) = open.write_at(self.end, pieces).await {
                self.end = from;
                return Err(error);
            }
            self.end += bytes as u64;
            if durable {
                unsynced += count;
            } else {
                lines.drain(..count);
                from = self.end;
            }
        }
        if durable {
            self.sync(&open, from).await?;
            lines.drain(..unsynced);
        }
        Ok(())
    }

    /// Makes the file durable. If that fails, the next line goes to `from`.
    async fn sync(&mut self, open: &Arc<dyn DiskFile>, from: u64) -> Result<(), DiskError> {
        let synced = open.sync().await;
        if synced.is_err() {
            self.end = from;
        }
        synced
    }

    /// Begins a new file. If that fails, the old file grows and the next attempt comes later.
    async fn move_aside(&mut self, old: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        match self.begin(&old).await {
            Ok(new) => {
                (self.end, self.move_at) = (0, self.bytes_max);
                self.open = Some(Arc::clone(&new));
                new
            }
            Err(error) => {
                tracing::warn!(
                    %error, file = self.name,
                    "the audit log could not be rotated; its file grows"
                );
                self.move_at = self.end + self.bytes_max / 8;
                old
            }
        }
    }

    /// Creates the new file first, so that on a full disk all names stay as they are.
    async fn begin(&self, old: &Arc<dyn DiskFile>) -> Result<Arc<dyn DiskFile>, DiskError> {
        old.sync().await?;
        let fresh = format!("{}.new", self.name);
        let new = self.disk.create(&fresh).await?;
        for number in (1..self.files.saturating_sub(1)).rev() {
            let (from, to) = (self.numbered(number), self.numbered(number + 1));
            self.rename(&from, &to).await?;
        }
        self.rename(&self.name, &self.numbered(1)).await?;
        self.disk.rename(&fresh, &self.name).await?;
        self.disk.sync_dir("").await?;
        Ok(new)
    }

    fn numbered(&self, number: u32) -> String {
        format!("{}.{number}", self.name)
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        match self.disk.rename(from, to).await {
            Err(DiskError::NotFound { .. }) => Ok(()),
            done => done,
        }
    }
}
