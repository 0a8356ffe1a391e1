//! Scrubbing: reading every live frame again, before somebody needs it.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::capacity::Error;
use crate::capacity::ScrubReport;
use crate::capacity::extent::{Extent, Status};
use crate::capacity::store::Store;
use crate::capacity::units::{PAGE, page_down, page_up};
use crate::capacity::walk::{Found, Walker};
use crate::env::{DiskError, Env};
use crate::types::ExtentId;

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
                let frames = holed.len();
                tracing::debug!(
                    extent = %extent.id, frames,
                    "scrub: frames with holes; after the next audit they are freed or damaged"
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
