//! Removes local files and folders, for `rm`. Its calls block.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::path::is_separator;

use crate::env::user_files;
use crate::env::user_files::UserFileKind;

use super::local::Entries;
use super::local::Local;
use super::local::Unreadable;

/// A path without slashes at its end, or why it is not removed. A path that names nothing passes:
/// its removal fails.
///
/// # Errors
/// The system's.
pub(super) fn removable(path: &Path, recursive: bool) -> io::Result<Result<PathBuf, &'static str>> {
    let text = path.to_string_lossy();
    let bare = text.trim_end_matches(is_separator);
    let is_dot = bare.rsplit(is_separator).next() == Some(".");
    let Some(name) = path.file_name().filter(|_| !is_dot) else {
        return Ok(Err("/ and paths that end in . or .. are not deleted"));
    };
    let path = path.with_file_name(name);
    let kind = user_files::user_file_itself(&path)?.map(|found| found.kind);
    Ok(match kind {
        Some(UserFileKind::Folder) if !recursive => Err("is a folder: give --recursive"),
        Some(UserFileKind::Folder) if user_files::is_around_working_folder(&path)? => {
            Err("the working folder is in it")
        }
        Some(UserFileKind::File | UserFileKind::Link | UserFileKind::Other)
            if bare.len() < text.len() =>
        {
            Err("is no folder: leave out the slash at its end")
        }
        Some(_) | None => Ok(path),
    })
}

/// Removes a file, or a folder with all that is in it, unless only names are wanted. Returns the
/// names of the removed entries, the folder last, and whether all were removed. If something cannot
/// be read, nothing is removed.
pub(super) fn remove(
    path: &Path,
    recursive: bool,
    only_names: bool,
) -> (Vec<String>, io::Result<()>) {
    let mut names = match names(path, recursive) {
        Ok(names) => names,
        Err(error) => return (Vec::new(), Err(error)),
    };
    let removed = match only_names {
        true => Ok(()),
        false if recursive => user_files::remove_user_tree(path),
        false => user_files::remove_user_file(path),
    };
    if removed.is_err() {
        let left: HashSet<String> = self::names(path, recursive).into_iter().flatten().collect();
        names.retain(|name| !left.contains(name));
    }
    (names, removed)
}

/// The names of a file, or of all files in a folder and of the folder.
fn names(path: &Path, recursive: bool) -> io::Result<Vec<String>> {
    let found = Local::itself(path)?;
    let mut names = match (found.is_folder(), recursive) {
        (false, _) => Vec::new(),
        // It was a file when the command began.
        (true, false) => return Err(io::ErrorKind::IsADirectory.into()),
        (true, true) => {
            let name = |entry: Result<Local, Unreadable>| match entry {
                Ok(entry) => Ok(entry.name()),
                Err(unreadable) => Err(io::Error::other(unreadable.to_string())),
            };
            let entries = Entries::new(path, true)?.next(usize::MAX);
            entries.into_iter().map(name).collect::<io::Result<_>>()?
        }
    };
    names.push(found.name());
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (root, kept) = (folder.path().join("root"), folder.path().join("kept"));
        for path in [&root.join("in"), &kept] {
            user_files::make_user_folder(path).unwrap();
            user_files::UserPart::create(&path.join("file")).unwrap();
        }
        (folder, root, kept)
    }

    #[test]
    fn root_and_what_is_around_the_working_folder_are_refused() {
        for path in ["/", ".", "..", "./", "../", "a/..", "a/.", "a/./", "a/../", "///", ""] {
            removable(Path::new(path), true).unwrap().unwrap_err();
        }
        let working = std::env::current_dir().unwrap();
        for path in [working.as_path(), working.parent().unwrap()] {
            removable(path, true).unwrap().unwrap_err();
        }
        let none = |name: &str| removable(Path::new(name), true).unwrap().unwrap();
        for (path, wanted) in [("no", "no"), ("no/", "no"), ("/no//", "/no"), ("no.", "no.")] {
            assert_eq!(none(path).as_os_str(), wanted, "{path}");
        }
    }

    #[test]
    fn folders_need_the_flag_and_only_they_end_in_a_slash() {
        let (_folder, root, kept) = tree();
        removable(&root, false).unwrap().unwrap_err();
        assert_eq!(removable(&root.join(""), true).unwrap(), Ok(root.clone()));
        let file = kept.join("file");
        assert_eq!(removable(&file, false).unwrap(), Ok(file.clone()));
        removable(&file.join(""), true).unwrap().unwrap_err();
        // It became a folder after it was looked at.
        let (names, removed) = remove(&root, false, false);
        assert_eq!((names.len(), removed.unwrap_err().kind()), (0, io::ErrorKind::IsADirectory));
        assert!(root.join("in/file").exists());
    }

    #[test]
    fn folders_go_with_everything_in_them() {
        let (_folder, root, kept) = tree();
        let wanted = [root.join("in/file"), root.join("")].map(|path| path.display().to_string());
        for only_names in [true, false] {
            let (names, removed) = remove(&root, true, only_names);
            removed.unwrap();
            assert_eq!(names, wanted);
            assert_eq!(root.exists(), only_names);
        }
        let (names, removed) = remove(&root, true, false);
        assert_eq!((names.len(), removed.unwrap_err().kind()), (0, io::ErrorKind::NotFound));
        remove(&kept.join("file"), false, false).1.unwrap();
        assert_eq!(remove(&kept, true, false).0, [kept.join("").display().to_string()]);
    }

    #[cfg(unix)]
    #[test]
    fn links_go_and_what_they_lead_to_stays() {
        let (_folder, root, kept) = tree();
        for (to, link) in [(kept.as_path(), "link"), (Path::new("nothing"), "dangling")] {
            let link = root.join(link);
            std::os::unix::fs::symlink(to, &link).unwrap();
            assert_eq!(removable(&link, false).unwrap(), Ok(link.clone()));
            removable(&link.join(""), true).unwrap().unwrap_err();
            for recursive in [true, false] {
                let (names, removed) = remove(&link, recursive, false);
                removed.unwrap();
                assert_eq!(names, [link.display().to_string()]);
                std::os::unix::fs::symlink(to, &link).unwrap();
            }
        }
        assert_eq!(remove(&root, true, false).0.len(), 4);
        assert!(kept.join("file").exists());
    }
}
