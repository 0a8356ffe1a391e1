//! Checks that a list of data directories is that of one store. It reads small files only, and
//! changes nothing. For `blockyard check`: a wrong list is a mistake of the caller and no damage.

use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;

use crate::capacity::FORMAT_FILE;
use crate::coordinator::embedded::FILE_NAME;
use crate::env::Env;
use crate::node::config::ConfigError;
use crate::node::error::NodeError;
use crate::node::paths::same;
use crate::node::storage::coordinator_copy;

use super::error::DiskListError;
use super::list;
use super::list::Given;

/// The part of a `format` file that says where a disk belongs.
#[derive(Debug, Deserialize)]
struct Place {
    store: String,
    number: usize,
}

/// Checks the list as far as the directories alone allow.
///
/// # Errors
/// [`NodeError::NoData`], [`NodeError::DiskList`]; [`NodeError::Config`] for a directory given
/// twice.
pub fn check(data: &[PathBuf]) -> Result<(), NodeError> {
    for (at, path) in data.iter().enumerate() {
        if !path.is_dir() {
            return Err(NodeError::NoData { path: path.clone() });
        }
        if data.iter().take(at).any(|before| same(before, path)) {
            return Err(ConfigError::DataTwice(path.clone()).into());
        }
        // A directory whose `format` is lost still has its extents: that is damage.
        if ![FORMAT_FILE, "extents", FILE_NAME].iter().any(|name| path.join(name).exists()) {
            return Err(DiskListError::NoStore(path.clone()).into());
        }
    }
    let Some(first) = data.first() else { return Err(ConfigError::DataEmpty.into()) };
    if !first.join(FILE_NAME).is_file() {
        let first = first.clone();
        if let Some(right) = data.iter().find(|path| path.join(FILE_NAME).is_file()) {
            return Err(DiskListError::Order { first, right: right.clone() }.into());
        }
        if let Some(Place { number, .. }) = place(&first)
            && number > 0
        {
            return Err(DiskListError::FirstMissing { first, number }.into());
        }
    }
    let stores = || data.iter().filter_map(|path| place(path).map(|place| (path, place.store)));
    if let Some((first, store)) = stores().next()
        && let Some((path, _)) = stores().find(|(_, other)| *other != store)
    {
        let (path, first) = (path.clone(), first.clone());
        return Err(DiskListError::OtherStore { path, first }.into());
    }
    Ok(())
}

/// Compares the list with the one that the coordinator keeps. A coordinator's file or a `format`
/// file that cannot be read says nothing about the list: that is damage.
///
/// # Errors
/// As [`list::check`].
pub async fn check_remembered(given: Given<'_>, env: &Env) -> Result<(), NodeError> {
    let data = given.data;
    let numbers: Vec<_> = data.iter().map(|path| number_of(path)).collect();
    if numbers.iter().any(Option::is_none) {
        return Ok(());
    }
    let Ok(coordinator) = coordinator_copy(data, env).await else { return Ok(()) };
    match list::check(&coordinator, given, &numbers, false).await {
        Err(NodeError::CoordinatorFailed(_)) | Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The number that a directory's `format` file gives the disk.
fn number_of(path: &Path) -> Option<usize> {
    place(path).map(|Place { number, .. }| number)
}

fn place(path: &Path) -> Option<Place> {
    let text = std::fs::read_to_string(path.join(FORMAT_FILE)).ok()?;
    serde_json::from_str(&text).ok()
}
