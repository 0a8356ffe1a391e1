//! Where to cut a hot partition.

use bytes::Bytes;

use crate::index::PartitionLoad;
use crate::types::KeyRange;
use crate::types::RoutingKey;

/// Children of one split for load: more adds less than it costs.
const WAYS_MAX: usize = 8;
/// Stripes of one range that the policy makes at least.
const STRIPES_MIN: u8 = 4;
/// Fewer samples do not tell where to cut.
const SAMPLES_MIN: usize = 32;
/// The highest of fewer samples says nothing about the highest key.
const HIGHEST_MIN: usize = 8;
/// From this share of samples on, one key is the load: no split helps it.
const ONE_KEY_PERCENT: usize = 25;
/// From this share of samples above all earlier ones on, names grow: cut behind them.
const GROWING_PERCENT: usize = 80;
/// From this share on names may grow: in a burst that is only beginning some come so late that
/// another look or two is needed.
const MAYBE_GROWING_PERCENT: usize = 20;

/// So many that each child is well below the limit of what its parent has so many times.
pub(super) fn ways(times: f64) -> usize {
    let half =
        (2..WAYS_MAX).find(|ways| times * 2.0 <= f64::from(u32::try_from(*ways).unwrap_or(8)));
    half.unwrap_or(WAYS_MAX)
}

/// The highest of a tick's samples, in order, if that is about the highest key there was.
pub(super) fn highest(samples: &[Bytes]) -> Option<Bytes> {
    samples.last().filter(|_| samples.len() >= HIGHEST_MIN).cloned()
}

/// Where a partition may be cut.
#[derive(Debug)]
pub(super) enum Cut {
    /// At the quantiles of its load.
    Between(Vec<RoutingKey>),
    /// Its names only grow: behind the newest.
    Behind(RoutingKey),
    /// One key is the load, or too little is known yet.
    Nowhere,
}

/// From `key` to the end of its container, or of the partition if that comes first; `None` where no
/// blobs are.
pub(super) fn rest(load: &PartitionLoad, key: &RoutingKey) -> Option<KeyRange> {
    key.rest_of_container()?.intersect(&load.range)
}

/// Stripes for names that grow: a burst of them is only beginning.
pub(super) fn stripes(ways: usize) -> u8 {
    u8::try_from(ways).unwrap_or(STRIPES_MIN).max(STRIPES_MIN)
}

/// Cuts a partition in as many ways, by the routing keys of its recent requests, in order, with
/// repeats; `before` is the highest of those of the last ticks, and whether these are as many as
/// are remembered.
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
