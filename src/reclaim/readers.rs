//! Watches the oldest read: for as long as it runs, what it names is not given back.

use std::time::Duration;

use crate::index::inflight::OldestRead;
use crate::reclaim::state::Reclaim;
use crate::types::request;

/// The read that was last warned about, and when, by the monotonic clock.
#[derive(Debug, Default)]
pub(super) struct Warned(Option<(u64, Duration)>);

/// Shows how old the oldest read is, and warns when it is too old, once in a while.
pub(super) fn watch(reclaim: &Reclaim, warned: &mut Warned) {
    let oldest = reclaim.inflight.oldest_read();
    let now = reclaim.env.clock.monotonic();
    let age = oldest.as_ref().map_or(Duration::ZERO, |read| now.saturating_sub(read.began));
    let seconds = i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
    reclaim.metrics.oldest_read_seconds.set(seconds);
    let Some(OldestRead { number, what, request, .. }) = oldest else { return };
    let every = reclaim.config.read_warn_after;
    let is_new = |(last, at): (u64, Duration)| last != number || now.saturating_sub(at) >= every;
    if age >= every && warned.0.is_none_or(is_new) {
        warned.0 = Some((number, now));
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
