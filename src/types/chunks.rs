//! Content under customer-provided keys, encrypted and authenticated chunk by chunk (ADR 0025). A
//! range can be read and verified without the rest of the content.
//!
//! Only this file maps bytes of the content to stored bytes. Byte layout: `api-spec/encryption.md`.

use std::borrow::Cow;
use std::ops::Range;

use aes_gcm_siv::AeadInOut;
use aes_gcm_siv::Aes256GcmSiv;
use aes_gcm_siv::KeyInit;
use aes_gcm_siv::Nonce;
use aes_gcm_siv::Tag;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::types::CustomerKey;
use crate::types::KeyedNonce;

/// Bytes of an authenticated chunk: ciphertext, then its tag. The last chunk of a content is
/// shorter. A frame has one checksum for this many bytes, so that reading a chunk verifies one of
/// them.
pub const AUTHENTICATED_CHUNK_BYTES: u64 = 16 << 10;
/// Bytes of the tag of a chunk.
pub const CHUNK_TAG_BYTES: u64 = 16;
/// Bytes of the content in each chunk except the last.
pub const CHUNK_BYTES: u64 = AUTHENTICATED_CHUNK_BYTES - CHUNK_TAG_BYTES;

/// The purpose for which the key of a content is derived.
const PURPOSE: &[u8] = b"blockyard content chunks 1";

/// The format of authenticated chunks. There is only one; rows with another are refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct ChunkFormat;

impl From<ChunkFormat> for u8 {
    fn from(ChunkFormat: ChunkFormat) -> Self {
        1
    }
}

impl TryFrom<u8> for ChunkFormat {
    type Error = &'static str;

    fn try_from(number: u8) -> Result<Self, Self::Error> {
        if number == 1 { Ok(Self) } else { Err("an unknown format of authenticated chunks") }
    }
}

/// Bytes that content of `len` bytes takes as authenticated chunks.
#[must_use]
pub const fn authenticated_len(len: u64) -> u64 {
    len.saturating_add(len.div_ceil(CHUNK_BYTES).saturating_mul(CHUNK_TAG_BYTES))
}

/// Bytes of the content in `stored` bytes: the reverse of [`authenticated_len`]. A rest that is too
/// short for a tag has no content.
#[must_use]
pub const fn content_len(stored: u64) -> u64 {
    let rest = stored % AUTHENTICATED_CHUNK_BYTES;
    stored / AUTHENTICATED_CHUNK_BYTES * CHUNK_BYTES + rest.saturating_sub(CHUNK_TAG_BYTES)
}

/// The stored bytes of the chunks that cover `range` of the content.
#[must_use]
pub fn authenticated_range(range: &Range<u64>, stored: u64) -> Range<u64> {
    let at = |chunk: u64| chunk.saturating_mul(AUTHENTICATED_CHUNK_BYTES).min(stored);
    at(range.start / CHUNK_BYTES)..at(range.end.div_ceil(CHUNK_BYTES))
}

/// Where a step of a read ends that begins at `from`: at the end of a chunk, after about `step`
/// bytes and at least one chunk.
#[must_use]
pub fn step_end(from: u64, step: u64) -> u64 {
    let chunks = (step / AUTHENTICATED_CHUNK_BYTES).max(1);
    let first = from / CHUNK_BYTES;
    (first - first % chunks).saturating_add(chunks).saturating_mul(CHUNK_BYTES)
}

impl CustomerKey {
    /// The cipher for content of `len` bytes with this nonce; `None` if the nonce is of another
    /// key.
    #[must_use]
    pub fn chunks(&self, nonce: &KeyedNonce, len: u64) -> Option<ChunkCipher> {
        let key = self.derive(nonce, PURPOSE)?;
        Some(ChunkCipher { cipher: Aes256GcmSiv::new((&*key).into()), len })
    }
}

/// Encrypts and decrypts the chunks of one content. A chunk decrypts only with its own number and
/// with the key, nonce and length of its content.
pub struct ChunkCipher {
    cipher: Aes256GcmSiv,
    len: u64,
}

impl std::fmt::Debug for ChunkCipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChunkCipher(..)")
    }
}

/// The nonce of a chunk: its number. No two chunks under one derived key have the same.
fn nonce(number: u64) -> Nonce {
    let mut nonce = Nonce::default();
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    nonce
}

impl ChunkCipher {
    /// Encrypts chunk `number` in place and appends its tag.
    fn encrypt(&self, number: u64, chunk: &mut Vec<u8>) {
        let (len, text) = (self.len.to_be_bytes(), chunk.as_mut_slice().into());
        let tag = self
            .cipher
            .encrypt_inout_detached(&nonce(number), &len, text)
            .expect("a chunk is far below the limit of the cipher");
        chunk.extend_from_slice(&tag);
    }

    /// Decrypts `range` of the content from the authenticated chunks that cover it
    /// ([`authenticated_range`]). `None` if the chunks were changed or are others.
    #[must_use]
    pub fn decrypt(&self, range: &Range<u64>, stored: &[Bytes]) -> Option<Bytes> {
        if range.is_empty() || range.end > self.len {
            return None;
        }
        let stored = match stored {
            [one] => Cow::Borrowed(&one[..]),
            parts => Cow::Owned(parts.concat()),
        };
        let covering = authenticated_range(range, authenticated_len(self.len));
        if covering.end - covering.start != stored.len() as u64 {
            return None;
        }
        let first = range.start / CHUNK_BYTES;
        let mut plain = Vec::with_capacity(stored.len());
        for (number, chunk) in (first..).zip(stored.chunks(index(AUTHENTICATED_CHUNK_BYTES))) {
            let text = chunk.len().checked_sub(index(CHUNK_TAG_BYTES))?;
            let (text, tag) = chunk.split_at(text);
            let start = plain.len();
            plain.extend_from_slice(text);
            let tag: &Tag = tag.try_into().ok()?;
            let (len, text) = (self.len.to_be_bytes(), (&mut plain[start..]).into());
            self.cipher.decrypt_inout_detached(&nonce(number), &len, text, tag).ok()?;
        }
        let from = index(range.start - first * CHUNK_BYTES);
        let to = from.checked_add(index(range.end - range.start))?;
        (to <= plain.len()).then(|| Bytes::from(plain).slice(from..to))
    }
}

/// Encrypts one content into authenticated chunks, piece by piece. Keeps at most one chunk of
/// content in memory.
#[derive(Debug)]
pub struct ChunkWriter {
    cipher: ChunkCipher,
    number: u64,
    chunk: Vec<u8>,
}

impl ChunkWriter {
    /// Begins a content.
    #[must_use]
    pub const fn new(cipher: ChunkCipher) -> Self {
        Self { cipher, number: 0, chunk: Vec::new() }
    }

    /// Adds a piece and returns the chunks that it completes.
    #[must_use]
    pub fn push(&mut self, mut piece: &[u8]) -> Vec<Bytes> {
        let mut chunks = Vec::new();
        while !piece.is_empty() {
            let room = index(CHUNK_BYTES) - self.chunk.len();
            let (fits, rest) = piece.split_at(room.min(piece.len()));
            if self.chunk.capacity() == 0 {
                let all = index(authenticated_len(self.cipher.len.min(CHUNK_BYTES)));
                self.chunk.reserve_exact(all.max(fits.len()));
            }
            self.chunk.extend_from_slice(fits);
            if self.chunk.len() == index(CHUNK_BYTES) {
                chunks.extend(self.finish());
            }
            piece = rest;
        }
        chunks
    }

    /// The last chunk; `None` if no content is left.
    #[must_use]
    pub fn finish(&mut self) -> Option<Bytes> {
        if self.chunk.is_empty() {
            return None;
        }
        let mut chunk = std::mem::take(&mut self.chunk);
        self.cipher.encrypt(self.number, &mut chunk);
        self.number += 1;
        Some(chunk.into())
    }
}

/// A size of a buffer in memory.
fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
