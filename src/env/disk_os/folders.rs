//! Folders of the machine's disk: creating them durably, syncing, listing.

use std::fs;
use std::io;
use std::path::Path;

use crate::env::system;
use crate::env::system::sync_folder;

/// Makes a folder and its missing ancestors, each durable in its parent. For the files of
/// libraries. Blocks.
///
/// # Errors
/// The system's.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    create_folder(&std::path::absolute(folder)?)
}

/// Makes the name of a data directory durable. The process that made the directory may have been
/// killed before it synced the name. A power failure would then remove the directory with all its
/// files.
pub(super) fn sync_name(root: &Path) -> io::Result<()> {
    let Some(parent) = root.parent() else { return Ok(()) };
    if system::device(&fs::metadata(parent)?) != system::device(&fs::metadata(root)?) {
        // The name of a mount point is not on this file system.
        return Ok(());
    }
    match sync_folder(parent) {
        // A folder of the operator that the server may not read, or that cannot be synced.
        Err(error)
            if [io::ErrorKind::PermissionDenied, io::ErrorKind::InvalidInput]
                .contains(&error.kind()) =>
        {
            Ok(())
        }
        result => result,
    }
}

/// Creates a folder and its ancestors, each durable in its parent. So a file in the folder is
/// durable after a sync of the file and of this folder. A folder that exists counts as durable. A
/// new folder whose name could not be synced is removed; if that fails, it is logged.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    create_folder_synced_by(folder, &sync_folder)
}

fn create_folder_synced_by(
    folder: &Path,
    sync: &dyn Fn(&Path) -> io::Result<()>,
) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let Some(parent) = folder.parent() else { return Ok(()) };
    create_folder_synced_by(parent, sync)?;
    match system::private_folder(&mut fs::DirBuilder::new()).create(folder) {
        Ok(()) => sync(parent).inspect_err(|_| {
            // The sync needs a file descriptor and can fail where the creation does not. The folder
            // is removed because a retry takes an existing folder for a durable one. A folder with
            // files in it stays.
            if let Err(error) = fs::remove_dir(folder) {
                tracing::warn!(
                    folder = %folder.display(), %error,
                    "a new folder was not removed, and its name may be lost in a power failure"
                );
            }
        }),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => sync(parent),
        Err(error) => Err(error),
    }
}

pub(super) fn list_into(root: &Path, folder: &Path, names: &mut Vec<String>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            list_into(root, &path, names)?;
        } else if let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str) {
            names.push(name.to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use rustix::io::Errno;

    use super::*;

    #[test]
    fn folder_whose_name_was_not_synced_is_made_once_more() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        let synced = RefCell::new(Vec::new());
        for good in 0..2_u32 {
            // This many syncs of parent folders succeed; then there is no file descriptor left.
            let left = Cell::new(good);
            let refused = create_folder_synced_by(&inner, &|above| {
                let now = left.get();
                left.set(now.checked_sub(1).ok_or(Errno::MFILE)?);
                synced.borrow_mut().push(above.to_owned());
                sync_folder(above)
            });
            refused.unwrap_err();
        }
        let sync = |above: &Path| {
            synced.borrow_mut().push(above.to_owned());
            sync_folder(above)
        };
        create_folder_synced_by(&inner, &sync).unwrap();
        create_folder_synced_by(&inner, &sync).unwrap();
        assert!(inner.is_dir());
        assert_eq!(synced.take(), [folder.path().to_owned(), folder.path().join("a")]);
    }

    #[test]
    fn folder_is_made_with_those_above_it_and_may_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        make_folder(&inner).unwrap();
        make_folder(&inner).unwrap();
        sync_name(&inner).unwrap();
        sync_name(Path::new("/")).unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        make_folder(&folder.path().join("file/below")).unwrap_err();
    }
}
