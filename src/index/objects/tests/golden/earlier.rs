//! Rows as earlier releases wrote them are read, and written anew.

use super::*;

/// Accounts, containers and blobs as version 1 wrote them: key and value.
const VERSION_1: &[(&str, &str)] = &[
    ("000000000000000000000000000000006162630001", "01018180e6dbd4e38bef08"),
    (
        "000000000000000100000000000000006c6976650001",
        "0102008280e6dbd4e38bef088280e6dbd4e38bef088280e6dbd4e38bef0801016b017601",
    ),
    (
        "00000000000000018000000000000000620001",
        "018980e6dbd4e38bef088980e6dbd4e38bef088980e6dbd4e38bef081ffea6b696e484aa919a0100000000000000010102017801d2fdeeb0b4b8e8ca2300013101791ec399d0f2d988d6e624010101141e07",
    ),
    (
        "00000000000000018000000000000000690001",
        "018580e6dbd4e38bef088580e6dbd4e38bef088580e6dbd4e38bef0805d784c9b280aee1bb3301017401016501016c010164010163015d41402abc4b2a76b9719d911017c59201016b01760000000568656c6c6f",
    ),
    (
        "000000000000000180000000000000006c0001",
        "018d80e6dbd4e38bef088d80e6dbd4e38bef088d80e6dbd4e38bef0800000000000000000001028d80e6dbd4e38bef08010041",
    ),
    (
        "00000000000000018000000000000000730001",
        "018680e6dbd4e38bef088680e6dbd4e38bef088680e6dbd4e38bef08db04c399d0f2d988d6e6240000000000000000000102010203070405d80407",
    ),
];
/// Rows as the releases before format 2 wrote them, where they are others now: containers and blobs
/// of version 2, accounts of version 4, staged blocks and segments of version 1. Family, key and
/// value.
const FORMAT_1: &[(&str, &str, &str)] = &[
    (
        "Main",
        "000000000000000000000000000000006162630001",
        "04018180e6dbd4e38bef08000100000000000000000000000000000000",
    ),
    (
        "Main",
        "000000000000000000000000000000006162640001",
        "04098e80e6dbd4e38bef080101016b00010101640000000000000000000000000000020169000173020001690101670001046c697665",
    ),
    (
        "Main",
        "000000000000000100000000000000006c6976650001",
        "0202008280e6dbd4e38bef088280e6dbd4e38bef088280e6dbd4e38bef0801016b017601000000",
    ),
    (
        "Main",
        "00000000000000018000000000000000620001",
        "028980e6dbd4e38bef088980e6dbd4e38bef088980e6dbd4e38bef081ffea6b696e484aa919a01000000000000000000000000000000010102017801d2fdeeb0b4b8e8ca2300013101791ec399d0f2d988d6e624010101141e07",
    ),
    (
        "Main",
        "00000000000000018000000000000000690001",
        "028580e6dbd4e38bef088580e6dbd4e38bef088580e6dbd4e38bef0805d784c9b280aee1bb3301017401016501016c010164010163015d41402abc4b2a76b9719d911017c59201016b017600000000000000000000000568656c6c6f",
    ),
    (
        "Main",
        "000000000000000180000000000000006c0001",
        "028d80e6dbd4e38bef088d80e6dbd4e38bef088d80e6dbd4e38bef08000000000000000000000000000000000001028d80e6dbd4e38bef08010041",
    ),
    (
        "Main",
        "00000000000000018000000000000000730001",
        "028680e6dbd4e38bef088680e6dbd4e38bef088680e6dbd4e38bef08db04c399d0f2d988d6e62400000000000000000000000000000000000102010203070405d80407",
    ),
    (
        "Staged",
        "00000000000000018000000000000000620001017a",
        "0146c399d0f2d988d6e6248b80e6dbd4e38bef080101013c4607",
    ),
    (
        "Layout",
        "000000000000000180000000000000006c000108de2f1d4b79800d00000000",
        "0141017700000000*65",
    ),
];
/// Account `abc` as version 2 wrote it.
const ACCOUNT_2: &str = "02018180e6dbd4e38bef080001000000000000000000000000000000";
/// Account `abd` as version 3 wrote it: its secrets were plain.
const ACCOUNT_3: &str = "03098e80e6dbd4e38bef0801016b0001640000000000000000000000000000020169000173020001690101670001046c697665";

#[test]
fn rows_of_version_1_are_read() {
    let mut old = everything();
    let now = format!("{:?}", ask_everything(&old));
    for (key, value) in VERSION_1 {
        let row = (Family::Main, unhex(key));
        assert!(old.memory.rows.insert(row, unhex(value)).is_some(), "{key}");
    }
    assert_eq!(format!("{:?}", ask_everything(&old)), now);
    change_everything(&old);
}

#[test]
fn rows_of_format_1_are_read() {
    let mut old = everything();
    let now = format!("{:?}", ask_everything(&old));
    for (family, key, value) in FORMAT_1 {
        let family = Family::ALL.into_iter().find(|f| format!("{f:?}") == *family).unwrap();
        let value = unhex(&whole(value));
        let new = old.memory.rows.insert((family, unhex(key)), value.clone()).unwrap();
        assert_eq!(new.len(), value.len() + 1, "{key}: as before, one byte more");
    }
    assert_eq!(format!("{:?}", ask_everything(&old)), now);
    change_everything(&old);
}

#[test]
fn rows_of_format_1_become_rows_of_today_when_they_change() {
    let changed = |p: &mut Partition| {
        let guard = Guard::default;
        for name in ["b", "i", "l", "s"] {
            let (key, guard, revision) = (key(name), guard(), Revision::Current);
            let change = BlobChange::Metadata(metadata());
            p.must(&Write::UpdateBlob(UpdateBlob { key, revision, guard, change }));
        }
        let (account, name) = (ACCOUNT, ContainerName::new("live").unwrap());
        let change = ContainerChange::Metadata(Metadata::default());
        let guard = guard();
        p.must(&Write::UpdateContainer(UpdateContainer { account, name, guard, change }));
        for name in ["abc", "abd"] {
            let name = AccountName::new(name).unwrap();
            p.must(&Write::UpdateAccount { name, change: AccountChange::Anonymous(true) });
        }
        p.must(&Write::CommitBlocks(commit(&key("b"), &["x", "z"])));
    };
    let mut new = everything();
    let mut old = new.clone();
    for (family, key, value) in FORMAT_1 {
        let family = Family::ALL.into_iter().find(|f| format!("{f:?}") == *family).unwrap();
        // A segment stays as it is until its blocks change.
        if family != Family::Layout {
            old.memory.rows.insert((family, unhex(key)), unhex(value));
        }
    }
    changed(&mut new);
    changed(&mut old);
    assert_eq!(dump(&old), dump(&new));
}

#[test]
fn accounts_of_version_2_are_read_and_written_anew() {
    let mut old = everything();
    let now = format!("{:?}", ask_everything(&old));
    let row = (Family::Main, unhex(VERSION_1[0].0));
    let new = old.memory.rows.insert(row.clone(), unhex(ACCOUNT_2));
    assert_eq!(format!("{:?}", ask_everything(&old)), now);
    let name = AccountName::new("abc").unwrap();
    old.must(&Write::UpdateAccount { name, change: AccountChange::Anonymous(true) });
    assert_eq!(old.memory.rows.get(&row), new.as_ref());
}

#[test]
fn accounts_of_version_3_are_read_and_their_secrets_sealed() {
    let mut old = everything();
    let name = AccountName::new("abd").unwrap();
    let row = (Family::Main, RoutingKey::account(&name).as_bytes().clone());
    let new = old.memory.rows.insert(row.clone(), unhex(ACCOUNT_3));
    let ReadReply::Account(record) = old.read(&Read::Account(name.clone())).unwrap() else {
        panic!("no account")
    };
    let plain = |text: &'static [u8]| Secret::Plain(Bytes::from_static(text));
    assert_eq!(record.keys, [plain(b"k")]);
    assert_eq!(record.delegation_secret, Some(plain(b"d")));
    let sealed = |text: &'static [u8]| Secret::Sealed(Bytes::from_static(text));
    let pairs = vec![(plain(b"k"), sealed(b"k")), (plain(b"x"), sealed(b"never"))];
    let change = AccountChange::Reseal(pairs);
    old.must(&Write::UpdateAccount { name: name.clone(), change });
    let change = AccountChange::Reseal(vec![(plain(b"d"), sealed(b"d"))]);
    old.must(&Write::UpdateAccount { name, change });
    assert_eq!(old.memory.rows.get(&row), new.as_ref());
}
