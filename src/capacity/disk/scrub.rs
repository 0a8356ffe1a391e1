//! Scrub: reads and verifies every live frame in the background, so that damage is found before a
//! client reads it.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::capacity::Damage;
use crate::capacity::Error;
use crate::capacity::ScrubReport;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::memory::{Extent, Status};
use crate::capacity::extent::walk::{Found, Walker};
use crate::capacity::units::{PAGE, offset_down, offset_up};
use crate::env::{Clock, DiskError, Env};
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// Pause from the start of the node to the first round.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// How often the scrub searches for extents to examine between two rounds.
const SETTLED_PAUSE: Duration = Duration::from_secs(600);

/// Which extents to examine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// All extents.
    All,
    /// Extents in which the scrub found holes, and of which an audit has since determined the freed
    /// frames.
    Settled,
}

/// The times of rounds.
pub(crate) struct Schedule {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stop: CancellationToken,
    /// Pause between the end of a round and the next one.
    pub(crate) pause: Duration,
}

/// The result of examining live ranges.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) report: ScrubReport,
    /// Offsets of frames with a page of zeros: a free gave the page back, or it was lost.
    pub(crate) holed: Vec<ExtentOffset>,
    /// Places at or before damage where a frame starts or has ended.
    pub(crate) places: Vec<ExtentOffset>,
    /// The same, before pages of zeros.
    pub(crate) places_of_holes: Vec<ExtentOffset>,
    /// The last such place. Behind it there may be no frame.
    boundary: ExtentOffset,
}

impl Findings {
    /// Notes damage behind the last place where a frame starts or has ended.
    fn note(&mut self) {
        if self.places.last() != Some(&self.boundary) {
            self.places.push(self.boundary);
        }
    }

    /// As [`Self::note`], of a page of zeros.
    fn note_hole(&mut self, at: ExtentOffset) {
        if self.places_of_holes.last() != Some(&self.boundary) {
            self.places_of_holes.push(self.boundary);
        }
        self.holed.push(at);
    }
}

/// Scrubs in rounds until the schedule's `stop`; settled extents are examined between two rounds.
/// `ids` returns `None` once the node is gone; `one` scrubs an extent that is still here.
pub(crate) async fn rounds<F>(
    Schedule { clock, stop, pause }: Schedule,
    ids: impl Fn(Which) -> Option<Vec<ExtentId>>,
    one: impl Fn(ExtentId) -> F,
) where
    F: Future<Output = Option<Result<ScrubReport, Error>>>,
{
    // The first round begins soon: otherwise a node that is restarted more often than the pause
    // would never be scrubbed.
    let mut next_round = clock.monotonic() + pause.min(FIRST_PAUSE);
    let mut next_check = clock.monotonic() + SETTLED_PAUSE;
    let (mut round, mut settled, mut in_round) = (Vec::new(), Vec::new(), false);
    loop {
        let now = clock.monotonic();
        if now >= next_check {
            let Some(ids) = ids(Which::Settled) else { return };
            (settled, next_check) = (ids, now + SETTLED_PAUSE);
        }
        if !in_round && now >= next_round {
            let Some(ids) = ids(Which::All) else { return };
            (round, in_round) = (ids.into_iter().rev().collect(), true);
        }
        let Some(id) = settled.pop().or_else(|| round.pop()) else {
            if std::mem::take(&mut in_round) {
                next_round = now + pause;
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = clock.sleep(next_round.min(next_check).saturating_sub(now)) => {}
            }
            continue;
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            scrubbed = one(id) => if let Some(Err(error)) = scrubbed {
                tracing::warn!(
                    %error,
                    "the scrub could not read all of an extent; check the disk for read errors"
                );
            }
        }
    }
}

impl Store {
    /// Verifies every live frame of an extent that is in its file. `pace` is in bytes per second; 0
    /// means no limit.
    pub(crate) async fn scrub(
        &self,
        extent: &Arc<Extent>,
        pace: u64,
    ) -> Result<ScrubReport, Error> {
        let body = match self.body(extent).await {
            // Without the first page or the map, no frame can be found.
            Err(Error::Corrupt { extent: id, offset }) => {
                self.metrics.corrupt_frames.inc();
                tracing::error!(
                    extent = %id,
                    "the scrub found a damaged first page or map: no frame of the extent can be \
                     read"
                );
                self.note_damage(extent, offset);
                scrubbed(extent, false);
                return Ok(ScrubReport { corrupt: vec![(id, offset)], ..ScrubReport::default() });
            }
            // The file is missing.
            Err(error @ Error::NoSuchExtent { .. }) if extent.state().status == Status::Here => {
                self.note_damage(extent, ExtentOffset::START);
                return Err(error);
            }
            body => body?,
        };
        let (live, frees) = {
            let state = extent.state();
            (state.dead.gaps(state.written), state.frees)
        };
        let mut walker = Walker::new(body, extent.id);
        let mut found = Findings::default();
        let (mut unsure, mut unreadable) = (0_usize, None);
        for range in live {
            let from = found.report.bytes;
            if let Err(error) = scrub_range(&mut walker, extent.id, range, &mut found).await {
                // Later live ranges are still examined.
                found.note();
                unreadable.get_or_insert(error);
            }
            let mut places = std::mem::take(&mut found.places);
            let of_holes = std::mem::take(&mut found.places_of_holes);
            if !frees.may_lack_any() {
                places.extend(of_holes);
            }
            places.into_iter().for_each(|at| self.note_damage(extent, at));
            let Findings { report, holed, .. } = &mut found;
            let holed = std::mem::take(holed);
            if frees.may_lack_any() {
                unsure += holed.len();
            } else {
                // All freed ranges are known, so a page of zeros in a live frame is a lost page.
                report.corrupt.extend(holed.into_iter().map(|at| (extent.id, at)));
            }
            pause(&self.env, report.bytes - from, pace).await;
        }
        let Findings { mut report, .. } = found;
        if unsure > 0 {
            tracing::info!(
                extent = %extent.id, frames = unsure,
                "the scrub found frames with holes; they are examined again after the next audit"
            );
        }
        scrubbed(extent, unsure > 0);
        self.metrics.scrubbed_frames.inc_by(report.frames);
        // Frames that were freed during the scrub are not damaged.
        report.corrupt.retain(|&(_, offset)| still_live(extent, offset));
        for &(id, offset) in &report.corrupt {
            self.metrics.corrupt_frames.inc();
            let offset = offset.get();
            tracing::error!(
                extent = %id, offset,
                "the scrub found a damaged frame; `blockyard check` lists all damage"
            );
        }
        match unreadable {
            Some(error) => Err(Error::Unreadable { extent: extent.id, reason: error.to_string() }),
            None => Ok(report),
        }
    }

    /// Notes damage for those who mend it.
    pub(crate) fn note_damage(&self, extent: &Extent, offset: ExtentOffset) {
        self.damages.note(Damage { extent: extent.id, offset });
    }
}

/// Records that an extent was examined.
fn scrubbed(extent: &Extent, has_holes: bool) {
    let mut state = extent.state();
    state.frees = state.frees.after_scrub(has_holes);
}

/// Examines the frames of one live range, up to its end or to a failed read.
pub(crate) async fn scrub_range(
    walker: &mut Walker,
    extent: ExtentId,
    range: Range<ExtentOffset>,
    found: &mut Findings,
) -> Result<(), DiskError> {
    found.boundary = range.start;
    let mut at = range.start;
    let mut hole = false;
    while at < range.end {
        match walker.examine(at).await? {
            Found::Frame { end } => {
                found.report.frames += 1;
                found.report.bytes += end - at;
                (at, found.boundary) = (end, end);
                hole = false;
            }
            Found::Damaged { end, holed } => {
                found.report.frames += 1;
                found.boundary = at;
                if holed {
                    found.note_hole(at);
                } else {
                    found.note();
                    found.report.corrupt.push((extent, at));
                }
                (at, found.boundary) = (end, end);
                hole = false;
            }
            Found::Nothing if walker.is_hole(at).await? => {
                // Padding never begins at the start of a page, so this was a frame.
                if at.get().is_multiple_of(PAGE) && !hole {
                    found.note_hole(at);
                }
                // If other bytes are in the page, this is padding. Otherwise the page may have been
                // given back by a free that the catalog has lost, and the bytes after it may be the
                // rest of a freed frame.
                hole = walker.is_hole(offset_down(at)).await?;
                at = offset_up(at + 1);
            }
            Found::Nothing => {
                if offset_up(at + 1) < range.end && walker.before_hole(at).await? {
                    found.note_hole(at);
                } else if !hole {
                    found.note();
                    found.report.corrupt.push((extent, at));
                }
                at = walker.search(at + 1..range.end).await?.unwrap_or(range.end);
                hole = false;
            }
        }
    }
    Ok(())
}

fn still_live(extent: &Extent, offset: ExtentOffset) -> bool {
    let state = extent.state();
    state.status == Status::Here && state.dead.at(offset).is_none()
}

/// Sleeps as long as `bytes` take at this pace.
pub(crate) async fn pause(env: &Env, bytes: u64, pace: u64) {
    if let Some(ms) = (bytes * 1000).checked_div(pace)
        && ms > 0
    {
        env.clock.sleep(Duration::from_millis(ms)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::env::clock::SimClock;

    const fn hours(count: u64) -> Duration {
        Duration::from_secs(3600 * count)
    }

    /// Scrubs three extents for 25 hours. Each takes `takes`, and an audit settles `settled` once,
    /// after `after` minutes. Returns the minute and the id of each scrub.
    async fn scrubbed_at(takes: Duration, (settled, after): (u64, u64)) -> Vec<(u64, u64)> {
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let (begun, stop) = (clock.monotonic(), CancellationToken::new());
        let minutes = || (clock.monotonic() - begun).as_secs() / 60;
        let seen = Mutex::new(Vec::new());
        let one = |id: ExtentId| {
            seen.lock().unwrap().push((minutes(), id.get()));
            async {
                clock.sleep(takes).await;
                Some(Ok(ScrubReport::default()))
            }
        };
        let is_to_do = std::cell::Cell::new(true);
        let ids = |which| {
            let settled = [settled];
            let ids: &[u64] = match which {
                Which::All => &[1, 2, 3],
                Which::Settled if minutes() >= after && is_to_do.take() => &settled,
                Which::Settled => &[],
            };
            Some(ids.iter().copied().map(ExtentId::new).collect())
        };
        let rounds =
            rounds(Schedule { clock: Arc::clone(&clock), stop, pause: hours(24) }, ids, one);
        drop(tokio::time::timeout(hours(25), rounds).await);
        seen.into_inner().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn settled_extents_are_examined_again_between_rounds() {
        let seen = scrubbed_at(Duration::ZERO, (3, 25)).await;
        let day = 24 * 60;
        assert_eq!(seen, [(0, 1), (0, 2), (0, 3), (30, 3), (day, 1), (day, 2), (day, 3)]);
    }

    /// A round of a large store takes days.
    #[tokio::test(start_paused = true)]
    async fn settled_extents_do_not_wait_for_the_end_of_a_round() {
        let seen = scrubbed_at(hours(10), (1, 15)).await;
        assert_eq!(seen, [(0, 1), (600, 1), (1200, 2)]);
    }
}
