//! Watches the oldest read. While a read runs, the bytes that it names are not freed.

use std::time::Duration;

use crate::index::OldestRead;
use crate::reclaim::state::Reclaim;
use crate::types::request;

/// The last warning about a long read.
#[derive(Debug, Default)]
pub(super) struct LastWarning(Option<Warning>);

#[derive(Clone, Copy, Debug)]
struct Warning {
    /// The number of the read.
    read: u64,
    /// By the monotonic clock.
    at: Duration,
}

/// Sets the metric with the age of the oldest read, and logs a warning when it is too old. The
/// warning is repeated after each further `read_warn_after`.
pub(super) async fn watch(reclaim: &Reclaim, last: &mut LastWarning) {
    // Without an answer the metric stays as it is until the next look.
    let Ok(oldest) = reclaim.requests.oldest_read().await else { return };
    let now = reclaim.env.clock.monotonic();
    let age = oldest.as_ref().map_or(Duration::ZERO, |read| read.age);
    let seconds = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
    reclaim.metrics.oldest_read_seconds.set(seconds);
    let Some(OldestRead { number, what, request, .. }) = oldest else { return };
    let every = reclaim.config.read_warn_after;
    let is_due = |last: Warning| last.read != number || now.saturating_sub(last.at) >= every;
    if age >= every && last.0.is_none_or(is_due) {
        last.0 = Some(Warning { read: number, at: now });
        reclaim.metrics.long_reads.inc();
        let read = what.as_deref().unwrap_or("a read in one step");
        let _entered = request::enter(request);
        tracing::warn!(
            seconds,
            read,
            "a read has been running for long; no space of its extents is freed until it ends"
        );
    }
}
