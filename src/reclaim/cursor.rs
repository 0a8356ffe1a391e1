//! The position of the audit of data extents. The coordinator keeps it, so that a restart does not
//! begin at the first extent again (ADR 0026). Layout: `api-spec/log-record.md`.

use bytes::Bytes;

use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::Op;
use crate::reclaim::error::Error;
use crate::reclaim::invariant::Invariant;
use crate::types::ExtentId;

/// Coordinator key of the cursor. It exists only during a round.
pub(crate) const KEY: &[u8] = b"audit-cursor";

const VERSION: u8 = 1;

/// A position in the bytes of all data extents, in the order in which they are audited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) extent: ExtentId,
    /// A logical offset, where a frame begins.
    pub(super) offset: u64,
}

impl Place {
    /// The first byte of an extent.
    pub(super) fn start_of(extent: ExtentId) -> Self {
        Self { extent, offset: 0 }
    }
}

/// The progress of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Everything before it was audited in this round.
    pub(super) next: Place,
    /// The last extent when the round began. The round ends behind it, however many extents are
    /// created meanwhile.
    pub(super) last: ExtentId,
}

impl Cursor {
    /// The cursor after a walk that ended before `next`.
    ///
    /// # Errors
    /// [`Error::Invariant`] when it would not move forward: the round would never end (I11).
    pub(super) fn advanced_to(self, next: Place) -> Result<Self, Error> {
        let is_progress = self.next < next && next.extent <= self.last;
        Invariant::UnreferencedIsFreed.assert(is_progress, || {
            format!("the cursor of the audit would move from {self:?} to {next:?}")
        })?;
        Ok(Self { next, ..self })
    }

    /// The value that the coordinator keeps.
    fn encode(&self) -> Bytes {
        let fields = (self.next.extent, self.next.offset, self.last);
        let mut value = vec![VERSION];
        value.extend(postcard::to_stdvec(&fields).expect("numbers always encode"));
        value.into()
    }

    /// Reads a value; `None` when it is malformed or of an unknown version.
    fn decode(value: &[u8]) -> Option<Self> {
        let (&version, fields) = value.split_first()?;
        let read: ((ExtentId, u64, ExtentId), &[u8]) = postcard::take_from_bytes(fields).ok()?;
        let ((extent, offset, last), rest) = read;
        let is_valid = version == VERSION && rest.is_empty() && extent <= last;
        is_valid.then_some(Self { next: Place { extent, offset }, last })
    }

    /// The cursor of a round that has begun. A malformed one is removed: beginning at the first
    /// extent costs time, but having no audit at all would cost space.
    ///
    /// # Errors
    /// As the coordinator.
    pub(super) async fn load(
        coordinator: &dyn Coordinator,
    ) -> Result<Option<Self>, coordinator::Error> {
        let Some(found) = coordinator.get(KEY).await? else { return Ok(None) };
        let cursor = Self::decode(&found.value);
        if cursor.is_none() {
            tracing::warn!(
                "the cursor of the audit is malformed; the audit begins at the first extent"
            );
            Self::save(None, coordinator).await?;
        }
        Ok(cursor)
    }

    /// Writes the cursor, or removes it at the end of a round.
    ///
    /// # Errors
    /// As the coordinator.
    pub(super) async fn save(
        cursor: Option<Self>,
        coordinator: &dyn Coordinator,
    ) -> Result<(), coordinator::Error> {
        let op = match cursor {
            Some(cursor) => Op::Put(KEY.into(), cursor.encode()),
            None => Op::Delete(KEY.into()),
        };
        coordinator.txn(&[], &[op]).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURSOR: Cursor = Cursor {
        next: Place { extent: ExtentId::new(300), offset: 4_096 },
        last: ExtentId::new(301),
    };

    #[test]
    fn cursor_has_golden_bytes() {
        let golden = [1, 0xAC, 0x02, 0x80, 0x20, 0xAD, 0x02];
        assert_eq!(CURSOR.encode().as_ref(), golden);
        assert_eq!(Cursor::decode(&golden), Some(CURSOR));
    }

    #[test]
    fn cursor_that_does_not_move_forward_is_refused_by_i11() {
        let place = |extent, offset| Place { extent: ExtentId::new(extent), offset };
        for next in [place(300, 4_097), place(301, 0)] {
            assert_eq!(CURSOR.advanced_to(next).unwrap(), Cursor { next, ..CURSOR });
        }
        for next in [place(300, 4_096), place(300, 0), place(299, 9_000), place(302, 0)] {
            let refused = CURSOR.advanced_to(next).unwrap_err().to_string();
            assert!(refused.starts_with("invariant I11 does not hold: "), "{refused}");
        }
    }

    #[test]
    fn cursor_cut_short_longer_of_another_version_or_behind_its_end_is_none() {
        let bytes = CURSOR.encode();
        for len in 0..bytes.len() {
            assert_eq!(Cursor::decode(&bytes[..len]), None);
        }
        assert_eq!(Cursor::decode(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(Cursor::decode(&[&[2], &bytes[1..]].concat()), None);
        let behind = Cursor { last: ExtentId::new(299), ..CURSOR };
        assert_eq!(Cursor::decode(&behind.encode()), None);
    }
}
