use super::*;

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn names_are_identifiers_each_once() {
    let good = vec![pair("aName", "Value"), pair("_x9", ""), pair("ANAME2", "ü ")];
    let metadata = Metadata::new(good.clone()).unwrap();
    let back: Vec<_> = metadata.iter().map(|(n, v)| pair(n, v)).collect();
    assert_eq!(back, good);
    assert!(!metadata.is_empty() && Metadata::default().is_empty());
    for (pairs, error) in [
        (vec![pair("", "v")], MetadataError::EmptyKey),
        (vec![pair("a-b", "v")], MetadataError::Invalid),
        (vec![pair("9a", "v")], MetadataError::Invalid),
        (vec![pair("a b", "v")], MetadataError::Invalid),
        (vec![pair("ä", "v")], MetadataError::Invalid),
        (vec![pair("a", "1"), pair("A", "2")], MetadataError::Invalid),
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

#[test]
fn metadata_that_could_not_be_made_is_not_decoded() {
    let decode = |pairs: &[(String, String)]| {
        postcard::from_bytes::<Metadata>(&postcard::to_stdvec(pairs).unwrap())
    };
    let good = vec![pair("b", "2"), pair("a", "1")];
    assert_eq!(decode(&good), Ok(Metadata::new(good).unwrap()));
    for bad in [vec![pair("", "v")], vec![pair("a", "1"), pair("b", ""), pair("A", "2")]] {
        assert!(decode(&bad).is_err(), "{bad:?}");
    }
    assert!(decode(&[pair("a", &"x".repeat(8_192))]).is_err());
}
