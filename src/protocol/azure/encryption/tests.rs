use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::HeaderName;
use http::Method;

use super::*;
use crate::types::Protocols;

const KEY: &str = "x-ms-encryption-key";
const SHA256: &str = "x-ms-encryption-key-sha256";
const ALGORITHM: &str = "x-ms-encryption-algorithm";
const SCOPE: &str = "x-ms-encryption-scope";
const KEY_TEXT: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const KEY_SHA: &str = "Yw3NKWbEM2aRElRIu7JbT/QSpJxzLbLIq8G4WBvXEN0=";

fn all(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pair = |&(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), value.parse().unwrap())
    };
    pairs.iter().map(pair).collect()
}

fn sha256() -> String {
    header(&CustomerKey::from_base64(KEY_TEXT).unwrap().encryption()).1
}

fn refused(pairs: &[(&'static str, &str)]) -> (Reason, String) {
    let error = read(&all(pairs)).unwrap_err();
    (error.reason, format!("{error:?}"))
}

#[test]
fn the_hash_of_a_key_is_its_name() {
    assert_eq!(sha256(), KEY_SHA);
}

#[test]
fn a_whole_key_is_taken() {
    let headers = all(&[(KEY, KEY_TEXT), (SHA256, KEY_SHA), (ALGORITHM, "AES256")]);
    let key = CustomerKey::from_base64(KEY_TEXT).unwrap();
    assert_eq!(read(&headers), Ok(RequestEncryption::Key(key)));
    assert_eq!(read(&all(&[])), Ok(RequestEncryption::Plain));
    assert_eq!(read(&all(&[(SCOPE, ACCOUNT_SCOPE)])), Ok(RequestEncryption::Plain));
    let scope = RequestEncryption::Scope("a-1".to_owned());
    assert_eq!(read(&all(&[(SCOPE, "a-1")])), Ok(scope));
}

#[test]
fn part_of_a_key_is_refused() {
    let missing = Reason::MissingRequiredHeader;
    assert_eq!(refused(&[(KEY, KEY_TEXT)]).0, missing);
    assert_eq!(refused(&[(KEY, KEY_TEXT), (SHA256, KEY_SHA)]).0, missing);
    assert_eq!(refused(&[(SHA256, KEY_SHA)]).0, missing);
    assert_eq!(refused(&[(ALGORITHM, "AES256")]).0, missing);
}

#[test]
fn a_wrong_key_is_refused_and_not_repeated() {
    let short = STANDARD.encode([3; 31]);
    for key in [short.as_str(), "secret-not-base64"] {
        let (code, text) = refused(&[(KEY, key), (SHA256, KEY_SHA), (ALGORITHM, "AES256")]);
        assert_eq!(code, Reason::InvalidHeaderValue);
        assert!(!text.contains(key), "{text}");
    }
    let invalid = Reason::InvalidHeaderValue;
    let other = STANDARD.encode([0; 32]);
    let (code, text) = refused(&[(KEY, KEY_TEXT), (SHA256, &other), (ALGORITHM, "AES256")]);
    assert_eq!(code, invalid);
    assert!(!text.contains(KEY_TEXT), "{text}");
    assert_eq!(refused(&[(KEY, KEY_TEXT), (SHA256, KEY_SHA), (ALGORITHM, "AES128")]).0, invalid);
    let both = [(KEY, KEY_TEXT), (SHA256, KEY_SHA), (ALGORITHM, "AES256"), (SCOPE, "abc")];
    assert_eq!(refused(&both).0, invalid);
    for scope in ["ab", "a b", &"s".repeat(64)] {
        assert_eq!(refused(&[(SCOPE, scope)]).0, invalid);
    }
}

#[test]
fn operations_without_content_or_metadata_take_no_key() {
    let none = all(&[]);
    assert!(is_served(&Method::PUT, None, &none));
    assert!(is_served(&Method::HEAD, Some("metadata"), &none));
    assert!(!is_served(&Method::DELETE, None, &none));
    assert!(!is_served(&Method::PUT, Some("tier"), &none));
    assert!(!is_served(&Method::GET, Some("blocklist"), &none));
    assert!(!is_served(&Method::GET, Some("pagelist"), &none));
    let copy = ("x-ms-copy-source", "http://h/");
    assert!(is_served(&Method::PUT, None, &all(&[copy, (SCOPE, "scope")])));
    assert!(!is_served(&Method::PUT, None, &all(&[copy, (KEY, "key")])));
    let block_blob = ("x-ms-blob-type", "BlockBlob");
    assert!(is_served(&Method::PUT, None, &all(&[copy, block_blob, (KEY, "key")])));
    assert!(is_served(&Method::PUT, Some("block"), &all(&[copy, (SCOPE, "scope")])));
}

#[test]
fn a_key_of_a_source_comes_with_a_source() {
    let copy = ("x-ms-copy-source", "http://h/");
    let block_blob = ("x-ms-blob-type", "BlockBlob");
    let takes = |method: &Method, comp: Option<&str>, pairs: &[(&'static str, &str)]| {
        takes_source_key(method, comp, &all(pairs))
    };
    for comp in ["block", "appendblock", "page"] {
        assert!(takes(&Method::PUT, Some(comp), &[copy]));
        assert!(!takes(&Method::PUT, Some(comp), &[]));
    }
    assert!(takes(&Method::PUT, None, &[copy, block_blob]));
    assert!(!takes(&Method::PUT, None, &[copy]), "Copy Blob");
    assert!(!takes(&Method::PUT, Some("metadata"), &[copy]));
    assert!(!takes(&Method::GET, None, &[copy, block_blob]));
}

#[test]
fn the_key_of_a_source_is_that_of_a_read_of_it() {
    let of_source = all(&[
        ("x-ms-source-encryption-key", KEY_TEXT),
        ("x-ms-source-encryption-key-sha256", KEY_SHA),
        ("x-ms-source-encryption-algorithm", "AES256"),
    ]);
    let key = source_key(&of_source).unwrap().unwrap();
    let headers: HeaderMap = of_read(&key).unwrap().into_iter().collect();
    assert_eq!(headers, all(&[(KEY, KEY_TEXT), (SHA256, KEY_SHA), (ALGORITHM, "AES256")]));
    assert!(headers[KEY].is_sensitive());
    assert_eq!(read(&of_source), Ok(RequestEncryption::Plain), "it is not that of the blob");
    let part = all(&[("x-ms-source-encryption-key", KEY_TEXT)]);
    assert_eq!(source_key(&part).unwrap_err().reason, Reason::MissingRequiredHeader);
}

#[test]
fn a_key_that_need_not_come_is_held_to_when_it_does() {
    let read = |pairs: &[(&'static str, &str)]| {
        with_any(&all(pairs), Precondition::default()).map(|found| found.encryption)
    };
    assert_eq!(read(&[]), Ok(RequestEncryption::Unchecked));
    assert_eq!(read(&[(SCOPE, "abc")]), Ok(RequestEncryption::Scope("abc".to_owned())));
    assert_eq!(read(&[(KEY, KEY_TEXT)]).unwrap_err().reason, Reason::MissingRequiredHeader);
}

#[test]
fn a_key_travels_over_https_or_not_at_all() {
    let with_key = all(&[(KEY, KEY_TEXT)]);
    let peer = |address: &str, secure| Peer {
        address: address.parse().unwrap(),
        secure,
        protocols: Protocols::All,
    };
    let far = "192.0.2.1:1";
    assert!(check_key_is_safe(&with_key, peer(far, false)).is_err());
    assert!(check_key_is_safe(&with_key, peer(far, true)).is_ok());
    assert!(check_key_is_safe(&with_key, peer("127.0.0.1:1", false)).is_ok());
    assert!(check_key_is_safe(&with_key, peer("[::1]:1", false)).is_ok());
    assert!(check_key_is_safe(&all(&[]), peer(far, false)).is_ok());
    let of_source = all(&[("x-ms-source-encryption-key", KEY_TEXT)]);
    assert!(check_key_is_safe(&of_source, peer(far, false)).is_err());
}
