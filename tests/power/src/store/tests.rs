use super::*;

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn store() -> Store {
    Store::new(1 << 20, (0, 0), NOW)
}

fn create(store: &mut Store, folder: u64, name: &str) -> u64 {
    let kind = Kind::File(File::default());
    store.create(folder, OsStr::new(name), (kind, 0o600), (0, 0), NOW).unwrap()
}

fn write(store: &mut Store, inode: u64, bytes: &[u8]) {
    store.change(inode, Change::Write { offset: 0, bytes: bytes.into() }, NOW).unwrap();
}

fn sync(store: &mut Store, inode: u64) {
    let begun = store.begin_sync(inode).unwrap();
    store.finish_sync(&begun).unwrap();
}

fn bytes(store: &mut Store, name: &str) -> Option<Vec<u8>> {
    let inode = store.find(ROOT, OsStr::new(name)).ok()?;
    Some(store.read(inode, 0, 1000).unwrap())
}

#[test]
fn bytes_need_a_sync_of_the_file_and_its_name_one_of_the_folder() {
    let mut store = store();
    let both = create(&mut store, ROOT, "both");
    write(&mut store, both, b"abc");
    let name = create(&mut store, ROOT, "name");
    write(&mut store, name, b"abc");
    sync(&mut store, both);
    sync(&mut store, ROOT);
    let bytes_only = create(&mut store, ROOT, "bytes");
    write(&mut store, bytes_only, b"abc");
    sync(&mut store, bytes_only);
    let report = store.cut(Mode::Forget, 0);
    assert_eq!((report.changes, report.names, report.lost), (1, 1, 1));
    assert_eq!(bytes(&mut store, "both").unwrap(), b"abc");
    assert_eq!(bytes(&mut store, "name").unwrap(), b"");
    assert_eq!(bytes(&mut store, "bytes"), None);
}

#[test]
fn sync_under_way_when_the_power_fails_has_no_effect() {
    let mut store = store();
    let inode = create(&mut store, ROOT, "file");
    sync(&mut store, ROOT);
    write(&mut store, inode, b"abc");
    let begun = store.begin_sync(inode).unwrap();
    store.cut(Mode::Forget, 0);
    assert!(store.finish_sync(&begun).is_err());
    assert_eq!(bytes(&mut store, "file").unwrap(), b"");
}

#[test]
fn replaced_file_is_the_old_one_or_the_new_one() {
    let (mut old, mut new) = (0, 0);
    for seed in 0..50 {
        let mut store = store();
        let inode = create(&mut store, ROOT, "file");
        write(&mut store, inode, b"old");
        sync(&mut store, inode);
        sync(&mut store, ROOT);
        let fresh = create(&mut store, ROOT, "fresh");
        write(&mut store, fresh, b"new");
        sync(&mut store, fresh);
        store.rename((ROOT, OsStr::new("fresh")), (ROOT, OsStr::new("file")), true).unwrap();
        assert_eq!(bytes(&mut store, "file").unwrap(), b"new");
        store.cut(Mode::Reordered, seed);
        match bytes(&mut store, "file").unwrap().as_slice() {
            b"old" => old += 1,
            b"new" => new += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(old > 0 && new > 0);
}

#[test]
fn room_comes_back_when_a_removal_is_durable_and_the_kernel_has_forgotten() {
    let mut store = store();
    let inode = create(&mut store, ROOT, "file");
    store.looked_up(inode);
    write(&mut store, inode, &[1; 8192]);
    sync(&mut store, inode);
    sync(&mut store, ROOT);
    assert_eq!(store.space(), (1 << 20, (1 << 20) - 8192));
    store.remove(ROOT, OsStr::new("file"), false).unwrap();
    store.forgotten(inode, 1);
    // The disk still has it.
    assert!(store.inode(inode).is_ok());
    sync(&mut store, ROOT);
    assert!(store.inode(inode).is_err());
    assert_eq!(store.space(), (1 << 20, 1 << 20));
}

#[test]
fn full_disk_refuses_and_keeps_what_it_has() {
    let mut store = store();
    let inode = create(&mut store, ROOT, "file");
    let allocate = |len| Change::Allocate { offset: 0, len, keep_length: true };
    store.change(inode, allocate(1 << 20), NOW).unwrap();
    let more = Change::Write { offset: 2 << 20, bytes: [1; 10].as_slice().into() };
    assert!(store.change(inode, more, NOW).is_err());
    let punch = Change::Punch { offset: 0, len: 1 << 20 };
    store.change(inode, punch, NOW).unwrap();
    assert_eq!(store.space(), (1 << 20, 1 << 20));
}

#[test]
fn folders_are_removed_and_replaced_only_when_empty() {
    let mut store = store();
    let folder = |store: &mut Store, name| {
        store.create(ROOT, OsStr::new(name), (Kind::Folder, 0o700), (0, 0), NOW).unwrap()
    };
    let (full, empty) = (folder(&mut store, "full"), folder(&mut store, "empty"));
    create(&mut store, full, "file");
    assert!(store.remove(ROOT, OsStr::new("full"), true).is_err());
    assert!(store.remove(ROOT, OsStr::new("full"), false).is_err());
    let (of_full, of_empty) = ((ROOT, OsStr::new("full")), (ROOT, OsStr::new("empty")));
    assert!(store.rename(of_empty, of_full, true).is_err());
    assert!(store.rename(of_full, of_empty, false).is_err());
    store.rename(of_full, of_empty, true).unwrap();
    assert_eq!(store.find(ROOT, OsStr::new("empty")).unwrap(), full);
    assert_ne!(full, empty);
}
