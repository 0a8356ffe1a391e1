//! Customer-provided keys, and content of earlier releases under them: AES-256 in counter mode,
//! which is read and no longer written. New content is in `chunks.rs`.
//!
//! When a later write replaces a part of stored pages, the rest keeps its position in the keystream
//! ([`KeyedNonce::after`]). Counter mode does not detect changed bytes; only checksums do, which
//! anyone can compute.
//!
//! The only file that names `aes`, `ctr` and `ring::hkdf`.

#![deny(clippy::indexing_slicing)]

use std::fmt;

use aes::Aes256;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use ctr::Ctr128BE;
use ctr::cipher::KeyIvInit;
use ctr::cipher::StreamCipher;
use ctr::cipher::StreamCipherSeek;
use ring::hkdf;
use serde::{Deserialize, Serialize};
use sha2::Digest;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::types::Encryption;

/// Bytes that one value of the counter encrypts.
const BLOCK_BYTES: u64 = 16;

/// SHA-256 of a customer-provided key. Nothing else of a key is stored.
pub type KeySha256 = [u8; 32];

/// A key under which content is: a customer-provided key of a request (`x-ms-encryption-key`),
/// which is never stored or shown, or the key of an encryption scope. It is wiped when dropped.
#[derive(Clone)]
pub struct CustomerKey {
    key: Zeroizing<[u8; 32]>,
    sha256: KeySha256,
}

impl CustomerKey {
    /// Parses base64 of 32 bytes; `None` for anything else.
    #[must_use]
    pub fn from_base64(text: &str) -> Option<Self> {
        Self::from_bytes(&Zeroizing::new(STANDARD.decode(text).ok()?))
    }

    /// A key of these bytes, 32; `None` for any other number.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let key = Zeroizing::new(<[u8; 32]>::try_from(bytes).ok()?);
        let sha256 = Sha256::digest(key.as_slice()).into();
        Some(Self { key, sha256 })
    }

    /// Its SHA-256.
    #[must_use]
    pub const fn sha256(&self) -> KeySha256 {
        self.sha256
    }

    /// Base64 of its bytes, for a request to another server.
    #[must_use]
    pub fn to_base64(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(self.key.as_slice()))
    }

    /// Its SHA-256, by which rows and replies name it.
    #[must_use]
    pub const fn encryption(&self) -> Encryption {
        Encryption::Customer(self.sha256)
    }

    /// The cipher for content of an earlier release with this nonce; `None` if the nonce is of
    /// another key.
    #[must_use]
    pub fn cipher(&self, nonce: &KeyedNonce) -> Option<ContentCipher> {
        (self.sha256 == nonce.key_sha256)
            .then(|| ContentCipher(Ctr128BE::new((&*self.key).into(), (&nonce.bytes).into())))
    }

    /// The nonce of new content under this key. `bytes` must be random and must not be used again.
    #[must_use]
    pub const fn keyed_nonce(&self, bytes: [u8; 16]) -> KeyedNonce {
        KeyedNonce { bytes, key_sha256: self.sha256 }
    }

    /// Derives a key for one purpose and one nonce (HKDF with SHA-256, RFC 5869). So no two
    /// contents have the same key, and none has the customer's key itself, which encrypted content
    /// of earlier releases. `None` if the nonce is of another key.
    pub(super) fn derive(&self, nonce: &KeyedNonce, purpose: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
        if self.sha256 != nonce.key_sha256 {
            return None;
        }
        let mut derived = Zeroizing::new([0; 32]);
        hkdf::Salt::new(hkdf::HKDF_SHA256, &nonce.bytes)
            .extract(self.key.as_slice())
            .expand(&[purpose], hkdf::HKDF_SHA256)
            .and_then(|okm| okm.fill(derived.as_mut_slice()))
            .expect("32 bytes are one block of SHA-256");
        Some(derived)
    }
}

impl PartialEq for CustomerKey {
    fn eq(&self, other: &Self) -> bool {
        self.sha256 == other.sha256
    }
}

impl Eq for CustomerKey {}

impl fmt::Debug for CustomerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomerKey(..)")
    }
}

/// The part of a row with which encrypted content can be decrypted, given the key. The nonce is the
/// first value of the counter for content of earlier releases, and the salt of the derived key for
/// chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyedNonce {
    /// Random, big endian.
    pub bytes: [u8; 16],
    /// SHA-256 of the key.
    pub key_sha256: KeySha256,
}

impl KeyedNonce {
    /// The nonce of part `number` of a write whose parts are encrypted as separate contents.
    #[must_use]
    pub const fn part(self, number: u64) -> Self {
        // Lossless: a u64 fits.
        let bytes = u128::from_be_bytes(self.bytes).wrapping_add(number as u128).to_be_bytes();
        Self { bytes, ..self }
    }

    /// In counter mode: the nonce of the part of the content that begins at byte `at`, a multiple
    /// of 16.
    #[must_use]
    pub const fn after(self, at: u64) -> Self {
        debug_assert!(at.is_multiple_of(BLOCK_BYTES));
        self.part(at / BLOCK_BYTES)
    }
}

/// Encrypts and decrypts one content in counter mode: the same operation.
pub struct ContentCipher(Ctr128BE<Aes256>);

impl fmt::Debug for ContentCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContentCipher(..)")
    }
}

impl ContentCipher {
    /// Encrypts or decrypts a piece that starts at byte `at` of the content. Returns a copy,
    /// because the piece may be shared.
    #[must_use]
    pub fn apply(&mut self, at: u64, piece: &[u8]) -> Bytes {
        let mut out = piece.to_vec();
        // The counter has 128 bits, so every offset of 64 bits is within it.
        self.0.seek(at);
        self.0.apply_keystream(&mut out);
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn key() -> CustomerKey {
        CustomerKey::from_base64(KEY).unwrap()
    }

    fn cipher(nonce: u8) -> ContentCipher {
        key().cipher(&key().keyed_nonce([nonce; 16])).unwrap()
    }

    #[test]
    fn cipher_is_aes_256_in_counter_mode() {
        // NIST SP 800-38A, F.5.5.
        let text = STANDARD.encode([
            0x60, 0x3d, 0xeb, 0x10, 0x15, 0xca, 0x71, 0xbe, 0x2b, 0x73, 0xae, 0xf0, 0x85, 0x7d,
            0x77, 0x81, 0x1f, 0x35, 0x2c, 0x07, 0x3b, 0x61, 0x08, 0xd7, 0x2d, 0x98, 0x10, 0xa3,
            0x09, 0x14, 0xdf, 0xf4,
        ]);
        let nonce = 0xf0f1_f2f3_f4f5_f6f7_f8f9_fafb_fcfd_feff_u128.to_be_bytes();
        let key = CustomerKey::from_base64(&text).unwrap();
        let plain = 0x6bc1_bee2_2e40_9f96_e93d_7e11_7393_172a_u128.to_be_bytes();
        let found = key.cipher(&key.keyed_nonce(nonce)).unwrap().apply(0, &plain);
        let expected = 0x601e_c313_7757_89a5_b7a7_f504_bbf3_d228_u128.to_be_bytes();
        assert_eq!(found, expected.as_slice());
    }

    #[test]
    fn any_range_decrypts_by_itself() {
        let plain: Vec<u8> = (0..1000u32).map(|n| n.to_le_bytes()[0]).collect();
        let encrypted = cipher(7).apply(0, &plain);
        assert_ne!(encrypted, plain);
        for (from, to) in [(0, 1000), (1, 2), (15, 17), (16, 32), (999, 1000)] {
            let part = cipher(7).apply(from as u64, &encrypted[from..to]);
            assert_eq!(part, plain[from..to]);
        }
        assert_ne!(cipher(8).apply(0, &plain), encrypted, "each nonce gives another text");
    }

    #[test]
    fn a_part_has_a_nonce_of_its_own() {
        let plain: Vec<u8> = (0..2048u32).map(|n| n.to_le_bytes()[0]).collect();
        for byte in [7, 0xff] {
            let nonce = key().keyed_nonce([byte; 16]);
            let encrypted = key().cipher(&nonce).unwrap().apply(0, &plain);
            for at in [0usize, 16, 512, 1024] {
                let part = nonce.after(at as u64);
                assert_eq!(part.after(512), nonce.after(at as u64 + 512));
                let found = key().cipher(&part).unwrap().apply(0, &encrypted[at..]);
                assert_eq!(found, plain[at..], "nonce of {byte:#x} at {at}");
            }
        }
    }

    #[test]
    fn another_key_has_no_cipher_and_a_key_is_never_shown() {
        let other = CustomerKey::from_base64(&STANDARD.encode([9; 32])).unwrap();
        assert!(other.cipher(&key().keyed_nonce([0; 16])).is_none());
        assert_ne!(other, key());
        assert_eq!(format!("{:?}", key()), "CustomerKey(..)");
        for bad in ["", "***", "YWFh", &STANDARD.encode([0; 33])] {
            assert!(CustomerKey::from_base64(bad).is_none(), "{bad}");
        }
    }
}
