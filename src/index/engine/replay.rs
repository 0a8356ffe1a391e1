//! Replay: the rows of a log that are not in runs yet.

use std::fmt::Display;

use bytes::Bytes;

use crate::capacity::Capacity;
use crate::index::api::Error;
use crate::index::engine::log::manifest::{Link, Manifest};
use crate::index::engine::log::reader::{LogReader, Record};
use crate::index::engine::log::record::Batch;
use crate::index::engine::table::Tables;
use crate::index::map::PartitionDescriptor;
use crate::types::ExtentId;
use crate::types::PartitionId;
use crate::types::PartitionKeys;
use crate::types::Sequence;
use crate::types::Timestamp;

/// A log being replayed, record by record.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    capacity: &'a dyn Capacity,
    /// Rows outside are of the partitions this one was split off with.
    keys: PartitionKeys,
    /// The log's extents and where each validly ends; the last one's end is found by reading it.
    extents: Vec<(ExtentId, Option<u64>)>,
    manifest: Manifest,
    reader: Option<LogReader<'a>>,
    at: usize,
    sequence: Sequence,
    time: Timestamp,
    highest: Vec<Sequence>,
    link: Option<Link>,
}

/// What a replayed log amounts to.
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
    /// Where the log ends.
    pub(crate) link: Option<Link>,
}

impl<'a> Replay<'a> {
    /// Finds the newest manifest and the extents' ends.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unavailable`].
    pub(crate) async fn start(
        capacity: &'a dyn Capacity,
        descriptor: &PartitionDescriptor,
    ) -> Result<Self, Error> {
        let mut extents: Vec<(ExtentId, Option<u64>)> =
            descriptor.log.iter().map(|extent| (*extent, None)).collect();
        for number in 1..extents.len() {
            let (extent, _) = *extents.get(number).expect("counted");
            let (before, end) = extents.get_mut(number - 1).expect("counted");
            let first = first_manifest(capacity, extent).await?;
            let link = first.previous.filter(|link| link.extent == *before);
            let link = link.ok_or_else(|| damaged(extent, "it does not follow its log"))?;
            *end = Some(link.end);
        }
        let manifest = match extents.last() {
            Some((extent, end)) => newest_manifest(capacity, *extent, *end, descriptor.id).await?,
            None => Manifest {
                partition: descriptor.id,
                epoch: descriptor.epoch,
                previous: None,
                flushed: Sequence::new(0),
                time: Timestamp::ZERO,
                runs: Vec::new(),
            },
        };
        Ok(Self {
            capacity,
            keys: descriptor.keys.clone(),
            extents,
            reader: None,
            at: 0,
            sequence: manifest.flushed,
            time: manifest.time,
            highest: Vec::new(),
            link: None,
            manifest,
        })
    }

    /// The newest manifest.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The newest commit so far.
    pub(crate) fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Applies one record; false at the end. A log that is still written to may be asked again
    /// later.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unavailable`].
    pub(crate) async fn step(&mut self, tables: &Tables) -> Result<bool, Error> {
        let Some((extent, end)) = self.extents.get(self.at).copied() else { return Ok(false) };
        let mut reader = self.reader.take().unwrap_or_else(|| {
            self.highest.push(Sequence::new(0));
            LogReader::new(self.capacity, extent, end)
        });
        match reader.next().await? {
            Some(Record::Batch(batch)) => self.apply(extent, &batch, tables)?,
            Some(Record::Manifest(_)) => {}
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

    /// Where reading stands.
    pub(crate) fn link(&self) -> Option<Link> {
        self.link
    }

    /// What came out.
    pub(crate) fn finish(self) -> Replayed {
        Replayed {
            manifest: self.manifest,
            sequence: self.sequence,
            time: self.time,
            highest: self.highest,
            link: self.link,
        }
    }

    /// Inserts what is new. Commits seen before, or in runs, change nothing (I14); a gap would be
    /// lost commits.
    fn apply(&mut self, extent: ExtentId, batch: &Batch, tables: &Tables) -> Result<(), Error> {
        self.time = self.time.max(batch.time);
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
            commit.changes.retain(|(_, key, _)| self.keys.contains(key));
            is_shared |= commit.changes.len() < all;
        }
        // One row of its own must not keep a whole record of others' rows in memory.
        let own = |bytes: Bytes| if is_shared { Bytes::copy_from_slice(&bytes) } else { bytes };
        for (number, commit) in (0u64..).zip(commits) {
            let sequence = batch.first.plus(number);
            if sequence <= self.sequence {
                continue;
            }
            for (family, key, value) in commit.changes {
                tables.insert(family, own(key), sequence, value.map(own));
            }
        }
        self.sequence = batch.last();
        Ok(())
    }
}

/// The manifest an extent starts with: the partition's, or of one that it was split from.
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
    Error::Corrupt(format!("log extent {extent}: {what}"))
}
