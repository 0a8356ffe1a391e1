//! The window of a listing that one partition can answer.

use bytes::Bytes;
use bytes::BytesMut;

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
    /// Room for the next positions. Those of a page share a few allocations.
    room: BytesMut,
}

/// The size of such an allocation.
const ROOM_BYTES: usize = 8 << 10;

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
        let (position, room) = (from.max(prefix.clone()), BytesMut::new());
        Self { position, to, names_end, partition_end, room }
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

    /// The first position after all rows of a blob.
    pub(super) fn after_blob(&mut self, blob: &RoutingKey) -> Bytes {
        let key = blob.as_bytes();
        if self.room.capacity() < key.len() {
            self.room = BytesMut::with_capacity(ROOM_BYTES.max(key.len()));
        }
        self.room.extend_from_slice(key);
        if let Some(last) = self.room.last_mut() {
            // A routing key ends with a byte that is not the highest.
            *last = last.saturating_add(1);
        }
        self.room.split().freeze()
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
