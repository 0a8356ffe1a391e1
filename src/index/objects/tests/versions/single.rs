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
        let WriteReply::Deleted(Deleted { version: Some(id), is_marker: true, .. }) = reply else {
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

#[test]
fn tags_of_a_removed_version_and_of_its_heir_have_one_work_row() {
    let mut world = versioned();
    let tagged = |value: &str| {
        let tags = Tags::new(vec![("k".to_owned(), value.to_owned())]).unwrap();
        Write::PutBlob(PutBlob { tags, ..put(&key("a"), inline(value.as_bytes())) })
    };
    world.write(tagged("1")).unwrap();
    let reply = world.write(tagged("2")).unwrap();
    let WriteReply::Written(Written { version: Some(second), .. }) = reply else { panic!() };
    let scope = DeleteScope::Version(Revision::Version(second.time));
    world.write(delete_of(&key("a"), scope)).unwrap();
    let work = Read::TagWork { blob: None, from: Bytes::new(), limit: 9 };
    let ReadReply::TagWork(page) = world.partition.read(&work).unwrap() else { panic!() };
    let last = page.work.last().unwrap();
    let value = |tags: &Tags| tags.iter().map(|(_, value)| value.to_owned()).collect::<Vec<_>>();
    assert_eq!((value(&last.removed), value(&last.added)), (vec!["2".into()], vec!["1".into()]));
}

#[test]
fn what_a_list_does_not_show_is_folded_into_no_group() {
    let mut world = versioned();
    for name in ["a/1", "b/1"] {
        put_at(&mut world, name, inline(b"x"));
        world.write(delete(&key(name))).unwrap();
    }
    let names = |world: &World, history| {
        let folded = ListBlobs { history, delimiter: Some("/".to_owned()), ..list() };
        world.partition.list_all(&folded)
    };
    let up = History::VersionsUp { snapshots: false };
    assert_eq!(names(&world, History::Snapshots), Vec::<String>::new());
    assert_eq!(names(&world, up), ["a/>", "b/>"]);
    let chain = ListBlobs { history: up, prefix: "a/".to_owned(), ..list() };
    let ReadReply::Blobs(page) = world.partition.read(&Read::Blobs(chain)).unwrap() else {
        panic!()
    };
    let ListEntry::Blob { revision: Revision::Version(time), .. } = &page.entries[0] else {
        panic!("no version: {page:?}")
    };
    world.write(delete_of(&key("a/1"), DeleteScope::FormerVersion(*time))).unwrap();
    assert_eq!(names(&world, up), ["b/>"], "a chain of markers only is not listed");
    assert_eq!(names(&world, History::VersionsDown), ["a/>", "b/>"]);
}

#[test]
fn a_write_that_is_sent_again_leaves_what_it_made_held() {
    let mut world = versioned();
    world.lock();
    let content = world.store(b"bytes", true);
    let version = put_at(&mut world, "a", content.clone());
    let hold = UpdateBlob {
        key: key("a"),
        revision: Revision::Current,
        guard: Guard::default(),
        change: BlobChange::LegalHold(true),
    };
    world.write(Write::UpdateBlob(hold)).unwrap();
    let again = put_at(&mut world, "a", content);
    assert_eq!(again, version);
    let record = world.partition.blob(&read(&key("a"))).unwrap().record;
    assert_eq!((record.version(), record.legal_hold()), (Some(version), Some(true)));
    let scope = DeleteScope::Version(Revision::Version(version.time));
    let refused = world.write(delete_of(&key("a"), scope));
    assert_eq!(refused, Err(Error::Refused(Refused::LegalHold)));
}
