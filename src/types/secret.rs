//! Secrets as rows hold them.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A secret in a row. What it says, only the holder of the key ring can tell (`auth/key_ring/`).
/// Never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Secret {
    /// As releases wrote it that did not seal secrets. The start of a node seals it.
    Plain(Bytes),
    /// Sealed under a master key: `api-spec/secrets.md`.
    Sealed(Bytes),
}

impl Secret {
    /// Its bytes as the row has them.
    #[must_use]
    pub const fn as_bytes(&self) -> &Bytes {
        let (Self::Plain(bytes) | Self::Sealed(bytes)) = self;
        bytes
    }

    /// A plain one; none when it is empty, as older rows have it.
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
