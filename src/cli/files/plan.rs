//! Plans the copies from the arguments of `blockyard cp`.

use std::collections::HashSet;
use std::collections::VecDeque;
use std::path::Path;
use std::path::PathBuf;

use crate::env::user_files;
use crate::env::user_files::UserFileFacts;
use crate::env::user_files::UserFileKind;
use crate::protocol::azure::answers::Listed;

use super::copying::Copying;
use super::download::Download;
use super::error::FilesError;
use super::listing::Listing;
use super::listing::Lookup;
use super::names::blob_name;
use super::names::last_part;
use super::names::safe_path;
use super::place::Place;
use super::place::Remote;
use super::transfer::Transfer;
use super::upload::Upload;
use super::walk::Walk;
use super::work::Files;
use super::work::Job;
use super::work::Work;

/// How the sources are meant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// Whether folders are copied.
    pub(super) recursive: bool,
    /// Whether there are several sources, each of which keeps its name.
    pub(super) several: bool,
}

/// Plans the work for a source.
///
/// # Errors
/// [`FilesError`].
pub(super) async fn plan(
    copying: &Copying,
    source: Place,
    target: &Place,
    manner: Manner,
) -> Result<Work, FilesError> {
    match (source, target) {
        (Place::Local(path), Place::Remote(target)) => of_path(copying, path, target, manner).await,
        (Place::Remote(source), Place::Local(target)) => {
            let file = user_files::user_file(target);
            let file = file.map_err(|error| disk(target, error))?;
            let is_folder = is_folder(target, file) || manner.several;
            to_path(copying, source, target, is_folder, manner).await
        }
        (Place::Remote(source), Place::Remote(target)) => {
            across(copying, source, target, manner).await
        }
        (Place::Standard, Place::Remote(target)) if is_blob(target) && !manner.several => {
            target.container()?;
            Ok(Work::one(Job::Input(target.clone())))
        }
        (Place::Standard, Place::Remote(_)) => {
            Err(usage("standard input becomes one blob: give its name as DST"))
        }
        (Place::Local(_) | Place::Standard, Place::Local(_)) => {
            Err(usage("none of both is a blob: name one as by://CONTAINER/BLOB or by its URL"))
        }
        (_, Place::Standard) => Err(usage("only a blob can be copied to standard output")),
    }
}

/// Whether no two sources have the same target: one would replace the other.
///
/// # Errors
/// [`FilesError::Usage`].
pub(super) fn differ(works: &VecDeque<Work>) -> Result<(), FilesError> {
    let mut targets = HashSet::new();
    for work in works {
        let target = work.target();
        if targets.contains(&target) {
            let text = format!("two sources would become {}: copy each alone", target.display());
            return Err(FilesError::Usage(text));
        }
        targets.insert(target);
    }
    Ok(())
}

fn usage(text: &str) -> FilesError {
    FilesError::Usage(text.to_owned())
}

fn disk(path: &Path, error: std::io::Error) -> FilesError {
    FilesError::Disk { path: path.to_owned(), error }
}

/// Whether a path is meant as a folder: it is one, or ends in a separator.
fn is_folder(path: &Path, found: Option<UserFileFacts>) -> bool {
    found.is_some_and(|file| file.kind == UserFileKind::Folder)
        || path
            .as_os_str()
            .as_encoded_bytes()
            .last()
            .is_some_and(|b| std::path::is_separator(*b as char))
}

/// Whether a blob is named, rather than a container or a folder.
fn is_blob(place: &Remote) -> bool {
    !place.name.is_empty() && !place.name.ends_with('/')
}

/// The blob for something with this name.
fn named(target: &Remote, name: &str, several: bool) -> Remote {
    if is_blob(target) && !several {
        target.clone()
    } else {
        target.with(format!("{}{name}", target.prefix()))
    }
}

async fn of_path(
    copying: &Copying,
    path: PathBuf,
    target: &Remote,
    manner: Manner,
) -> Result<Work, FilesError> {
    target.container()?;
    let file = user_files::user_file(&path).map_err(|error| disk(&path, error))?;
    let missing = || std::io::Error::new(std::io::ErrorKind::NotFound, "no such file or folder");
    let file = file.ok_or_else(|| disk(&path, missing()))?;
    // The folder `.` or `..` has no name.
    let name = path.file_name().map(Path::new).map(blob_name).transpose();
    let name = name.map_err(|why| FilesError::Usage(format!("{}: {why}", path.display())))?;
    if file.kind != UserFileKind::Folder {
        let target = named(target, &name.unwrap_or_default(), manner.several);
        let existing = copying.service.find(&target).await?;
        return Ok(Work::one(Job::Upload(Upload { path, file, target, existing })));
    }
    if !manner.recursive {
        return Err(FilesError::Usage(format!("{} is a folder: give --recursive", path.display())));
    }
    let target = match (manner.several, name) {
        (true, Some(name)) => named(target, &name, true),
        (true, None) => return Err(usage("of several sources, each needs a name")),
        (false, _) => target.clone(),
    };
    let walk = Walk::new(&path).map_err(|error| disk(&path, error))?;
    let list = Listing::new(&target, target.prefix(), false);
    let (ready, lookup) = (VecDeque::new(), Box::new(Lookup::new(list)));
    Ok(Work::Files(Box::new(Files { walk: Some(walk), ready, folder: path, target, lookup })))
}

/// A folder of blobs with its content, or the blob of that name.
async fn of_remote(
    copying: &Copying,
    source: &Remote,
    manner: Manner,
) -> Result<Option<Listing>, FilesError> {
    source.container()?;
    if !manner.recursive {
        if is_blob(source) {
            return Ok(None);
        }
        let text = format!("{} is a container or folder: give --recursive", source.url());
        return Err(FilesError::Usage(text));
    }
    let mut list = Listing::new(source, source.prefix(), false);
    match list.next_blob(&copying.service).await? {
        Some(first) => {
            list.put_back(Listed::Blob(first));
            Ok(Some(list))
        }
        None if is_blob(source) => Ok(None),
        None => Ok(Some(list)),
    }
}

/// A blob that must exist.
async fn existing(
    copying: &Copying,
    source: &Remote,
) -> Result<crate::protocol::azure::answers::ListedBlob, FilesError> {
    let answer = copying.service.properties(source).await?;
    Ok(super::blobs::facts(&source.name, &answer))
}

async fn to_path(
    copying: &Copying,
    source: Remote,
    target: &Path,
    is_folder: bool,
    manner: Manner,
) -> Result<Work, FilesError> {
    let name = last_part(source.name.trim_end_matches('/')).to_owned();
    let inside = |name: &str| {
        let why = |why| FilesError::Usage(format!("{}: {why}; give a file as DST", source.url()));
        safe_path(target, name).map_err(why)
    };
    if let Some(list) = of_remote(copying, &source, manner).await? {
        let name = if name.is_empty() { source.container()? } else { &name };
        let folder = if manner.several { inside(name)? } else { target.to_owned() };
        return Ok(Work::Blobs(Work::blobs(list, &source, folder)));
    }
    let blob = existing(copying, &source).await?;
    let (path, folder) = match is_folder {
        true => (inside(&name)?, Some(target.to_owned())),
        false => (target.to_owned(), None),
    };
    Ok(Work::one(Job::Download(Download { source, blob, path, folder })))
}

async fn across(
    copying: &Copying,
    source: Remote,
    target: &Remote,
    manner: Manner,
) -> Result<Work, FilesError> {
    target.container()?;
    let name = last_part(source.name.trim_end_matches('/')).to_owned();
    if let Some(list) = of_remote(copying, &source, manner).await? {
        let name = if name.is_empty() { source.container()? } else { &name };
        let target = if manner.several { named(target, name, true) } else { target.clone() };
        let together =
            source.endpoint.is_same_place(&target.endpoint) && source.container == target.container;
        if together && target.prefix().starts_with(&source.prefix()) {
            return Err(usage("DST lies in SRC: the copy would copy itself"));
        }
        let lookup = Box::new(Lookup::new(Listing::new(&target, target.prefix(), false)));
        let blobs = Work::blobs(list, &source, PathBuf::new());
        return Ok(Work::Across(blobs, target, lookup));
    }
    let blob = existing(copying, &source).await?;
    let target = named(target, &name, manner.several);
    let existing = copying.service.find(&target).await?;
    Ok(Work::one(Job::Transfer(Transfer { source, blob, target, existing })))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::cli::files::connect::Login;
    use crate::cli::files::connect::LoginArgs;
    use crate::protocol::azure::answers::ListedBlob;

    fn blob(name: &str) -> Remote {
        let args = LoginArgs { endpoint: None, account: None, connection_string: None, ca: None };
        let login = Login::new(&args).unwrap();
        Place::parse(OsStr::new(name), &login).unwrap().remote().unwrap()
    }

    #[test]
    fn two_sources_with_one_target_are_refused() {
        let input = |name| Work::one(Job::Input(blob(name)));
        let download = |path: &str| {
            let (source, blob) = (blob("by://box/a"), ListedBlob::default());
            let job = Download { source, blob, path: path.into(), folder: None };
            Work::one(Job::Download(job))
        };
        let folder = |path: &str| {
            let source = blob("by://box/a");
            let list = Listing::new(&source, source.prefix(), false);
            Work::Blobs(Work::blobs(list, &source, path.into()))
        };
        differ(&[input("by://box/a"), input("by://box/b"), input("by://bag/a")].into()).unwrap();
        differ(&[download("to/a"), download("to/b"), folder("to/c")].into()).unwrap();
        for same in [
            [input("by://box/a"), input("by://box/a")],
            [download("to/a"), download("to/a")],
            [download("to/a"), folder("to/a")],
            [folder("to/a"), folder("to/a/")],
        ] {
            let refused = differ(&same.into()).unwrap_err();
            assert!(refused.is_of_usage(), "{refused}");
        }
    }
}
