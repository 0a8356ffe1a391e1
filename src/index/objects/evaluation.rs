//! The evaluation of one write.

use crate::index::rows::RowBatch;
use crate::index::rows::Rows;
use crate::types::Timestamp;

/// The view and time of an evaluation, and the row changes that it makes.
pub(super) struct Evaluation<'a> {
    /// The rows before the write.
    pub(super) view: &'a dyn Rows,
    /// The time of the change.
    pub(super) now: Timestamp,
    /// The changes so far. After an error none of them is applied.
    pub(super) out: &'a mut RowBatch,
}
