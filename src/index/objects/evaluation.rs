//! One write being evaluated.

use crate::index::rows::RowBatch;
use crate::index::rows::Rows;
use crate::types::Timestamp;

/// What a write is evaluated against, and the row changes that it makes.
pub(super) struct Evaluation<'a> {
    /// The rows as they are before the write.
    pub(super) view: &'a dyn Rows,
    /// The time of the change.
    pub(super) now: Timestamp,
    /// The changes so far. After an error none of them is kept.
    pub(super) out: &'a mut RowBatch,
}
