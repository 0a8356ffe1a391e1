//! The interface between the meaning of rows (`objects/`) and their storage (`engine/`).

use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;

use crate::index::api::Error;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Write;
use crate::index::api::WriteReply;
use crate::index::invariant::Violation;
use crate::types::KeyRange;
use crate::types::Timestamp;

/// A locality group: each has its own memtable and runs. The number is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Family {
    /// Accounts, containers and current blobs: the rows that HEAD, GET and LIST read.
    Main = 0,
    /// Versions and snapshots.
    Versions = 1,
    /// Staged blocks.
    Staged = 2,
    /// Layout segments of blobs with many blocks.
    Layout = 3,
    /// Locations to be freed, and deleted containers to be purged.
    Garbage = 4,
    /// Work that is left to be done for a blob outside its partition: changes of the tag index,
    /// pending copies.
    Work = 5,
}

impl Family {
    /// All of them, in number order.
    pub const ALL: [Self; 6] =
        [Self::Main, Self::Versions, Self::Staged, Self::Layout, Self::Garbage, Self::Work];

    /// The family with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// A row as a scan gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The whole key: the routing key, then the family's suffix.
    pub key: Bytes,
    /// The value.
    pub value: Bytes,
}

/// The result of one step of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Rows in key order.
    pub rows: Vec<Row>,
    /// Where the next step starts; `None` if no rows are left in the range of the scan.
    pub next: Option<Bytes>,
}

/// A consistent view of one partition's rows: all reads through one view see the same instant.
#[async_trait]
pub trait Rows: Send + Sync {
    /// The value of a row.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unavailable`].
    async fn get(&self, family: Family, key: &[u8]) -> Result<Option<Bytes>, Error>;

    /// One step over the rows with `from <= key < to`, in key order, clipped to the partition's
    /// range. Without `to` the range ends with the partition. A step examines a bounded number of
    /// rows, removed ones included. So it may return fewer rows than `limit`, or none, although
    /// there are more: [`Scanned::next`] says where to continue.
    ///
    /// # Errors
    /// As [`Self::get`].
    async fn scan(
        &self,
        family: Family,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
    ) -> Result<Scanned, Error>;

    /// The number of rows examined through this view, removed ones included.
    fn seen(&self) -> usize {
        0
    }

    /// Whether this view has examined as many rows as one answer may. An answer that can be
    /// continued ends then, and says where to continue.
    fn is_spent(&self) -> bool {
        false
    }

    /// Reports that an invariant does not hold. Returns the error for the request.
    fn violated(&self, violation: Violation) -> Error {
        Error::Unavailable(violation.to_string())
    }

    /// Counts work that took as long as examining this many rows, and yields to other tasks if
    /// necessary.
    async fn rest(&self, _rows: usize) {}

    /// All steps of [`Self::scan`] until there are `limit` rows.
    ///
    /// # Errors
    /// As [`Self::get`].
    async fn scan_all(
        &self,
        family: Family,
        (from, to): (&[u8], Option<&[u8]>),
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        let mut from = Bytes::copy_from_slice(from);
        while rows.len() < limit {
            let found = self.scan(family, &from, to, limit - rows.len()).await?;
            rows.extend(found.rows);
            match found.next {
                Some(next) => from = next,
                None => break,
            }
        }
        Ok(rows)
    }
}

/// A change of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowChange {
    /// The family of the row.
    pub family: Family,
    /// The whole key.
    pub key: Bytes,
    /// The new value; `None` removes the row.
    pub value: Option<Bytes>,
}

/// Changes that become durable and visible together.
#[derive(Clone, Debug, Default)]
pub struct RowBatch {
    /// Puts and deletes of rows. Of several changes of a row the last one wins.
    pub changes: Vec<RowChange>,
    /// Bytes of shared content that a row stops naming. Only the audit can determine whether
    /// another row names them.
    pub shared_dropped: u64,
    /// Whether to commit even without changes.
    pub must_commit: bool,
}

impl RowBatch {
    /// Writes a row.
    pub fn put(&mut self, family: Family, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.changes.push(RowChange { family, key: key.into(), value: Some(value.into()) });
    }

    /// Removes a row.
    pub fn delete(&mut self, family: Family, key: impl Into<Bytes>) {
        self.changes.push(RowChange { family, key: key.into(), value: None });
    }
}

/// The meaning of rows: turns requests into row changes and answers. It is all that the engine
/// knows of requests.
#[async_trait]
pub trait Machine: Send + Sync + Debug {
    /// Evaluates `write` against `view`: adds its row changes to `out` and returns its answer.
    /// After an error `out` is dropped. The view shows every earlier write to the rows of
    /// [`Write::reach`], durable or not. `now` is above the time of each of these writes, and no
    /// other write of the partition has the same time. Writes to other rows with later times may
    /// become visible earlier, so the times of a partition's commits do not say their order. The
    /// caller gets the answer, or the error, once all rows that it depends on are durable.
    ///
    /// # Errors
    /// The refusal; [`Error::Corrupt`], [`Error::Unavailable`] from the rows.
    async fn evaluate(
        &self,
        view: &dyn Rows,
        write: &Write,
        now: Timestamp,
        out: &mut RowBatch,
    ) -> Result<WriteReply, Error>;

    /// Answers `read` from `view`, which shows the durable rows of `range`. Leases and tiers are
    /// shown as of `now`.
    ///
    /// # Errors
    /// The refusal; [`Error::Corrupt`], [`Error::Unavailable`] from the rows.
    async fn answer(
        &self,
        view: &dyn Rows,
        range: &KeyRange,
        read: &Read,
        now: Timestamp,
    ) -> Result<ReadReply, Error>;
}
