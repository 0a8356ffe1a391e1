//! A view of a partition's rows at one instant.

use std::sync::Arc;
use std::sync::OnceLock;

use async_trait::async_trait;
use bytes::Bytes;

use crate::env::Boxed;
use crate::env::boxed;
use crate::index::api::Error;
use crate::index::engine::merge_rows::{Bounds, MergedRows, Step, Visible};
use crate::index::engine::pace::Pace;
use crate::index::engine::sources::Sources;
use crate::index::invariant::Violation;
use crate::index::rows::Family;
use crate::index::rows::Row;
use crate::index::rows::Rows;
use crate::index::rows::Scanned;
use crate::types::PartitionKeys;
use crate::types::Sequence;

/// The most rows that one step of a scan examines.
const STEP_ROWS: usize = 4_096;
/// A step of a scan ends once it has returned about this many bytes of values.
const STEP_BYTES: usize = 1024 * 1024;
/// So many bytes of a value cost as much as one row.
pub(crate) const BYTES_OF_A_ROW: usize = 256;

/// All rows as of one commit. The newest source that has a key determines its value: rows only move
/// from newer to older sources.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) sources: Arc<Sources>,
    pub(crate) sequence: Sequence,
    pub(crate) keys: Arc<PartitionKeys>,
    /// The cost of the reads of this view.
    pub(crate) pace: Pace,
    /// The first invariant violation that a read found.
    pub(crate) violation: OnceLock<Violation>,
}

impl Snapshot {
    async fn find(&self, family: Family, key: &[u8]) -> Result<Option<Bytes>, Error> {
        let owned = Bytes::copy_from_slice(key);
        for tables in self.sources.tables() {
            if let Some(value) = tables.get(family, &owned, self.sequence) {
                return Ok(value);
            }
        }
        for run in self.sources.runs(family) {
            if let Some(value) = run.get(key).await? {
                return Ok(value);
            }
        }
        Ok(None)
    }

    async fn value(&self, family: Family, key: &[u8]) -> Result<Option<Bytes>, Error> {
        if !self.keys.contains(key) {
            return Ok(None);
        }
        if self.pace.is_over() {
            return Err(Error::Overloaded);
        }
        let value = self.find(family, key).await?;
        // Long values are segments of block lists. Decoding one takes as long as examining many
        // rows.
        self.pace.take(1 + value.as_ref().map_or(0, Bytes::len) / BYTES_OF_A_ROW).await;
        Ok(value)
    }
}

#[async_trait]
impl Rows for Snapshot {
    fn get<'s, 'k, 'f>(
        &'s self,
        family: Family,
        key: &'k [u8],
    ) -> Boxed<'f, Result<Option<Bytes>, Error>>
    where
        's: 'f,
        'k: 'f,
    {
        boxed(move || self.value(family, key))
    }

    async fn scan(
        &self,
        family: Family,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
    ) -> Result<Scanned, Error> {
        let range = self.keys.range();
        let from = from.max(range.low().as_bytes());
        let high = range.high().map(|high| high.as_bytes().as_ref());
        let to = match (to, high) {
            (Some(to), Some(high)) => Some(to.min(high)),
            (to, high) => to.or(high),
        };
        let mut found = Scanned::default();
        if limit == 0 || to.is_some_and(|to| to <= from) {
            return Ok(found);
        }
        if self.pace.is_over() {
            return Err(Error::Overloaded);
        }
        let visible = Visible { sources: &self.sources, keys: &self.keys, sequence: self.sequence };
        let mut rows = MergedRows::of_sources(visible, family, Bounds { from, to }, limit);
        let (mut bytes, mut has_ended) = (0, false);
        // The last row that was examined, if it is not among those found.
        let mut passed = None;
        while found.rows.len() < limit && rows.seen() < STEP_ROWS && bytes < STEP_BYTES {
            match rows.step().await? {
                Step::Row((key, Some(value))) => {
                    bytes += value.len();
                    found.rows.push(Row { key, value });
                    passed = None;
                }
                Step::Row((key, None)) | Step::Passed(key) => passed = Some(key),
                Step::End => {
                    has_ended = true;
                    break;
                }
            }
        }
        if !has_ended {
            // The lowest position above the last row that was examined.
            let last = passed.as_ref().or(found.rows.last().map(|row| &row.key));
            found.next = last.map(|last| [last.as_ref(), &[0]].concat().into());
        }
        self.pace.take_long(rows.seen(), bytes / BYTES_OF_A_ROW).await;
        Ok(found)
    }

    fn violated(&self, violation: Violation) -> Error {
        let error = Error::Unavailable(violation.to_string());
        // The first violation is the cause of later ones.
        let _later = self.violation.set(violation);
        error
    }

    fn seen(&self) -> usize {
        self.pace.seen()
    }

    fn is_spent(&self) -> bool {
        self.pace.is_spent()
    }

    async fn rest(&self, rows: usize) {
        self.pace.take(rows).await;
    }
}
