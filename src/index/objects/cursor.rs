//! Walks one family's rows forward in chunks, and can skip ahead.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::index::api::Error;
use crate::index::objects::keys;
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
        Self { view, family, next, to, rows: VecDeque::new(), chunk: CHUNK_MIN, ended: false }
    }

    /// Reads about `rows` at once, when it is known that so many will be wanted.
    pub(super) fn expecting(mut self, rows: usize) -> Self {
        self.chunk = rows.clamp(CHUNK_MIN, CHUNK_MAX);
        self
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

    /// Moves forward to the first row at or after `position`; never back.
    pub(super) fn seek(&mut self, position: &Bytes) {
        while self.rows.front().is_some_and(|row| row.key < *position) {
            self.rows.pop_front();
        }
        if self.rows.is_empty() && self.next < *position {
            self.next = position.clone();
            self.chunk = CHUNK_MIN;
        }
    }

    async fn fill(&mut self) -> Result<(), Error> {
        if !self.rows.is_empty() || self.ended {
            return Ok(());
        }
        if self.to.as_ref().is_some_and(|to| *to <= self.next) {
            self.ended = true;
            return Ok(());
        }
        let rows = self.view.scan(self.family, &self.next, self.to.as_deref(), self.chunk).await?;
        self.ended = rows.len() < self.chunk;
        if let Some(last) = rows.last() {
            self.next = keys::just_after(&last.key);
        }
        self.rows = rows.into();
        self.chunk = self.chunk.saturating_mul(4).min(CHUNK_MAX);
        Ok(())
    }
}
