//! The report of a check, as text and as JSON.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::capacity;
use crate::index;

use super::affected::Affected;
use super::affected::UnreadRange;

/// Problems listed. More are only counted.
const PROBLEMS_LISTED: usize = 1_000;

/// The content of one data directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// The directory.
    pub path: String,
    /// Extents with a good first page.
    pub extents: usize,
    /// Frames whose checksum holds.
    pub frames: u64,
    /// Their bytes.
    pub frame_bytes: u64,
    /// Records in the journal that a start replays.
    pub journal_records: u64,
}

/// The content of the index, and how much of it was verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Index {
    /// Partitions.
    pub partitions: usize,
    /// Rows that decode.
    pub rows: u64,
    /// Containers.
    pub containers: u64,
    /// Committed blobs.
    pub blobs: u64,
    /// Blocks staged and not committed.
    pub staged_blocks: u64,
    /// Locations read.
    pub locations: u64,
    /// Bytes of blobs and blocks read and compared with the checksums taken at ingest.
    pub content_bytes: u64,
    /// Bytes under customer-provided keys. Only the checksums of their ciphertext could be
    /// compared.
    pub encrypted_bytes: u64,
    /// Locations waiting to be freed.
    pub garbage_locations: u64,
}

/// Everything a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// One for each data directory.
    pub disks: Vec<Disk>,
    /// The index.
    pub index: Index,
    /// The blobs and containers that damage affects.
    pub affected: Affected,
    /// The texts of the first 1,000 problems.
    pub problems: Vec<String>,
    /// The number of all problems.
    pub problems_count: u64,
}

impl Report {
    /// Whether there is no problem.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problems_count == 0
    }

    pub(super) fn problem(&mut self, text: String) {
        self.problems_count += 1;
        if self.problems.len() < PROBLEMS_LISTED {
            self.problems.push(text);
        }
    }

    pub(super) fn add_disk(&mut self, path: &Path, found: &capacity::CheckReport) {
        let path = path.display().to_string();
        for problem in &found.problems {
            self.problem(format!("{path}: {problem}"));
        }
        self.disks.push(Disk {
            path,
            extents: found.extents.len(),
            frames: found.frames,
            frame_bytes: found.bytes,
            journal_records: found.journal_records,
        });
    }

    pub(super) fn add_index(
        &mut self,
        partitions: usize,
        found: &index::check::CheckReport,
        unread: &[UnreadRange<'_>],
    ) {
        self.affected = Affected::new(found, unread);
        for problem in &found.problems {
            self.problem(problem.to_string());
        }
        let listed = u64::try_from(found.problems.len()).unwrap_or(u64::MAX);
        self.problems_count += found.problems_count.saturating_sub(listed);
        self.index = Index {
            partitions,
            rows: found.rows,
            containers: found.containers,
            blobs: found.blobs,
            staged_blocks: found.staged_blocks,
            locations: found.locations,
            content_bytes: found.bytes,
            encrypted_bytes: found.encrypted_bytes,
            garbage_locations: found.garbage_locations,
        };
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for disk in &self.disks {
            writeln!(
                f,
                "{}: {} extents, {} frames, {} bytes verified, {} journal records",
                disk.path, disk.extents, disk.frames, disk.frame_bytes, disk.journal_records
            )?;
        }
        let index = &self.index;
        writeln!(
            f,
            "index: {} partitions, {} rows, {} containers, {} blobs, {} staged blocks; {} bytes of content verified, \
             {} of them as ciphertext only; \
             {} locations waiting to be freed",
            index.partitions,
            index.rows,
            index.containers,
            index.blobs,
            index.staged_blocks,
            index.content_bytes,
            index.encrypted_bytes,
            index.garbage_locations
        )?;
        self.affected.write(index.blobs, f)?;
        for problem in &self.problems {
            writeln!(f, "problem: {problem}")?;
        }
        let unlisted = self.problems_count - u64::try_from(self.problems.len()).unwrap_or(0);
        if unlisted > 0 {
            writeln!(f, "and {unlisted} more")?;
        }
        match self.problems_count {
            0 => writeln!(f, "sound"),
            1 => writeln!(f, "DAMAGED: 1 problem"),
            n => writeln!(f, "DAMAGED: {n} problems"),
        }
    }
}
