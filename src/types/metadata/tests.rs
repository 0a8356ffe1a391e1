use http::HeaderName;
use http::HeaderValue;
use proptest::prelude::*;

use super::*;

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn names_are_those_of_headers_each_once() {
    let good = vec![
        pair("name", "Value"),
        pair("_x9", ""),
        pair("a-b.c", "ü "),
        pair("9!", "\t"),
        pair("UP", "1"),
    ];
    let metadata = Metadata::new(good.clone()).unwrap();
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    let back: Vec<_> = metadata.iter().map(|(n, v)| pair(n, &text(v))).collect();
    assert_eq!(back, good);
    assert!(!metadata.is_empty() && Metadata::default().is_empty());
    for (pairs, error) in [
        (vec![pair("", "v")], MetadataError::EmptyKey),
        (vec![pair("a b", "v")], MetadataError::Invalid),
        (vec![pair("a:b", "v")], MetadataError::Invalid),
        (vec![pair("ä", "v")], MetadataError::Invalid),
        (vec![pair("a", "1"), pair("a", "2")], MetadataError::Invalid),
        (vec![pair("a", "1"), pair("A", "2")], MetadataError::Invalid),
        (vec![pair("a", "\n")], MetadataError::Invalid),
        (vec![pair("a", "\u{7f}")], MetadataError::Invalid),
    ] {
        assert_eq!(Metadata::new(pairs.clone()), Err(error), "{pairs:?}");
    }
}

#[test]
fn names_and_values_have_8_kib_together() {
    let with = |len: usize| Metadata::new(vec![pair("ab", &"x".repeat(len)), pair("c", "d")]);
    assert!(with(8_192 - 4).is_ok());
    assert_eq!(with(8_192 - 3), Err(MetadataError::TooLarge));
}

/// Rows of earlier releases have texts in the place of the bytes.
#[test]
fn values_are_stored_as_texts_were() {
    let texts = vec![pair("a", "Value"), pair("b", "")];
    let old = postcard::to_stdvec(&texts).unwrap();
    let metadata = Metadata::new(texts).unwrap();
    assert_eq!(postcard::to_stdvec(&metadata).unwrap(), old);
    assert_eq!(postcard::from_bytes(&old), Ok(metadata));
}

#[test]
fn metadata_of_a_request_that_could_not_be_made_is_not_decoded() {
    let decode = |pairs: &[(String, String)]| {
        let bytes = postcard::to_stdvec(pairs).unwrap();
        let mut decoder = postcard::Deserializer::from_bytes(&bytes);
        Metadata::deserialize_checked(&mut decoder)
    };
    let good = vec![pair("b", "2"), pair("a", "1")];
    assert_eq!(decode(&good), Ok(Metadata::new(good).unwrap()));
    for bad in [vec![pair("", "v")], vec![pair("A:", "1")], vec![pair("a", "1"), pair("A", "2")]] {
        assert!(decode(&bad).is_err(), "{bad:?}");
    }
    assert!(decode(&[pair("a", &"x".repeat(8_192))]).is_err());
}

proptest! {
    #[test]
    fn what_metadata_holds_can_be_headers(name in any::<Vec<u8>>(), value in any::<Vec<u8>>()) {
        let name = String::from_utf8(name).unwrap_or_default();
        if let Ok(metadata) = Metadata::new([(name.clone(), value.clone())]) {
            prop_assert!(HeaderName::from_bytes(name.as_bytes()).is_ok());
            prop_assert!(HeaderValue::from_bytes(&value).is_ok());
            let bytes = postcard::to_stdvec(&metadata).unwrap();
            prop_assert_eq!(postcard::from_bytes(&bytes), Ok(metadata));
        }
    }

    /// RFC 9110, 5.6.2: `tchar`.
    #[test]
    fn names_are_tokens(name in "[ -~ä]{1,3}") {
        let token = |c: char| {
            c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
        };
        let is_token = name.chars().all(token);
        prop_assert_eq!(Metadata::new([(name, "")]).is_ok(), is_token);
    }

    #[test]
    fn values_are_those_of_headers(value in any::<Vec<u8>>()) {
        let is_value = HeaderValue::from_bytes(&value).is_ok();
        prop_assert_eq!(Metadata::new([("a".to_owned(), value)]).is_ok(), is_value);
    }
}
