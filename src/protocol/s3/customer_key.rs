//! Keys that requests bring, under which content is encrypted (SSE-C).
//!
//! Source: S3, "Using server-side encryption with customer-provided keys". A key's text is never
//! repeated in an answer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::RequestEncryption;
use crate::protocol::wire::headers;
use crate::types::CustomerKey;
use crate::types::Md5;

/// The headers of a key.
struct KeyHeaders {
    algorithm: &'static str,
    key: &'static str,
    md5: &'static str,
}

const OF_OBJECT: KeyHeaders = KeyHeaders {
    algorithm: "x-amz-server-side-encryption-customer-algorithm",
    key: "x-amz-server-side-encryption-customer-key",
    md5: "x-amz-server-side-encryption-customer-key-md5",
};
const OF_SOURCE: KeyHeaders = KeyHeaders {
    algorithm: "x-amz-copy-source-server-side-encryption-customer-algorithm",
    key: "x-amz-copy-source-server-side-encryption-customer-key",
    md5: "x-amz-copy-source-server-side-encryption-customer-key-md5",
};

/// The key of the object that a request writes or reads.
///
/// # Errors
/// `InvalidHeaderValue` for a key that is incomplete or malformed.
pub(super) fn of_object(all: &HeaderMap) -> Result<RequestEncryption, Refusal> {
    read(all, &OF_OBJECT)
}

/// The key of the object from which a copy takes its bytes.
///
/// # Errors
/// As [`of_object`].
pub(super) fn of_source(all: &HeaderMap) -> Result<RequestEncryption, Refusal> {
    read(all, &OF_SOURCE)
}

fn read(all: &HeaderMap, names: &KeyHeaders) -> Result<RequestEncryption, Refusal> {
    let KeyHeaders { algorithm, key, md5 } = names;
    if ![algorithm, key, md5].into_iter().any(|name| all.contains_key(*name)) {
        return Ok(RequestEncryption::Plain);
    }
    let refused = |name: &str, message: &str| {
        Refusal::new(Reason::InvalidHeaderValue).message(message).detail(Detail::HeaderName, name)
    };
    let text = |name: &str| headers::text(all, name).map_err(|_| refused(name, MALFORMED));
    if text(algorithm)? != Some("AES256") {
        return Err(refused(algorithm, ALGORITHM));
    }
    let given = text(key)?.ok_or_else(|| refused(key, NO_KEY))?;
    let found = CustomerKey::from_base64(given).ok_or_else(|| refused(key, BAD_KEY))?;
    let claimed = text(md5)?.ok_or_else(|| refused(md5, NO_MD5))?;
    let computed = STANDARD.decode(given).map(|bytes| Md5::of(&bytes)).ok();
    if computed.is_some() && Md5::from_base64(claimed) == computed {
        return Ok(RequestEncryption::Key(found));
    }
    Err(refused(md5, WRONG_MD5))
}

const MALFORMED: &str = "A header of the customer-provided key is malformed or repeated.";
const ALGORITHM: &str = "Requests specifying Server Side Encryption with Customer provided keys \
                         must provide a valid encryption algorithm.";
const NO_KEY: &str = "Requests specifying Server Side Encryption with Customer provided keys must \
                      provide an appropriate secret key.";
const BAD_KEY: &str = "The secret key was invalid for the specified algorithm.";
const NO_MD5: &str = "Requests specifying Server Side Encryption with Customer provided keys must \
                      provide the client calculated MD5 of the secret key.";
const WRONG_MD5: &str = "The calculated MD5 hash of the key did not match the hash that was \
                         provided.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_whole_or_refused() {
        let key = STANDARD.encode([7; 32]);
        let md5 = Md5::of(&[7; 32]).to_base64();
        let given = [
            (OF_OBJECT.algorithm, "AES256"),
            (OF_OBJECT.key, key.as_str()),
            (OF_OBJECT.md5, md5.as_str()),
        ];
        let read = |pairs: &[(&'static str, &str)]| {
            let mut all = HeaderMap::new();
            for (name, value) in pairs {
                all.append(*name, value.parse().unwrap());
            }
            of_object(&all)
        };
        assert_eq!(read(&[]), Ok(RequestEncryption::Plain));
        let whole = RequestEncryption::Key(CustomerKey::from_base64(&key).unwrap());
        assert_eq!(read(&given), Ok(whole));
        for at in 0..3 {
            let mut less = given.to_vec();
            less.remove(at);
            assert_eq!(read(&less).unwrap_err().reason, Reason::InvalidHeaderValue, "{at}");
            let mut wrong = given.to_vec();
            wrong[at].1 = "AAAA";
            let refused = read(&wrong).unwrap_err();
            assert_eq!(refused.reason, Reason::InvalidHeaderValue, "{at}");
            assert!(!format!("{refused:?}").contains(&key));
        }
    }
}
