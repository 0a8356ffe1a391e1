//! Files of users, which commands copy from and to. They are not of a store: they have the modes
//! that the user's shell gives new files, and other programs may change them at any time. All calls
//! block.

#![expect(clippy::disallowed_methods, reason = "the seam")]

use std::fs;
use std::fs::File;
use std::fs::Metadata;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use crate::types::Timestamp;

/// What a name in a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserFileKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A device, pipe or socket.
    Other,
}

/// What is known of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserFileFacts {
    /// What it is.
    pub kind: UserFileKind,
    /// Bytes.
    pub len: u64,
    /// When its content was last changed, if the file system knows.
    pub modified: Option<Timestamp>,
}

impl UserFileFacts {
    fn of(file: &Metadata) -> Self {
        let kind = if file.is_file() {
            UserFileKind::File
        } else if file.is_dir() {
            UserFileKind::Folder
        } else if file.is_symlink() {
            UserFileKind::Link
        } else {
            UserFileKind::Other
        };
        let since = file.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self { kind, len: file.len(), modified: since.map(Timestamp::from_unix) }
    }
}

/// Facts of what a path leads to; `None` if there is nothing.
///
/// # Errors
/// The system's.
pub fn user_file(path: &Path) -> io::Result<Option<UserFileFacts>> {
    found(fs::metadata(path))
}

/// Facts of the path itself: a symbolic link is not followed. `None` if there is nothing.
///
/// # Errors
/// The system's.
pub fn user_file_itself(path: &Path) -> io::Result<Option<UserFileFacts>> {
    found(fs::symlink_metadata(path))
}

fn found(facts: io::Result<Metadata>) -> io::Result<Option<UserFileFacts>> {
    match facts {
        Ok(facts) => Ok(Some(UserFileFacts::of(&facts))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The paths in a folder, in no order.
///
/// # Errors
/// The system's.
pub fn user_folder(folder: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

/// Opens a file to read it from its beginning.
///
/// # Errors
/// The system's.
pub fn open_user_file(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Reads `len` bytes; fewer only at the end.
///
/// # Errors
/// The system's.
pub fn read_piece(from: &mut dyn Read, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(len);
    from.take(len as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads up to `len` bytes at `offset` of a file; fewer only at its end.
///
/// # Errors
/// The system's.
pub fn read_piece_at(path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    read_piece(&mut file, len)
}

/// Writes bytes at `offset` of a file, which is made if it does not exist. Not durable until
/// [`finish_user_file`].
///
/// # Errors
/// The system's.
pub fn write_piece_at(path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(false).open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)
}

/// Adds text at the end of a file, which is made if it does not exist.
///
/// # Errors
/// The system's.
pub fn append_text(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(text.as_bytes())
}

/// Reads a small text file; `None` if it does not exist or is no text.
///
/// # Errors
/// The system's.
pub fn read_text(path: &Path) -> io::Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8(bytes).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Cuts the file `part` to `len` bytes, makes it durable and gives it its final name. A file that
/// had the name is replaced.
///
/// # Errors
/// The system's.
pub fn finish_user_file(part: &Path, len: u64, path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).open(part)?;
    file.set_len(len)?;
    file.sync_all()?;
    fs::rename(part, path)
}

/// Makes a folder and those above it.
///
/// # Errors
/// The system's.
pub fn make_user_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Removes a file; one that does not exist counts as removed.
///
/// # Errors
/// The system's.
pub fn remove_user_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_a_file_that_appears_when_it_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let (part, path) = (folder.path().join("part"), folder.path().join("file"));
        write_piece_at(&part, 4, b"efgh-old").unwrap();
        write_piece_at(&part, 0, b"abcd").unwrap();
        assert_eq!(user_file(&path).unwrap(), None);
        finish_user_file(&part, 8, &path).unwrap();
        assert_eq!(read_text(&path).unwrap().as_deref(), Some("abcdefgh"));
        assert_eq!(read_piece_at(&path, 6, 10).unwrap(), b"gh");
        assert_eq!(user_file(&part).unwrap(), None);
        let facts = user_file(&path).unwrap().unwrap();
        assert_eq!((facts.kind, facts.len), (UserFileKind::File, 8));
        append_text(&part, "one\n").unwrap();
        append_text(&part, "two\n").unwrap();
        assert_eq!(read_text(&part).unwrap().as_deref(), Some("one\ntwo\n"));
        remove_user_file(&part).unwrap();
        remove_user_file(&part).unwrap();
        assert_eq!(read_text(&part).unwrap(), None);
        assert_eq!(user_folder(folder.path()).unwrap(), [path]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_told_from_what_they_lead_to() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert_eq!(user_file(&link).unwrap().unwrap().kind, UserFileKind::Folder);
        assert_eq!(user_file_itself(&link).unwrap().unwrap().kind, UserFileKind::Link);
    }
}
