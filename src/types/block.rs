//! Block ids and block lists.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Committed blocks a blob may have (Put Block List).
pub const BLOCKS_COMMITTED_MAX: usize = 50_000;
/// Blocks an append blob may have (Append Block).
pub const APPENDS_MAX: u32 = 50_000;
/// Uncommitted blocks a blob may have (Put Block).
pub const BLOCKS_UNCOMMITTED_MAX: usize = 100_000;

/// The name of a block within its blob: 1 to 64 bytes, chosen by the client, sent as base64.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockId(Box<[u8]>);

/// Why a block id is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BlockIdError {
    /// Not base64.
    #[error("the block id is not base64")]
    NotBase64,
    /// Empty or longer than 64 bytes once decoded.
    #[error("a block id has 1 to 64 bytes before encoding")]
    Length,
}

impl BlockId {
    /// Reads the id as it stands in the query or the block list.
    ///
    /// # Errors
    /// [`BlockIdError`] says what is wrong with it.
    pub fn from_base64(text: &str) -> Result<Self, BlockIdError> {
        let bytes = STANDARD.decode(text).map_err(|_| BlockIdError::NotBase64)?;
        Self::from_bytes(&bytes).ok_or(BlockIdError::Length)
    }

    /// Wraps decoded bytes; `None` unless there are 1 to 64.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() || bytes.len() > 64 { None } else { Some(Self(bytes.into())) }
    }

    /// The decoded bytes; all ids of one blob have the same number of them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The id as it goes over the wire.
    #[must_use]
    pub fn to_base64(&self) -> String {
        STANDARD.encode(&self.0)
    }
}

/// Which list a named block is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSource {
    /// The blob's committed block list.
    Committed,
    /// The staged blocks.
    Uncommitted,
    /// The staged block of that id if there is one, else the committed one.
    Latest,
}

/// One entry of a Put Block List request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockListEntry {
    /// Where to look.
    pub source: BlockSource,
    /// The block.
    pub id: BlockId,
}

#[cfg(test)]
mod tests;
