//! The signatures of a body in chunks: each covers the previous one, and the first that of the
//! head.

use ring::digest;
use ring::hmac;

use crate::auth::s3::hex;
use crate::auth::s3::unhex;

/// The SHA-256 of nothing, which stands in the string to sign of a chunk.
const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Verifies the signatures of chunks, in their order, and of the trailers behind them.
#[derive(Clone)]
pub struct ChunkVerifier {
    key: hmac::Key,
    /// The date and the scope, two lines of each string to sign.
    context: String,
    /// The signature before, in hexadecimal digits.
    previous: String,
}

impl std::fmt::Debug for ChunkVerifier {
    /// Shows no key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkVerifier").field("context", &self.context).finish_non_exhaustive()
    }
}

impl ChunkVerifier {
    pub(super) fn new(key: hmac::Key, time: &str, scope: &str, seed: &[u8; 32]) -> Self {
        Self { key, context: format!("{time}\n{scope}"), previous: hex(seed) }
    }

    /// Whether `signature` is that of the next chunk, whose bytes have this SHA-256. The last chunk
    /// is empty.
    #[must_use]
    pub fn chunk(&mut self, sha256: &[u8], signature: &str) -> bool {
        let Self { context, previous, .. } = &self;
        let sha256 = hex(sha256);
        let text =
            format!("AWS4-HMAC-SHA256-PAYLOAD\n{context}\n{previous}\n{EMPTY_SHA256}\n{sha256}");
        self.accept(&text, signature)
    }

    /// Whether `signature` is that of the trailers: lines of `name:value`, each with its line feed.
    #[must_use]
    pub fn trailers(&mut self, lines: &[u8], signature: &str) -> bool {
        let Self { context, previous, .. } = &self;
        let sha256 = hex(digest::digest(&digest::SHA256, lines).as_ref());
        let text = format!("AWS4-HMAC-SHA256-TRAILER\n{context}\n{previous}\n{sha256}");
        self.accept(&text, signature)
    }

    fn accept(&mut self, text: &str, signature: &str) -> bool {
        let Some(given) = unhex(signature) else { return false };
        let matches = hmac::verify(&self.key, text.as_bytes(), &given).is_ok();
        if matches {
            signature.clone_into(&mut self.previous);
        }
        matches
    }
}
