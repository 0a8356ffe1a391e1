use proptest::prelude::*;

use super::*;

#[test]
fn account_names() {
    for good in ["abc", "devstoreaccount1", "a23456789012345678901234"] {
        assert_eq!(AccountName::new(good).unwrap().as_str(), good);
    }
    for (bad, error) in [
        ("", NameError::Length),
        ("ab", NameError::Length),
        ("a234567890123456789012345", NameError::Length),
        ("Abc", NameError::Invalid),
        ("a-c", NameError::Invalid),
        ("aäc", NameError::Invalid),
    ] {
        assert_eq!(AccountName::new(bad), Err(error), "{bad}");
    }
}

#[test]
fn container_names() {
    let longest = "a".repeat(63);
    for good in [
        "abc",
        "a-b",
        "1-2-3",
        "a--b",
        "a.b",
        "1.2.3",
        "a.-b",
        "1.2.3.4.5",
        "$root",
        "$web",
        "$logs",
        &longest,
    ] {
        assert_eq!(ContainerName::new(good).unwrap().to_string(), good);
    }
    let too_long = "a".repeat(64);
    for (bad, error) in [
        ("ab", NameError::Length),
        ("", NameError::Length),
        (too_long.as_str(), NameError::Length),
        ("Abc", NameError::Invalid),
        ("-abc", NameError::Invalid),
        ("abc-", NameError::Invalid),
        (".abc", NameError::Invalid),
        ("abc.", NameError::Invalid),
        ("a..b", NameError::Invalid),
        ("192.168.5.4", NameError::Invalid),
        ("a_b", NameError::Invalid),
        ("a/b", NameError::Invalid),
        ("$other", NameError::Invalid),
        ("ab\0", NameError::Invalid),
    ] {
        assert_eq!(ContainerName::new(bad), Err(error), "{bad}");
    }
}

#[test]
fn blob_names_are_counted_in_utf16_units() {
    let (longest, emoji) = ("x".repeat(1024), "\u{1F600}".repeat(512));
    let slashes = format!("{}a/../b", "/".repeat(300));
    for good in
        ["a", "/", ".", "a//b/", "a/../b", "a\\b", " ", "\u{FFFF}", &longest, &emoji, &slashes]
    {
        assert_eq!(BlobName::new(good).unwrap().as_str(), good);
    }
    let (long, emoji) = ("x".repeat(1025), format!("{}x", "\u{1F600}".repeat(512)));
    for bad in ["", long.as_str(), emoji.as_str()] {
        assert_eq!(BlobName::new(bad), Err(NameError::Length));
    }
    assert_eq!(BlobName::new("a\0b"), Err(NameError::Invalid));
}

proptest! {
    /// The rule of S3 for keys, but for NUL.
    #[test]
    fn blob_names_hold_every_key_of_1024_bytes(key in "[^\0]{1,1024}") {
        let end = key.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= 1024);
        let key = &key[..end.last().unwrap_or(0)];
        prop_assert_eq!(BlobName::new(key).map(|name| name.to_string()), Ok(key.to_owned()));
    }

    /// Azure's rule for containers: parts of letters and digits with one hyphen between them.
    #[test]
    fn container_names_hold_azures(name in "[a-z0-9]{1,10}(-[a-z0-9]{1,10}){1,4}") {
        prop_assert!(ContainerName::new(&name).is_ok());
    }

    /// S3's: labels with dots between them, but for addresses.
    #[test]
    fn container_names_hold_buckets(name in "[a-z][a-z0-9-]{1,14}[a-z0-9](\\.[a-z0-9]{1,14}){0,3}") {
        prop_assert!(ContainerName::new(&name).is_ok());
    }
}

#[test]
fn names_that_could_not_be_made_are_not_decoded() {
    let encode = |text: &str| postcard::to_stdvec(text).unwrap();
    let account = |text| postcard::from_bytes::<AccountName>(&encode(text));
    let container = |text| postcard::from_bytes::<ContainerName>(&encode(text));
    let blob = |text| postcard::from_bytes::<BlobName>(&encode(text));
    assert_eq!(account("abc"), Ok(AccountName::new("abc").unwrap()));
    assert_eq!(container("a-b"), Ok(ContainerName::new("a-b").unwrap()));
    assert_eq!(blob("a/ü"), Ok(BlobName::new("a/ü").unwrap()));
    assert!(account("a-b").is_err() && account("").is_err());
    assert!(container("a_b").is_err() && container("").is_err());
    assert!(blob("a\0b").is_err() && blob("").is_err());
}
