//! Content in rows: the bytes themselves, or where they lie. Layout: `api-spec/rows.md`.

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

/// Bytes in the row, or where they lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Content {
    /// In the row.
    Inline(Bytes),
    /// In extents, in order; nothing else refers to them.
    Stored(Vec<Location>),
    /// In extents, in order; other rows may refer to them, so that only the audit may free them
    /// (ADR 0009).
    Shared(Vec<Location>),
    /// Under a customer-provided key, in counter mode: written by earlier releases.
    Encrypted(Box<EncryptedContent>),
    /// Under a customer-provided key, in chunks (ADR 0025).
    Authenticated(Box<AuthenticatedContent>),
}

/// Encrypted bytes, and what is needed beside the key to decrypt them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EncryptedContent {
    pub(crate) nonce: KeyedNonce,
    pub(crate) bytes: Ciphertext,
}

/// Authenticated chunks, and what is needed beside the key to decrypt them. Each location but the
/// last holds whole chunks of full length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AuthenticatedContent {
    pub(crate) format: ChunkFormat,
    pub(crate) nonce: KeyedNonce,
    pub(crate) bytes: Ciphertext,
}

/// Encrypted bytes: kept as plain ones are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ciphertext {
    /// As [`Content::Inline`].
    Inline(Bytes),
    /// As [`Content::Stored`].
    Stored(Vec<Location>),
    /// As [`Content::Shared`].
    Shared(Vec<Location>),
}

/// What content is made of, encrypted or not.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parts<'a> {
    /// In the row.
    Inline(&'a Bytes),
    /// In extents, in order.
    Locations(&'a [Location]),
}

/// How the bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lies {
    /// As they are.
    Plain,
    /// Encrypted in counter mode, byte for byte.
    Encrypted(KeyedNonce),
    /// In authenticated chunks.
    Authenticated(KeyedNonce),
}

impl Content {
    /// The encrypted bytes, when they are encrypted.
    const fn ciphertext(&self) -> Option<&Ciphertext> {
        match self {
            Self::Inline(_) | Self::Stored(_) | Self::Shared(_) => None,
            Self::Encrypted(content) => Some(&content.bytes),
            Self::Authenticated(content) => Some(&content.bytes),
        }
    }

    /// How its bytes lie.
    pub(crate) const fn lies(&self) -> Lies {
        match self {
            Self::Inline(_) | Self::Stored(_) | Self::Shared(_) => Lies::Plain,
            Self::Encrypted(content) => Lies::Encrypted(content.nonce),
            Self::Authenticated(content) => Lies::Authenticated(content.nonce),
        }
    }

    /// How to decrypt it, when it is encrypted.
    pub(crate) const fn nonce(&self) -> Option<KeyedNonce> {
        match self.lies() {
            Lies::Plain => None,
            Lies::Encrypted(nonce) | Lies::Authenticated(nonce) => Some(nonce),
        }
    }

    /// What it is made of.
    pub(crate) fn parts(&self) -> Parts<'_> {
        match self {
            Self::Inline(bytes) => Parts::Inline(bytes),
            Self::Stored(locations) | Self::Shared(locations) => Parts::Locations(locations),
            Self::Encrypted(_) | Self::Authenticated(_) => match self.ciphertext() {
                Some(Ciphertext::Inline(bytes)) => Parts::Inline(bytes),
                Some(Ciphertext::Stored(locations) | Ciphertext::Shared(locations)) => {
                    Parts::Locations(locations)
                }
                None => Parts::Locations(&[]),
            },
        }
    }

    /// Bytes of the content in so many stored ones, which are a part of it by themselves.
    pub(crate) const fn len_of(&self, stored: u64) -> u64 {
        match self.lies() {
            Lies::Plain | Lies::Encrypted(_) => stored,
            Lies::Authenticated(_) => content_len(stored),
        }
    }

    /// Bytes.
    pub(crate) fn len(&self) -> u64 {
        match self.parts() {
            Parts::Inline(bytes) => self.len_of(u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            Parts::Locations(locations) => {
                locations.iter().fold(0u64, |sum, l| sum.saturating_add(self.len_of(l.len.get())))
            }
        }
    }

    /// Where its bytes lie; none when inline.
    pub(crate) fn locations(&self) -> &[Location] {
        match self.parts() {
            Parts::Inline(_) => &[],
            Parts::Locations(locations) => locations,
        }
    }

    /// One of the locations of a Put Page, as content by itself: number `number`, which begins at
    /// byte `at` of what was written.
    pub(super) fn one(&self, location: Location, number: u64, at: u64) -> Self {
        let one = vec![location];
        let bytes = match (self.ciphertext(), self) {
            (None, Self::Shared(_)) => return Self::Shared(one),
            (None, _) => return Self::Stored(one),
            (Some(Ciphertext::Inline(_) | Ciphertext::Stored(_)), _) => Ciphertext::Stored(one),
            (Some(Ciphertext::Shared(_)), _) => Ciphertext::Shared(one),
        };
        match self.lies() {
            Lies::Encrypted(nonce) => Self::encrypted(nonce.after(at), bytes),
            Lies::Authenticated(nonce) => Self::authenticated(nonce.part(number), bytes),
            Lies::Plain => self.clone(),
        }
    }

    /// What of it is in the row, from byte `from` on as far as `to`: copied, so that the row does
    /// not keep what it no longer shows. `None` when it is in extents, or in authenticated chunks,
    /// or is encrypted and `from` is inside a block of the cipher.
    pub(super) fn cut_inline(&self, from: u64, to: u64) -> Option<Self> {
        let Parts::Inline(bytes) = self.parts() else { return None };
        let index = |at| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        let part = || Bytes::copy_from_slice(bytes.get(index(from)..index(to)).unwrap_or_default());
        match self.lies() {
            Lies::Plain => Some(Self::Inline(part())),
            Lies::Encrypted(nonce) if from.is_multiple_of(PAGE_BYTES) => {
                Some(Self::encrypted(nonce.after(from), Ciphertext::Inline(part())))
            }
            Lies::Encrypted(_) | Lies::Authenticated(_) => None,
        }
    }

    /// From here on other rows may name it; never taken back.
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

    /// What becomes garbage when the row that holds it goes.
    pub(crate) fn owned(&self) -> &[Location] {
        match (self, self.ciphertext()) {
            (Self::Stored(locations), _) | (_, Some(Ciphertext::Stored(locations))) => locations,
            (_, _) => &[],
        }
    }

    /// Bytes that the audit has to look for when the row that holds it goes.
    pub(super) fn shared_len(&self) -> u64 {
        match (self, self.ciphertext()) {
            (Self::Shared(locations), _) | (_, Some(Ciphertext::Shared(locations))) => {
                locations_len(locations)
            }
            (_, _) => 0,
        }
    }

    /// About how many bytes it takes in a row.
    pub(super) fn weight(&self) -> usize {
        const LOCATION: usize = 24;
        match self.parts() {
            Parts::Inline(bytes) => bytes.len(),
            Parts::Locations(locations) => locations.len().saturating_mul(LOCATION),
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
