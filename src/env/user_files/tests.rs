//! Files of users: what is made, removed and read.

use super::*;

fn read(path: &Path) -> Vec<u8> {
    read_piece(&mut open_user_file(path).unwrap(), 100).unwrap()
}

#[test]
fn pieces_make_a_file_that_appears_when_it_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let (part, path) = (folder.path().join("part"), folder.path().join("file"));
    assert!(UserPart::resume(&part).unwrap().is_none());
    UserPart::create(&part).unwrap().write_at(4, b"efgh-old").unwrap();
    let made = UserPart::resume(&part).unwrap().unwrap();
    made.write_at(0, b"abcd").unwrap();
    assert_eq!(user_file(&path).unwrap(), None);
    made.finish(8, &path).unwrap();
    assert_eq!(read(&path), b"abcdefgh");
    assert_eq!(made.read_at(6, 10).unwrap(), b"gh");
    assert_eq!(read_piece(&mut made.reader().unwrap(), 10).unwrap(), b"abcdefgh");
    assert_eq!(user_file(&part).unwrap(), None);
    let facts = user_file(&path).unwrap().unwrap();
    assert_eq!((facts.kind, facts.len), (UserFileKind::File, 8));
    assert_eq!(user_folder(folder.path()).unwrap(), [path]);
}

#[cfg(unix)]
#[test]
fn what_another_can_read_under_another_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (planted, kept) = (folder.path().join("part"), folder.path().join("kept"));
    fs::write(&kept, b"x").unwrap();
    fs::hard_link(&kept, &planted).unwrap();
    assert_eq!(UserPart::resume(&planted).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(UserNote::lock(&planted).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    fs::remove_file(&kept).unwrap();
    assert!(UserNote::lock(&planted).unwrap().is_some());
}

#[cfg(unix)]
#[test]
fn part_that_was_removed_or_replaced_never_becomes_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (part, path) = (folder.path().join("part"), folder.path().join("file"));
    let first = UserPart::create(&part).unwrap();
    first.write_at(0, b"first").unwrap();
    remove_user_file(&part).unwrap();
    first.write_at(5, b"more").unwrap();
    first.finish(9, &path).unwrap_err();
    let second = UserPart::create(&part).unwrap();
    second.write_at(0, b"second").unwrap();
    first.finish(9, &path).unwrap_err();
    assert_eq!(user_file(&path).unwrap(), None);
    second.finish(6, &path).unwrap();
    assert_eq!(read(&path), b"second");
}

#[test]
fn one_at_a_time_has_the_note() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("note");
    let note = UserNote::lock(&path).unwrap().unwrap();
    assert!(UserNote::lock(&path).unwrap().is_none());
    note.restart("one\n").unwrap();
    note.append("two\n").unwrap();
    assert_eq!(note.text().unwrap().as_deref(), Some("one\ntwo\n"));
    drop(note);
    let note = UserNote::lock(&path).unwrap().unwrap();
    assert_eq!(note.text().unwrap().as_deref(), Some("one\ntwo\n"));
    note.restart("new\n").unwrap();
    assert_eq!(note.text().unwrap().as_deref(), Some("new\n"));
    note.remove().unwrap();
    remove_user_file(&path).unwrap();
    // A command that still has the removed note open locks no one out.
    let other = UserNote::lock(&path).unwrap().unwrap();
    assert_eq!(other.text().unwrap().as_deref(), Some(""));
}

#[cfg(unix)]
#[test]
fn planted_links_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (victim, link) = (folder.path().join("victim"), folder.path().join("link"));
    UserPart::create(&victim).unwrap().write_at(0, b"mine").unwrap();
    for to in [victim.as_path(), &folder.path().join("nothing")] {
        std::os::unix::fs::symlink(to, &link).unwrap();
        let refused = UserNote::lock(&link).unwrap_err().to_string();
        assert!(refused.contains("remove it"), "{refused}");
        assert!(UserPart::resume(&link).unwrap().is_none());
        UserPart::create(&link).unwrap().write_at(0, b"theirs").unwrap();
        assert_eq!(user_file_itself(&link).unwrap().unwrap().kind, UserFileKind::File);
        remove_user_file(&link).unwrap();
    }
    assert_eq!(read(&victim), b"mine");
    assert_eq!(user_folder(folder.path()).unwrap(), [victim]);
}

#[cfg(unix)]
#[test]
fn links_are_distinguished_from_their_targets() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path(), &link).unwrap();
    assert_eq!(user_file(&link).unwrap().unwrap().kind, UserFileKind::Folder);
    assert_eq!(user_file_itself(&link).unwrap().unwrap().kind, UserFileKind::Link);
}
