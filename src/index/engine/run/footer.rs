//! The end of a run: where its parts are and what it holds.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::types::Location;

const VERSION: u8 = 1;

/// What a reader must know to open a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Footer {
    /// Number of its family.
    pub(crate) family: u8,
    /// Rows, tombstones included.
    pub(crate) rows: u64,
    /// Tombstones among them.
    pub(crate) tombstones: u64,
    /// Lowest key.
    pub(crate) first: Bytes,
    /// Highest key.
    pub(crate) last: Bytes,
    /// A block whose rows are the first keys of the data blocks and where those lie.
    pub(crate) index: Location,
    /// The filter.
    pub(crate) filter: Location,
}

impl Footer {
    /// The stored footer.
    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = vec![VERSION];
        bytes.extend(postcard::to_stdvec(self).expect("numbers and bytes always encode"));
        bytes.into()
    }

    /// Reads a footer; `None` when it is malformed or of a version not known here.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&version, rest) = bytes.split_first()?;
        match postcard::take_from_bytes(rest) {
            Ok((footer, [])) if version == VERSION => Some(footer),
            Ok(_) | Err(_) => None,
        }
    }
}
