//! The list of a node's disks, which the coordinator keeps. A start without one of the data
//! directories, for example because a disk is not mounted, fails and names the directory before it
//! opens anything. No disk is added by accident.

use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;

use bytes::Bytes;
use serde::Deserialize;
use serde::Serialize;

use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::Op;
use crate::node::error::NodeError;
use crate::node::paths::absolute;
use crate::node::paths::same;

#[cfg(test)]
mod tests;

/// The coordinator's key. Its value is [`Stored`] as JSON; in version 1 it was an array of the
/// directories, in order.
pub(in crate::node) const KEY: &[u8] = b"node/disks";
/// The key that a store of a node of a cluster has, beside the list (`storage/owner.rs`).
pub(in crate::node) const CLUSTER_KEY: &[u8] = b"node/cluster";
/// What both keys begin with.
const PREFIX: &[u8] = b"node/";
/// The newest version of the value.
const VERSION: u32 = 2;

/// A disk of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskRecord {
    /// Its directory, as last given.
    pub path: String,
    /// Its number, as its `format` file has it. Unknown in values of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// Its use.
    pub state: State,
}

/// The use of a disk of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Everything.
    InUse,
    /// Nothing new. It is being emptied, or is empty.
    Draining,
    /// No use: it is no longer a disk of the store. Its number is not used again.
    Removed,
}

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    version: u32,
    disks: Vec<DiskRecord>,
}

/// The directories of a start.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// All directories of the store.
    pub data: &'a [PathBuf],
    /// Directories among `data` that may be new to the store.
    pub add: &'a [PathBuf],
    /// Directories of disks that the start does without.
    pub without: &'a [PathBuf],
}

/// The disks that a start does without.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Absent {
    /// Numbers of disks that are not given, and need not be.
    pub numbers: BTreeSet<usize>,
    /// Whether one of them holds a part of the store.
    pub without: bool,
}

/// The numbers that the disks of a start have in the store, in the order of its directories.
/// `None`: the disk is not yet part of the store.
pub(crate) type Numbers = [Option<usize>];

/// Refuses directories that are not those of the store's disks: a missing one unless it is in
/// `without`, an empty one in the place of a disk, a removed one, and a new one that is not in
/// `add`. Refuses also the store of a node of a cluster, unless it `is_of_cluster`.
///
/// # Errors
/// [`NodeError::DiskMissing`], [`NodeError::DiskEmpty`], [`NodeError::DiskUnknown`],
/// [`NodeError::DiskRemoved`], [`NodeError::DiskNotKnown`], [`NodeError::OfCluster`];
/// [`NodeError::CoordinatorFailed`].
pub(crate) async fn check(
    coordinator: &dyn Coordinator,
    given: Given<'_>,
    numbers: &Numbers,
    is_of_cluster: bool,
) -> Result<Absent, NodeError> {
    let found = coordinator.range(PREFIX).await?.entries;
    let value = |wanted: &[u8]| {
        found.iter().find(|(key, _)| key.as_ref() == wanted).map(|(_, found)| &found.value)
    };
    if !is_of_cluster && value(CLUSTER_KEY).is_some() {
        let path = given.data.first().cloned().unwrap_or_default();
        return Err(NodeError::OfCluster { path });
    }
    let known = value(KEY).map_or(Ok(Vec::new()), |value| parse_known(value))?;
    let is_known = |path: &PathBuf| known.iter().any(|disk| is_at(disk, path) && is_used(disk));
    if let Some(path) = given.without.iter().find(|path| !known.is_empty() && !is_known(path)) {
        let known: Vec<&str> =
            known.iter().filter(|disk| is_used(disk)).map(|disk| disk.path.as_str()).collect();
        return Err(NodeError::DiskNotKnown { path: path.clone(), known: known.join(", ") });
    }
    let mut absent = Absent::default();
    for disk in known.iter().filter(|disk| !is_used(disk)) {
        let at = numbers.iter().position(|number| number.is_some() && *number == disk.number);
        if let Some(path) = at.and_then(|at| given.data.get(at)) {
            return Err(NodeError::DiskRemoved { path: path.clone() });
        }
        absent.numbers.extend(disk.number);
    }
    let used: Vec<&DiskRecord> = known.iter().filter(|disk| is_used(disk)).collect();
    let mut missing = Vec::new();
    for (place, disk) in used.iter().enumerate() {
        let is_given = match disk.number {
            Some(number) => numbers.contains(&Some(number)),
            // A list of version 1: directories count by their place.
            None => place < given.data.len(),
        };
        // Compared by path only if the number is unknown, as in a list of version 1.
        let is_here = match disk.number {
            Some(_) => is_given,
            None => given.data.iter().any(|path| is_at(disk, path)),
        };
        if given.without.iter().any(|path| is_at(disk, path)) && !is_here {
            absent.numbers.insert(disk.number.unwrap_or(place));
            absent.without = true;
        } else if !is_given {
            missing.push(disk.path.as_str());
        }
    }
    let each = given.data.iter().zip(numbers);
    let new: Vec<&PathBuf> =
        each.filter(|(_, number)| number.is_none()).map(|(path, _)| path).collect();
    let present = given.data.len() - new.len() + usize::from(absent.without);
    match new.first() {
        Some(path) if !missing.is_empty() || present < used.len().min(1) => {
            Err(NodeError::DiskEmpty { path: (*path).clone(), known: used.len() })
        }
        Some(path) if used.iter().all(|disk| disk.number.is_none()) && present < used.len() => {
            Err(NodeError::DiskEmpty { path: (*path).clone(), known: used.len() })
        }
        None if !missing.is_empty() => Err(NodeError::DiskMissing {
            given: given.data.len(),
            known: used.len(),
            missing: missing.join(", "),
        }),
        Some(_) | None => {
            let unasked = new.into_iter().find(|path| !given.add.iter().any(|add| same(add, path)));
            unasked.map_or(Ok(absent), |path| Err(NodeError::DiskUnknown { path: path.clone() }))
        }
    }
}

/// The number that the list has for this directory, for a disk that cannot be read. `None`: the
/// list has no disk there, or not its number.
///
/// # Errors
/// As the coordinator's.
pub(crate) async fn number_at(
    coordinator: &dyn Coordinator,
    path: &Path,
) -> Result<Option<usize>, coordinator::Error> {
    let known = read(coordinator).await?;
    let here = known.iter().find(|disk| is_used(disk) && is_at(disk, path));
    Ok(here.and_then(|disk| disk.number))
}

/// Stores the list with the directories of this start, which were checked.
///
/// # Errors
/// [`NodeError::CoordinatorFailed`].
pub(crate) async fn remember(
    coordinator: &dyn Coordinator,
    given: Given<'_>,
    numbers: &Numbers,
) -> Result<(), NodeError> {
    let known = read(coordinator).await?;
    let mut now: Vec<DiskRecord> = Vec::new();
    for (path, &number) in given.data.iter().zip(numbers) {
        let before = known.iter().find(|disk| disk.number.is_some() && disk.number == number);
        let state = before.map_or(State::InUse, |disk| disk.state);
        now.push(DiskRecord { path: absolute(path).display().to_string(), number, state });
    }
    // Disks that are not given, in their former order.
    for (place, disk) in known.iter().enumerate() {
        let left_out = given.without.iter().any(|path| is_at(disk, path));
        let number = disk.number.or(left_out.then_some(place));
        if number.is_some() && (left_out || !is_used(disk)) {
            let is_here = now.iter().any(|here| here.number == number);
            now.extend((!is_here).then(|| DiskRecord { number, ..disk.clone() }));
        }
    }
    if known == now {
        return Ok(());
    }
    write(coordinator, now).await
}

/// Changes the use of a disk. Durable when it returns.
///
/// # Errors
/// [`NodeError::CoordinatorFailed`].
pub(crate) async fn set_state(
    coordinator: &dyn Coordinator,
    number: usize,
    state: State,
) -> Result<(), NodeError> {
    let mut known = read(coordinator).await?;
    for disk in known.iter_mut().filter(|disk| disk.number == Some(number)) {
        disk.state = state;
    }
    write(coordinator, known).await
}

async fn write(coordinator: &dyn Coordinator, disks: Vec<DiskRecord>) -> Result<(), NodeError> {
    let stored = Stored { version: VERSION, disks };
    let value = serde_json::to_vec(&stored).expect("strings and numbers are JSON");
    coordinator.txn(&[], &[Op::Put(Bytes::from_static(KEY), value.into())]).await?;
    Ok(())
}

/// The disks of the store; empty for stores of versions that kept no list.
///
/// # Errors
/// As the coordinator's.
pub async fn read(coordinator: &dyn Coordinator) -> Result<Vec<DiskRecord>, coordinator::Error> {
    let Some(found) = coordinator.get(KEY).await? else { return Ok(Vec::new()) };
    parse_known(&found.value)
}

fn parse_known(value: &[u8]) -> Result<Vec<DiskRecord>, coordinator::Error> {
    parse(value)
        .map_err(|error| coordinator::Error::Corrupt { reason: format!("node/disks: {error}") })
}

fn parse(value: &[u8]) -> Result<Vec<DiskRecord>, String> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let text = |error: serde_json::Error| error.to_string();
    if let Ok(paths) = serde_json::from_slice::<Vec<String>>(value) {
        let known = |path| DiskRecord { path, number: None, state: State::InUse };
        return Ok(paths.into_iter().map(known).collect());
    }
    let Version { version } = serde_json::from_slice(value).map_err(text)?;
    if version != VERSION {
        return Err(format!("version {version}; use the program that wrote it"));
    }
    serde_json::from_slice::<Stored>(value).map(|stored| stored.disks).map_err(text)
}

fn is_used(disk: &DiskRecord) -> bool {
    disk.state != State::Removed
}

fn is_at(disk: &DiskRecord, path: &Path) -> bool {
    same(Path::new(&disk.path), path)
}
