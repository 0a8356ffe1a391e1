//! The files below a folder, in the order in which the service lists their names.

use std::io;
use std::path::Path;
use std::path::PathBuf;

use crate::env::user_files;
use crate::env::user_files::UserFileFacts;
use crate::env::user_files::UserFileKind;

use super::listing::order;
use super::names::blob_name;
use super::names::is_unfinished;

/// An entry below a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A file: its name below the folder with slashes.
    File { name: String, path: PathBuf, file: UserFileFacts },
    /// An entry that is not a file and is left out.
    LeftOut { path: PathBuf, why: &'static str },
    /// An entry that cannot be copied.
    Refused { path: PathBuf, why: String },
}

/// A walk through a folder. Symbolic links are not followed. Its calls block.
#[derive(Debug)]
pub(super) struct Walk {
    root: PathBuf,
    /// The remaining entries of each folder that the walk is in, the next entry last.
    open: Vec<Vec<Entry>>,
}

/// An entry of a folder.
#[derive(Debug)]
struct Entry {
    /// Its name below the root, with a slash at the end if it is a folder.
    key: String,
    found: Result<Step, Found>,
}

#[derive(Debug)]
enum Step {
    File(PathBuf, UserFileFacts),
    Folder(PathBuf),
}

impl Walk {
    /// Begins in a folder.
    ///
    /// # Errors
    /// The system's: the folder cannot be read.
    pub(super) fn new(root: &Path) -> io::Result<Self> {
        let first = entries(root, root)?;
        Ok(Self { root: root.to_owned(), open: vec![first] })
    }

    /// The next at most `count` entries; none at the end.
    pub(super) fn next(&mut self, count: usize) -> Vec<Found> {
        let mut found = Vec::new();
        while found.len() < count {
            let Some(folder) = self.open.last_mut() else { break };
            match folder.pop() {
                None => drop(self.open.pop()),
                Some(Entry { found: Err(other), .. }) => found.push(other),
                Some(Entry { key, found: Ok(Step::File(path, file)) }) => {
                    found.push(Found::File { name: key, path, file });
                }
                Some(Entry { found: Ok(Step::Folder(path)), .. }) => {
                    match entries(&self.root, &path) {
                        Ok(inner) => self.open.push(inner),
                        Err(error) => found.push(Found::Refused { path, why: error.to_string() }),
                    }
                }
            }
        }
        found
    }
}

/// The entries of a folder, the first one last.
fn entries(root: &Path, folder: &Path) -> io::Result<Vec<Entry>> {
    let paths = user_files::user_folder(folder)?;
    let mut entries: Vec<Entry> = paths.into_iter().filter_map(|path| entry(root, path)).collect();
    entries.sort_by(|a, b| order(&b.key, &a.key));
    Ok(entries)
}

fn entry(root: &Path, path: PathBuf) -> Option<Entry> {
    let refused = |path: PathBuf, why: String| {
        Some(Entry { key: String::new(), found: Err(Found::Refused { path, why }) })
    };
    if path.file_name().and_then(|name| name.to_str()).is_some_and(is_unfinished) {
        return None;
    }
    let below = path.strip_prefix(root).unwrap_or(&path);
    let mut key = match blob_name(below) {
        Ok(name) => name,
        Err(why) => return refused(path, why.to_owned()),
    };
    let facts = match user_files::user_file_itself(&path) {
        Ok(Some(facts)) => facts,
        // It was removed meanwhile.
        Ok(None) => return None,
        Err(error) => return refused(path, error.to_string()),
    };
    let left_out = |path, why| Err(Found::LeftOut { path, why });
    let found = match facts.kind {
        UserFileKind::File => Ok(Step::File(path, facts)),
        UserFileKind::Folder => {
            key.push('/');
            Ok(Step::Folder(path))
        }
        UserFileKind::Link => left_out(path, "a symbolic link, which is not followed"),
        UserFileKind::Other => left_out(path, "no file and no folder"),
    };
    Some(Entry { key, found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_in_the_order_of_the_service_and_links_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let names =
            ["a/z", "a.txt", "a/b/c", "b", "a0", ".blockyard-12.part", "\u{FF01}", "\u{1F600}/x"];
        for name in names {
            let path = root.join(name);
            user_files::make_user_folder(path.parent().unwrap()).unwrap();
            let file = user_files::UserPart::create(&path).unwrap();
            file.write_at(0, name.as_bytes()).unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(root, root.join("a/link")).unwrap();
        let mut walk = Walk::new(root).unwrap();
        let mut files = Vec::new();
        let mut others = Vec::new();
        loop {
            let found = walk.next(2);
            if found.is_empty() {
                break;
            }
            for one in found {
                match one {
                    Found::File { name, file, .. } => {
                        assert_eq!(file.len, name.len() as u64);
                        files.push(name);
                    }
                    other @ (Found::LeftOut { .. } | Found::Refused { .. }) => others.push(other),
                }
            }
        }
        assert_eq!(files, ["a.txt", "a/b/c", "a/z", "a0", "b", "\u{1F600}/x", "\u{FF01}"]);
        assert!(files.windows(2).all(|pair| order(&pair[0], &pair[1]).is_lt()));
        assert_eq!(others.len(), usize::from(cfg!(unix)));
        Walk::new(&root.join("none")).unwrap_err();
    }
}
