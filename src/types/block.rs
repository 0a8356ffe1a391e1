//! Block ids and block lists.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most committed blocks of a blob (Put Block List).
pub const BLOCKS_COMMITTED_MAX: usize = 50_000;
/// The most blocks of an append blob (Append Block).
pub const APPENDS_MAX: u32 = 50_000;
/// The most uncommitted blocks of a blob (Put Block).
pub const BLOCKS_UNCOMMITTED_MAX: usize = 100_000;

/// Bytes of the longest block id.
const ID_LEN_MAX: usize = 64;

/// The name of a block within its blob: 1 to 64 bytes. How a client writes it is its dialect's.
/// Stored inline, so that a list of 50,000 blocks is one allocation.
#[derive(Clone, Copy)]
pub struct BlockId {
    len: u8,
    /// The id, then zeros.
    bytes: [u8; ID_LEN_MAX],
}

impl BlockId {
    /// An id of these bytes; `None` unless there are 1 to 64.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut held = [0; ID_LEN_MAX];
        held.get_mut(..bytes.len()).filter(|_| !bytes.is_empty())?.copy_from_slice(bytes);
        Some(Self { len: u8::try_from(bytes.len()).ok()?, bytes: held })
    }

    /// The bytes. All ids of a blob's staged blocks have the same length.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl fmt::Debug for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BlockId").field(&self.as_bytes()).finish()
    }
}

impl PartialEq for BlockId {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for BlockId {}

impl PartialOrd for BlockId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BlockId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for BlockId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl Serialize for BlockId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_bytes().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for BlockId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(IdVisitor)
    }
}

struct IdVisitor;

impl<'de> Visitor<'de> for IdVisitor {
    type Value = BlockId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1 to {ID_LEN_MAX} bytes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<BlockId, A::Error> {
        let mut id = BlockId { len: 0, bytes: [0; ID_LEN_MAX] };
        while let Some(byte) = seq.next_element()? {
            let len = usize::from(id.len);
            let place = id.bytes.get_mut(len);
            *place.ok_or_else(|| A::Error::invalid_length(len + 1, &self))? = byte;
            id.len += 1;
        }
        if id.len == 0 { Err(A::Error::invalid_length(0, &self)) } else { Ok(id) }
    }
}

/// The list from which a named block is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockSource {
    /// The blob's committed block list.
    Committed,
    /// The staged blocks.
    Uncommitted,
    /// The staged block with that id if there is one, otherwise the committed one.
    Latest,
}

/// One entry of a Put Block List request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockListEntry {
    /// The list to take it from.
    pub source: BlockSource,
    /// The block.
    pub id: BlockId,
}

#[cfg(test)]
mod tests;
