//! What reclaim asks.

use bytes::Bytes;

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::rows::Family;
use crate::types::*;

fn references(p: &Partition, limit: usize) -> Vec<Location> {
    let mut all = Vec::new();
    let mut from = Some(ReferencePlace::default());
    while let Some(start) = from {
        let list = ListReferences { from: start, blobs: limit, ..ListReferences::all() };
        let reply = p.read(&Read::References(list)).unwrap();
        let ReadReply::References(found) = reply else { panic!("not references") };
        all.extend(found.locations);
        from = found.next;
    }
    all.sort_by_key(|l| (l.extent, l.offset));
    all
}

fn expired(p: &Partition, before: Timestamp, limit: usize) -> Vec<RoutingKey> {
    let mut all = Vec::new();
    let mut from = Some(Bytes::new());
    while let Some(start) = from {
        let reply = p.read(&Read::Expired { from: start, before, limit }).unwrap();
        let ReadReply::Expired(ExpiredPage { blobs: found, next }) = reply else {
            panic!("not expired")
        };
        assert!(found.len() <= limit);
        all.extend(found.into_iter().map(|blob| blob.key));
        from = next;
    }
    all
}

#[test]
fn references_name_current_staged_layout_and_garbage() {
    let mut p = partition();
    for name in ["a", "b", "c"] {
        let extent = u64::from(name.as_bytes()[0]);
        let blob = key(name);
        p.must(&Write::PutBlob(put(&blob, stored(&[location(extent, 0, 1)]))));
        for n in 0..70 {
            p.must(&stage(&blob, &format!("{n:02}"), stored(&[location(extent, 10 + n, 1)])));
        }
        let ids: Vec<String> = (0..65).map(|n| format!("{n:02}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        p.must(&Write::CommitBlocks(commit(&blob, &ids)));
        p.must(&stage(&blob, "99", stored(&[location(extent, 99, 1)])));
    }
    let offsets = |extent: u64| {
        [0].into_iter().chain(10..80).chain([99]).map(move |n| location(extent, n, 1))
    };
    let all: Vec<Location> = (97..100).flat_map(offsets).collect();
    for limit in [1, 2, 3, 100] {
        assert_eq!(references(&p, limit), all);
    }
    assert_eq!(p.garbage().len(), 3 * 6);
}

#[test]
fn unknown_rows_stop_the_references() {
    let mut p = partition();
    let blob = RoutingKey::blob(&key("a")).as_bytes().clone();
    p.memory.rows.insert((Family::Work, blob), Bytes::from_static(b"?"));
    let reply = p.read(&Read::References(ListReferences::all()));
    assert!(matches!(reply, Err(Error::Corrupt(Damage::Rows(_)))));
}

#[test]
fn staged_blocks_expire_unless_staged_to_again() {
    let mut p = partition();
    for name in ["a", "b", "c"] {
        p.must(&stage(&key(name), "1", stored(&[location(1, u64::from(name.as_bytes()[0]), 1)])));
    }
    let before = p.now.next();
    p.must(&stage(&key("b"), "2", stored(&[location(2, 0, 1)])));
    let keys = expired(&p, before, 1);
    assert_eq!(keys, [RoutingKey::blob(&key("a")), RoutingKey::blob(&key("c"))]);
    for key in [keys[0].clone(), RoutingKey::blob(&key("b"))] {
        p.must(&Write::ExpireStaged { key, before });
    }
    assert_eq!(p.garbage(), [location(1, 97, 1)]);
    assert_eq!(p.block_list(&key("a")).unwrap_err(), Error::Refused(Refused::BlobNotFound));
    assert_eq!(p.block_list(&key("b")).unwrap().uncommitted.len(), 2);
    assert_eq!(expired(&p, before, 5).len(), 1);
}

#[test]
fn expiry_leaves_the_committed_blob() {
    let mut p = partition();
    let a = key("a");
    p.must(&Write::PutBlob(put(&a, stored(&[location(1, 0, 1)]))));
    p.must(&stage(&a, "1", stored(&[location(1, 1, 1)])));
    let before = p.now.next();
    p.must(&Write::ExpireStaged { key: RoutingKey::blob(&a), before });
    assert_eq!(p.garbage(), [location(1, 1, 1)]);
    assert!(p.blob(&read(&a)).is_ok());
}

#[test]
fn purge_removes_one_container_in_steps() {
    let mut p = partition();
    let dead = ContainerId::new(5);
    for n in 0..7u64 {
        let blob = key_in(dead, &format!("{n}"));
        p.must(&Write::PutBlob(put(&blob, stored(&[location(1, n, 1)]))));
        p.must(&stage(&blob, "1", stored(&[location(2, n, 1)])));
    }
    p.must(&stage(&key_in(dead, "x"), "1", stored(&[location(3, 0, 1)])));
    for neighbour in [4, 6] {
        let blob = key_in(ContainerId::new(neighbour), "a");
        p.must(&Write::PutBlob(put(&blob, stored(&[location(4, neighbour, 1)]))));
    }
    let low = RoutingKey::container_range(ACCOUNT, dead).low().as_bytes().clone();
    let mut from = Some(low);
    let mut steps = 0;
    while let Some(start) = from {
        let purge =
            Write::PurgeContainer { account: ACCOUNT, container: dead, from: start, limit: 3 };
        let WriteReply::Purged { next } = p.must(&purge) else { panic!("not purged") };
        from = next;
        steps += 1;
    }
    assert_eq!(steps, 3);
    assert_eq!(p.garbage().len(), 7 + 7 + 1);
    let left = p.memory.rows.keys().filter(|(family, _)| *family != Family::Garbage).count();
    assert_eq!(left, 2);
}

#[test]
fn dead_container_is_remembered_until_forgotten() {
    let mut p = partition();
    let name = ContainerName::new("abc").unwrap();
    let other = AccountId::new(2);
    for account in [ACCOUNT, other] {
        p.must(&Write::CreateContainer(CreateContainer {
            account,
            name: name.clone(),
            id: ContainerId::new(9),
            collation: Collation::Utf16,
            metadata: Metadata::default(),
            public_access: PublicAccess::Private,
            encryption_scope: None,
            owner: None,
            region: None,
            acl: CannedAcl::Private,
            object_lock: false,
        }));
        let blob = key("a");
        p.must(&Write::PutBlob(put(&blob, stored(&[location(account.get(), 0, 1)]))));
        p.must(&delete(&blob));
        let guard = Guard::default();
        p.must(&Write::DeleteContainer(DeleteContainer {
            account,
            name: name.clone(),
            guard,
            closed: None,
            restorable_for: None,
        }));
    }
    let dead = |p: &Partition| {
        let ReadReply::DeadContainers(dead) = p.read(&Read::DeadContainers).unwrap() else {
            panic!("not dead containers")
        };
        dead.into_iter().map(|dead| (dead.account.get(), dead.container.get())).collect::<Vec<_>>()
    };
    assert_eq!(dead(&p), [(1, 9), (2, 9)]);
    assert_eq!(p.garbage().len(), 2);
    p.must(&Write::ForgetContainer { account: ACCOUNT, container: ContainerId::new(9) });
    assert_eq!(dead(&p), [(2, 9)]);
}

#[test]
fn garbage_is_forgotten_by_key() {
    let mut p = partition();
    let a = key("a");
    for n in 0..3 {
        p.must(&Write::PutBlob(put(&a, stored(&[location(1, n, 1)]))));
    }
    let reply = p.read(&Read::Garbage { from: Bytes::new(), limit: 1 }).unwrap();
    let ReadReply::Garbage(GarbagePage { rows, next }) = reply else { panic!("not garbage") };
    assert!(next.is_some());
    let keys = rows.into_iter().map(|row| row.key).collect();
    p.must(&Write::ForgetGarbage { keys });
    assert_eq!(p.garbage(), [location(1, 1, 1)]);
}

#[test]
fn large_garbage_is_cut_into_rows() {
    let mut p = partition();
    let a = key("a");
    let many: Vec<Location> = (0..2_500).map(|n| location(1, n, 1)).collect();
    p.must(&Write::PutBlob(put(&a, stored(&many))));
    p.must(&delete(&a));
    assert_eq!(p.memory.rows.len(), 3);
    assert_eq!(p.garbage(), many);
}
