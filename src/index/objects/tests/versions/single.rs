//! Single cases of versions.

use super::*;

const V: Option<Versioning> = Some(Versioning::Enabled);

fn versioned() -> World {
    World { versioning: V, ..World::new() }
}

fn put_at(world: &mut World, name: &str, content: (NewContent, Crc64)) -> VersionId {
    let reply = world.write(Write::PutBlob(put(&key(name), content))).unwrap();
    let WriteReply::Written(written) = reply else { panic!("not written") };
    written.version.unwrap()
}

/// Versions that are not current, oldest first.
fn former(world: &World) -> usize {
    let history = History::VersionsUp { snapshots: false };
    world.partition.list_all(&ListBlobs { history, ..list() }).len() - 1
}

#[test]
fn a_write_that_is_sent_again_makes_no_version_of_itself() {
    let mut world = versioned();
    let content = world.store(b"bytes", true);
    put_at(&mut world, "a", content.clone());
    put_at(&mut world, "a", content);
    assert_eq!(former(&world), 0, "two versions would own the same bytes");
    assert_eq!(world.partition.garbage(), []);
    let other = world.store(b"other", true);
    put_at(&mut world, "a", other);
    assert_eq!(former(&world), 1);
}

#[test]
fn blocks_of_a_former_version_are_shared_with_the_new_one() {
    let mut world = versioned();
    for id in ["1", "2"] {
        let content = world.store(id.as_bytes(), true);
        world.write(stage(&key("a"), id, content)).unwrap();
    }
    world.write(Write::CommitBlocks(commit(&key("a"), &["1", "2"]))).unwrap();
    let first = world.partition.blob(&read(&key("a"))).unwrap().record.version().unwrap();
    world.write(Write::CommitBlocks(commit(&key("a"), &["=2"]))).unwrap();
    let scope = DeleteScope::FormerVersion(first.time);
    world.write(delete_of(&key("a"), scope)).unwrap();
    assert_eq!(world.partition.garbage(), [], "the audit frees shared bytes");
    assert_eq!(references(&world.partition).len(), 1);
}

#[test]
fn snapshots_stay_below_a_delete_marker_and_are_counted_in_it() {
    let mut world = versioned();
    put_at(&mut world, "a", inline(b"1"));
    let sent = SnapshotBlob { key: key("a"), guard: Guard::default(), metadata: None };
    let WriteReply::Snapshotted(taken) = world.write(Write::SnapshotBlob(sent)).unwrap() else {
        panic!("no snapshot")
    };
    let refused = world.write(delete(&key("a")));
    assert_eq!(refused, Err(Error::Refused(Refused::SnapshotsPresent)));
    let object = delete_of(&key("a"), DeleteScope::Object);
    let marker = |reply| {
        let WriteReply::Deleted(Deleted { version: Some(id), is_marker: true }) = reply else {
            panic!("no marker: {reply:?}")
        };
        Revision::Version(id.time)
    };
    let first = marker(world.write(object.clone()).unwrap());
    let second = marker(world.write(object).unwrap());
    world.write(delete_of(&key("a"), DeleteScope::Version(second))).unwrap();
    world.write(delete_of(&key("a"), DeleteScope::Version(first))).unwrap();
    let record = world.partition.blob(&read(&key("a"))).unwrap().record;
    assert_eq!(record.snapshots, 1);
    world.write(delete_of(&key("a"), DeleteScope::Snapshot(taken.snapshot))).unwrap();
    assert_eq!(world.partition.blob(&read(&key("a"))).unwrap().record.snapshots, 0);
}

#[test]
fn snapshots_prevent_that_the_last_version_is_removed() {
    let mut world = versioned();
    let version = put_at(&mut world, "a", inline(b"1"));
    world.versioning = None;
    let sent = SnapshotBlob { key: key("a"), guard: Guard::default(), metadata: None };
    world.write(Write::SnapshotBlob(sent)).unwrap();
    world.versioning = V;
    let scope = DeleteScope::Version(Revision::Version(version.time));
    let reply = world.write(delete_of(&key("a"), scope));
    assert_eq!(reply, Err(Error::Refused(Refused::SnapshotsPresent)));
}

#[test]
fn a_purge_removes_many_versions_in_parts() {
    let mut world = versioned();
    for _ in 0..2_500 {
        put_at(&mut world, "a", inline(b"x"));
    }
    let (account, container, limit) = (ACCOUNT, CONTAINER, 10);
    let purge = Write::PurgeContainer { account, container, from: Bytes::new(), limit };
    let (mut purge, mut parts) = (purge, 0);
    loop {
        let before = world.partition.memory.rows.len();
        let WriteReply::Purged { next } = world.write(purge).unwrap() else { panic!("no purge") };
        assert!(before - world.partition.memory.rows.len() < 2_010, "a long batch");
        parts += 1;
        let Some(from) = next else { break };
        purge = Write::PurgeContainer { account, container, from, limit };
    }
    assert_eq!((parts > 1, world.left()), (true, 0));
}
