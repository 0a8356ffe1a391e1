//! Block ids as Azure writes them: base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

use crate::types::BlockId;

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

/// Reads an id as it stands in the query or the block list.
///
/// # Errors
/// [`BlockIdError`] says what is wrong with it.
pub fn read(text: &str) -> Result<BlockId, BlockIdError> {
    let bytes = STANDARD.decode(text).map_err(|_| BlockIdError::NotBase64)?;
    BlockId::from_bytes(&bytes).ok_or(BlockIdError::Length)
}

/// The id as it goes over the wire.
#[must_use]
pub fn write(id: &BlockId) -> String {
    STANDARD.encode(id.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_id_has_1_to_64_bytes_of_base64() {
        let id = read("AQIDBA==").unwrap();
        assert_eq!(id.as_bytes(), [1, 2, 3, 4]);
        assert_eq!(write(&id), "AQIDBA==");
        let longest = STANDARD.encode([7; 64]);
        assert_eq!(read(&longest).unwrap().as_bytes().len(), 64);
        for (text, error) in [
            ("", BlockIdError::Length),
            (STANDARD.encode([7; 65]).as_str(), BlockIdError::Length),
            ("AQIDBA", BlockIdError::NotBase64),
            ("AQIDBA=", BlockIdError::NotBase64),
            ("AQID BA==", BlockIdError::NotBase64),
            ("AQID_A==", BlockIdError::NotBase64),
            ("ä", BlockIdError::NotBase64),
        ] {
            assert_eq!(read(text), Err(error), "{text}");
        }
    }
}
