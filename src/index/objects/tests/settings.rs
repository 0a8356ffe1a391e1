//! Settings of containers.

use bytes::Bytes;

use super::golden::unhex;
use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::objects::keys;
use crate::index::rows::Family;
use crate::types::*;

/// Rows of settings, as they are read for ever: what, key, value.
const GOLDEN: [(&str, &str, &str); 2] = [
    ("tags", "0000000000000001000000000000000061626300010101", "0102016b0176016c00"),
    (
        "cross-origin rules",
        "0000000000000001000000000000000061626300010102",
        "0102010169010b687474703a2f2f2a2e6578010347455401012a01046574616701b817000101\
         2a01035055540000 00",
    ),
];

fn name() -> ContainerName {
    ContainerName::new("abc").unwrap()
}

fn create(id: u64) -> Write {
    Write::CreateContainer(CreateContainer {
        account: ACCOUNT,
        name: name(),
        id: ContainerId::new(id),
        collation: Collation::Utf8,
        metadata: Metadata::default(),
        public_access: PublicAccess::Private,
        encryption_scope: None,
        owner: None,
        region: None,
        acl: CannedAcl::Private,
        object_lock: false,
    })
}

fn delete() -> Write {
    let guard = Guard::default();
    Write::DeleteContainer(DeleteContainer {
        account: ACCOUNT,
        name: name(),
        guard,
        closed: None,
        restorable_for: None,
    })
}

fn change(change: SettingChange) -> Write {
    Write::ChangeSetting(ChangeSetting { account: ACCOUNT, name: name(), change })
}

fn read(p: &Partition, kind: SettingKind) -> Result<Option<Setting>, Error> {
    let read = ReadSetting { account: ACCOUNT, name: name(), kind };
    let ReadReply::Setting(setting) = p.read(&Read::Setting(read))? else {
        panic!("not a setting")
    };
    Ok(setting.map(|setting| *setting))
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn tags() -> Setting {
    let pairs = [("k", "v"), ("l", "")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    Setting::Tags(ContainerTags::new(pairs.to_vec()).unwrap())
}

fn rules() -> Setting {
    let first = CrossOriginRule {
        id: Some("i".to_owned()),
        origins: texts(&["http://*.ex"]),
        methods: texts(&["GET"]),
        headers: texts(&["*"]),
        exposed: texts(&["etag"]),
        max_age: Some(3_000),
    };
    let second = CrossOriginRule {
        origins: texts(&["*"]),
        methods: texts(&["PUT"]),
        ..CrossOriginRule::default()
    };
    Setting::Cors(vec![first, second])
}

#[test]
fn settings_are_replaced_removed_and_go_with_their_container() {
    let mut p = partition();
    assert_eq!(read(&p, SettingKind::Tags), Err(Refused::ContainerNotFound.into()));
    let set = change(SettingChange::Set(tags()));
    assert_eq!(p.write(&set), Err(Refused::ContainerNotFound.into()));
    p.must(&create(1));
    let before = p.read(&Read::Container(ACCOUNT, name()));
    assert_eq!(read(&p, SettingKind::Tags), Ok(None));
    p.must(&set);
    p.must(&change(SettingChange::Set(rules())));
    assert_eq!(read(&p, SettingKind::Tags), Ok(Some(tags())));
    assert_eq!(read(&p, SettingKind::Cors), Ok(Some(rules())));
    assert_eq!(p.read(&Read::Container(ACCOUNT, name())), before, "its tag and time stay");
    p.must(&change(SettingChange::Remove(SettingKind::Cors)));
    p.must(&change(SettingChange::Remove(SettingKind::Cors)));
    assert_eq!(read(&p, SettingKind::Cors), Ok(None));

    let later = keys::setting(&RoutingKey::container(ACCOUNT, &name()), 200);
    p.memory.rows.insert((Family::Versions, later), Bytes::from_static(&[1]));
    p.must(&delete());
    let left = p.memory.rows.keys().filter(|(family, _)| *family == Family::Versions);
    assert_eq!(left.count(), 0, "of later releases too");
    p.must(&create(2));
    assert_eq!(read(&p, SettingKind::Tags), Ok(None), "a new container has none");
}

#[test]
fn rows_of_settings_have_the_documented_bytes() {
    let mut p = partition();
    p.must(&create(1));
    for (setting, (what, key, value)) in [tags(), rules()].into_iter().zip(GOLDEN) {
        let value = value.replace(' ', "");
        p.must(&change(SettingChange::Set(setting.clone())));
        let row = (Family::Versions, unhex(key));
        assert_eq!(p.memory.rows.get(&row), Some(&unhex(&value)), "{what}");
        assert_eq!(read(&p, setting.kind()), Ok(Some(setting)), "{what}");
    }
}

/// Tags that no request could set are not read.
#[test]
fn damaged_settings_are_refused() {
    let mut p = partition();
    p.must(&create(1));
    let row = (Family::Versions, unhex(GOLDEN[0].1));
    for value in ["", "02", "01", "0102016b0176016b00", "0101000176", "0100ff"] {
        p.memory.rows.insert(row.clone(), unhex(value));
        let read = read(&p, SettingKind::Tags);
        assert!(matches!(read, Err(Error::Corrupt(_))), "{value}: {read:?}");
    }
}
