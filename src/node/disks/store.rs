//! The disks of a running node, for the admin listener. A drain is recorded with the coordinator
//! before it begins, so that it continues after a restart.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::admin::DiskControl;
use crate::admin::DiskRefusal;
use crate::admin::DiskView;
use crate::capacity::CapacityNode;
use crate::capacity::DiskInfo;
use crate::coordinator::Coordinator;
use crate::env::Env;
use crate::index::IndexServer;
use crate::node::paths::same;

use super::list;
use super::list::DiskRecord;
use super::list::State;

/// The pause between two rounds of a drain. Extents that are open in one round are sealed in the
/// next.
const ROUND: Duration = Duration::from_secs(2);
/// How often the free space of the disks is checked.
const SPACE_EVERY: Duration = Duration::from_secs(5);
/// The percentage of used space from which a disk is reported.
const FULL_PERCENT: u64 = 80;

/// The disks of one node; cheap to clone.
#[derive(Clone, Debug)]
pub struct NodeDisks {
    /// Numbers of the disks that the start did without or could not recover.
    out: Arc<[usize]>,
    capacity: Arc<CapacityNode>,
    coordinator: Arc<dyn Coordinator>,
    index: Arc<IndexServer>,
    env: Env,
    /// Held by a command from its first read to its last write, so that commands do not interleave.
    changing: Arc<tokio::sync::Mutex<()>>,
}

impl NodeDisks {
    /// The disks that the coordinator knows. Resumes drains that a restart interrupted.
    ///
    /// # Errors
    /// [`DiskRefusal::Failed`] when the coordinator does not answer.
    pub async fn start(
        capacity: Arc<CapacityNode>,
        coordinator: Arc<dyn Coordinator>,
        index: Arc<IndexServer>,
        env: Env,
    ) -> Result<Self, DiskRefusal> {
        let changing = Arc::default();
        let out = Arc::default();
        let mut node = Self { out, capacity, coordinator, index, env, changing };
        let known = node.known().await?;
        let used = known.iter().filter(|known| known.state != State::Removed);
        let out = used.filter(|known| node.info(known).is_none());
        node.out = out.filter_map(|known| known.number).collect();
        node.capacity.set_out_of_service(node.out.to_vec());
        for known in known.iter().filter(|known| known.state == State::Draining) {
            if let Some(info) = node.info(known) {
                node.begin(info.disk, &known.path);
            }
        }
        node.watch_space();
        Ok(node)
    }

    /// Checks the free space of the disks periodically: another program may fill a disk while the
    /// node writes nothing.
    fn watch_space(&self) {
        let (capacity, env) = (Arc::clone(&self.capacity), self.env.clone());
        let stop = self.env.tasks.stopping();
        let watching = {
            let stop = stop.clone();
            move || {
                let (capacity, env, stop) = (Arc::clone(&capacity), env.clone(), stop.clone());
                async move {
                    loop {
                        tokio::select! {
                            biased;
                            () = stop.cancelled() => return,
                            () = env.clock.sleep(SPACE_EVERY) => {}
                        }
                        capacity.refresh_space().await;
                    }
                }
            }
        };
        drop(self.env.supervise("disk space", stop, watching));
    }

    async fn known(&self) -> Result<Vec<DiskRecord>, DiskRefusal> {
        let known = list::read(self.coordinator.as_ref()).await;
        known.map_err(|error| DiskRefusal::Failed(format!("the coordinator refuses: {error}")))
    }

    /// The disk in service that belongs to a record.
    fn info(&self, known: &DiskRecord) -> Option<DiskInfo> {
        let all = self.capacity.disks();
        all.into_iter().find(|info| Some(info.number) == known.number)
    }

    /// The disk in service with this number or directory.
    async fn find(&self, name: &str) -> Result<DiskInService, DiskRefusal> {
        let is_it = |known: &&DiskRecord| {
            let number = known.number.map(|number| number.to_string());
            number.as_deref() == Some(name) || same(Path::new(&known.path), Path::new(name))
        };
        let record = self.known().await?.iter().find(is_it).cloned();
        let found = record.and_then(|record| {
            let info = self.info(&record)?;
            Some(DiskInService { record, info })
        });
        found.ok_or_else(|| DiskRefusal::NoSuchDisk(name.to_owned()))
    }

    /// Refuses to change the first disk and poisoned disks.
    fn refuse(&self, disk: &DiskInService) -> Result<(), DiskRefusal> {
        if disk.info.disk == 0 {
            return Err(DiskRefusal::First(disk.record.path.clone()));
        }
        if disk.info.poisoned {
            return Err(DiskRefusal::Poisoned(disk.record.path.clone()));
        }
        Ok(())
    }

    /// Drains a disk in the background.
    fn begin(&self, disk: usize, path: &str) {
        self.capacity.set_draining(disk, true);
        let (node, path) = (self.clone(), path.to_owned());
        let draining = move || node.clone().drain_until_empty(disk, path.clone());
        drop(self.env.supervise("disk drain", self.env.tasks.stopping(), draining));
    }

    /// Drains a disk until nothing is on it, or it takes no writes, or the node stops.
    async fn drain_until_empty(self, disk: usize, path: String) {
        let stop = self.env.tasks.stopping();
        loop {
            // After this, writers that had just chosen this disk for an extent have created it.
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.env.clock.sleep(ROUND) => {}
            }
            match self.capacity.drain(disk).await {
                Ok(drained) if drained.left == 0 => {
                    tracing::info!(path, "disk drained: it is empty and can be removed");
                    return;
                }
                Ok(drained) => match drained.error {
                    None => tracing::info!(path, left = drained.left, "disk is being drained"),
                    Some(error) => tracing::warn!(
                        path,
                        left = drained.left,
                        error,
                        "the disk is not drained yet; it is tried again"
                    ),
                },
                Err(error) => {
                    tracing::error!(path, %error, "the disk was not drained; restart the node");
                    return;
                }
            }
        }
    }
}

/// A disk that is in service.
struct DiskInService {
    record: DiskRecord,
    info: DiskInfo,
}

#[async_trait]
impl DiskControl for NodeDisks {
    async fn list(&self) -> Result<Vec<DiskView>, DiskRefusal> {
        let known = self.known().await?;
        let used = known.iter().filter(|known| known.state != State::Removed);
        Ok(used.map(|known| view(known, self.info(known).as_ref())).collect())
    }

    async fn drain(&self, disk: &str) -> Result<DiskView, DiskRefusal> {
        let _one = self.changing.lock().await;
        let found = self.find(disk).await?;
        self.refuse(&found)?;
        let DiskInService { record, info } = found;
        let takes =
            |other: &DiskInfo| other.number != info.number && !other.draining && !other.poisoned;
        if !self.capacity.disks().iter().any(takes) {
            return Err(DiskRefusal::Only(record.path));
        }
        if !info.draining {
            self.set(info.number, State::Draining).await?;
            self.begin(info.disk, &record.path);
            tracing::info!(path = record.path, "disk takes no new data and is being drained");
        }
        let DiskInService { record, info } = self.find(disk).await?;
        Ok(view(&record, Some(&info)))
    }

    async fn remove(&self, disk: &str) -> Result<(), DiskRefusal> {
        let _one = self.changing.lock().await;
        let found = self.find(disk).await?;
        self.refuse(&found)?;
        let DiskInService { record, info } = found;
        if !info.draining || info.extents > 0 {
            return Err(DiskRefusal::NotDrained { path: record.path, extents: info.extents });
        }
        // Recorded first: a start between the two steps refuses the directory by name and does not
        // report it as missing.
        self.set(info.number, State::Removed).await?;
        match self.capacity.detach(info.disk).await {
            Ok(true) => {
                tracing::info!(path = record.path, "disk removed from the store");
                Ok(())
            }
            Ok(false) => {
                self.set(info.number, State::Draining).await?;
                Err(DiskRefusal::NotDrained { path: record.path, extents: info.extents })
            }
            Err(error) => Err(DiskRefusal::Failed(format!(
                "{} is removed from the store, but its files `format` and `journal` may still be there: {error}",
                record.path
            ))),
        }
    }

    fn troubles(&self) -> Vec<String> {
        let out = self.out.iter();
        let mut lines: Vec<String> = out
            .map(|number| format!("disk {number}: out of service; see the log of the start"))
            .collect();
        for info in self.capacity.disks() {
            let used = info.total_bytes.saturating_sub(info.available_bytes);
            let percent = used.saturating_mul(100) / info.total_bytes.max(1);
            if info.poisoned {
                let what = "takes no writes because a write failed; restart the node to verify it";
                lines.push(format!("disk {}: {what}", info.number));
            }
            if percent >= FULL_PERCENT {
                lines.push(format!("disk {}: {percent} % full", info.number));
            }
        }
        for partition in self.index.status().iter().filter(|partition| partition.quarantined) {
            let what = "quarantined; `blockyard partitions list` shows its range";
            lines.push(format!("partition {}: {what}", partition.id));
        }
        lines
    }
}

impl NodeDisks {
    async fn set(&self, number: usize, state: State) -> Result<(), DiskRefusal> {
        let done = list::set_state(self.coordinator.as_ref(), number, state).await;
        done.map_err(|error| DiskRefusal::Failed(error.to_string()))
    }
}

fn view(known: &DiskRecord, info: Option<&DiskInfo>) -> DiskView {
    let state = match info {
        None => "out of service",
        Some(info) if info.poisoned => "poisoned",
        Some(info) if info.draining && info.extents == 0 => "drained",
        Some(info) if info.draining => "draining",
        Some(_) => "in use",
    };
    DiskView {
        number: known.number,
        path: known.path.clone(),
        state: state.to_owned(),
        extents: info.map_or(0, |info| info.extents),
        live_bytes: info.map_or(0, |info| info.live_bytes),
        total_bytes: info.map_or(0, |info| info.total_bytes),
        available_bytes: info.map_or(0, |info| info.available_bytes),
    }
}

#[cfg(test)]
mod tests;
