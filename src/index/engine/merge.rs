//! Rows of several sources in one order, the newest source deciding on equal keys.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::index::api::Error;
use crate::index::engine::run::reader::Run;
use crate::index::engine::table::{From, Item, Tables};
use crate::index::engine::view::Snapshot;
use crate::index::rows::Family;
use crate::types::PartitionKeys;
use crate::types::Sequence;
use crate::types::Stripe;

/// Rows taken from a memtable at a time.
const CHUNK: usize = 256;

/// A walk over sources; holds a chunk or block of each.
#[derive(Debug)]
pub(crate) struct Merge {
    family: Family,
    sequence: Sequence,
    to: Option<Bytes>,
    /// Rows of other stripes are passed over.
    stripe: Option<Stripe>,
    chunk: usize,
    through_cache: bool,
    sources: Vec<Source>,
}

#[derive(Debug)]
struct Source {
    input: Input,
    rows: VecDeque<Item>,
    /// Where to go on when `rows` is used up; `None` at the end.
    resume: Option<From>,
}

#[derive(Debug)]
enum Input {
    Tables(Arc<Tables>),
    Run(Arc<Run>),
}

impl Merge {
    /// The rows of a snapshot in `bounds`, for a reader who wants `wanted` of them.
    pub(crate) fn of_snapshot(
        snapshot: &Snapshot,
        family: Family,
        bounds: (&[u8], Option<&[u8]>),
        wanted: usize,
    ) -> Self {
        let (from, to) = bounds;
        let from = Bytes::copy_from_slice(from);
        let tables = snapshot.sources.tables().cloned().map(Input::Tables);
        let runs = snapshot.sources.runs(family).iter().cloned().map(Input::Run);
        Self {
            family,
            sequence: snapshot.sequence,
            to: to.map(Bytes::copy_from_slice),
            stripe: snapshot.keys.stripe(),
            chunk: wanted.clamp(4, CHUNK),
            through_cache: true,
            sources: tables.chain(runs).map(|input| Source::at(input, from.clone())).collect(),
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
        }
    }

    /// The rows among `keys` of runs of one family, newest first. They do not go through the cache: they are read once.
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
        }
    }

    /// The stripe that all its rows are of.
    pub(crate) fn stripe(&self) -> Option<Stripe> {
        self.stripe
    }

    /// The next row or tombstone.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unavailable`].
    pub(crate) async fn next(&mut self) -> Result<Option<Item>, Error> {
        loop {
            let found = self.next_of_all().await?;
            let own = |(key, _): &Item| self.stripe.is_none_or(|stripe| stripe.holds_row(key));
            if found.as_ref().is_none_or(own) {
                return Ok(found);
            }
        }
    }

    async fn next_of_all(&mut self) -> Result<Option<Item>, Error> {
        for number in 0..self.sources.len() {
            self.fill(number).await?;
        }
        let mut best: Option<&Bytes> = None;
        for source in &self.sources {
            if let Some((key, _)) = source.rows.front() {
                best = Some(best.map_or(key, |best| best.min(key)));
            }
        }
        let Some(key) = best.cloned() else { return Ok(None) };
        let mut found = None;
        for source in &mut self.sources {
            if source.rows.front().is_some_and(|(other, _)| *other == key) {
                let row = source.rows.pop_front();
                found = found.or(row);
            }
        }
        Ok(found)
    }

    async fn fill(&mut self, number: usize) -> Result<(), Error> {
        let Some(source) = self.sources.get_mut(number) else { return Ok(()) };
        while source.rows.is_empty() {
            let Some(from) = source.resume.take() else { return Ok(()) };
            let to = self.to.as_deref();
            source.resume = match &source.input {
                Input::Tables(tables) => {
                    let at = (self.sequence, self.chunk);
                    let more = tables.collect(self.family, &from, to, at, &mut source.rows);
                    let last = source.rows.back().filter(|_| more);
                    last.map(|(key, _)| From::After(key.clone()))
                }
                Input::Run(run) => {
                    run.collect((&from, to), self.chunk, self.through_cache, &mut source.rows)
                        .await?
                }
            };
        }
        Ok(())
    }
}

impl Source {
    fn at(input: Input, from: Bytes) -> Self {
        Self { input, rows: VecDeque::new(), resume: Some(From::At(from)) }
    }
}
