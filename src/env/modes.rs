//! File modes: what a store keeps is for the user that runs the node.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use rustix::fs::Mode;

/// The mode of a folder of a store.
pub(super) const FOLDER: u32 = 0o700;
/// The mode of a file of a store.
pub(super) const FILE: u32 = 0o600;
/// What group and others may do.
const OTHERS: u32 = 0o077;

/// Has every file and folder that the process makes from now on be for its user alone: those of
/// libraries too. For the start of the program: the setting is the process's.
pub fn make_files_private() {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// What [`narrow`] found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Narrowed {
    /// Files and folders that were open to others, and are not any more.
    pub narrowed: usize,
    /// Files and folders that stay open to others, since another user owns them or the system
    /// refuses.
    pub left: usize,
    /// The first of these.
    pub first_left: Option<PathBuf>,
}

/// Takes the rights of group and others from a data directory and all that is in it. What another
/// user owns is left as it is. Links are not followed, but for the directory itself. Blocks: for
/// the start of the program.
///
/// # Errors
/// The system's, when the directory cannot be read.
pub fn narrow(root: &Path) -> io::Result<Narrowed> {
    let mut found = Narrowed::default();
    let mut folders = vec![root.to_owned()];
    found.look_at(root, &fs::metadata(root)?);
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
            found.look_at(&path, &metadata);
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
/// The system's, when the file cannot be looked at.
pub fn narrow_file(path: &Path) -> io::Result<Narrowed> {
    let mut found = Narrowed::default();
    found.look_at(path, &fs::metadata(path)?);
    Ok(found)
}

impl Narrowed {
    fn look_at(&mut self, path: &Path, metadata: &fs::Metadata) {
        let mode = metadata.mode() & 0o7777;
        if mode & OTHERS == 0 {
            return;
        }
        let mine = metadata.uid() == rustix::process::geteuid().as_raw();
        let narrower = fs::Permissions::from_mode(mode & !OTHERS);
        if mine && fs::set_permissions(path, narrower).is_ok() {
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
    fn wide_modes_are_narrowed_and_what_another_user_owns_is_told() {
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
