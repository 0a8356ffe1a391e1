use proptest::prelude::*;

use super::*;

const ACCOUNT: AccountId = AccountId::new(0x0102_0304_0506_0708);
const CONTAINER: ContainerId = ContainerId::new(0x1112_1314_1516_1718);

fn key(name: &str, collation: Collation) -> RoutingKey {
    RoutingKey::build(ACCOUNT.get(), CONTAINER.get(), name, collation)
}

fn units(name: &str) -> Vec<u16> {
    name.encode_utf16().collect()
}

/// Names with characters whose order differs between UTF-8 and UTF-16, and with NUL and the highest
/// characters.
fn name() -> impl Strategy<Value = String> {
    let awkward = prop::sample::select(vec![
        '\0',
        '\u{1}',
        'a',
        '/',
        '\u{7F}',
        '\u{80}',
        '\u{7FF}',
        '\u{800}',
        '\u{D7FF}',
        '\u{E000}',
        '\u{F8FF}',
        '\u{FFFD}',
        '\u{FFFF}',
        '\u{10000}',
        '\u{1F600}',
        '\u{10FFFF}',
    ]);
    prop::collection::vec(prop_oneof![awkward, any::<char>()], 0..6)
        .prop_map(|chars| chars.into_iter().collect())
}

#[test]
fn key_bytes_are_as_specified() {
    let bytes = |name: &str, collation| key(name, collation).as_bytes().to_vec();
    let head = [1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18];
    let with = |name: &[u8]| [&head, name, &[0, 1]].concat();
    assert_eq!(bytes("a/b", Collation::Utf16), with(b"a/b"));
    assert_eq!(bytes("a\0b", Collation::Utf8), with(b"a\0\xFFb"));
    // U+E000 is EE 80 80, U+FFFD is EF BF BD, U+1F600 is F0 9F 98 80, U+10FFFF is F4 8F BF BF.
    let text = "\u{E000}\u{FFFD}\u{1F600}\u{10FFFF}";
    assert_eq!(bytes(text, Collation::Utf8), with(text.as_bytes()));
    let moved = b"\xF3\x80\x80\xF4\xBF\xBD\xEE\x9F\x98\x80\xF2\x8F\xBF\xBF";
    assert_eq!(bytes(text, Collation::Utf16), with(moved));
    let account = AccountName::new("abc").unwrap();
    assert_eq!(RoutingKey::account(&account).as_bytes(), &[&[0; 16], &b"abc\0\x01"[..]].concat());
    let container = ContainerName::new("abc").unwrap();
    let expected = [&head[..8], &[0; 8], b"abc\0\x01"].concat();
    assert_eq!(RoutingKey::container(ACCOUNT, &container).as_bytes(), &expected);
}

#[test]
fn malformed_keys_have_no_name() {
    for bytes in [
        &b""[..],
        b"0123456789abcdef",
        b"0123456789abcdefname",
        b"0123456789abcdefname\0",
        b"0123456789abcdefna\0me\0\x01",
        b"0123456789abcdefna\0\0me\0\x01",
        b"0123456789abcdef\xFF\0\x01",
        b"0123456789abcdef\x80\0\x01",
    ] {
        let key = RoutingKey::from_bytes(Bytes::copy_from_slice(bytes));
        for collation in [Collation::Utf8, Collation::Utf16] {
            assert_eq!(key.name(collation), None, "{key:?}");
        }
    }
}

#[test]
fn routing_key_of_a_row_ends_at_its_terminator() {
    let row = |suffix: &[u8]| Bytes::from([b"0123456789abcdef", suffix].concat());
    let key = |suffix: &[u8]| Some(RoutingKey::from_bytes(row(suffix)));
    assert_eq!(RoutingKey::of_row(&row(b"a\0\x01")), key(b"a\0\x01"));
    assert_eq!(RoutingKey::of_row(&row(b"a\0\x01\0\x01rest")), key(b"a\0\x01"));
    assert_eq!(RoutingKey::of_row(&row(b"a\0\xFFb\0\x01\0")), key(b"a\0\xFFb\0\x01"));
    assert_eq!(RoutingKey::of_row(&row(b"\0\x01")), key(b"\0\x01"));
    for bad in [&b""[..], b"a", b"a\0", b"a\0\0\x01", b"a\0\x02", b"a\0\xFF"] {
        assert_eq!(RoutingKey::of_row(&row(bad)), None, "{bad:?}");
    }
    assert_eq!(RoutingKey::of_row(&Bytes::from_static(b"short")), None);
}

#[test]
fn least_position_after_a_prefix() {
    let after = |prefix: &[u8]| RoutingKey::after_prefix(prefix).map(|b| b.to_vec());
    assert_eq!(after(b"ab"), Some(b"ac".to_vec()));
    assert_eq!(after(b"a\xFF\xFF"), Some(b"b".to_vec()));
    assert_eq!(after(b"\xFF\xFF"), None);
    assert_eq!(after(b""), None);
}

#[test]
fn container_range_holds_its_keys_and_no_neighbour() {
    let range = RoutingKey::container_range(ACCOUNT, CONTAINER);
    for name in ["", "a", "\u{10FFFF}"] {
        assert!(range.contains(key(name, Collation::Utf16).as_bytes()));
        for neighbour in [CONTAINER.get() - 1, CONTAINER.get() + 1] {
            let other = RoutingKey::build(ACCOUNT.get(), neighbour, name, Collation::Utf16);
            assert!(!range.contains(other.as_bytes()));
        }
    }
    let last = RoutingKey::container_range(AccountId::new(u64::MAX), ContainerId::new(u64::MAX));
    assert_eq!(last.high(), None);
}

#[test]
fn ranges_intersect() {
    let at = |text: &'static str| RoutingKey::from_bytes(Bytes::from_static(text.as_bytes()));
    let range = |low, high: Option<&'static str>| KeyRange::new(at(low), high.map(at));
    let cases = [
        (range("a", Some("c")), range("b", Some("d")), Some(range("b", Some("c")))),
        (range("a", Some("b")), range("b", Some("c")), None),
        (range("a", None), range("b", None), Some(range("b", None))),
        (range("", Some("c")), range("b", None), Some(range("b", Some("c")))),
        (range("c", None), range("a", Some("b")), None),
    ];
    for (a, b, both) in cases {
        assert_eq!(a.intersect(&b), both);
        assert_eq!(b.intersect(&a), both);
    }
    assert!(KeyRange::all().contains(b""));
    assert!(range("a", Some("b")).contains(b"a"));
    assert!(!range("a", Some("b")).contains(b"b"));
}

proptest! {
    #[test]
    fn keys_sort_as_names_do(a in name(), b in name()) {
        let keys = |collation| (key(&a, collation), key(&b, collation));
        let (left, right) = keys(Collation::Utf16);
        prop_assert_eq!(left.cmp(&right), units(&a).cmp(&units(&b)));
        let (left, right) = keys(Collation::Utf8);
        prop_assert_eq!(left.cmp(&right), a.as_bytes().cmp(b.as_bytes()));
    }

    #[test]
    fn names_round_trip(name in name(), suffix in prop::collection::vec(any::<u8>(), 0..5)) {
        for collation in [Collation::Utf16, Collation::Utf8] {
            let key = key(&name, collation);
            prop_assert_eq!(key.name(collation), Some(name.clone()));
            let row = Bytes::from([key.as_bytes().as_ref(), &suffix].concat());
            prop_assert_eq!(RoutingKey::of_row(&row), Some(key));
        }
    }

    #[test]
    fn prefixes_bound_exactly_the_names_that_start_so(name in name(), prefix in name()) {
        for collation in [Collation::Utf16, Collation::Utf8] {
            let low = RoutingKey::prefix(ACCOUNT, CONTAINER, &prefix, collation);
            let high = RoutingKey::after_prefix(&low).unwrap();
            let key = key(&name, collation);
            let inside = (low..high).contains(key.as_bytes());
            prop_assert_eq!(inside, name.starts_with(&prefix));
        }
    }

    #[test]
    fn any_bytes_are_taken_apart_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let bytes = Bytes::from(bytes);
        if let Some(key) = RoutingKey::of_row(&bytes) {
            prop_assert!(bytes.starts_with(key.as_bytes()));
            drop((key.name(Collation::Utf16), key.name(Collation::Utf8)));
        }
    }
}

#[test]
fn positions_tell_the_name_that_they_passed() {
    let (account, container) = (AccountId::new(1), ContainerId::new(2));
    for collation in [Collation::Utf8, Collation::Utf16] {
        for text in ["a", "a/b", "a\u{1}", "\u{10ffff}", "\u{e000}", "z\u{2}"] {
            let name = BlobName::new(text).unwrap();
            let key = RoutingKey::blob(&BlobKey { account, container, collation, name });
            let row = |rest: &[u8]| Bytes::from([key.as_bytes().as_ref(), rest].concat());
            let after = RoutingKey::after_name(account, container, text, collation);
            assert!(after > row(&[0xFF; 20]));
            for passed in [after, row(&[0]), row(b"row")] {
                let name = RoutingKey::passed_name(&passed, collation);
                assert_eq!(name.as_deref(), Some(text));
            }
            assert_eq!(RoutingKey::passed_name(key.as_bytes(), collation), None, "it follows");
            let prefix = RoutingKey::prefix(account, container, text, collation);
            assert_eq!(RoutingKey::passed_name(&prefix, collation), None);
            let group = RoutingKey::after_prefix(&prefix).unwrap();
            assert_eq!(RoutingKey::passed_name(&group, collation), None);
        }
    }
    assert_eq!(RoutingKey::passed_name(&Bytes::new(), Collation::Utf8), None);
}

#[test]
fn positions_tell_the_version_they_have_passed() {
    let (account, container) = (AccountId::new(1), ContainerId::new(2));
    let time = |ticks| Timestamp::from_ticks(ticks);
    let after =
        |ticks| RoutingKey::after_version(account, container, ("n", time(ticks)), Collation::Utf8);
    let version_of =
        |position: &[u8]| RoutingKey::passed_version(&Bytes::copy_from_slice(position));
    let behind = after(700);
    assert_eq!(version_of(&behind), Some(time(700)));
    // The version itself follows: the one before it, which is newer by a tick, is passed.
    let at = &behind[..behind.len() - 1];
    assert_eq!(version_of(at), Some(time(701)));
    assert!(after(701) <= at && at < behind, "nothing is passed that was not, and it goes on");
    // Rows before the versions: all versions follow.
    let key = &at[..at.len() - 8];
    let newest = time(u64::MAX >> 1);
    for other in [&[0][..], &[1, 2, 3], &[0x7f; 12], &[0x80]] {
        assert_eq!(version_of(&[key, other].concat()), Some(newest), "{other:?}");
    }
    assert_eq!(version_of(key), None, "it follows as a whole");
    assert_eq!(version_of(&RoutingKey::after_name(account, container, "n", Collation::Utf8)), None);
    assert_eq!(version_of(b""), None);
}
