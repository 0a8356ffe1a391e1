//! The window of a listing that one partition can answer.

use bytes::Bytes;

use crate::index::invariant::{Invariant, Violation};
use crate::types::KeyRange;
use crate::types::RoutingKey;

/// The position of a page, and the end of the names that it may show.
pub(super) struct Window {
    /// The first position not yet covered.
    pub(super) position: Bytes,
    /// The end of the scan: of the names wanted, or of the partition.
    pub(super) to: Option<Bytes>,
    /// The end of the names wanted.
    names_end: Option<Bytes>,
    /// The end of the partition.
    partition_end: Option<Bytes>,
}

impl Window {
    /// All names that start with the bytes of `prefix`, from position `from` on, as far as the
    /// partition `range` reaches.
    pub(super) fn new(prefix: &Bytes, from: Bytes, range: &KeyRange) -> Self {
        let names_end = RoutingKey::after_prefix(prefix);
        let partition_end = range.high().map(|high| high.as_bytes().clone());
        let to = match (&names_end, &partition_end) {
            (Some(a), Some(b)) => Some(a.min(b).clone()),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
        Self { position: from.max(prefix.clone()), to, names_end, partition_end }
    }

    /// The same names, as far as they lie before `end`.
    pub(super) fn ending(mut self, end: Option<Bytes>) -> Self {
        if let Some(end) = end {
            let earlier =
                |old: Option<Bytes>| Some(old.map_or(end.clone(), |old| old.min(end.clone())));
            (self.to, self.names_end) = (earlier(self.to), earlier(self.names_end));
        }
        self
    }

    /// Moves past an entry, the last row of which lies just before `position`.
    ///
    /// # Errors
    /// [`Invariant::ListOrder`]: the entry is not above all entries before, of this page and of
    /// earlier ones.
    pub(super) fn pass(&mut self, position: Bytes) -> Result<(), Violation> {
        Invariant::ListOrder.assert(position > self.position, || {
            format!("an entry before {position:x} follows {:x}", self.position)
        })?;
        self.position = position;
        Ok(())
    }

    /// Where the listing continues after all rows of this partition; `None` if no later partition
    /// can have more names.
    pub(super) fn end(self) -> Option<Bytes> {
        let next = self.partition_end?.max(self.position);
        if self.names_end.is_none_or(|end| next < end) { Some(next) } else { None }
    }
}
