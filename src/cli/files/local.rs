//! Local files and folders, as `ls`, `cat`, `stat` and `rm` find them.

use std::fmt;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use crate::env::user_files;
use crate::env::user_files::UserFileFacts;
use crate::env::user_files::UserFileKind;

use super::error::path_shown;
use super::listing::order;

/// A file, a folder, a link or a special file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Local {
    pub(super) path: PathBuf,
    pub(super) facts: UserFileFacts,
}

impl Local {
    /// The target of a path. For a link without a target, the link itself.
    ///
    /// # Errors
    /// The system's; `NotFound` if nothing is there.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        match user_files::user_file(path)? {
            Some(facts) => Self::of(path, Some(facts)),
            None => Self::itself(path),
        }
    }

    /// The entry at the path: a symbolic link is not followed.
    ///
    /// # Errors
    /// The system's; `NotFound` if nothing is there.
    pub(super) fn itself(path: &Path) -> io::Result<Self> {
        Self::of(path, user_files::user_file_itself(path)?)
    }

    fn of(path: &Path, facts: Option<UserFileFacts>) -> io::Result<Self> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "no such file or folder");
        let facts = facts.ok_or_else(missing)?;
        Ok(Self { path: path.to_owned(), facts })
    }

    /// Whether it has entries.
    pub(super) fn is_folder(&self) -> bool {
        self.facts.kind == UserFileKind::Folder
    }

    /// Its path, with a slash at the end if it is a folder.
    pub(super) fn name(&self) -> String {
        let mut name = self.path.to_string_lossy().into_owned();
        if self.is_folder() && !name.ends_with(std::path::is_separator) {
            name.push('/');
        }
        name
    }
}

/// An entry of a folder that cannot be read.
#[derive(Debug)]
pub(super) struct Unreadable {
    path: PathBuf,
    error: io::Error,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", path_shown(&self.path), self.error)
    }
}

/// The entries of a folder in the order in which the service lists names: one level, or all entries
/// except folders below it. Symbolic links are not followed. Its calls block.
#[derive(Debug)]
pub(super) struct Entries {
    recursive: bool,
    /// The remaining entries of each folder that the walk is in, the next entry last.
    open: Vec<Vec<Result<Local, Unreadable>>>,
}

impl Entries {
    /// Begins in a folder.
    ///
    /// # Errors
    /// The system's: the folder cannot be read.
    pub(super) fn new(folder: &Path, recursive: bool) -> io::Result<Self> {
        Ok(Self { recursive, open: vec![sorted(folder)?] })
    }

    /// At most `count` further entries; none at the end.
    pub(super) fn next(&mut self, count: usize) -> Vec<Result<Local, Unreadable>> {
        let mut found = Vec::new();
        while found.len() < count {
            let Some(folder) = self.open.last_mut() else { break };
            match folder.pop() {
                None => drop(self.open.pop()),
                Some(Ok(entry)) if self.recursive && entry.is_folder() => {
                    match sorted(&entry.path) {
                        Ok(inner) => self.open.push(inner),
                        Err(error) => found.push(Err(Unreadable { path: entry.path, error })),
                    }
                }
                Some(entry) => found.push(entry),
            }
        }
        found
    }
}

/// The entries of a folder, the first one last.
fn sorted(folder: &Path) -> io::Result<Vec<Result<Local, Unreadable>>> {
    let mut entries = Vec::new();
    for path in user_files::user_folder(folder)? {
        match Local::itself(&path) {
            Ok(entry) => entries.push((entry.name(), Ok(entry))),
            // It was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let name = path.to_string_lossy().into_owned();
                entries.push((name, Err(Unreadable { path, error })));
            }
        }
    }
    entries.sort_by(|(a, _), (b, _)| order(b, a));
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a/z", "a.txt", "a/b/c", "b", ".blockyard-12.part"] {
            let path = folder.path().join(name);
            user_files::make_user_folder(path.parent().unwrap()).unwrap();
            user_files::UserPart::create(&path).unwrap().write_at(0, name.as_bytes()).unwrap();
        }
        folder
    }

    fn names(root: &Path, recursive: bool) -> Vec<String> {
        let mut entries = Entries::new(root, recursive).unwrap();
        let mut names = Vec::new();
        loop {
            let found = entries.next(2);
            if found.is_empty() {
                return names;
            }
            for entry in found {
                let name = entry.unwrap().name();
                names.push(name.strip_prefix(&format!("{}/", root.display())).unwrap().to_owned());
            }
        }
    }

    #[test]
    fn entries_are_those_of_one_level_or_all_files() {
        let folder = tree();
        let root = folder.path();
        assert_eq!(names(root, false), [".blockyard-12.part", "a.txt", "a/", "b"]);
        let all = [".blockyard-12.part", "a.txt", "a/b/c", "a/z", "b"];
        assert_eq!(names(root, true), all);
        Entries::new(&root.join("none"), true).unwrap_err();
    }

    #[cfg(unix)]
    #[test]
    fn links_are_listed_and_not_followed() {
        let folder = tree();
        let root = folder.path().join("a");
        let link = root.join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert_eq!(names(&root, true), ["b/c", "link", "z"]);
        assert_eq!(Local::itself(&link).unwrap().facts.kind, UserFileKind::Link);
        assert!(Local::at(&link).unwrap().is_folder());
        let dangling = root.join("dangling");
        std::os::unix::fs::symlink("nothing", &dangling).unwrap();
        assert_eq!(Local::at(&dangling).unwrap().facts.kind, UserFileKind::Link);
        assert_eq!(Local::itself(&root.join("no")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
