//! XML request bodies.

use crate::protocol::Error;
use crate::protocol::ErrorCode;
use crate::types::BlockListEntry;

/// Bytes a block list body may have: 50,000 entries of the longest id, with room for white space and an XML head.
pub const BLOCK_LIST_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Reads the body of Put Block List.
///
/// # Errors
/// `InvalidXmlDocument`, `InvalidXmlNodeValue`, `UnsupportedXmlNode`, `InvalidBlockId`, `BlockListTooLong`,
/// `InvalidBlobOrBlock` when ids differ in length.
pub fn block_list(_body: &[u8]) -> Result<Vec<BlockListEntry>, Error> {
    Err(ErrorCode::NotImplemented.into())
}
