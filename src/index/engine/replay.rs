//! Replay: reads the rows of a log that are not in runs yet.

#![deny(clippy::indexing_slicing)]

use std::fmt::Display;

use bytes::Bytes;

use crate::capacity::Capacity;
use crate::env::TaskHealth;
use crate::index::api::Error;
use crate::index::engine::answers::Answers;
use crate::index::engine::log::manifest::{Link, Manifest};
use crate::index::engine::log::reader::{LogReader, Record};
use crate::index::engine::log::record::Batch;
use crate::index::engine::table::Tables;
use crate::index::invariant::{Invariant, Violation};
use crate::index::map::PartitionDescriptor;
use crate::index::rows::RowChange;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::PartitionId;
use crate::types::PartitionKeys;
use crate::types::Sequence;
use crate::types::Timestamp;

/// A replay of a log, record by record.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    capacity: &'a dyn Capacity,
    /// The keys of the partition. Other rows in the log belong to the partitions that were split
    /// off together with it.
    keys: PartitionKeys,
    /// The log's extents, oldest first.
    extents: Vec<LogPart>,
    manifest: Manifest,
    reader: Option<LogReader<'a>>,
    at: usize,
    sequence: Sequence,
    /// The newest commit whose rows were added to the memtables.
    applied: Sequence,
    /// The epoch of the newest manifest read so far, at most the descriptor's.
    epoch: Epoch,
    epoch_max: Epoch,
    time: Timestamp,
    highest: Vec<Sequence>,
    link: Option<Link>,
    /// The answers to writes that may be sent again.
    answers: Answers,
    /// Where violated invariants are counted, if the log is read to serve it.
    health: Option<TaskHealth>,
}

/// One extent of a log.
#[derive(Clone, Copy, Debug)]
struct LogPart {
    extent: ExtentId,
    /// Its valid end. That of the last extent is found by reading it.
    end: Option<u64>,
}

/// The result of a replay.
#[derive(Debug)]
pub(crate) struct Replayed {
    /// The newest manifest.
    pub(crate) manifest: Manifest,
    /// The newest commit.
    pub(crate) sequence: Sequence,
    /// The highest time.
    pub(crate) time: Timestamp,
    /// The highest commit in each log extent.
    pub(crate) highest: Vec<Sequence>,
    /// The end of the log.
    pub(crate) link: Option<Link>,
    /// The answers to writes that may be sent again.
    pub(crate) answers: Answers,
}

impl<'a> Replay<'a> {
    /// Finds the newest manifest and the ends of the extents.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unavailable`].
    pub(crate) async fn start(
        capacity: &'a dyn Capacity,
        descriptor: &PartitionDescriptor,
    ) -> Result<Self, Error> {
        let mut extents: Vec<LogPart> = Vec::new();
        for extent in descriptor.log.iter().copied() {
            if let Some(before) = extents.last_mut() {
                let first = first_manifest(capacity, extent).await?;
                let link = first.previous.filter(|link| link.extent == before.extent);
                let link = link.ok_or_else(|| damaged(extent, "it does not follow its log"))?;
                before.end = Some(link.end);
            }
            extents.push(LogPart { extent, end: None });
        }
        let manifest = match extents.last() {
            Some(last) => newest_manifest(capacity, last.extent, last.end, descriptor.id).await?,
            None => Manifest {
                partition: descriptor.id,
                epoch: descriptor.epoch,
                previous: None,
                flushed: Sequence::new(0),
                time: Timestamp::ZERO,
                runs: Vec::new(),
                answers: Answers::default(),
            },
        };
        Ok(Self {
            capacity,
            keys: descriptor.keys.clone(),
            extents,
            reader: None,
            at: 0,
            sequence: manifest.flushed,
            applied: manifest.flushed,
            epoch: Epoch::new(0),
            epoch_max: descriptor.epoch,
            time: manifest.time,
            highest: Vec::new(),
            link: None,
            answers: Answers::default(),
            health: None,
            manifest,
        })
    }

    /// Counts violated invariants there too.
    pub(crate) fn reporting_to(self, health: TaskHealth) -> Self {
        Self { health: Some(health), ..self }
    }

    /// The error of a log that violates an invariant.
    fn violated(&self, extent: ExtentId, violation: &Violation) -> Error {
        if let Some(health) = &self.health {
            violation.report(health, format_args!("log {extent}"));
        }
        damaged(extent, violation)
    }

    /// The newest manifest.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The newest commit so far.
    pub(crate) fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Applies one record; false at the end. If the log is still being written, a later call may
    /// find more.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unavailable`].
    pub(crate) async fn step(&mut self, tables: &Tables) -> Result<bool, Error> {
        let Some(LogPart { extent, end }) = self.extents.get(self.at).copied() else {
            return Ok(false);
        };
        let mut reader = self.reader.take().unwrap_or_else(|| {
            self.highest.push(Sequence::new(0));
            LogReader::new(self.capacity, extent, end)
        });
        match reader.next().await? {
            Some(Record::Batch(batch)) => self.apply(extent, &batch, tables)?,
            Some(Record::Manifest(manifest)) => {
                self.check_epoch(extent, manifest.epoch)?;
                // It has those of all records before it, but for settled ones.
                self.answers = manifest.answers;
            }
            None => {
                self.link = Some(Link { extent, end: reader.offset() });
                if self.at + 1 == self.extents.len() {
                    self.reader = Some(reader);
                    return Ok(false);
                }
                self.at += 1;
                return Ok(true);
            }
        }
        self.reader = Some(reader);
        Ok(true)
    }

    /// The position after the last record read; `None` before the end of an extent was reached.
    pub(crate) fn link(&self) -> Option<Link> {
        self.link
    }

    /// The answers to writes that may be sent again, as of the last record read.
    pub(crate) fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Ends the replay and returns its result.
    pub(crate) fn finish(self) -> Replayed {
        Replayed {
            manifest: self.manifest,
            sequence: self.sequence,
            time: self.time,
            highest: self.highest,
            link: self.link,
            answers: self.answers,
        }
    }

    /// Checks that epochs never decrease along a log, and that none is above the owner's (I2).
    fn check_epoch(&mut self, extent: ExtentId, epoch: Epoch) -> Result<(), Error> {
        let before = std::mem::replace(&mut self.epoch, epoch);
        let rises = before <= epoch && epoch <= self.epoch_max;
        let checked = Invariant::OneOwner.assert(rises, || {
            format!("epoch {epoch} follows {before}, and the owner's is {}", self.epoch_max)
        });
        checked.map_err(|violation| self.violated(extent, &violation))
    }

    /// Inserts the rows of new commits. Commits that were applied before or are in runs change
    /// nothing (I14). A gap in the numbers would mean lost commits and is refused.
    fn apply(&mut self, extent: ExtentId, batch: &Batch, tables: &Tables) -> Result<(), Error> {
        self.time = self.time.max(batch.time);
        // Whether its rows are in runs or not.
        batch.answers.iter().cloned().for_each(|answer| self.answers.keep(answer));
        if let Some(highest) = self.highest.last_mut() {
            *highest = batch.last().max(*highest);
        }
        if batch.last() <= self.sequence {
            return Ok(());
        }
        if batch.first > self.sequence.plus(1) {
            return Err(damaged(extent, format!("commits before {} are missing", batch.first)));
        }
        let mut commits = batch.rows().ok_or_else(|| damaged(extent, "its rows are malformed"))?;
        let mut is_shared = false;
        for commit in &mut commits {
            let all = commit.changes.len();
            commit.changes.retain(|row| self.keys.contains(&row.key));
            is_shared |= commit.changes.len() < all;
        }
        // If the record holds rows of other partitions, own rows are copied: a reference would keep
        // the whole record in memory.
        let own = |bytes: Bytes| if is_shared { Bytes::copy_from_slice(&bytes) } else { bytes };
        for (number, commit) in (0u64..).zip(commits) {
            let sequence = batch.first.plus(number);
            if sequence <= self.sequence {
                continue;
            }
            Invariant::ReplayOnce
                .assert(sequence > self.applied, || format!("commit {sequence} is applied again"))
                .map_err(|violation| self.violated(extent, &violation))?;
            self.applied = sequence;
            for RowChange { family, key, value } in commit.changes {
                tables.insert(family, own(key), sequence, value.map(own));
            }
        }
        self.sequence = batch.last();
        Ok(())
    }
}

/// Reads the manifest that an extent starts with. It is of this partition, or of one that it was
/// split from.
async fn first_manifest(capacity: &dyn Capacity, extent: ExtentId) -> Result<Manifest, Error> {
    match LogReader::new(capacity, extent, None).next().await? {
        Some(Record::Manifest(manifest)) => Ok(manifest),
        Some(_) | None => Err(damaged(extent, "it does not start with a manifest")),
    }
}

async fn newest_manifest(
    capacity: &dyn Capacity,
    extent: ExtentId,
    end: Option<u64>,
    partition: PartitionId,
) -> Result<Manifest, Error> {
    let mut newest = first_manifest(capacity, extent).await?;
    if newest.partition != partition {
        return Err(damaged(extent, "it does not start with the partition's manifest"));
    }
    let mut reader = LogReader::new(capacity, extent, end);
    while let Some(record) = reader.next().await? {
        if let Record::Manifest(manifest) = record {
            newest = manifest;
        }
    }
    Ok(newest)
}

fn damaged(extent: ExtentId, what: impl Display) -> Error {
    Error::damaged_rows(format!("log extent {extent}: {what}"))
}

#[cfg(test)]
mod tests;
