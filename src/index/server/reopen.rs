//! Opens partitions again that do not serve.
//!
//! A partition that stopped writing is opened again in place. Its next epoch fences the log, and
//! the log shows which writes happened. Until then reads are answered as before, and writes wait as
//! during a move. In a cluster reads wait too: the fence ends the read leases of the epoch before.
//!
//! A partition stops when the coordinator does not say whether a change of its descriptor happened,
//! or when its committer panicked. If the change was a split or merge and did happen, the
//! partitions that have its keys now are opened instead.
//!
//! A partition that did not open at the start, because its disk was full or could not be read, is
//! tried in the same way.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use crate::index::api::Error;
use crate::index::engine::HostContext;
use crate::index::engine::Partition;
use crate::index::engine::Status;
use crate::index::map::PartitionDescriptor;
use crate::index::map::PartitionMap;
use crate::index::server::claims::Claims;
use crate::index::server::host::Opened;
use crate::index::server::host::Retry;
use crate::index::server::host::is_lasting;
use crate::types::PartitionId;

/// The interval of checks without a notification.
const LOOK: Duration = Duration::from_secs(1);
/// The pause after the first failed try. It doubles up to `PAUSE_MAX`.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Writes wait for this many tries. After that they are refused immediately until a try succeeds.
const TRIES: usize = 5;

/// A partition to open.
enum NotServing {
    /// Open, but it stopped writing.
    Stopped(Arc<Partition>),
    /// It did not open at the start.
    Closed(PartitionId),
}

impl NotServing {
    fn id(&self) -> PartitionId {
        match self {
            Self::Stopped(old) => old.core.id,
            Self::Closed(id) => *id,
        }
    }
}

/// Opens partitions of one host again.
pub(super) struct Reopener {
    pub(super) context: Arc<HostContext>,
    pub(super) opened: Arc<Opened>,
    /// The partitions of all hosts of the process.
    pub(super) all: Vec<Arc<Opened>>,
    pub(super) claims: Arc<Claims>,
    pub(super) stop: CancellationToken,
}

impl Reopener {
    /// Runs until the server stops.
    pub(super) async fn run(self: Arc<Self>) {
        let clock = Arc::clone(&self.context.deps.env.clock);
        let this = &self;
        let mut trying = BTreeSet::new();
        let mut tries = FuturesUnordered::new();
        while !self.stop.is_cancelled() {
            for one in self.not_serving() {
                let id = one.id();
                if trying.insert(id) {
                    tries.push(async move {
                        this.reopen(&one).await;
                        id
                    });
                }
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                Some(id) = tries.next(), if !tries.is_empty() => drop(trying.remove(&id)),
                () = self.context.stopped.notified() => {}
                () = clock.sleep(LOOK) => {}
            }
        }
        // The tries end by themselves and drop their claims.
        while tries.next().await.is_some() {}
    }

    fn not_serving(&self) -> Vec<NotServing> {
        let stopped = self.opened.all().into_iter();
        let stopped = stopped.filter(|one| matches!(one.core.status(), Status::Stopped(_)));
        let closed = self.opened.closed().into_iter().filter(|one| !one.is_quarantined());
        let closed = closed.map(|one| NotServing::Closed(one.descriptor.id));
        stopped.map(NotServing::Stopped).chain(closed).collect()
    }

    /// Tries until the keys of `one` are served, or the server stops.
    async fn reopen(&self, one: &NotServing) {
        let id = one.id();
        // Waits for the change that stopped it. A move opens the partition itself that it left
        // closed.
        let Some(mut claim) = self.claims.claim(&[id]).await else { return };
        let clock = &self.context.deps.env.clock;
        let begun = clock.monotonic();
        let mut pause = PAUSE;
        for tried in 1.. {
            if self.stop.is_cancelled() || !self.is_to_be_tried(one) {
                return;
            }
            let tried_once = match one {
                NotServing::Stopped(old) => self.open_again(old).await,
                NotServing::Closed(id) => self.open_closed(*id).await,
            };
            let error = match tried_once {
                Ok(()) => {
                    let waited = clock.monotonic().saturating_sub(begun);
                    tracing::info!(partition = %id, ?waited, "the partition was opened again");
                    return;
                }
                Err(error) => error,
            };
            tracing::warn!(partition = %id, %error, ?pause, "does not open again yet");
            if tried == 1 {
                // Changes of the map do not wait for this partition, which may never open.
                claim = claim.leave_closed(id);
            }
            // If this try found damage, the partition is quarantined and no longer tried.
            if tried >= TRIES && self.is_to_be_tried(one) {
                self.refuse(one, error);
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = clock.sleep(pause) => {}
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    fn is_to_be_tried(&self, one: &NotServing) -> bool {
        match one {
            NotServing::Stopped(old) => self.is_here(old),
            NotServing::Closed(id) => self.opened.is_tried(*id),
        }
    }

    /// Ends the waits for this partition. Writes get the error of the latest try.
    fn refuse(&self, one: &NotServing, error: Error) {
        match one {
            NotServing::Stopped(old) => {
                let refusal = if matches!(error, Error::Full(_)) {
                    error
                } else {
                    let what = "it stopped writing and does not open again";
                    Error::Unavailable(format!("{what}: {error}"))
                };
                old.core.refuse(refusal);
            }
            NotServing::Closed(id) => self.opened.still_closed(*id, error, Retry::Later),
        }
    }

    /// Opens a partition that did not open at the start. If it proves to be damaged, quarantines
    /// it.
    async fn open_closed(&self, id: PartitionId) -> Result<(), Error> {
        let metrics = &self.context.deps.metrics;
        match Partition::open_or_tell(&self.context, id).await {
            Ok(new) => {
                self.opened.add_closed(new);
                metrics.closed(false, -1);
                Ok(())
            }
            Err(not) => {
                if is_lasting(&not.error) {
                    self.opened.still_closed(id, not.error.clone(), Retry::Never);
                    metrics.closed(false, -1);
                    metrics.closed(true, 1);
                }
                if not.error == Error::WrongPartition && self.is_elsewhere(id).await? {
                    if let Some(closed) = self.opened.forget_closed(id) {
                        metrics.closed(closed.is_quarantined(), -1);
                    }
                    return Ok(());
                }
                Err(not.error)
            }
        }
    }

    /// Whether another process has the partition.
    async fn is_elsewhere(&self, id: PartitionId) -> Result<bool, Error> {
        let key = PartitionDescriptor::coordinator_key(id);
        let found = self.context.deps.coordinator.get(&key).await;
        let found = found.map_err(|error| Error::Unavailable(error.to_string()))?;
        let known = found.and_then(|found| PartitionDescriptor::decode(&found.value));
        Ok(known.is_none_or(|one| one.host.node() != self.context.host.node()))
    }

    /// Whether the host still has this instance of the partition open.
    fn is_here(&self, old: &Arc<Partition>) -> bool {
        self.opened.get(old.core.id).is_some_and(|open| Arc::ptr_eq(&open, old))
    }

    async fn open_again(&self, old: &Arc<Partition>) -> Result<(), Error> {
        match Partition::open(&self.context, old.core.id).await {
            Ok(new) => {
                self.opened.replace(&[Arc::clone(old)], vec![new]);
                old.abandon().await;
                Ok(())
            }
            // A split or merge may have replaced it.
            Err(Error::WrongPartition) => self.follow(old).await,
            Err(error) => Err(error),
        }
    }

    /// Opens the partitions that have the keys of `old` since a split or merge.
    async fn follow(&self, old: &Arc<Partition>) -> Result<(), Error> {
        let map = PartitionMap::load(self.context.deps.coordinator.as_ref()).await?;
        if let Some(known) = map.partitions().iter().find(|one| one.id == old.core.id) {
            if known.host.node() == self.context.host.node() {
                return Err(Error::WrongPartition);
            }
            // Another process has it.
            self.opened.replace(&[Arc::clone(old)], Vec::new());
            old.abandon().await;
            return Ok(());
        }
        let here = self.context.host.node();
        let heirs: Vec<PartitionId> = map
            .partitions()
            .iter()
            .filter(|one| one.keys.range().intersect(old.core.range()).is_some())
            .filter(|one| one.host.node() == here)
            .map(|one| one.id)
            .collect();
        if heirs.is_empty() {
            // Another process had it when it was split or merged.
            self.opened.replace(&[Arc::clone(old)], Vec::new());
            old.abandon().await;
            return Ok(());
        }
        // A neighbour that was merged with it is tried at the same time. Who opens an heir second
        // fences the one that serves.
        let claim = self.claims.claim(&heirs).await;
        let Some(_claim) = claim else { return Err(Error::WrongPartition) };
        if !self.is_here(old) {
            // The neighbour was faster.
            return Ok(());
        }
        let is_open = |id: PartitionId| self.all.iter().any(|host| host.get(id).is_some());
        let mut new = Vec::new();
        for heir in heirs.into_iter().filter(|heir| !is_open(*heir)) {
            match Partition::open(&self.context, heir).await {
                Ok(opened) => new.push(opened),
                Err(error) => {
                    for opened in new {
                        opened.abandon().await;
                    }
                    return Err(error);
                }
            }
        }
        // All partitions that became the same one are replaced together. None of them may answer
        // once the new one takes writes (I6).
        let gone = |one: &Arc<Partition>| {
            let is_covered =
                |new: &Partition| new.core.range().intersect(one.core.range()).is_some();
            one.core.id == old.core.id
                || (map.partitions().iter().all(|known| known.id != one.core.id)
                    && new.iter().any(is_covered))
        };
        let gone: Vec<_> = self.opened.all().into_iter().filter(gone).collect();
        self.opened.replace(&gone, new);
        for old in gone {
            old.abandon().await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
