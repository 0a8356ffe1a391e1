//! How many disks a node has, kept by its coordinator: a data directory that was forgotten at a restart, or whose disk is
//! not mounted, is missed by name, before anything is opened that lies on it.

use std::path::PathBuf;

use bytes::Bytes;

use crate::capacity::FORMAT_FILE;
use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::Op;

use super::error::NodeError;

/// The coordinator's key: a JSON array of the directories as last given, in order.
const KEY: &[u8] = b"node/disks";

/// Refuses fewer directories than the store was last started with, and empty ones in their place: they would be made new
/// disks of the store.
///
/// # Errors
/// [`NodeError::DiskMissing`], [`NodeError::DiskEmpty`]; [`NodeError::CoordinatorFailed`].
pub async fn check(coordinator: &dyn Coordinator, data: &[PathBuf]) -> Result<(), NodeError> {
    let known = read(coordinator).await?;
    if let Some(missing) = known.get(data.len()..).filter(|missing| !missing.is_empty()) {
        return Err(NodeError::DiskMissing {
            given: data.len(),
            known: known.len(),
            missing: missing.join(", "),
        });
    }
    let empty: Vec<&PathBuf> =
        data.iter().filter(|path| !path.join(FORMAT_FILE).is_file()).collect();
    match empty.first() {
        Some(path) if data.len() - empty.len() < known.len() => {
            Err(NodeError::DiskEmpty { path: (*path).clone(), known: known.len() })
        }
        Some(_) | None => Ok(()),
    }
}

/// Remembers the directories of this start, which was found to be good.
///
/// # Errors
/// [`NodeError::CoordinatorFailed`].
pub async fn remember(coordinator: &dyn Coordinator, data: &[PathBuf]) -> Result<(), NodeError> {
    let now: Vec<String> = data
        .iter()
        .map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()))
        .map(|path| path.display().to_string())
        .collect();
    if read(coordinator).await? == now {
        return Ok(());
    }
    let value = serde_json::to_vec(&now).expect("an array of strings is JSON");
    coordinator.txn(&[], &[Op::Put(Bytes::from_static(KEY), value.into())]).await?;
    Ok(())
}

/// None in stores of versions that did not keep it.
async fn read(coordinator: &dyn Coordinator) -> Result<Vec<String>, coordinator::Error> {
    let Some(found) = coordinator.get(KEY).await? else { return Ok(Vec::new()) };
    serde_json::from_slice(&found.value)
        .map_err(|error| coordinator::Error::Corrupt { reason: format!("node/disks: {error}") })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::coordinator::SimulatedStore;
    use crate::env::Env;
    use crate::env::SeededRand;
    use crate::env::Tasks;
    use crate::env::clock::SimClock;

    fn coordinator() -> impl Coordinator {
        let env = Env {
            clock: Arc::new(SimClock::new()),
            rand: Arc::new(SeededRand::new(1)),
            tasks: Tasks::new(),
        };
        SimulatedStore::new().open(&env)
    }

    #[expect(clippy::disallowed_methods, reason = "stands in for a disk")]
    fn made(folder: &std::path::Path, names: &[&str]) -> Vec<PathBuf> {
        let paths: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        for path in &paths {
            std::fs::create_dir_all(path).unwrap();
            std::fs::write(path.join(FORMAT_FILE), "{}").unwrap();
        }
        paths
    }

    #[tokio::test(start_paused = true)]
    async fn a_forgotten_directory_is_named_and_a_new_one_is_taken() {
        let coordinator = coordinator();
        let folder = tempfile::tempdir().unwrap();
        let mut data = made(folder.path(), &["one", "two"]);
        data.push(folder.path().join("three"));
        check(&coordinator, &data[..1]).await.unwrap();
        remember(&coordinator, &data[..2]).await.unwrap();
        let text = check(&coordinator, &data[..1]).await.unwrap_err().to_string();
        assert!(text.contains("/two") && !text.contains("/one"), "{text}");
        check(&coordinator, &data[..2]).await.unwrap();
        check(&coordinator, &data).await.unwrap();
        remember(&coordinator, &data).await.unwrap();
        let text = check(&coordinator, &data[..1]).await.unwrap_err().to_string();
        assert!(text.contains("/two, ") && text.contains("/three"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_directory_does_not_take_the_place_of_a_disk() {
        let coordinator = coordinator();
        let folder = tempfile::tempdir().unwrap();
        let data = made(folder.path(), &["one", "two"]);
        remember(&coordinator, &data).await.unwrap();
        // The mount point of a disk that is not mounted.
        let unmounted = [data[0].clone(), folder.path().join("three")];
        let text = check(&coordinator, &unmounted).await.unwrap_err().to_string();
        assert!(text.contains("/three") && !text.contains("/one"), "{text}");
        let moved = made(folder.path(), &["four"]).remove(0);
        check(&coordinator, &[data[0].clone(), moved]).await.unwrap();
    }
}
