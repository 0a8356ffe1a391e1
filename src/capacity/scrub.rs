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
/// Extents with frames in doubt are examined again so often. The first audit comes a minute after
/// the start.
const UNSURE_PAUSE: Duration = Duration::from_secs(600);

/// Scrubs all extents in rounds until `stop`, and between two rounds those with frames in doubt.
/// `ids` are all extents, nothing once the node is gone; `one` scrubs an extent that is still here.
pub(crate) async fn rounds<F>(
    (clock, stop): (Arc<dyn Clock>, CancellationToken),
    pause: Duration,
    ids: impl Fn() -> Option<Vec<ExtentId>>,
    one: impl Fn(ExtentId) -> F,
) where
    F: Future<Output = Option<Result<ScrubReport, Error>>>,
{
    // Soon: a node that is restarted more often than that would never be scrubbed.
    let mut next_round = clock.monotonic() + pause.min(FIRST_PAUSE);
    let mut unsure = Vec::new();
    loop {
        let wait = next_round.saturating_sub(clock.monotonic());
        let wait = if unsure.is_empty() { wait } else { wait.min(UNSURE_PAUSE) };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = clock.sleep(wait) => {}
        }
        let is_round = clock.monotonic() >= next_round;
        let Some(all) = ids() else { return };
        let again = std::mem::take(&mut unsure);
        for id in if is_round { all } else { again } {
            let scrubbed = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                scrubbed = one(id) => scrubbed,
            };
            match scrubbed {
                Some(Ok(report)) if report.unsure > 0 => unsure.push(id),
                Some(Err(error)) => tracing::warn!(%error, "scrub skipped an extent"),
                Some(Ok(_)) | None => {}
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
        let (live, dead_known) = {
            let state = extent.state();
            (state.dead.gaps(state.written), state.dead_known)
        };
        let mut walker = Walker::new(body, extent.id);
        let mut report = ScrubReport::default();
        for range in live {
            let from = report.bytes;
            let scrubbed = scrub_range(&mut walker, extent.id, range, &mut report).await;
            let holed = scrubbed.map_err(|error| Error::Unreadable {
                extent: extent.id,
                reason: error.to_string(),
            })?;
            // Freed ranges are known here: a live frame with a page of zeros has lost it.
            if dead_known {
                report.corrupt.extend(holed.into_iter().map(|offset| (extent.id, offset)));
            } else if !holed.is_empty() {
                report.unsure += holed.len();
                tracing::info!(
                    extent = %extent.id, frames = holed.len(),
                    "scrub: frames have holes; they are examined again after the next audit"
                );
            }
            pause(&self.env, report.bytes - from, pace).await;
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

    /// The third extent has frames in doubt until the audit, 25 minutes after the start.
    #[tokio::test(start_paused = true)]
    async fn extents_in_doubt_are_examined_again_before_the_next_round() {
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        let (begun, stop) = (clock.monotonic(), CancellationToken::new());
        let minutes = || (clock.monotonic() - begun).as_secs() / 60;
        let seen = Mutex::new(Vec::new());
        let one = |id: ExtentId| {
            seen.lock().unwrap().push((minutes(), id.get()));
            let unsure = usize::from(id.get() == 3 && minutes() < 25);
            async move { Some(Ok(ScrubReport { unsure, ..ScrubReport::default() })) }
        };
        let ids = || Some((1..=3).map(ExtentId::new).collect());
        let hours = |n: u64| Duration::from_secs(3600 * n);
        let rounds = rounds((Arc::clone(&clock), stop.clone()), hours(24), ids, one);
        drop(tokio::time::timeout(hours(25), rounds).await);
        let day = 24 * 60;
        let wanted =
            [(0, 1), (0, 2), (0, 3), (10, 3), (20, 3), (30, 3), (day, 1), (day, 2), (day, 3)];
        assert_eq!(*seen.lock().unwrap(), wanted);
    }
}
