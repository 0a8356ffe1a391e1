//! Files of users, which commands copy from and to. They do not belong to a store: they have the
//! modes that the user's shell gives new files, and other programs may change them at any time. All
//! calls block.

#![expect(clippy::disallowed_methods, reason = "the seam")]

use std::fs;
use std::fs::File;
use std::fs::Metadata;
use std::fs::TryLockError;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::UNIX_EPOCH;

use crate::types::Timestamp;

use super::system;

/// The kind of an entry of a folder.
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

/// The metadata of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserFileFacts {
    /// Its kind.
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

/// Opens a file to read it from `offset`.
///
/// # Errors
/// The system's.
pub fn open_user_file_at(path: &Path, offset: u64) -> io::Result<File> {
    let mut file = File::open(path)?;
    // A pipe has only its beginning.
    if offset > 0 {
        file.seek(SeekFrom::Start(offset))?;
    }
    Ok(file)
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

/// Reads what is there, at most `len` bytes; nothing at the end. A pipe is waited for.
///
/// # Errors
/// The system's.
pub fn read_some(from: &mut dyn Read, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    loop {
        match from.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => {
                bytes.truncate(read?);
                return Ok(bytes);
            }
        }
    }
}

/// The note of a file that is being made. A command that has it open has locked it, so only one
/// command at a time makes the file.
#[derive(Debug)]
pub struct UserNote {
    path: PathBuf,
    file: Mutex<File>,
}

fn is_without_locks(error: &io::Error) -> bool {
    // ENOLCK of Linux, for which the standard library has no kind.
    let no_locks = cfg!(target_os = "linux") && error.raw_os_error() == Some(37);
    no_locks || error.kind() == io::ErrorKind::Unsupported
}

impl UserNote {
    /// Opens a note, or makes an empty one, and locks it until it is dropped. `None` if another
    /// holds the lock. A symbolic link is not followed. Where the file system has no locks, none is
    /// held.
    ///
    /// # Errors
    /// The system's; the entry is not a regular file.
    pub fn lock(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let file = match open_itself(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => match create_new(path) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                    made => made?,
                },
                opened => opened?,
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                // Some network file systems have no locks.
                Err(TryLockError::Error(error)) if is_without_locks(&error) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The last holder may have removed the note after it was opened here.
            if is_at(&file, path)? {
                return Ok(Some(Self { path: path.to_owned(), file: Mutex::new(file) }));
            }
        }
    }

    /// The text of the note; `None` if it is not text.
    ///
    /// # Errors
    /// The system's.
    pub fn text(&self) -> io::Result<Option<String>> {
        let mut bytes = Vec::new();
        let mut file = own(&self.file);
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8(bytes).ok())
    }

    /// Replaces the text of the note.
    ///
    /// # Errors
    /// The system's.
    pub fn restart(&self, text: &str) -> io::Result<()> {
        own(&self.file).set_len(0)?;
        self.append(text)
    }

    /// Adds text at the end.
    ///
    /// # Errors
    /// The system's.
    pub fn append(&self, text: &str) -> io::Result<()> {
        let mut file = own(&self.file);
        file.seek(SeekFrom::End(0))?;
        file.write_all(text.as_bytes())
    }

    /// Removes the note. Others can make a new one from now on.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self) -> io::Result<()> {
        remove_user_file(&self.path)
    }
}

/// A file that is being made under another name. It is opened once.
#[derive(Debug)]
pub struct UserPart {
    path: PathBuf,
    file: Mutex<File>,
}

impl UserPart {
    /// A new, empty file. An existing entry of this name is removed; a symbolic link is not
    /// followed.
    ///
    /// # Errors
    /// The system's.
    pub fn create(path: &Path) -> io::Result<Self> {
        remove_user_file(path)?;
        Ok(Self { path: path.to_owned(), file: Mutex::new(create_new(path)?) })
    }

    /// The file that an earlier command has left, if any.
    ///
    /// # Errors
    /// The system's.
    pub fn resume(path: &Path) -> io::Result<Option<Self>> {
        if !user_file_itself(path)?.is_some_and(|found| found.kind == UserFileKind::File) {
            return Ok(None);
        }
        Ok(Some(Self { path: path.to_owned(), file: Mutex::new(open_itself(path)?) }))
    }

    /// Writes bytes at `offset`. Not durable until [`Self::finish`].
    ///
    /// # Errors
    /// The system's.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = own(&self.file);
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    /// Reads up to `len` bytes at `offset`; fewer only at the end.
    ///
    /// # Errors
    /// The system's.
    pub fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut file = own(&self.file);
        file.seek(SeekFrom::Start(offset))?;
        read_piece(&mut *file, len)
    }

    /// The same file, to be read from its beginning while nothing else is done with it.
    ///
    /// # Errors
    /// The system's.
    pub fn reader(&self) -> io::Result<File> {
        let mut file = own(&self.file).try_clone()?;
        file.rewind()?;
        Ok(file)
    }

    /// Cuts the file to `len` bytes, makes it durable and gives it its final name, durably. A file
    /// that had the name is replaced.
    ///
    /// # Errors
    /// The system's; the file has lost its name to another, or was removed.
    pub fn finish(&self, len: u64, target: &Path) -> io::Result<()> {
        let file = own(&self.file);
        file.set_len(len)?;
        file.sync_all()?;
        if !is_at(&file, &self.path)? {
            let path = self.path.display();
            let text = format!("{path} was removed or replaced meanwhile: run the command again");
            return Err(io::Error::other(text));
        }
        fs::rename(&self.path, target)?;
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        match system::sync_folder(folder.unwrap_or(Path::new("."))) {
            // A folder that may be written and not read, or a file system that syncs no folders.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied
                        | io::ErrorKind::InvalidInput
                        | io::ErrorKind::Unsupported
                ) =>
            {
                Ok(())
            }
            synced => synced,
        }
    }
}

fn own(file: &Mutex<File>) -> MutexGuard<'_, File> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

fn create_new(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

/// Opens a regular file to read and write it: one of this user, with one name; not what a symbolic
/// link leads to.
fn open_itself(path: &Path) -> io::Result<File> {
    let refused = || {
        let text = format!("{} is no regular file: remove it", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, text)
    };
    let mut options = fs::OpenOptions::new();
    let opened = system::no_follow(options.read(true).write(true)).open(path);
    let file = opened.map_err(|error| match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => refused(),
        Ok(_) | Err(_) => error,
    })?;
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(refused());
    }
    // Another user that can write to the folder may have created it, to read what is written to it.
    if !system::is_own(&facts) || system::has_other_names(&facts) {
        let text = format!("{} is not of this command: remove it", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    Ok(file)
}

/// Whether a path still names an open file. Windows reports only that it names a file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        found => found?,
    };
    let own = file.metadata()?;
    let identity = |file: &Metadata| (system::device(file), system::inode(file));
    Ok(found.is_file() && identity(&found) == identity(&own))
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

/// Removes a file or a link, or a folder with all that is in it. Symbolic links are removed and not
/// followed.
///
/// # Errors
/// The system's. A part of what was in a folder may be removed.
pub fn remove_user_tree(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    }
}

/// Whether the working folder is this folder, or below it.
///
/// # Errors
/// The system's.
pub fn is_around_working_folder(folder: &Path) -> io::Result<bool> {
    Ok(fs::canonicalize(".")?.starts_with(fs::canonicalize(folder)?))
}

#[cfg(test)]
mod tests;
