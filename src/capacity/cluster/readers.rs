//! Reads.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;

use super::At;
use super::ClusterCapacity;
use super::Found;
use super::latencies::SLOW_READ;
use super::latencies::SMALL_READ;
use super::of_another_node;
use crate::capacity::CopyInfo;
use crate::capacity::Damage;
use crate::capacity::Error;
use crate::capacity::ExtentInfo;
use crate::capacity::ExtentState;
use crate::capacity::LogFrame;
use crate::capacity::Member;
use crate::capacity::RawFrame;
use crate::capacity::ScrubReport;
use crate::capacity::groups::GroupAt;
use crate::capacity::groups::GroupRecord;
use crate::capacity::member::verify;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;
use crate::types::NodeId;

/// Bytes of frames that are asked for together.
pub(super) const FRAMES_BYTES: u64 = 1 << 20;

/// Places from which the next frames are kept.
const STRETCHES_MAX: usize = 128;

/// Frames that replays will ask for next, by where they will ask.
#[derive(Debug, Default)]
pub(super) struct Stretches(Mutex<BTreeMap<Place, VecDeque<LogFrame>>>);

/// Where a replay goes on.
type Place = (ExtentId, ExtentOffset);

impl Stretches {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Place, VecDeque<LogFrame>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next frame from a place on, if it is kept.
    fn take(&self, place: Place) -> Option<LogFrame> {
        let frames = self.lock().remove(&place)?;
        self.keep(place, frames)
    }

    /// Keeps frames that follow from a place on, but for the first one, which is returned.
    fn keep(&self, (extent, _): Place, mut frames: VecDeque<LogFrame>) -> Option<LogFrame> {
        let first = frames.pop_front()?;
        if !frames.is_empty() {
            let mut kept = self.lock();
            if kept.len() >= STRETCHES_MAX {
                kept.pop_first();
            }
            kept.insert((extent, first.next), frames);
        }
        Some(first)
    }

    /// Forgets what is kept of an extent.
    pub(super) fn forget(&self, extent: ExtentId) {
        self.lock().retain(|(kept, _), _| *kept != extent);
    }
}

/// The failures of the members that were asked for one thing: the one that says the most.
#[derive(Debug, Default)]
pub(super) struct Failures(Option<Error>);

impl Failures {
    pub(super) fn add(&mut self, error: Error) {
        if self.0.as_ref().is_none_or(|known| weight(&error) > weight(known)) {
            self.0 = Some(error);
        }
    }

    /// If nobody was asked, nobody was reached.
    pub(super) fn into_error(self) -> Error {
        let reason = || "no member of the extent can be reached".to_owned();
        self.0.map_or_else(|| Error::NoAnswer { reason: reason() }, of_another_node)
    }
}

/// The bytes of a member that did not answer may be intact, those of a damaged copy are not, and a
/// member without a copy says the least: another one may have it.
const fn weight(error: &Error) -> u8 {
    match error {
        Error::NoSuchExtent { .. } => 0,
        Error::Corrupt { .. } => 1,
        Error::Sealed { .. }
        | Error::WrongOffset { .. }
        | Error::Full
        | Error::Poisoned { .. }
        | Error::Ended { .. }
        | Error::OutOfService { .. }
        | Error::NoAnswer { .. }
        | Error::Unreadable { .. } => 2,
        Error::Fenced { .. } => 3,
    }
}

impl ClusterCapacity {
    pub(super) async fn read_any(
        &self,
        location: &Location,
        range: Range<u64>,
    ) -> Result<Vec<Bytes>, Error> {
        let Found { record, .. } = self.find(location.extent).await?;
        let mut failures = self.failures(&record);
        let read = |at: At| {
            let range = range.clone();
            async move {
                let read = at.member.read(location, range.clone()).await;
                (at, read.and_then(|parts| verify(location, &range, &parts)))
            }
        };
        let clock = &self.env.clock;
        let is_small = range.end.saturating_sub(range.start) <= SMALL_READ;
        let mut members = self.reachable(&record).into_iter();
        let (mut reads, mut damaged) = (FuturesUnordered::new(), Vec::new());
        // Who is asked, since when.
        let mut asked: BTreeMap<NodeId, Duration> = BTreeMap::new();
        // The next member is asked too when one is slow or fails.
        loop {
            let mut patience = SLOW_READ;
            match members.next() {
                Some(at) => {
                    if is_small {
                        let others = members.as_slice().iter().map(|at| at.node);
                        patience = self.latencies.patience(at.node, others);
                    }
                    asked.insert(at.node, clock.monotonic());
                    reads.push(read(at));
                }
                None if reads.is_empty() => return Err(failures.into_error()),
                None => {}
            }
            let is_last = members.len() == 0;
            tokio::select! {
                biased;
                Some((At { node, member }, answer)) = reads.next() => match answer {
                    Ok(pieces) => {
                        if is_small {
                            // Those that were asked before and have not answered are slower.
                            let (now, since) = (clock.monotonic(), asked.get(&node).copied());
                            asked.retain(|_, other| Some(*other) <= since);
                            for (node, since) in asked {
                                self.latencies.note(node, now.saturating_sub(since));
                            }
                        }
                        // Where another copy is good, it is the copy that is damaged.
                        for (member, damage) in damaged {
                            self.tell_of_damage(member, damage);
                        }
                        return Ok(pieces);
                    }
                    Err(error) => {
                        asked.remove(&node);
                        if let Error::Corrupt { extent, offset } = error {
                            damaged.push((member, Damage { extent, offset }));
                        }
                        failures.add(error);
                    }
                },
                () = clock.sleep(patience), if !is_last => {}
            }
        }
    }

    /// The frame at or after an offset, before the end of the extent.
    ///
    /// Nobody but the writer knows where an open extent ends. A copy that missed the agreement on
    /// an end may be too short, or have frames that were cut off elsewhere.
    pub(super) async fn next_frame_of(
        &self,
        extent: ExtentId,
        offset: ExtentOffset,
    ) -> Result<Option<LogFrame>, Error> {
        if let Some(frame) = self.stretches.take((extent, offset)) {
            return Ok(Some(frame));
        }
        let Found { record, .. } = self.find(extent).await?;
        let reachable = self.reachable(&record);
        let end = self.end_of(extent, &record, &reachable).await?;
        if offset >= end {
            return Ok(None);
        }
        let (mut failures, mut damaged) = (self.failures(&record), Vec::new());
        for At { member, .. } in &reachable {
            match frames_until(&**member, extent, offset..end).await {
                Ok(frames) if frames.is_empty() => return Ok(None),
                Ok(frames) => {
                    for (member, damage) in damaged {
                        self.tell_of_damage(member, damage);
                    }
                    return Ok(self.stretches.keep((extent, offset), frames));
                }
                Err(error) => {
                    if matches!(error, Error::Corrupt { .. }) {
                        damaged.push((Arc::clone(member), Damage { extent, offset }));
                    }
                    failures.add(error);
                }
            }
        }
        Err(failures.into_error())
    }

    /// Where an extent ends: as its writer here knows, as it is recorded, or as a sealed copy says.
    async fn end_of(
        &self,
        extent: ExtentId,
        record: &GroupRecord,
        members: &[At],
    ) -> Result<ExtentOffset, Error> {
        if let Some(writing) = self.writers.get(extent) {
            return Ok(writing.writer.lock().await.end());
        }
        if let Some(end) = record.length(extent) {
            return Ok(end);
        }
        let mut failures = self.failures(record);
        for At { node, member } in members {
            match self.soon(*node, member.copy(extent)).await {
                Ok(Some(copy)) if copy.state == ExtentState::Sealed => return Ok(copy.end),
                Ok(Some(_)) => {
                    let reason = format!("it is not agreed where {extent} ends");
                    failures.add(Error::NoAnswer { reason });
                }
                Ok(None) => failures.add(Error::NoSuchExtent { extent }),
                Err(error) => failures.add(error),
            }
        }
        Err(failures.into_error())
    }

    /// All extents of which a member that can be reached has a copy, by ids.
    pub(super) async fn all_extents(&self) -> Vec<ExtentInfo> {
        let mut found = Vec::new();
        for GroupAt { record, .. } in self.groups.all() {
            let reachable = self.reachable(&record);
            let group = record.id();
            let mut absent = record.gone();
            for At { node, member } in &reachable {
                if let Ok(report) = self.soon(*node, member.report(group)).await {
                    absent = absent.with(report.absent);
                    break;
                }
            }
            let kept = group.extents().filter(|extent| !absent.has(*extent));
            let infos = kept.map(|extent| self.info_of(&reachable, extent));
            found.extend(join_all(infos).await.into_iter().flatten());
        }
        found
    }

    /// What the first member says that answers. Members compute how much is freed, so it is not
    /// known here, and on which disk a copy lies is nobody else's concern.
    async fn info_of(&self, members: &[At], extent: ExtentId) -> Option<ExtentInfo> {
        for At { node, member } in members {
            if let Ok(Some(copy)) = self.soon(*node, member.copy(extent)).await {
                let CopyInfo { kind, state, epoch, end, .. } = copy;
                let (len, freed, disk) = (end.get(), 0, 0);
                return Some(ExtentInfo { extent, kind, state, epoch, len, freed, disk });
            }
        }
        None
    }

    /// Reads the frames of every copy that can be reached, up to the first damaged one of each.
    pub(super) async fn scrub_all(&self, extent: ExtentId) -> Result<ScrubReport, Error> {
        let Found { record, .. } = self.find(extent).await?;
        let mut report = ScrubReport::default();
        for At { member, .. } in self.reachable(&record) {
            let mut from = ExtentOffset::START;
            // Behind a damaged frame nothing is found.
            loop {
                let frames = match member.frames(extent, from, FRAMES_BYTES).await {
                    Ok(frames) => frames,
                    Err(Error::Corrupt { offset, .. }) => {
                        report.corrupt.push((extent, offset));
                        break;
                    }
                    Err(Error::NoSuchExtent { .. }) => break,
                    Err(error) => return Err(of_another_node(error)),
                };
                let Some(last) = frames.last() else { break };
                let end = last.verified(extent).map(|frame| frame.next);
                let Some(end) = end.filter(|end| *end > from) else {
                    report.corrupt.push((extent, last.offset));
                    break;
                };
                for frame in &frames {
                    report.frames += 1;
                    report.bytes += frame.bytes.len() as u64;
                    if frame.verified(extent).is_none() {
                        report.corrupt.push((extent, frame.offset));
                    }
                }
                from = end;
            }
        }
        Ok(report)
    }
}

/// The frames of a copy in a part of its extent. None only if the rest of the part is dead.
async fn frames_until(
    member: &dyn Member,
    extent: ExtentId,
    part: Range<ExtentOffset>,
) -> Result<VecDeque<LogFrame>, Error> {
    let mut has_all = false;
    loop {
        let frames = member.frames(extent, part.start, FRAMES_BYTES).await?;
        let found = stretch(&frames, extent, part.clone());
        let found = found.ok_or(Error::Corrupt { extent, offset: part.start })?;
        if !found.is_empty() || has_all {
            return Ok(found);
        }
        // The copy may be too short, or may have got its rest after it was asked.
        has_all = member.copy(extent).await?.is_some_and(|copy| copy.end >= part.end);
        if !has_all {
            let reason = format!("a copy of {extent} ends before {}", part.end);
            return Err(Error::NoAnswer { reason });
        }
    }
}

/// The frames of an answer that lie in a part of an extent, up to the first damaged one. `None` if
/// that is the first one.
fn stretch(
    frames: &[RawFrame],
    extent: ExtentId,
    part: Range<ExtentOffset>,
) -> Option<VecDeque<LogFrame>> {
    let mut found = VecDeque::new();
    for frame in frames.iter().filter(|frame| frame.offset < part.end) {
        let next = frame.verified(extent);
        let next = next.filter(|frame| frame.offset >= part.start && frame.next <= part.end);
        match next {
            Some(frame) => found.push_back(frame),
            None if found.is_empty() => return None,
            None => break,
        }
    }
    Some(found)
}
