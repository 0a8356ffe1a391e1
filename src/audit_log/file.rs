//! The file: appended to, and moved aside when it is full.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::env::Disk;
use crate::env::DiskError;
use crate::env::DiskFile;

/// Bytes written at a time.
const WRITE_BYTES: usize = 256 << 10;

/// A file of lines. Full ones are kept under the same name with a number behind it, the newest
/// being 1.
#[derive(Debug)]
pub(super) struct LogFile {
    disk: Arc<dyn Disk>,
    name: String,
    /// A file is moved aside before it becomes larger.
    bytes_max: u64,
    /// Files kept, the one that is written included.
    files: u32,
    /// None after a failure.
    open: Option<Arc<dyn DiskFile>>,
    /// Where the next line goes; what follows there is left of a write that failed.
    end: u64,
    /// The length at which moving it aside is tried, after it failed.
    move_at: u64,
}

impl LogFile {
    /// Opens the file or makes it, and ends a last line that a crash tore.
    ///
    /// # Errors
    /// Of the disk.
    pub(super) async fn open(
        disk: Arc<dyn Disk>,
        name: String,
        (bytes_max, files): (u64, u32),
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

    /// The file, open. What is there beyond the last line is written over; a file that others cut
    /// is followed.
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

    /// Writes lines and takes them away; those that are left after an error are to be written
    /// again. `durable` lines survive power loss when it returns.
    ///
    /// # Errors
    /// Of the disk.
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
        while let Some(first) = lines.front() {
            if self.end > 0 && self.end + first.len() as u64 > self.move_at {
                open = self.move_aside(open).await;
            }
            let most = usize::try_from(self.move_at.saturating_sub(self.end)).unwrap_or(usize::MAX);
            let most = most.min(WRITE_BYTES);
            let (mut pieces, mut bytes) = (Vec::new(), 0);
            for line in lines.iter() {
                if !pieces.is_empty() && bytes + line.len() > most {
                    break;
                }
                bytes += line.len();
                pieces.push(line.clone());
            }
            let count = pieces.len();
            open.write_at(self.end, pieces).await?;
            self.end += bytes as u64;
            lines.drain(..count);
        }
        if durable {
            open.sync().await?;
        }
        Ok(())
    }

    /// Begins a new file; when that fails, the old one grows on and it is tried again later.
    async fn move_aside(&mut self, old: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        match self.begin(&old).await {
            Ok(new) => {
                (self.end, self.move_at) = (0, self.bytes_max);
                self.open = Some(Arc::clone(&new));
                new
            }
            Err(error) => {
                tracing::warn!(%error, file = self.name, "the audit log is not rotated and grows");
                self.move_at = self.end + self.bytes_max / 8;
                old
            }
        }
    }

    /// The new file is made first, so that a disk without room for it leaves all names as they are.
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
