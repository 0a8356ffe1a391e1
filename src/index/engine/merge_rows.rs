//! Merges the rows of several sources in key order. If several sources have a key, the newest one
//! determines its value.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::index::api::Error;
use crate::index::engine::run::reader::Run;
use crate::index::engine::sources::Sources;
use crate::index::engine::table::{Collected, Interval, Item, Page, ScanStart, Tables};
use crate::index::rows::Family;
use crate::types::PartitionKeys;
use crate::types::Sequence;
use crate::types::Stripe;

/// The most rows taken from a source at a time.
const CHUNK: usize = 256;
/// Rows examined before the task yields. Together with the rows that are read from all sources this
/// takes at most a millisecond or two.
const TURN_ROWS: usize = 1_024;

/// The rows of a partition as of a commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visible<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) keys: &'a PartitionKeys,
    pub(crate) sequence: Sequence,
}

/// Keys from `from` on, below `to` if there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds<'a> {
    pub(crate) from: &'a [u8],
    pub(crate) to: Option<&'a [u8]>,
}

/// A walk over several sources. It holds a chunk of the rows of each.
#[derive(Debug)]
pub(crate) struct MergedRows {
    family: Family,
    sequence: Sequence,
    to: Option<Bytes>,
    /// Rows of other stripes are skipped.
    stripe: Option<Stripe>,
    chunk: usize,
    through_cache: bool,
    sources: Vec<Source>,
    /// Rows and versions examined so far.
    seen: usize,
    /// Rows and versions read since the task last yielded.
    turn: usize,
}

/// One step of a walk.
#[derive(Debug)]
pub(crate) enum Step {
    /// The next row or tombstone.
    Row(Item),
    /// A row of another stripe was skipped; its key.
    Passed(Bytes),
    /// The end of the walk.
    End,
}

#[derive(Debug)]
struct Source {
    input: Input,
    rows: VecDeque<Item>,
    /// Where to read on when `rows` is empty; `None` at the end.
    resume: Option<ScanStart>,
}

#[derive(Debug)]
enum Input {
    Tables(Arc<Tables>),
    Run(Arc<Run>),
}

impl MergedRows {
    /// The rows among `keys` in `bounds` as of a commit, for a reader that wants `wanted` of them.
    pub(crate) fn of_sources(
        visible: Visible<'_>,
        family: Family,
        bounds: Bounds<'_>,
        wanted: usize,
    ) -> Self {
        let Visible { sources, keys, sequence } = visible;
        let Bounds { from, to } = bounds;
        let from = Bytes::copy_from_slice(from);
        let tables = sources.tables().cloned().map(Input::Tables);
        let runs = sources.runs(family).iter().cloned().map(Input::Run);
        Self {
            family,
            sequence,
            to: to.map(Bytes::copy_from_slice),
            stripe: keys.stripe(),
            chunk: wanted.clamp(4, CHUNK),
            through_cache: true,
            sources: tables.chain(runs).map(|input| Source::at(input, from.clone())).collect(),
            seen: 0,
            turn: 0,
        }
    }

    /// The newest rows of a memtable among `keys`.
    pub(crate) fn of_tables(
        tables: Arc<Tables>,
        family: Family,
        through: Sequence,
        keys: &PartitionKeys,
    ) -> Self {
        let from = keys.range().low().as_bytes().clone();
        Self {
            family,
            sequence: through,
            to: keys.range().high().map(|high| high.as_bytes().clone()),
            stripe: keys.stripe(),
            chunk: CHUNK,
            through_cache: false,
            sources: vec![Source::at(Input::Tables(tables), from)],
            seen: 0,
            turn: 0,
        }
    }

    /// The rows among `keys` of runs of one family, which are given newest first. Their blocks
    /// bypass the cache, since they are read once.
    pub(crate) fn of_runs(runs: &[Arc<Run>], family: Family, keys: &PartitionKeys) -> Self {
        let from = keys.range().low().as_bytes();
        let sources = runs.iter().map(|run| Source::at(Input::Run(Arc::clone(run)), from.clone()));
        Self {
            family,
            sequence: Sequence::new(u64::MAX),
            to: keys.range().high().map(|high| high.as_bytes().clone()),
            stripe: keys.stripe(),
            chunk: CHUNK,
            through_cache: false,
            sources: sources.collect(),
            seen: 0,
            turn: 0,
        }
    }

    /// The stripe that all its rows belong to, if there is one.
    pub(crate) fn stripe(&self) -> Option<Stripe> {
        self.stripe
    }

    /// The next row or tombstone.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unavailable`].
    pub(crate) async fn next(&mut self) -> Result<Option<Item>, Error> {
        loop {
            match self.step().await? {
                Step::Row(item) => return Ok(Some(item)),
                Step::Passed(_) => {}
                Step::End => return Ok(None),
            }
        }
    }

    /// The next step: a row or tombstone, or a skipped row of another stripe.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub(crate) async fn step(&mut self) -> Result<Step, Error> {
        let Some((key, value)) = self.next_of_all().await? else { return Ok(Step::End) };
        let is_own = self.stripe.is_none_or(|stripe| stripe.holds_row(&key));
        Ok(if is_own { Step::Row((key, value)) } else { Step::Passed(key) })
    }

    /// The number of rows examined: returned, skipped, or hidden by newer versions.
    pub(crate) fn seen(&self) -> usize {
        self.seen
    }

    async fn next_of_all(&mut self) -> Result<Option<Item>, Error> {
        for number in 0..self.sources.len() {
            self.fill(number).await?;
        }
        // The lowest key, and the newest source that has it.
        let mut best: Option<(usize, &Bytes)> = None;
        for (number, source) in self.sources.iter().enumerate() {
            if let Some((key, _)) = source.rows.front()
                && best.is_none_or(|(_, best)| key < best)
            {
                best = Some((number, key));
            }
        }
        let Some((newest, _)) = best else { return Ok(None) };
        let mut found: Option<Item> = None;
        for source in self.sources.iter_mut().skip(newest) {
            let Some((key, _)) = source.rows.front() else { continue };
            if found.as_ref().is_none_or(|(of, _)| of == key) {
                let row = source.rows.pop_front();
                found = found.or(row);
                self.seen += 1;
            }
        }
        Ok(found)
    }

    async fn fill(&mut self, number: usize) -> Result<(), Error> {
        let Some(source) = self.sources.get_mut(number) else { return Ok(()) };
        while source.rows.is_empty() {
            let Some(from) = source.resume.take() else { return Ok(()) };
            let interval = Interval { from: &from, to: self.to.as_deref() };
            match &source.input {
                Input::Tables(tables) => {
                    let page = Page { sequence: self.sequence, limit: self.chunk };
                    let Collected { seen, resume } =
                        tables.collect(self.family, interval, page, &mut source.rows);
                    source.resume = resume;
                    // Rows that were added to `rows` count when they are returned.
                    self.seen += seen.saturating_sub(source.rows.len());
                    self.turn += seen;
                }
                Input::Run(run) => {
                    source.resume = run
                        .collect(interval, self.chunk, self.through_cache, &mut source.rows)
                        .await?;
                    self.turn += source.rows.len();
                }
            }
            if self.turn >= TURN_ROWS {
                self.turn = 0;
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}

impl Source {
    fn at(input: Input, from: Bytes) -> Self {
        Self { input, rows: VecDeque::new(), resume: Some(ScanStart::At(from)) }
    }
}
