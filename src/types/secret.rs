//! Secrets in rows.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A secret in a row. Only the holder of the key ring can open it (`auth/key_ring/`). It is never
/// shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Secret {
    /// A secret of a release that did not seal secrets. The start of a node seals it.
    Plain(Bytes),
    /// Sealed under a master key: `api-spec/secrets.md`.
    Sealed(Bytes),
}

impl Secret {
    /// The bytes in the row.
    #[must_use]
    pub const fn as_bytes(&self) -> &Bytes {
        let (Self::Plain(bytes) | Self::Sealed(bytes)) = self;
        bytes
    }

    /// A plain secret; `None` if it is empty, as in older rows.
    #[must_use]
    pub fn plain(bytes: Bytes) -> Option<Self> {
        (!bytes.is_empty()).then_some(Self::Plain(bytes))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Plain(..)",
            Self::Sealed(_) => "Sealed(..)",
        })
    }
}
