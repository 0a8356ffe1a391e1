//! How many disks a node has, kept by its coordinator: a data directory that was forgotten at a restart is missed by
//! name, before anything is opened that lies on it.

use std::path::PathBuf;

use bytes::Bytes;

use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::Op;

use super::error::NodeError;

/// The coordinator's key: a JSON array of the directories as last given, in order.
const KEY: &[u8] = b"node/disks";

/// Refuses fewer directories than the store was last started with.
///
/// # Errors
/// [`NodeError::DiskMissing`]; [`NodeError::CoordinatorFailed`].
pub async fn check(coordinator: &dyn Coordinator, data: &[PathBuf]) -> Result<(), NodeError> {
    let known = read(coordinator).await?;
    match known.get(data.len()) {
        None => Ok(()),
        Some(_) => Err(NodeError::DiskMissing {
            given: data.len(),
            known: known.len(),
            missing: known[data.len()..].join(", "),
        }),
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

    #[tokio::test(start_paused = true)]
    async fn a_forgotten_directory_is_named_and_a_new_one_is_taken() {
        let env = Env {
            clock: Arc::new(SimClock::new()),
            rand: Arc::new(SeededRand::new(1)),
            tasks: Tasks::new(),
        };
        let coordinator = SimulatedStore::new().open(&env);
        let data = ["/one", "/two", "/three"].map(PathBuf::from);
        check(&coordinator, &data[..1]).await.unwrap();
        remember(&coordinator, &data[..2]).await.unwrap();
        let text = check(&coordinator, &data[..1]).await.unwrap_err().to_string();
        assert!(text.contains("/two") && !text.contains("/one"), "{text}");
        check(&coordinator, &data[..2]).await.unwrap();
        check(&coordinator, &data).await.unwrap();
        remember(&coordinator, &data).await.unwrap();
        let text = check(&coordinator, &data[..1]).await.unwrap_err().to_string();
        assert!(text.contains("/two, /three"), "{text}");
    }
}
