//! Folders of the machine's disk: made durable, synced and listed.

use std::fs;
use std::fs::File;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::env::modes;

/// Makes a folder and those above it that are missing, each durable in the one above: for files
/// of other libraries. Blocks.
///
/// # Errors
/// The system's.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    create_folder(&std::path::absolute(folder)?)
}

/// Makes the name of a data directory durable. Whoever made the directory may have died before the
/// sync of its name, and a power failure would take everything below it.
pub(super) fn sync_name(root: &Path) -> io::Result<()> {
    let Some(parent) = root.parent() else { return Ok(()) };
    if fs::metadata(parent)?.dev() != fs::metadata(root)?.dev() {
        // The name of a mount point is not on this file system.
        return Ok(());
    }
    match sync_folder(parent) {
        // An operator's folder that the server may not read, or that cannot be synced.
        Err(error)
            if [io::ErrorKind::PermissionDenied, io::ErrorKind::InvalidInput]
                .contains(&error.kind()) =>
        {
            Ok(())
        }
        result => result,
    }
}

/// Creates a folder and its ancestors, each made durable in its parent: a file in it is durable
/// after a sync of the file and of this folder alone.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let Some(parent) = folder.parent() else { return Ok(()) };
    create_folder(parent)?;
    match fs::DirBuilder::new().mode(modes::FOLDER).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => sync_folder(parent),
    }
}

pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
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
    use super::*;

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
