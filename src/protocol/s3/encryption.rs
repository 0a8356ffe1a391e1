//! Customer-provided keys. A key's text is never repeated in an answer.
//!
//! Source: S3, "Using server-side encryption with customer-provided keys (SSE-C)".

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use zeroize::Zeroizing;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::RequestEncryption;
use crate::protocol::wire::head::Head;
use crate::protocol::wire::headers;
use crate::types::CustomerKey;
use crate::types::Md5;

/// The headers of one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyHeaders {
    algorithm: &'static str,
    key: &'static str,
    md5: &'static str,
}

/// Those of the object that a request is about.
pub(super) const OF_OBJECT: KeyHeaders = KeyHeaders {
    algorithm: "x-amz-server-side-encryption-customer-algorithm",
    key: "x-amz-server-side-encryption-customer-key",
    md5: "x-amz-server-side-encryption-customer-key-md5",
};

/// The headers about the source of a copy.
pub(super) const OF_SOURCE: KeyHeaders = KeyHeaders {
    algorithm: "x-amz-copy-source-server-side-encryption-customer-algorithm",
    key: "x-amz-copy-source-server-side-encryption-customer-key",
    md5: "x-amz-copy-source-server-side-encryption-customer-key-md5",
};

/// The only algorithm.
const ALGORITHM: &str = "AES256";

/// Reads the encryption headers of a request: a customer-provided key, or nothing.
///
/// # Errors
/// `UnknownEncryptionAlgorithm`; `InvalidHeaderValue` when one of the three headers is missing, the
/// key is not 32 bytes in base64, or its MD5 differs.
pub(super) fn read(all: &HeaderMap, names: &KeyHeaders) -> Result<RequestEncryption, Refusal> {
    let given = [names.algorithm, names.key, names.md5].map(|name| all.contains_key(name));
    if given == [false; 3] {
        return Ok(RequestEncryption::Plain);
    }
    let Some(algorithm) = headers::text(all, names.algorithm)? else {
        return Err(invalid(
            names.algorithm,
            "Requests specifying Server Side Encryption with Customer provided keys must provide a \
             valid encryption algorithm.",
        ));
    };
    if algorithm != ALGORITHM {
        return Err(Refusal::new(Reason::UnknownEncryptionAlgorithm)
            .detail(Detail::HeaderName, names.algorithm)
            .detail(Detail::HeaderValue, algorithm));
    }
    // The refusal does not repeat the text of the key.
    let text = headers::text(all, names.key)
        .map_err(|_| invalid(names.key, "The secret key was invalid for the specified algorithm."))?
        .ok_or_else(|| {
            invalid(
                names.key,
                "Requests specifying Server Side Encryption with Customer provided keys must \
                 provide an appropriate secret key.",
            )
        })?;
    let Some(claimed) = headers::text(all, names.md5)? else {
        return Err(invalid(
            names.md5,
            "Requests specifying Server Side Encryption with Customer provided keys must provide \
             the client calculated MD5 of the secret key.",
        ));
    };
    let key = CustomerKey::from_base64(text).ok_or_else(|| {
        invalid(names.key, "The secret key was invalid for the specified algorithm.")
    })?;
    let bytes = Zeroizing::new(STANDARD.decode(text).unwrap_or_default());
    if Md5::from_base64(claimed) != Some(Md5::of(&bytes)) {
        return Err(invalid(
            names.md5,
            "The calculated MD5 hash of the key did not match the hash that was provided.",
        ));
    }
    Ok(RequestEncryption::Key(key))
}

/// The MD5 of the key, as the request has it.
pub(super) fn key_md5(all: &HeaderMap, names: &KeyHeaders) -> Option<String> {
    headers::text(all, names.md5).ok().flatten().map(str::to_owned)
}

/// Shows which key an object is under.
pub(super) fn confirm(head: Head, key_md5: Option<&str>) -> Head {
    match key_md5 {
        Some(md5) => head.fixed(OF_OBJECT.algorithm, ALGORITHM).set(OF_OBJECT.md5, md5),
        None => head,
    }
}

fn invalid(name: &'static str, message: &str) -> Refusal {
    Refusal::new(Reason::InvalidHeaderValue).message(message).detail(Detail::HeaderName, name)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

    fn given(algorithm: &str, key: &str, md5: &str) -> HeaderMap {
        let names = [OF_OBJECT.algorithm, OF_OBJECT.key, OF_OBJECT.md5];
        let pairs = names.into_iter().zip([algorithm, key, md5]).filter(|(_, text)| *text != "-");
        let mut all = HeaderMap::new();
        for (name, text) in pairs {
            all.insert(name, HeaderValue::from_str(text).unwrap());
        }
        all
    }

    #[test]
    fn keys_need_their_algorithm_and_md5() {
        let md5 = Md5::of(b"0123456789abcdef0123456789abcdef").to_base64();
        let read = |all: &HeaderMap| read(all, &OF_OBJECT);
        assert_eq!(read(&HeaderMap::new()), Ok(RequestEncryption::Plain));
        let key = RequestEncryption::Key(CustomerKey::from_base64(KEY).unwrap());
        assert_eq!(read(&given("AES256", KEY, &md5)), Ok(key));
        let other = Md5::of(b"").to_base64();
        for (all, reason) in [
            (given("-", KEY, &md5), Reason::InvalidHeaderValue),
            (given("AES256", "-", &md5), Reason::InvalidHeaderValue),
            (given("AES256", KEY, "-"), Reason::InvalidHeaderValue),
            (given("AES256", KEY, &other), Reason::InvalidHeaderValue),
            (given("AES256", KEY, "x"), Reason::InvalidHeaderValue),
            (given("AES256", &KEY[4..], &md5), Reason::InvalidHeaderValue),
            (given("AES128", KEY, &md5), Reason::UnknownEncryptionAlgorithm),
            (given("aes256", KEY, &md5), Reason::UnknownEncryptionAlgorithm),
        ] {
            let refused = read(&all).unwrap_err();
            assert_eq!(refused.reason, reason, "{all:?}");
            assert!(!format!("{refused:?}").contains(&KEY[4..]), "{refused:?}");
        }
    }
}
