//! The keys at which a hot partition is cut.

use bytes::Bytes;

use crate::index::PartitionLoad;
use crate::types::KeyRange;
use crate::types::RoutingKey;

/// The most children of a split for load. More would cost more than they gain.
const WAYS_MAX: usize = 8;
/// The fewest stripes that the policy makes of a range.
const STRIPES_MIN: u8 = 4;
/// The fewest samples that show where to cut.
const SAMPLES_MIN: usize = 32;
/// The fewest samples of which the highest is near the highest key.
const HIGHEST_MIN: usize = 8;
/// A key with this share of the samples is the load, and no split helps it.
const ONE_KEY_PERCENT: usize = 25;
/// If this share of the samples is above the earlier ones, names grow, and the cut is behind them.
const GROWING_PERCENT: usize = 80;
/// From this share on names may grow. At the start of a burst some names come late, so the decision
/// waits for another tick or two.
const MAYBE_GROWING_PERCENT: usize = 20;

/// The number of children of a partition with `times` the limit, such that each child is well below
/// it.
pub(super) fn ways(times: f64) -> usize {
    let half =
        (2..WAYS_MAX).find(|ways| times * 2.0 <= f64::from(u32::try_from(*ways).unwrap_or(8)));
    half.unwrap_or(WAYS_MAX)
}

/// The highest of a tick's samples, which are in order, if there are enough.
pub(super) fn highest(samples: &[Bytes]) -> Option<Bytes> {
    samples.last().filter(|_| samples.len() >= HIGHEST_MIN).cloned()
}

/// Where a partition may be cut.
#[derive(Debug)]
pub(super) enum Cut {
    /// At the quantiles of its load.
    Between(Vec<RoutingKey>),
    /// Behind the newest name, because names only grow.
    Behind(RoutingKey),
    /// Nowhere: one key is the load, or too little is known yet.
    Nowhere,
}

/// The range from `key` to the end of its container, or of the partition if that comes first;
/// `None` if no blobs are there.
pub(super) fn rest(load: &PartitionLoad, key: &RoutingKey) -> Option<KeyRange> {
    key.rest_of_container()?.intersect(&load.range)
}

/// The number of stripes for names that grow. Their burst has only begun, so it is at least
/// `STRIPES_MIN`.
pub(super) fn stripes(ways: usize) -> u8 {
    u8::try_from(ways).unwrap_or(STRIPES_MIN).max(STRIPES_MIN)
}

/// Cuts a partition into `ways` parts. `samples` has the routing keys of its recent requests, in
/// order, with repeats. `before` is the lowest of the highest samples of the last ticks. `is_old`
/// is set if all the ticks that are remembered have one.
pub(super) fn cut(
    load: &PartitionLoad,
    samples: &[Bytes],
    (before, is_old): (Option<&Bytes>, bool),
    ways: usize,
) -> Cut {
    let is_share = |count: usize, percent: usize| count * 100 >= samples.len() * percent;
    let longest = samples.chunk_by(|a, b| a == b).map(<[Bytes]>::len).max().unwrap_or(0);
    if samples.len() < SAMPLES_MIN || is_share(longest, ONE_KEY_PERCENT) {
        return Cut::Nowhere;
    }
    let border = |key: &Bytes| {
        let inside = load.range.contains(key) && key != load.range.low().as_bytes();
        inside.then(|| RoutingKey::from_bytes(key.clone()))
    };
    let above = before.map_or(0, |before| samples.iter().filter(|key| *key > before).count());
    if is_share(above, GROWING_PERCENT) {
        return samples.last().and_then(border).map_or(Cut::Nowhere, Cut::Behind);
    }
    if !is_old && is_share(above, MAYBE_GROWING_PERCENT) {
        return Cut::Nowhere;
    }
    let quantiles = (1..ways).filter_map(|n| samples.get(n * samples.len() / ways));
    let mut keys: Vec<RoutingKey> = quantiles.filter_map(border).collect();
    keys.dedup();
    if keys.is_empty() { Cut::Nowhere } else { Cut::Between(keys) }
}
