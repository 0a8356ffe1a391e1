//! A cursor over the rows of one family. It moves forward, reads in chunks, can seek, and can stop
//! when the view is spent.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::index::api::Error;
use crate::index::rows::Family;
use crate::index::rows::Row;
use crate::index::rows::Rows;

const CHUNK_MIN: usize = 16;
const CHUNK_MAX: usize = 1024;

/// A forward cursor over `[from, to)` of one family.
pub(super) struct Cursor<'a> {
    view: &'a dyn Rows,
    family: Family,
    next: Bytes,
    to: Option<Bytes>,
    rows: VecDeque<Row>,
    chunk: usize,
    ended: bool,
    pausing: bool,
    paused: bool,
}

impl<'a> Cursor<'a> {
    /// A cursor at `from`; no `to` means to the end of the partition.
    pub(super) fn new(
        view: &'a dyn Rows,
        family: Family,
        from: impl Into<Bytes>,
        to: Option<Bytes>,
    ) -> Self {
        let next = from.into();
        let ended = to.as_ref().is_some_and(|to| *to <= next);
        let (rows, chunk) = (VecDeque::new(), CHUNK_MIN);
        Self { view, family, next, to, rows, chunk, ended, pausing: false, paused: false }
    }

    /// Sets the size of the first chunk to about `rows` rows, for a caller that knows how many it
    /// wants.
    pub(super) fn expecting(mut self, rows: usize) -> Self {
        self.chunk = rows.clamp(CHUNK_MIN, CHUNK_MAX);
        self
    }

    /// Makes the cursor stop when the view is spent, as if there were no more rows.
    /// [`Self::paused`] then returns the position.
    pub(super) fn pausing(mut self) -> Self {
        self.pausing = true;
        self
    }

    /// The position where the cursor stopped because the view is spent. There may be more rows from
    /// there on.
    pub(super) fn paused(&self) -> Option<&Bytes> {
        self.paused.then_some(&self.next)
    }

    /// The row at the cursor.
    pub(super) async fn peek(&mut self) -> Result<Option<&Row>, Error> {
        self.fill().await?;
        Ok(self.rows.front())
    }

    /// The row at the cursor, which moves past it.
    pub(super) async fn take(&mut self) -> Result<Option<Row>, Error> {
        self.fill().await?;
        Ok(self.rows.pop_front())
    }

    /// The row at the cursor, if it has been read already.
    pub(super) fn known(&self) -> Option<&Row> {
        self.rows.front()
    }

    /// A lower bound of the keys of all following rows; `None` at the end.
    pub(super) fn bound(&self) -> Option<&Bytes> {
        match self.rows.front() {
            Some(row) => Some(&row.key),
            None => (!self.ended).then_some(&self.next),
        }
    }

    /// Moves forward to the first row at or after `position`; never back.
    pub(super) fn seek(&mut self, position: &Bytes) {
        while self.rows.front().is_some_and(|row| row.key < *position) {
            self.rows.pop_front();
        }
        if self.rows.is_empty() && self.next < *position {
            self.next = position.clone();
            self.chunk = CHUNK_MIN;
            self.ended |= self.to.as_ref().is_some_and(|to| *to <= self.next);
        }
    }

    /// Reads one chunk, if no row has been read ahead. Afterwards a row or the end is known, or the
    /// bound is higher.
    pub(super) async fn step(&mut self) -> Result<(), Error> {
        if !self.rows.is_empty() || self.ended {
            return Ok(());
        }
        let found = self.view.scan(self.family, &self.next, self.to.as_deref(), self.chunk).await?;
        match found.next {
            Some(next) => self.next = next,
            None => self.ended = true,
        }
        self.rows = found.rows.into();
        self.chunk = self.chunk.saturating_mul(4).min(CHUNK_MAX);
        Ok(())
    }

    async fn fill(&mut self) -> Result<(), Error> {
        while self.rows.is_empty() && !self.ended {
            if self.pausing && self.view.is_spent() {
                self.paused = true;
                break;
            }
            self.step().await?;
        }
        Ok(())
    }
}
