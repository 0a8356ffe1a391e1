//! Where the audit of data extents goes on: in the coordinator, so that a restart does not begin at
//! the first extent again (ADR 0026). Layout: `api-spec/log-record.md`.

use bytes::Bytes;

use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::Op;
use crate::types::ExtentId;

/// Coordinator key of the cursor; there only while a round has begun and not ended.
pub(crate) const KEY: &[u8] = b"audit-cursor";

const VERSION: u8 = 1;

/// A place in the bytes of all data extents, in the order in which they are audited.
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

/// How far a round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// What lies before it was audited in this round.
    pub(super) next: Place,
    /// The last extent that there was when the round began. The round ends behind it, however many
    /// are made meanwhile.
    pub(super) last: ExtentId,
}

impl Cursor {
    /// The value the coordinator holds.
    fn encode(&self) -> Bytes {
        let fields = (self.next.extent, self.next.offset, self.last);
        let mut value = vec![VERSION];
        value.extend(postcard::to_stdvec(&fields).expect("numbers always encode"));
        value.into()
    }

    /// Reads a value; `None` when it is malformed or of a version not known here.
    fn decode(value: &[u8]) -> Option<Self> {
        let (&version, fields) = value.split_first()?;
        let read: ((ExtentId, u64, ExtentId), &[u8]) = postcard::take_from_bytes(fields).ok()?;
        let ((extent, offset, last), rest) = read;
        let is_valid = version == VERSION && rest.is_empty() && extent <= last;
        is_valid.then_some(Self { next: Place { extent, offset }, last })
    }

    /// The cursor of a round that has begun. A malformed one is removed: to begin at the first
    /// extent costs time, and no audit at all would cost space.
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

    /// Puts the cursor, or takes it away at the end of a round.
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
