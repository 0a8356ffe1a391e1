//! Scrubbing: reading every live frame again, before somebody needs it.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::capacity::Error;
use crate::capacity::ScrubReport;
use crate::capacity::extent::{Extent, Status};
use crate::capacity::store::Store;
use crate::capacity::units::{PAGE, page_down, page_up};
use crate::capacity::walk::{Found, Walker};
use crate::env::{Clock, DiskError, Env};
use crate::types::ExtentId;

/// From start to the first round.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// How often to look for extents that are to be examined between two rounds.
const SETTLED_PAUSE: Duration = Duration::from_secs(600);

/// Which extents are examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// All.
    All,
    /// Those of which an audit has settled what the holes are that the scrub found.
    Settled,
}

/// Scrubs in rounds until `stop`; settled extents are examined between two rounds. `ids` answers
/// nothing once the node is gone; `one` scrubs an extent that is still here.
pub(crate) async fn rounds<F>(
    (clock, stop): (Arc<dyn Clock>, CancellationToken),
    pause: Duration,
    ids: impl Fn(Which) -> Option<Vec<ExtentId>>,
    one: impl Fn(ExtentId) -> F,
) where
    F: Future<Output = Option<Result<ScrubReport, Error>>>,
{
    // Soon: a node that is restarted more often than that would never be scrubbed.
    let mut next_round = clock.monotonic() + pause.min(FIRST_PAUSE);
    loop {
        let wait = next_round.saturating_sub(clock.monotonic()).min(SETTLED_PAUSE);
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = clock.sleep(wait) => {}
        }
        let is_round = clock.monotonic() >= next_round;
        let which = if is_round { Which::All } else { Which::Settled };
        let Some(ids) = ids(which) else { return };
        for id in ids {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                scrubbed = one(id) => if let Some(Err(error)) = scrubbed {
                    tracing::warn!(%error, "scrub skipped an extent");
                }
            }
        }
        if is_round {
            next_round = clock.monotonic() + pause;
        }
    }
}

impl Store {
    /// Verifies every live frame of an extent that is in its file. `pace` is bytes per second; 0 is
    /// as fast as it goes.
    pub(crate) async fn scrub(
        &self,
        extent: &Arc<Extent>,
        pace: u64,
    ) -> Result<ScrubReport, Error> {
        let body = match self.body(extent).await {
            // Without its first page and its map no frame of it can be read.
            Err(Error::Corrupt { extent: id, offset }) => {
                self.metrics.corrupt_frames.inc();
                tracing::error!(extent = %id, "scrub: first page or map damaged");
                return Ok(ScrubReport { corrupt: vec![(id, offset)], ..ScrubReport::default() });
            }
            body => body?,
        };
        let (live, frees) = {
            let state = extent.state();
            (state.dead.gaps(state.written), state.frees)
        };
        let mut walker = Walker::new(body, extent.id);
        let mut report = ScrubReport::default();
        let mut unsure = 0_usize;
        for range in live {
            let from = report.bytes;
            let scrubbed = scrub_range(&mut walker, extent.id, range, &mut report).await;
            let holed = scrubbed.map_err(|error| Error::Unreadable {
                extent: extent.id,
                reason: error.to_string(),
            })?;
            if frees.may_lack_any() {
                unsure += holed.len();
            } else {
                report.corrupt.extend(holed.into_iter().map(|offset| (extent.id, offset)));
            }
            pause(&self.env, report.bytes - from, pace).await;
        }
        if unsure > 0 {
            tracing::info!(
                extent = %extent.id, frames = unsure,
                "scrub: frames have holes; they are examined again after the next audit"
            );
        }
        {
            let mut state = extent.state();
            // An audit may have come in between.
            if state.frees == frees {
                state.frees = frees.after_scrub(unsure > 0);
            }
        }
        self.metrics.scrubbed_frames.inc_by(report.frames);
        // Freed while we read: not damage.
        report.corrupt.retain(|&(_, offset)| still_live(extent, offset));
        for &(id, offset) in &report.corrupt {
            self.metrics.corrupt_frames.inc();
            tracing::error!(extent = %id, offset, "scrub: frame damaged");
        }
        Ok(report)
    }
}

/// Follows the frames of one live range. Returns those with zeros for a page: given back by a free,
/// or lost.
pub(crate) async fn scrub_range(
    walker: &mut Walker,
    extent: ExtentId,
    range: Range<u64>,
    report: &mut ScrubReport,
) -> Result<Vec<u64>, DiskError> {
    let mut holed_frames = Vec::new();
    let mut at = range.start;
    let mut hole = false;
    while at < range.end {
        match walker.look(at).await? {
            Found::Frame { end } => {
                report.frames += 1;
                report.bytes += end - at;
                at = end;
                hole = false;
            }
            Found::Damaged { end, holed } => {
                report.frames += 1;
                if holed {
                    holed_frames.push(at);
                } else {
                    report.corrupt.push((extent, at));
                }
                at = end;
                hole = false;
            }
            Found::Nothing if walker.is_hole(at).await? => {
                // Padding, when something else is in its page. Else it may have been given back by
                // a free the catalog has forgotten, and what follows be the rest of a freed frame.
                hole = walker.is_hole(page_down(at)).await?;
                at = (at / PAGE + 1) * PAGE;
            }
            Found::Nothing => {
                if page_up(at + 1) < range.end && walker.before_hole(at).await? {
                    holed_frames.push(at);
                } else if !hole {
                    report.corrupt.push((extent, at));
                }
                at = walker.search(at + 1..range.end).await?.unwrap_or(range.end);
                hole = false;
            }
        }
    }
    Ok(holed_frames)
}

fn still_live(extent: &Extent, offset: u64) -> bool {
    let state = extent.state();
    state.status == Status::Here && state.dead.at(offset).is_none()
}

/// Sleeps as long as `bytes` take at that pace.
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

    /// An audit settles the third extent after 25 minutes.
    #[tokio::test(start_paused = true)]
    async fn settled_extents_are_examined_again_before_the_next_round() {
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let (begun, stop) = (clock.monotonic(), CancellationToken::new());
        let minutes = || (clock.monotonic() - begun).as_secs() / 60;
        let seen = Mutex::new(Vec::new());
        let one = |id: ExtentId| {
            seen.lock().unwrap().push((minutes(), id.get()));
            async { Some(Ok(ScrubReport::default())) }
        };
        let ids = |which| {
            let is_done = seen.lock().unwrap().iter().filter(|(_, id)| *id == 3).count() > 1;
            let settled: &[u64] = if minutes() < 25 || is_done { &[] } else { &[3] };
            let all: &[u64] = if which == Which::All { &[1, 2, 3] } else { settled };
            Some(all.iter().copied().map(ExtentId::new).collect())
        };
        let hours = |n: u64| Duration::from_secs(3600 * n);
        let rounds = rounds((Arc::clone(&clock), stop.clone()), hours(24), ids, one);
        drop(tokio::time::timeout(hours(25), rounds).await);
        let day = 24 * 60;
        let wanted = [(0, 1), (0, 2), (0, 3), (30, 3), (day, 1), (day, 2), (day, 3)];
        assert_eq!(*seen.lock().unwrap(), wanted);
    }
}
