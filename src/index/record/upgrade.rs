//! Rows that had earlier shapes.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A row that had an earlier shape.
pub(in crate::index) trait Upgrade: Serialize + DeserializeOwned {
    /// The version rows of this kind are written in, their first byte.
    const VERSION: u8;

    /// Reads a row of an earlier version; answers what stands behind it too. `None`: there is no
    /// such version.
    fn earlier(version: u8, bytes: &[u8]) -> Option<postcard::Result<(Self, &[u8])>>;

    /// What is wrong with a row of the newest version that could not be read.
    fn fault(_bytes: &[u8]) -> String {
        "bad record".to_owned()
    }
}

/// Reads a row in the shape `Old`.
pub(in crate::index) fn upgraded<Old: DeserializeOwned + Into<New>, New>(
    bytes: &[u8],
) -> postcard::Result<(New, &[u8])> {
    postcard::take_from_bytes::<Old>(bytes).map(|(old, rest)| (old.into(), rest))
}
