//! `blockyard rm`: deletes blobs, containers and local files.

use std::ffi::OsString;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use clap::Args;
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::json;

use crate::cli::escaped::shown;
use crate::cli::output::json_line;
use crate::cli::output::print;
use crate::cli::output::warn;

use super::connect::ConnectArgs;
use super::connect::Login;
use super::copying::parallel;
use super::error::CallError;
use super::error::FilesError;
use super::error::path_shown;
use super::listing::Listing;
use super::local_rm::removable;
use super::local_rm::remove;
use super::place::Named;
use super::place::Remote;
use super::place::named;
use super::service::Service;

/// Arguments of `rm`.
#[derive(Args, Debug)]
pub struct RmArgs {
    /// Blobs, folders of blobs or containers, as URLs or by://CONTAINER/BLOB, and local paths
    #[arg(value_name = "PLACE", required = true)]
    pub places: Vec<OsString>,
    /// Delete folders: all blobs whose names begin with PLACE and a slash, or a local folder with
    /// everything in it
    #[arg(long, short)]
    pub recursive: bool,
    /// Delete containers with everything in them; needs --recursive
    #[arg(long, requires = "recursive")]
    pub container: bool,
    /// Delete the snapshots of blobs too; a blob with snapshots is not deleted without it
    #[arg(long)]
    pub snapshots: bool,
    /// Only print what would be deleted
    #[arg(long)]
    pub dry_run: bool,
    /// Requests at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = parallel)]
    pub parallel: usize,
    /// Print a JSON object for each deletion
    #[arg(long)]
    pub json: bool,
    /// The endpoint and the account.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// A target to delete.
#[derive(Debug)]
enum Target {
    Blob(Remote),
    Folder(Remote),
    Container(Remote),
    /// A path that may be removed.
    Local(PathBuf),
}

/// Counts of deletions.
#[derive(Debug, Default)]
struct Counts {
    deleted: AtomicU64,
    failed: AtomicU64,
}

/// Runs `blockyard rm`.
///
/// # Errors
/// [`FilesError`].
pub(in crate::cli) async fn rm(args: &RmArgs) -> Result<(), FilesError> {
    let login = Login::new(&args.connect.login)?;
    // All are checked before the first is deleted.
    let mut targets = Vec::new();
    let service = Service::new(&args.connect)?;
    for place in named(&args.places, &login)? {
        targets.push(match place {
            Named::Remote(place) => target(place, args)?,
            Named::Local(path) => local_target(&service, &path, args).await?,
        });
    }
    let counts = Counts::default();
    for target in &targets {
        match target {
            Target::Blob(blob) => delete(&service, args, &counts, blob).await,
            Target::Folder(folder) => delete_folder(&service, args, &counts, folder).await?,
            Target::Container(container) => {
                let deleted = match args.dry_run {
                    true => Ok(()),
                    false => service.delete_container(container).await,
                };
                report(args, &counts, &container.url(), deleted.map_err(|error| advised(&error)));
            }
            Target::Local(path) => delete_local(&service, args, &counts, path).await,
        }
    }
    let (deleted, failed) = (counts.deleted.load(Relaxed), counts.failed.load(Relaxed));
    if !args.json {
        let word = if args.dry_run { "would be deleted" } else { "deleted" };
        let shown = warn(&format!("{deleted} {word}\n"));
        shown.map_err(|error| FilesError::Wrong(error.to_string()))?;
    }
    match failed {
        0 => Ok(()),
        failed => Err(FilesError::Failed { failed, all: deleted + failed }),
    }
}

/// The target of a place, unless it may be more than the user intends.
fn target(place: Remote, args: &RmArgs) -> Result<Target, FilesError> {
    place.container()?;
    let url = place.url();
    let refused = |why: &str| Err(FilesError::Usage(format!("{url}: {why}")));
    match (place.name.is_empty(), args.container) {
        (true, true) => Ok(Target::Container(place)),
        (true, false) => {
            refused("is a container: --recursive --container deletes it with all blobs")
        }
        (false, true) => refused("is not a container; leave out --container to delete blobs"),
        (false, false) if args.recursive => Ok(Target::Folder(place)),
        (false, false) if place.name.ends_with('/') => refused("is a folder: give --recursive"),
        (false, false) => Ok(Target::Blob(place)),
    }
}

/// The target of a local path, unless it may be more than the user intends.
async fn local_target(service: &Service, path: &Path, args: &RmArgs) -> Result<Target, FilesError> {
    let refused = |why: &str| Err(FilesError::Usage(format!("{}: {why}", path_shown(path))));
    if args.container {
        return refused("is not a container; leave out --container to delete files");
    }
    let (given, recursive) = (path.to_owned(), args.recursive);
    match service.on_disk(path, move || removable(&given, recursive)).await? {
        Ok(path) => Ok(Target::Local(path)),
        Err(why) => refused(why),
    }
}

/// Deletes a file, or a folder with all that is in it.
async fn delete_local(service: &Service, args: &RmArgs, counts: &Counts, path: &Path) {
    let (root, recursive, dry_run) = (path.to_owned(), args.recursive, args.dry_run);
    let removing = move || Ok(remove(&root, recursive, dry_run));
    let removed = match service.on_disk(path, removing).await {
        Ok((names, removed)) => {
            names.iter().for_each(|name| report(args, counts, name, Ok(())));
            removed.map_err(|error| FilesError::Disk { path: path.to_owned(), error })
        }
        Err(error) => Err(error),
    };
    if let Err(error) = removed {
        report(args, counts, &path.to_string_lossy(), Err(error.to_string()));
    }
}

/// Deletes the content of a folder. A folder without content is refused: its name may be mistyped.
async fn delete_folder(
    service: &Service,
    args: &RmArgs,
    counts: &Counts,
    folder: &Remote,
) -> Result<(), FilesError> {
    let list = Listing::new(folder, folder.prefix(), false);
    let found = &AtomicU64::new(0);
    let names = stream::unfold(Some(list), |list| async move {
        let mut list = list?;
        match list.next_blob(service).await {
            Ok(Some(blob)) => Some((Ok(blob.name), Some(list))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    });
    let broken: Vec<FilesError> = names
        .map(|name: Result<String, FilesError>| async move {
            found.fetch_add(1, Relaxed);
            delete(service, args, counts, &folder.with(name?)).await;
            Ok(())
        })
        .buffer_unordered(args.parallel)
        .filter_map(|done: Result<(), FilesError>| async move { done.err() })
        .collect()
        .await;
    match broken.into_iter().next() {
        Some(error) => Err(error),
        None if found.load(Relaxed) == 0 => {
            let text = format!("{}: there is no blob in this folder", folder.url());
            Err(FilesError::Wrong(text))
        }
        None => Ok(()),
    }
}

async fn delete(service: &Service, args: &RmArgs, counts: &Counts, blob: &Remote) {
    let deleted = match args.dry_run {
        true => service.properties(blob).await.map(drop),
        false => service.delete_blob(blob, args.snapshots).await,
    };
    report(args, counts, &blob.url(), deleted.map_err(|error| advised(&error)));
}

/// A refusal, with what can be done.
fn advised(error: &CallError) -> String {
    let advice = match error.code.as_str() {
        "SnapshotsPresent" => "; --snapshots deletes them too",
        _ => "",
    };
    format!("{error}{advice}")
}

/// Counts and prints a deletion, or why it failed.
fn report(args: &RmArgs, counts: &Counts, name: &str, deleted: Result<(), String>) {
    match deleted {
        Ok(()) => {
            counts.deleted.fetch_add(1, Relaxed);
            if args.json {
                let key = if args.dry_run { "would_delete" } else { "deleted" };
                drop(print(&json_line(&json!({ key: name }))));
            } else if args.dry_run {
                drop(print(&format!("{}\n", shown(name))));
            }
        }
        Err(why) => {
            counts.failed.fetch_add(1, Relaxed);
            drop(warn(&format!("blockyard: FAILED {why}\n")));
            if args.json {
                drop(print(&json_line(&json!({ "failed_name": name, "why": why }))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::cli::files::connect::LoginArgs;
    use crate::cli::files::place::Place;

    fn args(recursive: bool, container: bool) -> RmArgs {
        let connect = ConnectArgs {
            login: LoginArgs { endpoint: None, account: None, connection_string: None, ca: None },
            retries: 0,
        };
        RmArgs {
            places: Vec::new(),
            recursive,
            container,
            snapshots: false,
            dry_run: false,
            parallel: 1,
            json: false,
            connect,
        }
    }

    #[test]
    fn containers_and_folders_are_deleted_only_when_both_flags_say_so() {
        for (place, recursive, container, wanted) in [
            ("by://box/a", false, false, "Blob"),
            ("by://box/a", true, false, "Folder"),
            ("by://box/a/", true, false, "Folder"),
            ("by://box/a/", false, false, ""),
            ("by://box", false, false, ""),
            ("by://box/", true, false, ""),
            ("by://box", true, true, "Container"),
            ("by://box/a", true, true, ""),
            ("by://", true, true, ""),
        ] {
            let args = args(recursive, container);
            let login = Login::new(&args.connect.login).unwrap();
            let parsed = Place::parse(OsStr::new(place), &login).unwrap().remote().unwrap();
            let found = match target(parsed, &args) {
                Ok(Target::Blob(_)) => "Blob",
                Ok(Target::Folder(_)) => "Folder",
                Ok(Target::Container(_)) => "Container",
                Ok(Target::Local(_)) => "Local",
                Err(error) => {
                    assert!(error.is_of_usage(), "{error}");
                    ""
                }
            };
            assert_eq!(found, wanted, "{place} {recursive} {container}");
        }
    }
}
