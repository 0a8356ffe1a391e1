//! Estimates how a partition's rows are distributed over its keys, from memtables and the indexes
//! of runs.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use bytes::Bytes;

use crate::index::api::Error;
use crate::index::engine::partition::Partition;
use crate::index::engine::sources::Published;
use crate::index::engine::table::{Interval, Page, ScanStart, Tables};
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::KeyRange;
use crate::types::RoutingKey;
use crate::types::Sequence;

/// Keys of a memtable that are examined before the task yields.
const PAGE: usize = 1_000;
/// The most sampled keys of one memtable. A larger memtable yields at least half as many.
const TABLE_KEYS_MAX: usize = 8_192;

impl Partition {
    /// Keys of main rows inside `range`, ascending, each with an estimate of the rows from it to
    /// the next key. The estimate is made from memtables and the indexes of runs. If these cannot
    /// distinguish `fewest` places, single rows are read, provided there are at most `rows_max`.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unavailable`].
    pub(crate) async fn row_distribution(
        &self,
        range: &KeyRange,
        fewest: usize,
        rows_max: usize,
    ) -> Result<Vec<(RoutingKey, u64)>, Error> {
        let Some(range) = self.core.keys.range().intersect(range) else { return Ok(Vec::new()) };
        let Published { sources, sequence } = self.core.published();
        let mut keys = BTreeMap::new();
        for run in sources.runs(Family::Main) {
            let low = range.low();
            let rows = run.rows_of_a_block();
            let inside = run.blocks().filter(|key| range.contains(key));
            inside.for_each(|key| add(&mut keys, key, rows));
            // A part of the block before the first of these blocks may be inside `range` too.
            let begins_below = run.blocks().next().is_some_and(|key| key < low.as_bytes());
            if begins_below && run.last() >= low.as_bytes() {
                *keys.entry(low.clone()).or_default() += rows.div_ceil(2);
            }
        }
        for tables in sources.tables() {
            let SampledKeys { keys: kept, stride } = of_tables(tables, &range, sequence).await;
            kept.iter().for_each(|key| add(&mut keys, key, stride));
        }
        let wide = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let rows = keys.values().fold(0_u64, |sum, weight| sum.saturating_add(*weight));
        let heaviest = keys.values().max().copied().unwrap_or(0);
        let is_coarse = heaviest.saturating_mul(wide(fewest)) > rows || keys.len() < fewest;
        if is_coarse && rows <= wide(rows_max) {
            let (low, high) = (range.low().as_bytes(), range.high().map(RoutingKey::as_bytes));
            let high = high.map(AsRef::as_ref);
            let view = self.core.snapshot();
            let rows = view.scan_all(Family::Main, (low, high), rows_max).await?;
            keys.clear();
            rows.iter().for_each(|row| add(&mut keys, &row.key, 1));
        }
        Ok(keys.into_iter().collect())
    }
}

fn add(keys: &mut BTreeMap<RoutingKey, u64>, row: &Bytes, weight: u64) {
    if let Some(key) = RoutingKey::of_row(row) {
        *keys.entry(key).or_default() += weight;
    }
}

/// Every `stride`-th key of the rows of memtables.
struct SampledKeys {
    keys: Vec<Bytes>,
    stride: u64,
}

/// Samples the keys of the memtables' rows in `range`.
async fn of_tables(tables: &Tables, range: &KeyRange, at: Sequence) -> SampledKeys {
    let mut from = ScanStart::At(range.low().as_bytes().clone());
    let to = range.high().map(|high| high.as_bytes().as_ref());
    let (mut kept, mut stride, mut seen) = (Vec::new(), 1_u64, 0_u64);
    let mut page = VecDeque::new();
    loop {
        let interval = Interval { from: &from, to };
        let limit = Page { sequence: at, limit: PAGE };
        let next = tables.collect(Family::Main, interval, limit, &mut page).resume;
        for (key, value) in page.drain(..) {
            if value.is_some() {
                if seen.is_multiple_of(stride) {
                    kept.push(key);
                }
                seen += 1;
            }
        }
        if kept.len() > TABLE_KEYS_MAX {
            kept = kept.into_iter().step_by(2).collect();
            stride *= 2;
        }
        let Some(next) = next else { return SampledKeys { keys: kept, stride } };
        from = next;
        tokio::task::yield_now().await;
    }
}
