//! The bytes of `api-spec/keys.md` and `api-spec/rows.md`: what is on disk now must be readable for
//! ever.

mod earlier;

use bytes::Bytes;

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::record::ScopeRecord;
use crate::index::record::UserKey;
use crate::index::record::UserRecord;
use crate::index::rows::Family;
use crate::types::Revision;
use crate::types::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All rows as `family key value`.
fn dump(p: &Partition) -> Vec<String> {
    let line = |((family, key), value): (&(Family, Bytes), &Bytes)| {
        format!("{family:?} {} {}", hex(key), hex(value))
    };
    p.memory.rows.iter().map(line).collect()
}

fn metadata() -> Metadata {
    Metadata::new(vec![("k".to_owned(), "v".to_owned())]).unwrap()
}

/// An account, a live container, a deleted one, and blobs with every layout, staged blocks and
/// garbage.
fn everything() -> Partition {
    let mut p = partition();
    let account = AccountName::new("abc").unwrap();
    p.must(&Write::CreateAccount { name: account, id: ACCOUNT, anonymous: true });
    for (name, id) in [("live", 2), ("dead", 3)] {
        p.must(&Write::CreateContainer(CreateContainer {
            account: ACCOUNT,
            name: ContainerName::new(name).unwrap(),
            id: ContainerId::new(id),
            collation: Collation::Utf16,
            metadata: metadata(),
            public_access: PublicAccess::Blob,
            encryption_scope: None,
            owner: None,
            region: None,
            acl: CannedAcl::Private,
            object_lock: false,
        }));
    }
    let (name, guard) = (ContainerName::new("dead").unwrap(), Guard::default());
    p.must(&Write::DeleteContainer(DeleteContainer {
        account: ACCOUNT,
        name,
        guard,
        closed: None,
        restorable_for: None,
    }));
    let mut inlined = put(&key("i"), inline(b"hello"));
    inlined.metadata = metadata();
    inlined.properties = BlobProperties {
        content_type: Some("t".to_owned()),
        content_encoding: Some("e".to_owned()),
        content_language: Some("l".to_owned()),
        content_disposition: Some("d".to_owned()),
        cache_control: Some("c".to_owned()),
        content_md5: Some(Md5::of(b"hello")).into(),
    };
    p.must(&Write::PutBlob(inlined));
    p.must(&Write::PutBlob(put(&key("s"), stored(&[location(1, 2, 3), location(4, 5, 600)]))));
    p.must(&stage(&key("b"), "x", inline(b"1")));
    p.must(&stage(&key("b"), "y", stored(&[location(1, 20, 30)])));
    p.must(&Write::CommitBlocks(commit(&key("b"), &["x", "y"])));
    p.must(&stage(&key("b"), "z", stored(&[location(1, 40, 50)])));
    p.must(&stage(&key("b"), "z", stored(&[location(1, 60, 70)])));
    p.must(&stage(&key("l"), "w", inline(&[])));
    p.must(&Write::CommitBlocks(commit(&key("l"), &["w"; 65])));
    closed_account(&mut p);
    account_with_a_user(&mut p);
    account_with_a_scope(&mut p);
    p
}

/// An account without anonymous access, with keys, a secret and roles.
fn closed_account(p: &mut Partition) {
    let name = AccountName::new("abd").unwrap();
    p.must(&Write::CreateAccount { name: name.clone(), id: AccountId::new(9), anonymous: false });
    let assignment = |kind, principal: &str, role| RoleAssignment {
        issuer: "i".to_owned(),
        kind,
        principal: principal.to_owned(),
        role,
        container: None,
    };
    let subject = assignment(PrincipalKind::Subject, "s", Role::Owner);
    let container = Some(ContainerName::new("live").unwrap());
    let group = assignment(PrincipalKind::Group, "g", Role::Reader);
    for change in [
        AccountChange::Keys(vec![Secret::Sealed(Bytes::from_static(b"k"))]),
        AccountChange::DelegationSecret(Secret::Sealed(Bytes::from_static(b"d"))),
        AccountChange::Assign(subject),
        AccountChange::Assign(RoleAssignment { container, ..group }),
    ] {
        p.must(&Write::UpdateAccount { name: name.clone(), change });
    }
}

/// An account with a user that has two access keys.
fn account_with_a_user(p: &mut Partition) {
    let name = AccountName::new("abe").unwrap();
    p.must(&Write::CreateAccount { name: name.clone(), id: AccountId::new(9), anonymous: false });
    let key = |id: &str, sealed| UserKey {
        id: AccessKeyId::new(id).unwrap(),
        created: Timestamp::ZERO,
        secret: Secret::Sealed(Bytes::from_static(sealed)),
    };
    let user = UserRecord {
        name: UserName::new("u").unwrap(),
        display: "U".to_owned(),
        canonical: "c".to_owned(),
        created: Timestamp::ZERO,
        keys: vec![key("KEY1", b"k"), key("KEY2", b"l")],
    };
    let change = AccountChange::PutUser(Box::new(user));
    p.must(&Write::UpdateAccount { name, change });
}

/// An account with an encryption scope that has a key, disabled.
fn account_with_a_scope(p: &mut Partition) {
    let name = AccountName::new("abf").unwrap();
    p.must(&Write::CreateAccount { name: name.clone(), id: AccountId::new(10), anonymous: false });
    let key = Secret::Sealed(Bytes::from_static(b"k"));
    let scope = ScopeRecord { name: "s".to_owned(), created: Timestamp::ZERO, enabled: true, key };
    for change in [
        AccountChange::AddScope(Box::new(scope)),
        AccountChange::SwitchScope { name: "s".to_owned(), enabled: false },
    ] {
        p.must(&Write::UpdateAccount { name: name.clone(), change });
    }
}

/// What the row is, its family, key and value.
const GOLDEN: &[(&str, &str, &str, &str)] = &[
    (
        "account `abc`",
        "Main",
        "000000000000000000000000000000006162630001",
        "05018180e6dbd4e38bef0800010000000000000000000000000000000000",
    ),
    (
        "account `abd`: keys, delegation secret, an owner, and a group that reads `live`",
        "Main",
        "000000000000000000000000000000006162640001",
        "05098e80e6dbd4e38bef080101016b00010101640000000000000000000000000000020169000173020001690101670001046c69766500",
    ),
    (
        "account `abe`: a user with two access keys",
        "Main",
        "000000000000000000000000000000006162650001",
        "05099380e6dbd4e38bef08000000000000000000000000000000000000350233010175015501639480e6dbd4e38bef0802044b4559319480e6dbd4e38bef0801016b044b4559329480e6dbd4e38bef0801016c",
    ),
    (
        "account `abf`: an encryption scope with a key, disabled",
        "Main",
        "000000000000000000000000000000006162660001",
        "050a9580e6dbd4e38bef080000000000000000000000000000000000001211100101739680e6dbd4e38bef080001016b",
    ),
    (
        "container `live`",
        "Main",
        "000000000000000100000000000000006c6976650001",
        "0302008280e6dbd4e38bef088280e6dbd4e38bef088280e6dbd4e38bef0801016b01760100000000",
    ),
    (
        "blob `b`: two blocks in the row",
        "Main",
        "00000000000000018000000000000000620001",
        "038980e6dbd4e38bef088980e6dbd4e38bef088980e6dbd4e38bef081ffea6b696e484aa919a0100000000000000000000000000000000010102017801d2fdeeb0b4b8e8ca2300013101791ec399d0f2d988d6e624010101141e07",
    ),
    (
        "blob `i`: inline, every property",
        "Main",
        "00000000000000018000000000000000690001",
        "038580e6dbd4e38bef088580e6dbd4e38bef088580e6dbd4e38bef0805d784c9b280aee1bb3301017401016501016c010164010163015d41402abc4b2a76b9719d911017c59201016b01760000000000000000000000000568656c6c6f",
    ),
    (
        "blob `l`: a layout of one segment",
        "Main",
        "000000000000000180000000000000006c0001",
        "038d80e6dbd4e38bef088d80e6dbd4e38bef088d80e6dbd4e38bef0800000000000000000000000000000000000001028d80e6dbd4e38bef08010041",
    ),
    (
        "blob `s`: two locations",
        "Main",
        "00000000000000018000000000000000730001",
        "038680e6dbd4e38bef088680e6dbd4e38bef088680e6dbd4e38bef08db04c399d0f2d988d6e6240000000000000000000000000000000000000102010203070405d80407",
    ),
    (
        "summary of the staged blocks of `b`",
        "Staged",
        "0000000000000001800000000000000062000100",
        "0101018b80e6dbd4e38bef08",
    ),
    (
        "staged block `z` of `b`",
        "Staged",
        "00000000000000018000000000000000620001017a",
        "0246c399d0f2d988d6e6248b80e6dbd4e38bef08000101013c4607",
    ),
    (
        "segment 0 of `l`: 65 empty blocks `w`",
        "Layout",
        "000000000000000180000000000000006c000108de2f1d4b79800d00000000",
        SEGMENT,
    ),
    (
        "the deleted container 3",
        "Garbage",
        "0000000000000001000000000000000000000000000000000003",
        "018480e6dbd4e38bef08",
    ),
    (
        "garbage of `b`",
        "Garbage",
        "0000000000000001800000000000000062000108de2f1d4b79800b00000000",
        "018b80e6dbd4e38bef080101283207",
    ),
];
/// Here `*65` stands for 65 times the entry before it.
const SEGMENT: &str = "0241017700000000*65 00";

fn whole(value: &str) -> String {
    match value.split_once("017700000000*65") {
        Some((head, rest)) => format!("{head}{}{}", "017700000000".repeat(65), rest.trim()),
        None => value.to_owned(),
    }
}

#[test]
fn rows_are_written_as_specified() {
    let rows = dump(&everything());
    for (row, (what, family, key, value)) in rows.iter().zip(GOLDEN) {
        assert_eq!(*row, format!("{family} {key} {}", whole(value)), "{what}");
    }
    assert_eq!(rows.len(), GOLDEN.len());
}

pub(super) fn unhex(text: &str) -> Bytes {
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect::<Vec<u8>>().into()
}

/// Every question that reads rows.
fn ask_everything(p: &Partition) -> Vec<Result<ReadReply, Error>> {
    let mut reads = vec![
        Read::Account(AccountName::new("abc").unwrap()),
        Read::Account(AccountName::new("abd").unwrap()),
        Read::Account(AccountName::new("abe").unwrap()),
        Read::Account(AccountName::new("abf").unwrap()),
        Read::Container(ACCOUNT, ContainerName::new("live").unwrap()),
        Read::Containers(ListContainers {
            deleted: false,
            account: ACCOUNT,
            prefix: String::new(),
            from: None,
            limit: 9,
        }),
        Read::Blobs(ListBlobs { uncommitted: true, limit: 99, ..list() }),
        Read::Garbage { from: Bytes::new(), limit: 99 },
        Read::DeadContainers,
        Read::Expired { from: Bytes::new(), before: p.now, limit: 99 },
        Read::References(ListReferences::all()),
    ];
    for name in ["b", "i", "l", "s"] {
        reads.push(Read::Blob(read(&key(name))));
        reads.push(Read::BlockList(key(name), Revision::Current, Guard::default()));
    }
    reads.iter().map(|read| p.read(read)).collect()
}

/// Every write that reads rows.
fn change_everything(p: &Partition) {
    for name in ["b", "i", "l", "s"] {
        let guard = Guard::default();
        let change = BlobChange::Metadata(Metadata::default());
        for write in [
            delete(&key(name)),
            Write::PutBlob(put(&key(name), inline(b"1"))),
            stage(&key(name), "z", inline(b"1")),
            Write::CommitBlocks(commit(&key(name), &["z", "w"])),
            Write::UpdateBlob(UpdateBlob {
                key: key(name),
                revision: Revision::Current,
                guard,
                change,
            }),
            Write::ExpireStaged { key: RoutingKey::blob(&key(name)), before: p.now },
        ] {
            drop(p.clone().write(&write));
        }
    }
}

#[test]
fn other_versions_and_cut_values_are_refused() {
    let good = everything();
    assert!(ask_everything(&good).iter().all(Result::is_ok));
    for (key, value) in &good.memory.rows {
        for cut in 0..value.len() {
            let mut p = good.clone();
            p.memory.rows.insert(key.clone(), value.slice(..cut));
            let refused =
                ask_everything(&p).into_iter().filter_map(Result::err).collect::<Vec<_>>();
            assert!(!refused.is_empty(), "{key:?} cut to {cut} went unnoticed");
            assert!(
                refused.iter().all(|e| matches!(e, Error::Corrupt(Damage::Rows(_)))),
                "{refused:?}"
            );
            change_everything(&p);
        }
        for value in [
            [&[9], value.get(1..).unwrap()].concat(),
            [&[0], value.get(1..).unwrap()].concat(),
            [value.as_ref(), b"x"].concat(),
        ] {
            let mut p = good.clone();
            p.memory.rows.insert(key.clone(), value.into());
            let answers = ask_everything(&p);
            assert!(
                answers.iter().any(|a| matches!(a, Err(Error::Corrupt(Damage::Rows(_))))),
                "{key:?}"
            );
        }
    }
}

#[test]
fn flipped_bits_never_panic() {
    let good = everything();
    for ((family, key), value) in &good.memory.rows {
        let bits = if *family == Family::Layout { 200 } else { value.len() * 8 };
        for bit in 0..bits {
            let mut value = value.to_vec();
            value[bit / 8] ^= 1 << (bit % 8);
            let mut p = good.clone();
            p.memory.rows.insert((*family, key.clone()), value.into());
            drop(ask_everything(&p));
            change_everything(&p);
        }
        for bit in 0..key.len() * 8 {
            let mut other = key.to_vec();
            other[bit / 8] ^= 1 << (bit % 8);
            let mut p = good.clone();
            p.memory.rows.remove(&(*family, key.clone()));
            p.memory.rows.insert((*family, other.into()), value.clone());
            drop(ask_everything(&p));
            change_everything(&p);
        }
    }
}
