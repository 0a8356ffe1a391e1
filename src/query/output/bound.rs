//! The bound of a record of the answer.

use crate::query::trouble::RECORD_TOO_LARGE;
use crate::query::trouble::Trouble;

/// Bytes of a record of the answer; it may select a column many times.
pub(crate) const WRITTEN_MAX: usize = 8 << 20;

/// Whether a record that is being written is not too large.
pub(crate) fn bounded(length: usize, max: usize) -> Result<(), Trouble> {
    match length <= max {
        true => Ok(()),
        false => Err(Trouble::new(RECORD_TOO_LARGE, "A record of the answer is too large.")),
    }
}
