//! Verification of the data directory of a stopped node, for `blockyard check`: all checksums of
//! frames, headers and journal batches. Changes nothing.

#![deny(clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::capacity::ExtentKind;
use crate::capacity::OpenError;
use crate::capacity::ScrubReport;
use crate::capacity::disk::format;
use crate::capacity::disk::scrub::{Findings, scrub_range};
use crate::capacity::disk::store::{extent_of, path_of};
use crate::capacity::extent::frame::verify_frames;
use crate::capacity::extent::header::{Header, Slot, padding_at, padding_len, parse_padding};
use crate::capacity::extent::map::Body;
use crate::capacity::extent::ranges::Ranges;
use crate::capacity::extent::walk::Walker;
use crate::capacity::journal::create::JOURNAL;
use crate::capacity::journal::layout::Record;
use crate::capacity::journal::replay::{JournalError, Replay};
use crate::capacity::units::{PAGE, index, offset_up, size};
use crate::env::{Disk, DiskError, DiskFile};
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// The progress of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckProgress {
    /// Extents that were checked.
    pub extents: u64,
    /// Extents in all.
    pub extents_total: u64,
    /// Frame bytes verified.
    pub bytes: u64,
}

/// A problem of a data directory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The journal cannot be replayed, so the disk could not be opened.
    #[error("journal: {reason}")]
    Journal {
        /// Why, in words.
        reason: String,
    },
    /// An extent's first page, or its map, is damaged.
    #[error("extent {extent}: first page damaged")]
    Header {
        /// The extent.
        extent: ExtentId,
    },
    /// A frame is damaged. If its location was freed, nothing is lost.
    #[error("extent {extent}: frame at {offset} damaged")]
    Frame {
        /// The extent.
        extent: ExtentId,
        /// Where the frame starts.
        offset: u64,
    },
    /// An open extent ends before its last record in the journal.
    #[error("extent {extent}: acknowledged bytes from {from} to {to} are missing")]
    Missing {
        /// The extent.
        extent: ExtentId,
        /// Where its intact frames end.
        from: u64,
        /// Where its last record in the journal ends.
        to: u64,
    },
    /// A file cannot be read.
    #[error("extent {extent}: {reason}")]
    Unreadable {
        /// The extent.
        extent: ExtentId,
        /// Why, in words.
        reason: String,
    },
}

/// The state of an extent that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedExtent {
    /// The extent.
    pub extent: ExtentId,
    /// Its kind.
    pub kind: ExtentKind,
    /// Whether it is sealed. The next start seals an open extent.
    pub sealed: bool,
    /// If sealed, its length; if open, where its intact frames end.
    pub len: u64,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Extents with a good first page.
    pub extents: Vec<CheckedExtent>,
    /// Frames that were examined in sealed extents, and intact frames of open ones.
    pub frames: u64,
    /// Bytes of intact frames.
    pub bytes: u64,
    /// Extent and offset of frames with a page of zeros: they were freed and a page was given back,
    /// or a page was lost. A frame that the index names is damaged.
    pub holed: Vec<(ExtentId, u64)>,
    /// Journal records that a start would replay.
    pub journal_records: u64,
    /// All problems.
    pub problems: Vec<Problem>,
}

/// Verifies one disk of a stopped store. Calls `progress` after each extent.
///
/// # Errors
/// [`OpenError`] if it is not a data directory of a known format, or cannot be listed. Damage is in
/// the report.
pub async fn check_disk(
    disk: &Arc<dyn Disk>,
    place: usize,
    progress: &mut (dyn FnMut(CheckProgress) + Send),
) -> Result<CheckReport, OpenError> {
    let failed = |error| OpenError::Disk { disk: place, error };
    let format = format::read(disk, place).await?;
    let store = format.and_then(|format| format.store_id());
    let store = store.ok_or(OpenError::NoFormat { disk: place })?;
    let mut report = CheckReport::default();
    let mut records = journal_records(disk, &mut report).await.map_err(failed)?;
    let names = disk.list("extents").await.map_err(failed)?;
    let ids: Vec<ExtentId> = names.iter().filter_map(|name| extent_of(name)).collect();
    let mut at = CheckProgress { extents_total: size(ids.len()), ..CheckProgress::default() };
    for id in ids {
        let records = records.remove(&id).unwrap_or_default();
        if let Err(error) = check_extent(disk, id, store, &records, &mut report).await {
            let reason = error.to_string();
            report.problems.push(Problem::Unreadable { extent: id, reason });
        }
        at.extents += 1;
        at.bytes = report.bytes;
        progress(at);
    }
    Ok(report)
}

async fn journal_records(
    disk: &Arc<dyn Disk>,
    report: &mut CheckReport,
) -> Result<BTreeMap<ExtentId, Vec<Record>>, DiskError> {
    let mut by_extent: BTreeMap<ExtentId, Vec<Record>> = BTreeMap::new();
    let file = disk.open(JOURNAL).await?;
    let walk = async {
        let mut replay = Replay::open(file).await?;
        while let Some(records) = replay.next().await? {
            for record in records {
                report.journal_records += 1;
                by_extent.entry(record.extent).or_default().push(record);
            }
        }
        Ok::<(), JournalError>(())
    };
    if let Err(error) = walk.await {
        report.problems.push(Problem::Journal { reason: error.to_string() });
    }
    Ok(by_extent)
}

async fn check_extent(
    disk: &Arc<dyn Disk>,
    id: ExtentId,
    store: u128,
    records: &[Record],
    report: &mut CheckReport,
) -> Result<(), DiskError> {
    let file = disk.open(&path_of(id)).await?;
    let page = file.read_at(0, index(PAGE)).await?;
    let header = Header::parse(&page).filter(|h| h.extent == id && h.store == store);
    let (Some(header), Some(slot)) = (header, Slot::parse(&page)) else {
        // A file without frames was left by a creation that was never acknowledged.
        if file.len().await? > PAGE {
            report.problems.push(Problem::Header { extent: id });
        }
        return Ok(());
    };
    let len = if slot.sealed {
        check_sealed(&file, id, &slot, report).await?;
        slot.len
    } else {
        check_open(&file, id, records, report).await?
    };
    report.extents.push(CheckedExtent {
        extent: id,
        kind: header.kind,
        sealed: slot.sealed,
        len: len.get(),
    });
    Ok(())
}

async fn check_sealed(
    file: &Arc<dyn DiskFile>,
    id: ExtentId,
    slot: &Slot,
    report: &mut CheckReport,
) -> Result<(), DiskError> {
    let Some(body) = Body::load(Arc::clone(file), slot).await? else {
        report.problems.push(Problem::Header { extent: id });
        return Ok(());
    };
    let live = match &body.map {
        Some(map) => map.ranges(),
        None => {
            let list = file.read_at(padding_at(slot.len).get(), index(padding_len(slot.padding)));
            let padding = parse_padding(&list.await?, slot).unwrap_or_default();
            padding.into_iter().collect::<Ranges>().gaps(slot.len).into_iter().collect()
        }
    };
    let mut walker = Walker::new(body, id);
    let mut found = Findings::default();
    for range in live.iter() {
        scrub_range(&mut walker, id, range, &mut found).await?;
    }
    report.holed.extend(found.holed.into_iter().map(|offset| (id, offset.get())));
    add(report, &found.report);
    Ok(())
}

/// Checks an open extent: the frames in its file, continued by those in the journal. Returns where
/// its intact frames end.
async fn check_open(
    file: &Arc<dyn DiskFile>,
    id: ExtentId,
    records: &[Record],
    report: &mut CheckReport,
) -> Result<ExtentOffset, DiskError> {
    let mut walker = Walker::new(Body::plain(Arc::clone(file)), id);
    let mut end = ExtentOffset::START;
    // Records are in the order in which they were queued, so their offsets ascend.
    let mut queued = records.iter();
    loop {
        let reach = walker.follow(end).await?;
        report.frames += reach.frames;
        report.bytes += reach.end - end;
        end = reach.end;
        let Some(covered) = queued.find_map(|record| continues(record, id, end)) else { break };
        report.frames += 1;
        report.bytes += covered.end - covered.start;
        end = covered.end;
    }
    let known = records.iter().map(|record| record.range().end).max().unwrap_or_default();
    if known > end {
        report.problems.push(Problem::Missing { extent: id, from: end.get(), to: known.get() });
    }
    Ok(end)
}

/// The range that a record adds to an extent that ends at `end`.
fn continues(record: &Record, id: ExtentId, end: ExtentOffset) -> Option<Range<ExtentOffset>> {
    if record.range().end <= end {
        return None;
    }
    let bytes: Bytes = record.pieces.concat().into();
    let covered = verify_frames(&bytes, id, record.offset)?;
    (record.offset <= offset_up(end) && covered > end).then_some(end..covered)
}

fn add(report: &mut CheckReport, found: &ScrubReport) {
    report.frames += found.frames;
    report.bytes += found.bytes;
    let frames = found
        .corrupt
        .iter()
        .map(|&(extent, offset)| Problem::Frame { extent, offset: offset.get() });
    report.problems.extend(frames);
}
