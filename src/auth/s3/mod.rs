//! Signatures of S3 requests, versions 4 and 2. Pure: no I/O, no clock.
//!
//! `request.rs`: the signed parts of a request. `error.rs`: why a signature is refused.
//!
//! 1. `claim.rs` finds the signature and access key of a request: in `Authorization`, or in the
//!    query of a presigned URL. The access key id in it says whose secrets verify the rest.
//! 2. `v4.rs` and `v2.rs` read the two versions and verify them; `canonical.rs` has the form that
//!    version 4 signs, `resource.rs` that of version 2.
//!    `form.rs` reads and verifies the policy of a form.
//! 3. `secrets.rs`: secrets, and the signing keys that are derived from them once a day.
//! 4. `payload.rs`: the claim of a signature about the body. `chunks.rs` verifies the signatures of
//!    its chunks.
//!
//! Source: "Authenticating Requests (AWS Signature Version 4)" and "Signing and Authenticating REST
//! Requests" (version 2) of the S3 API reference.

mod canonical;
mod chunks;
mod claim;
mod error;
mod form;
mod payload;
mod request;
mod resource;
mod secrets;
mod v2;
mod v4;

pub use chunks::ChunkVerifier;
pub use claim::{Claim, claim};
pub use error::S3Error;
pub use payload::{Payload, Sha256Stream};
pub use request::{SignedForm, SignedS3Request, SignedService, Verified};
pub use secrets::S3Secrets;

/// The largest difference between a request's date and now, in both directions, in seconds.
const DATE_WINDOW_SECONDS: u64 = 15 * 60;

/// The longest string to sign shown to the client, bytes.
const SHOWN_BYTES_MAX: usize = 8 * 1024;

/// The signed text, as an error shows it.
fn shown(signed: &[u8]) -> String {
    String::from_utf8_lossy(signed.get(..SHOWN_BYTES_MAX).unwrap_or(signed)).into_owned()
}

/// Bytes as lower-case hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().map_or('0', char::from);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// A SHA-256 or an HMAC of 64 lower-case hexadecimal digits; `None` for anything else.
fn unhex(text: &str) -> Option<[u8; 32]> {
    let nibble = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    if text.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = nibble(*high)? << 4 | nibble(*low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
