//! Rows whose layout has earlier versions.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A kind of row whose layout has earlier versions.
pub(in crate::index) trait Upgrade: Serialize + DeserializeOwned {
    /// The version in which rows of this kind are written: their first byte.
    const VERSION: u8;

    /// Decodes a row of an earlier version. Also returns the bytes after it. `None` if there is no
    /// such version.
    fn earlier(version: u8, bytes: &[u8]) -> Option<postcard::Result<(Self, &[u8])>>;

    /// Describes why a row of the newest version could not be decoded.
    fn fault(_bytes: &[u8]) -> String {
        "bad record".to_owned()
    }
}

/// Decodes a row with the layout `Old`.
pub(in crate::index) fn upgraded<Old: DeserializeOwned + Into<New>, New>(
    bytes: &[u8],
) -> postcard::Result<(New, &[u8])> {
    postcard::take_from_bytes::<Old>(bytes).map(|(old, rest)| (old.into(), rest))
}
