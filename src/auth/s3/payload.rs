//! The claim of a signature about the body.

use ring::digest;

use crate::auth::s3::chunks::ChunkVerifier;
use crate::auth::s3::error::S3Error;
use crate::auth::s3::unhex;

/// The claim of a signature about the body.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Nothing.
    Unsigned,
    /// It has this SHA-256.
    Sha256([u8; 32]),
    /// It comes in chunks, which may be signed.
    Chunks {
        /// Verifies the signatures of chunks; `None` when they are not signed.
        verifier: Option<Box<ChunkVerifier>>,
        /// Whether trailers follow the last chunk. Those of signed chunks are signed.
        trailers: bool,
    },
}

/// The SHA-256 of content that comes in pieces.
#[derive(Clone)]
pub struct Sha256Stream(digest::Context);

impl Default for Sha256Stream {
    fn default() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }
}

impl std::fmt::Debug for Sha256Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sha256Stream").finish_non_exhaustive()
    }
}

impl Sha256Stream {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The SHA-256 of all bytes.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        let mut sha256 = [0; 32];
        sha256.copy_from_slice(self.0.finish().as_ref());
        sha256
    }
}

/// The forms of `x-amz-content-sha256`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Unsigned,
    Sha256([u8; 32]),
    SignedChunks { trailers: bool },
    UnsignedChunks,
}

impl Form {
    /// Reads the value of `x-amz-content-sha256`.
    ///
    /// # Errors
    /// [`S3Error::BadPayloadHash`], [`S3Error::Unsupported`].
    pub(super) fn parse(value: &str) -> Result<Self, S3Error> {
        match value {
            "UNSIGNED-PAYLOAD" => Ok(Self::Unsigned),
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" => Ok(Self::SignedChunks { trailers: false }),
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER" => {
                Ok(Self::SignedChunks { trailers: true })
            }
            "STREAMING-UNSIGNED-PAYLOAD-TRAILER" => Ok(Self::UnsignedChunks),
            "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"
            | "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER" => {
                let detail = "signatures of version 4A are not served; sign with AWS4-HMAC-SHA256";
                Err(S3Error::Unsupported { detail: detail.to_owned() })
            }
            _ => unhex(value).map(Self::Sha256).ok_or(S3Error::BadPayloadHash),
        }
    }
}
