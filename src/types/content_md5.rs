//! The Content-MD5 of a blob and other checksums of it. Under a customer-provided key it is
//! encrypted, because a plain digest would confirm a guess of the content.

use aes_gcm_siv::AeadInOut;
use aes_gcm_siv::Aes256GcmSiv;
use aes_gcm_siv::KeyInit;
use aes_gcm_siv::Nonce;
use aes_gcm_siv::Tag;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::types::CustomerKey;
use crate::types::Md5;

/// The purpose for which the key of a digest is derived.
const PURPOSE: &[u8] = b"blockyard content md5 1";

/// The most bytes of a Content-MD5 that a client sets.
const BYTES_MAX: usize = 64;

/// The purpose for which the key of another checksum is derived.
const CHECKSUM_PURPOSE: &[u8] = b"blockyard content checksum 1";

/// The Content-MD5 property of a blob. Rows of earlier releases have an optional [`Md5`], with the
/// same encoding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContentMd5 {
    /// No Content-MD5.
    #[default]
    Absent,
    /// A digest of a blob without a key, or one that was set without a key.
    Plain(Md5),
    /// A digest encrypted under the key of the blob.
    Encrypted(Box<EncryptedMd5>),
    /// A value of a client that does not have the length of a digest.
    Other(Bytes),
}

/// A digest under a customer-provided key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncryptedMd5 {
    /// Random.
    nonce: [u8; 16],
    /// The encrypted digest.
    digest: [u8; 16],
    /// The authentication tag.
    tag: [u8; 16],
}

impl ContentMd5 {
    /// The digest, if it is not encrypted.
    #[must_use]
    pub const fn plain(&self) -> Option<Md5> {
        match self {
            Self::Plain(md5) => Some(*md5),
            Self::Absent | Self::Encrypted(_) | Self::Other(_) => None,
        }
    }
}

impl ContentMd5 {
    /// Reads a value that a client sets: base64 of at most 64 bytes, which need not be a digest.
    /// `None` for another text. Source: recorded answers of Set Blob Properties (2021-12-02); the
    /// limit is ours.
    #[must_use]
    pub fn from_base64(text: &str) -> Option<Self> {
        if let Some(md5) = Md5::from_base64(text) {
            return Some(Self::Plain(md5));
        }
        let bytes = STANDARD.decode(text).ok().filter(|bytes| bytes.len() <= BYTES_MAX)?;
        Some(if bytes.is_empty() { Self::Absent } else { Self::Other(bytes.into()) })
    }

    /// The length of a value that is not a digest, in bytes.
    #[must_use]
    pub const fn extra_len(&self) -> usize {
        match self {
            Self::Other(bytes) => bytes.len(),
            Self::Absent | Self::Plain(_) | Self::Encrypted(_) => 0,
        }
    }

    /// The value in base64, if it is not encrypted.
    #[must_use]
    pub fn to_base64(&self) -> Option<String> {
        match self {
            Self::Plain(md5) => Some(md5.to_base64()),
            Self::Other(bytes) => Some(STANDARD.encode(bytes)),
            Self::Absent | Self::Encrypted(_) => None,
        }
    }
}

impl From<Option<Md5>> for ContentMd5 {
    fn from(md5: Option<Md5>) -> Self {
        md5.map_or(Self::Absent, Self::Plain)
    }
}

impl CustomerKey {
    /// Encrypts a digest. `nonce` must be random and must not be used again.
    #[must_use]
    pub fn encrypt_md5(&self, md5: Md5, nonce: [u8; 16]) -> EncryptedMd5 {
        let mut digest = *md5.as_bytes();
        let tag = self
            .md5_cipher(nonce)
            .encrypt_inout_detached(&Nonce::default(), b"", digest.as_mut_slice().into())
            .expect("16 bytes are below the limit of the cipher");
        EncryptedMd5 { nonce, digest, tag: tag.into() }
    }

    /// Decrypts a digest; `None` if it is damaged or under another key.
    #[must_use]
    pub fn decrypt_md5(&self, encrypted: &EncryptedMd5) -> Option<Md5> {
        let (mut digest, tag) = (encrypted.digest, Tag::from(encrypted.tag));
        self.md5_cipher(encrypted.nonce)
            .decrypt_inout_detached(&Nonce::default(), b"", digest.as_mut_slice().into(), &tag)
            .ok()?;
        Some(Md5::from_bytes(digest))
    }

    /// Encrypts a checksum of any length, for a row. `nonce` must be random and must not be used
    /// again.
    #[must_use]
    pub fn encrypt_checksum(&self, digest: &[u8], nonce: [u8; 16]) -> Bytes {
        let mut sealed = [nonce.as_slice(), digest].concat();
        let text = sealed.split_at_mut(nonce.len()).1;
        let tag = self
            .row_cipher(nonce, CHECKSUM_PURPOSE)
            .encrypt_inout_detached(&Nonce::default(), b"", text.into())
            .expect("a digest is below the limit of the cipher");
        sealed.extend_from_slice(&tag);
        sealed.into()
    }

    /// Decrypts a checksum; `None` if it is damaged or under another key.
    #[must_use]
    pub fn decrypt_checksum(&self, sealed: &[u8]) -> Option<Bytes> {
        let (nonce, rest) = sealed.split_first_chunk::<16>()?;
        let (text, tag) = rest.split_last_chunk::<16>()?;
        let (mut digest, tag) = (text.to_vec(), Tag::from(*tag));
        self.row_cipher(*nonce, CHECKSUM_PURPOSE)
            .decrypt_inout_detached(&Nonce::default(), b"", digest.as_mut_slice().into(), &tag)
            .ok()?;
        Some(digest.into())
    }

    fn md5_cipher(&self, nonce: [u8; 16]) -> Aes256GcmSiv {
        self.row_cipher(nonce, PURPOSE)
    }

    /// The cipher of one value in a row.
    fn row_cipher(&self, nonce: [u8; 16], purpose: &[u8]) -> Aes256GcmSiv {
        let key = self.derive(&self.keyed_nonce(nonce), purpose).expect("the nonce is of this key");
        Aes256GcmSiv::new((&*key).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> CustomerKey {
        CustomerKey::from_base64(text).unwrap()
    }

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn clients_set_any_bytes_up_to_a_limit() {
        let read = |len: usize| ContentMd5::from_base64(&STANDARD.encode(vec![7; len]));
        assert_eq!(read(0), Some(ContentMd5::Absent));
        assert_eq!(read(16), Some(ContentMd5::Plain(Md5::from_bytes([7; 16]))));
        for len in [1, 15, 17, BYTES_MAX] {
            assert_eq!(read(len), Some(ContentMd5::Other(vec![7; len].into())));
            assert_eq!(read(len).unwrap().extra_len(), len);
        }
        assert_eq!(read(BYTES_MAX + 1), None);
        assert_eq!(ContentMd5::from_base64("*"), None);
    }

    /// Example of `api-spec/encryption.md`; computed there with another implementation.
    #[test]
    fn an_encrypted_digest_has_the_documented_bytes() {
        let md5 = Md5::of(b"hello");
        let encrypted = key(KEY).encrypt_md5(md5, *b"nonce of 16 byte");
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(hex(&encrypted.digest), "f4668fff563a7f5177aba82ec8265ee2");
        assert_eq!(hex(&encrypted.tag), "693e9ee15f55d653a65e3ae9cfadd1b4");
        assert_eq!(key(KEY).decrypt_md5(&encrypted), Some(md5));
        for damaged in [
            EncryptedMd5 { nonce: [0; 16], ..encrypted },
            EncryptedMd5 { digest: [0; 16], ..encrypted },
            EncryptedMd5 { tag: [0; 16], ..encrypted },
        ] {
            assert_eq!(key(KEY).decrypt_md5(&damaged), None, "{damaged:?}");
        }
        let other = key("CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=");
        assert_eq!(other.decrypt_md5(&encrypted), None, "another key");
    }

    /// Example of `api-spec/encryption.md`.
    #[test]
    fn an_encrypted_checksum_has_the_documented_bytes() {
        let sealed = key(KEY).encrypt_checksum(b"\x01\x02\x03\x04", *b"nonce of 16 byte");
        let hex = sealed.iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(hex, "6e6f6e6365206f662031362062797465a4ba3a4e09f5d4ad8c9b8698900cac71e724016f");
        assert_eq!(key(KEY).decrypt_checksum(&sealed).unwrap(), [1, 2, 3, 4].as_slice());
        for at in 0..sealed.len() {
            let mut damaged = sealed.to_vec();
            damaged[at] ^= 1;
            assert_eq!(key(KEY).decrypt_checksum(&damaged), None, "byte {at}");
            assert_eq!(key(KEY).decrypt_checksum(&sealed[..at]), None, "cut at {at}");
        }
        let other = key("CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=");
        assert_eq!(other.decrypt_checksum(&sealed), None, "another key");
    }

    #[test]
    fn rows_of_earlier_releases_have_the_same_bytes() {
        for before in [None, Some(Md5::of(b"hello"))] {
            let row = postcard::to_stdvec(&before).unwrap();
            assert_eq!(postcard::to_stdvec(&ContentMd5::from(before)).unwrap(), row);
            let read: ContentMd5 = postcard::from_bytes(&row).unwrap();
            assert_eq!((read.plain(), read), (before, before.into()));
        }
        let encrypted = key(KEY).encrypt_md5(Md5::of(b"x"), [5; 16]);
        let row = postcard::to_stdvec(&ContentMd5::Encrypted(Box::new(encrypted.clone()))).unwrap();
        assert_eq!((row[0], row.len()), (2, 49));
        assert_eq!(postcard::from_bytes(&row), Ok(ContentMd5::Encrypted(Box::new(encrypted))));
    }
}
