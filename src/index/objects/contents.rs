//! Content as rows hold it: the bytes themselves, or their locations in extents. Layout:
//! `api-spec/rows.md`.

#![deny(clippy::indexing_slicing)]

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::index::api::NewContent;
use crate::types::ChunkFormat;
use crate::types::KeyedNonce;
use crate::types::Location;
use crate::types::PAGE_BYTES;
use crate::types::content_len;
use crate::types::locations_len;

/// The content of a blob, block or span: bytes in the row, or their locations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Content {
    /// Bytes in the row.
    Inline(Bytes),
    /// Bytes in extents, in order. No other row names these locations.
    Stored(Vec<Location>),
    /// Bytes in extents, in order. Other rows may name these locations, so only the audit may free
    /// them (ADR 0009).
    Shared(Vec<Location>),
    /// Bytes encrypted in counter mode under a customer-provided key. Only earlier releases wrote
    /// this.
    Encrypted(Box<EncryptedContent>),
    /// Bytes encrypted in authenticated chunks under a customer-provided key (ADR 0025).
    Authenticated(Box<AuthenticatedContent>),
}

/// Encrypted bytes, and the nonce that decrypts them together with the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EncryptedContent {
    pub(crate) nonce: KeyedNonce,
    pub(crate) bytes: Ciphertext,
}

/// Authenticated chunks, and the format and nonce that decrypt them together with the key. Each
/// location but the last holds whole chunks of full length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AuthenticatedContent {
    pub(crate) format: ChunkFormat,
    pub(crate) nonce: KeyedNonce,
    pub(crate) bytes: Ciphertext,
}

/// Encrypted bytes, stored like plain ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ciphertext {
    /// As [`Content::Inline`].
    Inline(Bytes),
    /// As [`Content::Stored`].
    Stored(Vec<Location>),
    /// As [`Content::Shared`].
    Shared(Vec<Location>),
}

/// The stored bytes of content, encrypted or not.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StoredBytes<'a> {
    /// Bytes in the row.
    Inline(&'a Bytes),
    /// Bytes in extents, in order.
    Locations(&'a [Location]),
}

/// How stored bytes are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// Not encrypted.
    Plain,
    /// Encrypted in counter mode. Content and stored bytes have the same length.
    Encrypted(KeyedNonce),
    /// Encrypted in authenticated chunks.
    Authenticated(KeyedNonce),
}

impl Content {
    /// The encrypted bytes; `None` if the content is not encrypted.
    const fn ciphertext(&self) -> Option<&Ciphertext> {
        match self {
            Self::Inline(_) | Self::Stored(_) | Self::Shared(_) => None,
            Self::Encrypted(content) => Some(&content.bytes),
            Self::Authenticated(content) => Some(&content.bytes),
        }
    }

    /// How its stored bytes are protected.
    pub(crate) const fn protection(&self) -> Protection {
        match self {
            Self::Inline(_) | Self::Stored(_) | Self::Shared(_) => Protection::Plain,
            Self::Encrypted(content) => Protection::Encrypted(content.nonce),
            Self::Authenticated(content) => Protection::Authenticated(content.nonce),
        }
    }

    /// The nonce for decryption; `None` if the content is not encrypted.
    pub(crate) const fn nonce(&self) -> Option<KeyedNonce> {
        match self.protection() {
            Protection::Plain => None,
            Protection::Encrypted(nonce) | Protection::Authenticated(nonce) => Some(nonce),
        }
    }

    /// Its stored bytes.
    pub(crate) fn stored_bytes(&self) -> StoredBytes<'_> {
        match self {
            Self::Inline(bytes) => StoredBytes::Inline(bytes),
            Self::Stored(locations) | Self::Shared(locations) => StoredBytes::Locations(locations),
            Self::Encrypted(_) | Self::Authenticated(_) => match self.ciphertext() {
                Some(Ciphertext::Inline(bytes)) => StoredBytes::Inline(bytes),
                Some(Ciphertext::Stored(locations) | Ciphertext::Shared(locations)) => {
                    StoredBytes::Locations(locations)
                }
                None => StoredBytes::Locations(&[]),
            },
        }
    }

    /// The length of the content in `stored` stored bytes, which form whole chunks if the content
    /// is authenticated.
    pub(crate) const fn len_of(&self, stored: u64) -> u64 {
        match self.protection() {
            Protection::Plain | Protection::Encrypted(_) => stored,
            Protection::Authenticated(_) => content_len(stored),
        }
    }

    /// The length of the content, bytes.
    pub(crate) fn len(&self) -> u64 {
        match self.stored_bytes() {
            StoredBytes::Inline(bytes) => {
                self.len_of(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
            }
            StoredBytes::Locations(locations) => {
                locations.iter().fold(0u64, |sum, l| sum.saturating_add(self.len_of(l.len.get())))
            }
        }
    }

    /// The locations of its bytes; none if they are in the row.
    pub(crate) fn locations(&self) -> &[Location] {
        match self.stored_bytes() {
            StoredBytes::Inline(_) => &[],
            StoredBytes::Locations(locations) => locations,
        }
    }

    /// One location of a Put Page as content by itself. It is location number `number`, and begins
    /// at byte `at` of the written content.
    pub(super) fn one(&self, location: Location, number: u64, at: u64) -> Self {
        let one = vec![location];
        let bytes = match (self.ciphertext(), self) {
            (None, Self::Shared(_)) => return Self::Shared(one),
            (None, _) => return Self::Stored(one),
            (Some(Ciphertext::Inline(_) | Ciphertext::Stored(_)), _) => Ciphertext::Stored(one),
            (Some(Ciphertext::Shared(_)), _) => Ciphertext::Shared(one),
        };
        match self.protection() {
            Protection::Encrypted(nonce) => Self::encrypted(nonce.after(at), bytes),
            Protection::Authenticated(nonce) => Self::authenticated(nonce.part(number), bytes),
            Protection::Plain => self.clone(),
        }
    }

    /// Copies the bytes `from..to`, so that the row does not keep bytes that it no longer shows.
    /// `None` if the content is in extents or in authenticated chunks, or if it is encrypted and
    /// `from` is not a multiple of a page.
    pub(super) fn inline_part(&self, from: u64, to: u64) -> Option<Self> {
        let StoredBytes::Inline(bytes) = self.stored_bytes() else { return None };
        let index = |at| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        let part = || Bytes::copy_from_slice(bytes.get(index(from)..index(to)).unwrap_or_default());
        match self.protection() {
            Protection::Plain => Some(Self::Inline(part())),
            Protection::Encrypted(nonce) if from.is_multiple_of(PAGE_BYTES) => {
                Some(Self::encrypted(nonce.after(from), Ciphertext::Inline(part())))
            }
            Protection::Encrypted(_) | Protection::Authenticated(_) => None,
        }
    }

    /// Marks the content as shared: other rows may name it from now on. The mark is permanent.
    pub(super) fn mark(&mut self) {
        let ciphertext = match self {
            Self::Stored(locations) => {
                *self = Self::Shared(std::mem::take(locations));
                return;
            }
            Self::Inline(_) | Self::Shared(_) => return,
            Self::Encrypted(content) => &mut content.bytes,
            Self::Authenticated(content) => &mut content.bytes,
        };
        if let Ciphertext::Stored(locations) = ciphertext {
            *ciphertext = Ciphertext::Shared(std::mem::take(locations));
        }
    }

    /// The locations that become garbage when the row is removed.
    pub(crate) fn owned(&self) -> &[Location] {
        match (self, self.ciphertext()) {
            (Self::Stored(locations), _) | (_, Some(Ciphertext::Stored(locations))) => locations,
            (_, _) => &[],
        }
    }

    /// The number of bytes that may become unreferenced when the row is removed, which only the
    /// audit can find.
    pub(super) fn shared_len(&self) -> u64 {
        match (self, self.ciphertext()) {
            (Self::Shared(locations), _) | (_, Some(Ciphertext::Shared(locations))) => {
                locations_len(locations)
            }
            (_, _) => 0,
        }
    }

    /// An estimate of the bytes that it takes in a row.
    pub(super) fn weight(&self) -> usize {
        const LOCATION: usize = 24;
        match self.stored_bytes() {
            StoredBytes::Inline(bytes) => bytes.len(),
            StoredBytes::Locations(locations) => locations.len().saturating_mul(LOCATION),
        }
    }

    fn encrypted(nonce: KeyedNonce, bytes: Ciphertext) -> Self {
        Self::Encrypted(Box::new(EncryptedContent { nonce, bytes }))
    }

    fn authenticated(nonce: KeyedNonce, bytes: Ciphertext) -> Self {
        Self::Authenticated(Box::new(AuthenticatedContent { format: ChunkFormat, nonce, bytes }))
    }
}

impl From<&NewContent> for Ciphertext {
    fn from(new: &NewContent) -> Self {
        match new {
            NewContent::Inline(bytes) => Self::Inline(bytes.clone()),
            NewContent::Stored(locations) => Self::Stored(locations.clone()),
            NewContent::Shared(locations) => Self::Shared(locations.clone()),
            NewContent::Encrypted(_, inner) | NewContent::Authenticated(_, inner) => {
                Self::from(&**inner)
            }
        }
    }
}

impl From<&Ciphertext> for NewContent {
    fn from(bytes: &Ciphertext) -> Self {
        match bytes {
            Ciphertext::Inline(bytes) => Self::Inline(bytes.clone()),
            Ciphertext::Stored(locations) => Self::Stored(locations.clone()),
            Ciphertext::Shared(locations) => Self::Shared(locations.clone()),
        }
    }
}

impl From<&NewContent> for Content {
    fn from(new: &NewContent) -> Self {
        match new {
            NewContent::Inline(bytes) => Self::Inline(bytes.clone()),
            NewContent::Stored(locations) => Self::Stored(locations.clone()),
            NewContent::Shared(locations) => Self::Shared(locations.clone()),
            NewContent::Encrypted(nonce, bytes) => Self::encrypted(*nonce, (&**bytes).into()),
            NewContent::Authenticated(nonce, bytes) => {
                Self::authenticated(*nonce, (&**bytes).into())
            }
        }
    }
}

impl From<&Content> for NewContent {
    fn from(content: &Content) -> Self {
        match content {
            Content::Inline(bytes) => Self::Inline(bytes.clone()),
            Content::Stored(locations) => Self::Stored(locations.clone()),
            Content::Shared(locations) => Self::Shared(locations.clone()),
            Content::Encrypted(content) => {
                Self::Encrypted(content.nonce, Box::new((&content.bytes).into()))
            }
            Content::Authenticated(content) => {
                Self::Authenticated(content.nonce, Box::new((&content.bytes).into()))
            }
        }
    }
}
