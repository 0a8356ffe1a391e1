//! Containers that are softly deleted: restored, under their name and another one, and given up.

use std::time::Duration;

use bytes::Bytes;

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::rows::Family;
use crate::types::*;

/// Ten changes.
const SHORTLY: Duration = Duration::from_micros(1);

fn name(text: &str) -> ContainerName {
    ContainerName::new(text).unwrap()
}

/// Deletes a container softly. Returns when.
fn delete(p: &mut Partition, text: &str, restorable_for: Duration) -> Timestamp {
    p.must(&Write::DeleteContainer(DeleteContainer {
        account: ACCOUNT,
        name: name(text),
        guard: Guard::default(),
        closed: None,
        restorable_for: Some(restorable_for),
    }));
    p.now
}

fn restore(deleted: &str, since: Timestamp, to: &str) -> Write {
    let (name, deleted) = (name(to), name(deleted));
    Write::RestoreContainer(RestoreContainer { account: ACCOUNT, name, deleted, since })
}

fn id(p: &Partition, text: &str) -> Option<u64> {
    match p.read(&Read::Container(ACCOUNT, name(text))) {
        Ok(ReadReply::Container(record)) => Some(record.id.get()),
        _ => None,
    }
}

/// The containers, `-` after those that were softly deleted.
fn listed(p: &Partition, limit: usize) -> Vec<String> {
    let (mut found, mut from) = (Vec::new(), None);
    loop {
        let list =
            ListContainers { account: ACCOUNT, prefix: String::new(), from, limit, deleted: true };
        let ReadReply::Containers(page) = p.read(&Read::Containers(list)).unwrap() else {
            panic!("not a page")
        };
        assert!(page.entries.len() <= limit && page.entries.len() == page.after.len());
        found.extend(page.entries.into_iter().map(|entry| {
            let mark = if entry.record.deleted().is_some() { "-" } else { "" };
            format!("{}{mark}{}", entry.name.as_str(), entry.record.id)
        }));
        from = page.next;
        if from.is_none() {
            return found;
        }
    }
}

fn dead(p: &Partition) -> Vec<u64> {
    let ReadReply::DeadContainers(dead) = p.read(&Read::DeadContainers).unwrap() else {
        panic!("not dead containers")
    };
    dead.into_iter().map(|one| one.container.get()).collect()
}

fn ended(p: &Partition, now: Timestamp) -> Vec<RoutingKey> {
    let read = Read::EndedDeletions { from: Bytes::new(), now, limit: 9 };
    let ReadReply::EndedDeletions(page) = p.read(&read).unwrap() else { panic!("not ended") };
    page.blobs
}

fn tags(p: &Partition, of: &str) -> Option<Setting> {
    let read = ReadSetting { account: ACCOUNT, name: name(of), kind: SettingKind::Tags };
    let Ok(ReadReply::Setting(setting)) = p.read(&Read::Setting(read)) else { return None };
    setting.map(|setting| *setting)
}

#[test]
fn deleted_container_comes_back_with_its_settings() {
    let mut p = partition();
    p.must(&create_container("abc", 1));
    let pairs = [("k".to_owned(), "v".to_owned())];
    let setting = Setting::Tags(ContainerTags::new(pairs.to_vec()).unwrap());
    let set = SettingChange::Set(setting.clone());
    p.must(&Write::ChangeSetting(ChangeSetting {
        account: ACCOUNT,
        name: name("abc"),
        change: set,
    }));
    let since = delete(&mut p, "abc", Duration::from_secs(9));
    assert_eq!((id(&p, "abc"), dead(&p)), (None, vec![]));

    // The name is free, and the new container has none of the settings.
    p.must(&create_container("abc", 2));
    assert_eq!(tags(&p, "abc"), None);
    let again = delete(&mut p, "abc", Duration::from_secs(9));
    p.must(&create_container("abc", 3));
    for limit in 1..5 {
        assert_eq!(listed(&p, limit), ["abc-1", "abc-2", "abc3"]);
    }
    let exists = Err(Error::Refused(Refused::ContainerExists));
    assert_eq!(p.write(&restore("abc", since, "abc")), exists);
    let missing = Err(Error::Refused(Refused::ContainerNotFound));
    assert_eq!(p.write(&restore("abc", since.next(), "other")), missing);
    assert_eq!(p.write(&restore("none", since, "other")), missing);

    p.must(&restore("abc", since, "other"));
    assert_eq!((id(&p, "other"), tags(&p, "other")), (Some(1), Some(setting)));
    assert_eq!(listed(&p, 1), ["abc-2", "abc3", "other1"]);
    assert_eq!(p.write(&restore("abc", since, "third")), missing, "only once");
    p.must(&restore("abc", again, "third"));
    assert_eq!(listed(&p, 9), ["abc3", "other1", "third2"]);
    assert!(dead(&p).is_empty());
}

#[test]
fn container_that_can_no_longer_be_restored_is_purged() {
    let mut p = partition();
    p.must(&create_container("abc", 1));
    p.must(&create_container("abd", 2));
    let since = delete(&mut p, "abc", SHORTLY);
    delete(&mut p, "abd", Duration::from_secs(9));
    let key = RoutingKey::container(ACCOUNT, &name("abc"));
    assert!(ended(&p, p.now).is_empty());
    let expire = Write::ExpireDeleted { key: key.clone(), all: false };
    p.must(&expire);
    assert!(dead(&p).is_empty(), "its time has not come");
    while p.now < since.plus(SHORTLY) {
        p.must(&Write::Prove);
    }
    assert_eq!(listed(&p, 9), ["abd-2"]);
    let missing = Err(Error::Refused(Refused::ContainerNotFound));
    assert_eq!(p.write(&restore("abc", since, "abc")), missing);
    assert_eq!(ended(&p, p.now), [key]);
    p.must(&expire);
    assert_eq!((dead(&p), ended(&p, p.now)), (vec![1], vec![]));

    // An account that is deleted gives up all of them.
    let key = RoutingKey::container(ACCOUNT, &name("abd"));
    p.must(&Write::ExpireDeleted { key, all: true });
    assert_eq!(dead(&p), [1, 2]);
    let left = p.memory.rows.keys().filter(|(family, _)| *family != Family::Garbage).count();
    assert_eq!(left, 0);
}

#[test]
fn deletion_with_a_shorter_retention_ends_before_an_earlier_one() {
    let mut p = partition();
    p.must(&create_container("abc", 1));
    let first = delete(&mut p, "abc", Duration::from_secs(9));
    p.must(&create_container("abc", 2));
    let second = delete(&mut p, "abc", SHORTLY);
    while p.now < second.plus(SHORTLY) {
        p.must(&Write::Prove);
    }
    let key = RoutingKey::container(ACCOUNT, &name("abc"));
    assert_eq!(ended(&p, p.now), std::slice::from_ref(&key));
    p.must(&Write::ExpireDeleted { key, all: false });
    assert_eq!((dead(&p), ended(&p, p.now)), (vec![2], vec![]));
    p.must(&restore("abc", first, "abc"));
    assert_eq!(id(&p, "abc"), Some(1));
}
