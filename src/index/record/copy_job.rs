//! The job of a pending copy.

use std::fmt;
use std::fmt::Debug;

use serde::Deserialize;
use serde::Serialize;
use uuid::Uuid;

use crate::index::record::Upgrade;
use crate::index::record::upgraded;
use crate::types::Crc64;
use crate::types::Md5;
use crate::types::Secret;
use crate::types::Timestamp;

/// The data that a pending copy needs to continue, also after a restart. It is removed when the
/// copy ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyJob {
    /// The id, as in the blob's copy record.
    pub id: Uuid,
    /// The source: a sealed [`CopyLink`].
    pub source: Secret,
    /// The ETag of the source when the copy began.
    pub etag: Option<String>,
    /// Of the source's bytes, as claimed.
    pub md5: Option<Md5>,
    /// Of the source's bytes, as claimed.
    pub crc64: Option<Crc64>,
    /// The lease of the process that carries it out, if there may be several.
    pub lease: Option<CopyLease>,
}

/// The right of one process to carry out a pending copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyLease {
    /// Which lease this is: a process draws one each time it takes up a copy.
    pub id: Uuid,
    /// When it expires, by the clock of the partition.
    pub until: Timestamp,
}

/// The source of a pending copy, with its credentials. Never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyLink {
    /// The URL, with its signature.
    pub url: String,
    /// `Bearer` and a token.
    pub authorization: Option<String>,
}

impl CopyLink {
    /// Encodes the link, to be sealed. Layout: `api-spec/rows.md`.
    ///
    /// # Panics
    /// Never: strings encode.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("strings always encode")
    }

    /// Decodes a link; `None` if it is malformed.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        postcard::take_from_bytes(bytes)
            .ok()
            .and_then(|(link, rest)| rest.is_empty().then_some(link))
    }
}

impl Debug for CopyLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CopyLink(..)")
    }
}

impl Upgrade for CopyJob {
    const VERSION: u8 = 3;

    fn earlier(version: u8, bytes: &[u8]) -> Option<postcard::Result<(Self, &[u8])>> {
        match version {
            1 => Some(upgraded::<CopyJob1, Self>(bytes)),
            2 => Some(upgraded::<CopyJob2, Self>(bytes)),
            _ => None,
        }
    }
}

/// The layout of version 2: without a lease. It stays readable.
#[derive(Deserialize)]
struct CopyJob2 {
    id: Uuid,
    source: Secret,
    etag: Option<String>,
    md5: Option<Md5>,
    crc64: Option<Crc64>,
}

impl From<CopyJob2> for CopyJob {
    fn from(old: CopyJob2) -> Self {
        let CopyJob2 { id, source, etag, md5, crc64 } = old;
        Self { id, source, etag, md5, crc64, lease: None }
    }
}

/// The layout of version 1: the link was plain. It stays readable.
#[derive(Deserialize)]
struct CopyJob1 {
    id: Uuid,
    link: CopyLink,
    etag: Option<String>,
    md5: Option<Md5>,
    crc64: Option<Crc64>,
}

impl From<CopyJob1> for CopyJob {
    fn from(old: CopyJob1) -> Self {
        let CopyJob1 { id, link, etag, md5, crc64 } = old;
        Self { id, source: Secret::Plain(link.encode().into()), etag, md5, crc64, lease: None }
    }
}
