//! Which disks a node has, kept by its coordinator: a data directory that was forgotten at a
//! restart, or whose disk is not mounted, is missed by name, before anything is opened that lies on
//! it; and none is added by accident.

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
/// The newest version of the value.
const VERSION: u32 = 2;

/// A disk of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Its directory, as last given.
    pub path: String,
    /// Its number, as its `format` file has it. Unknown in values of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// What it is used for.
    pub state: State,
}

/// What a disk of the store is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Everything.
    InUse,
    /// It is being emptied, or empty.
    Draining,
    /// It is no disk of the store any more; its number is not given again.
    Removed,
}

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    version: u32,
    disks: Vec<Known>,
}

/// The directories of a start.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// All that are to be used.
    pub data: &'a [PathBuf],
    /// Those of them that may be new to the store.
    pub add: &'a [PathBuf],
    /// Disks of the store that the operator does without.
    pub without: &'a [PathBuf],
}

/// What a start with these directories does without.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Absent {
    /// Numbers of disks that are not given, and not missed.
    pub numbers: BTreeSet<usize>,
    /// Whether one of them holds a part of the store.
    pub without: bool,
}

/// The numbers that the disks of a start have in the store, in the order of its directories.
/// `None`: the disk is no part of a store yet.
pub(crate) type Numbers = [Option<usize>];

/// Refuses directories that are not those of the store's disks: a missing one unless it is done
/// without, an empty one in the place of a disk, a removed one, and a new one that is not to be
/// added.
///
/// # Errors
/// [`NodeError::DiskMissing`], [`NodeError::DiskEmpty`], [`NodeError::DiskUnknown`],
/// [`NodeError::DiskRemoved`], [`NodeError::DiskNotKnown`]; [`NodeError::CoordinatorFailed`].
pub(crate) async fn check(
    coordinator: &dyn Coordinator,
    given: Given<'_>,
    numbers: &Numbers,
) -> Result<Absent, NodeError> {
    let known = read(coordinator).await?;
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
    let used: Vec<&Known> = known.iter().filter(|disk| is_used(disk)).collect();
    let mut missing = Vec::new();
    for (place, disk) in used.iter().enumerate() {
        let is_given = match disk.number {
            Some(number) => numbers.contains(&Some(number)),
            // A list of version 1: directories count by their place.
            None => place < given.data.len(),
        };
        // By its path only where the number is unknown, in a list of version 1.
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

/// The number of the disk that the store has in this directory, for one that does not tell itself.
/// `None`: the store has none there, or its number is not known.
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

/// Remembers the directories of this start, which was found to be good.
///
/// # Errors
/// [`NodeError::CoordinatorFailed`].
pub(crate) async fn remember(
    coordinator: &dyn Coordinator,
    given: Given<'_>,
    numbers: &Numbers,
) -> Result<(), NodeError> {
    let known = read(coordinator).await?;
    let mut now: Vec<Known> = Vec::new();
    for (path, &number) in given.data.iter().zip(numbers) {
        let before = known.iter().find(|disk| disk.number.is_some() && disk.number == number);
        let state = before.map_or(State::InUse, |disk| disk.state);
        now.push(Known { path: absolute(path).display().to_string(), number, state });
    }
    // Those that are not here, in the order they were.
    for (place, disk) in known.iter().enumerate() {
        let left_out = given.without.iter().any(|path| is_at(disk, path));
        let number = disk.number.or(left_out.then_some(place));
        if number.is_some() && (left_out || !is_used(disk)) {
            let is_here = now.iter().any(|here| here.number == number);
            now.extend((!is_here).then(|| Known { number, ..disk.clone() }));
        }
    }
    if known == now {
        return Ok(());
    }
    write(coordinator, now).await
}

/// Notes what a disk is used for from now on. Durable when it returns.
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

async fn write(coordinator: &dyn Coordinator, disks: Vec<Known>) -> Result<(), NodeError> {
    let stored = Stored { version: VERSION, disks };
    let value = serde_json::to_vec(&stored).expect("strings and numbers are JSON");
    coordinator.txn(&[], &[Op::Put(Bytes::from_static(KEY), value.into())]).await?;
    Ok(())
}

/// The disks of the store; none in stores of versions that did not keep them.
///
/// # Errors
/// As the coordinator's.
pub async fn read(coordinator: &dyn Coordinator) -> Result<Vec<Known>, coordinator::Error> {
    let Some(found) = coordinator.get(KEY).await? else { return Ok(Vec::new()) };
    parse(&found.value)
        .map_err(|error| coordinator::Error::Corrupt { reason: format!("node/disks: {error}") })
}

fn parse(value: &[u8]) -> Result<Vec<Known>, String> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let text = |error: serde_json::Error| error.to_string();
    if let Ok(paths) = serde_json::from_slice::<Vec<String>>(value) {
        let known = |path| Known { path, number: None, state: State::InUse };
        return Ok(paths.into_iter().map(known).collect());
    }
    let Version { version } = serde_json::from_slice(value).map_err(text)?;
    if version != VERSION {
        return Err(format!("version {version}; use the program that wrote it"));
    }
    serde_json::from_slice::<Stored>(value).map(|stored| stored.disks).map_err(text)
}

fn is_used(disk: &Known) -> bool {
    disk.state != State::Removed
}

fn is_at(disk: &Known, path: &Path) -> bool {
    same(Path::new(&disk.path), path)
}
