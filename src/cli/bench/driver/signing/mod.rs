//! Request signatures of the two protocols, written for the load driver alone. Only the HMAC of
//! Shared Key is the server's code.
//!
//! The server has its own code for the same rules. As the two are separate, every run of the driver
//! also tests the server's implementation.

pub mod shared_key;
pub mod sigv4;

use hmac::Hmac;
use hmac::KeyInit;
use hmac::Mac;
use sha2::Sha256;

/// HMAC-SHA-256 of `message` under `key`.
pub fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length by definition");
    mac.update(message);
    mac.finalize().into_bytes().into()
}
