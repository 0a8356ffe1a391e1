//! File modes: only the user that runs the node may read or write the files of a store.

use std::fs;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use crate::env::system;

/// The mode of a folder of a store.
#[cfg_attr(windows, expect(dead_code, reason = "folders have no mode there"))]
pub(super) const FOLDER: u32 = 0o700;
/// The mode of a file of a store.
pub(super) const FILE: u32 = 0o600;
/// The permissions of group and others.
const OTHERS: u32 = 0o077;

/// Makes every file and folder that the process or its libraries create from now on accessible only
/// to its user. Meant for the start of the program, since the setting is that of the whole process.
pub fn make_files_private() {
    system::make_files_private();
}

/// The result of [`narrow`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Narrowed {
    /// Files and folders that were accessible to others and no longer are.
    pub narrowed: usize,
    /// Files and folders that stay accessible to others, because another user owns them or the
    /// system refuses the change.
    pub left: usize,
    /// The first of these.
    pub first_left: Option<PathBuf>,
}

/// Removes the permissions of group and others from a data directory and all files and folders in
/// it. Files of other users are not changed. Links are not followed, except for the directory
/// itself. Blocks; meant for the start of the program.
///
/// # Errors
/// The system's error if the directory cannot be read.
pub fn narrow(root: &Path) -> io::Result<Narrowed> {
    let mut found = Narrowed::default();
    let mut folders = vec![root.to_owned()];
    found.narrow_one(root, &fs::metadata(root)?);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            let metadata = match entry.metadata() {
                // Removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata?,
            };
            if metadata.is_symlink() {
                continue;
            }
            found.narrow_one(&path, &metadata);
            if metadata.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(found)
}

/// As [`narrow`], for one file.
///
/// # Errors
/// The system's error if the file's metadata cannot be read.
pub fn narrow_file(path: &Path) -> io::Result<Narrowed> {
    let mut found = Narrowed::default();
    found.narrow_one(path, &fs::metadata(path)?);
    Ok(found)
}

impl Narrowed {
    fn narrow_one(&mut self, path: &Path, metadata: &fs::Metadata) {
        let mode = system::mode(metadata);
        if mode & OTHERS == 0 {
            return;
        }
        if system::is_own(metadata) && system::set_mode(path, mode & !OTHERS).is_ok() {
            self.narrowed += 1;
        } else {
            self.left += 1;
            self.first_left.get_or_insert_with(|| path.to_owned());
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "tests arrange files")]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::env::OsDisk;
    use crate::env::Tasks;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    #[tokio::test]
    async fn disk_makes_folders_and_files_for_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("new/data");
        let disk = OsDisk::open(&root, Tasks::new()).unwrap();
        disk.create("extents/3f/one.x").await.unwrap();
        for (path, expected) in [
            ("", FOLDER),
            ("extents", FOLDER),
            ("extents/3f", FOLDER),
            ("extents/3f/one.x", FILE),
            ("lock", FILE),
        ] {
            assert_eq!(mode(&root.join(path)), expected, "{path}");
        }
    }

    #[test]
    fn wide_modes_are_narrowed_and_files_of_other_users_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("data");
        fs::create_dir_all(root.join("inner")).unwrap();
        let outside = folder.path().join("outside");
        for (path, mode) in
            [(root.join("inner/wide"), 0o664), (root.join("own"), 0o600), (outside.clone(), 0o644)]
        {
            fs::write(&path, "x").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        for path in [root.clone(), root.join("inner")] {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
        let expected = Narrowed { narrowed: 3, ..Narrowed::default() };
        assert_eq!(narrow(&root).unwrap(), expected);
        assert_eq!(narrow(&root).unwrap(), Narrowed::default());
        assert_eq!([mode(&root), mode(&root.join("inner"))], [FOLDER; 2]);
        assert_eq!([mode(&root.join("inner/wide")), mode(&root.join("own"))], [FILE; 2]);
        assert_eq!(mode(&outside), 0o644, "a link is not followed");
        // Only the superuser can give a file away.
        let other = root.join("other");
        fs::write(&other, "x").unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
        if std::os::unix::fs::chown(&other, Some(12345), None).is_ok() {
            let expected = Narrowed { narrowed: 0, left: 1, first_left: Some(other.clone()) };
            assert_eq!(narrow(&root).unwrap(), expected);
            assert_eq!(mode(&other), 0o644);
        }
    }
}
