//! A partition that stopped writing is opened again where it is: its next epoch fences the log, and
//! what the log holds is true. Until then its reads are answered as before, and who writes waits as
//! for a move.
//!
//! It stops when the coordinator does not say whether a change of its descriptor happened, or when
//! its committer panicked. If what happened is a split or merge, those who have its keys now are
//! opened instead.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use crate::index::api::Error;
use crate::index::engine::Partition;
use crate::index::engine::Shared;
use crate::index::engine::Status;
use crate::index::fleet::claims::Claims;
use crate::index::host::Opened;
use crate::index::map::PartitionMap;
use crate::types::PartitionId;

/// How often to look without being rung.
const LOOK: Duration = Duration::from_secs(1);
/// The pause after the first try that failed; it doubles up to the longest.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Who writes waits for so many tries; from then on writes are refused at once until one succeeds.
const TRIES: usize = 5;

/// Opens partitions of one host again.
pub(super) struct Reopener {
    pub(super) shared: Arc<Shared>,
    pub(super) opened: Arc<Opened>,
    /// The partitions of all hosts of the process.
    pub(super) all: Vec<Arc<Opened>>,
    pub(super) claims: Arc<Claims>,
    pub(super) stop: CancellationToken,
}

impl Reopener {
    /// Runs until the fleet stops.
    pub(super) async fn run(self: Arc<Self>) {
        let clock = Arc::clone(&self.shared.parts.env.clock);
        let this = &self;
        let mut trying = BTreeSet::new();
        let mut tries = FuturesUnordered::new();
        while !self.stop.is_cancelled() {
            for old in self.opened.all() {
                let id = old.core.id;
                if matches!(old.core.status(), Status::Stopped(_)) && trying.insert(id) {
                    tries.push(async move {
                        this.reopen(&old).await;
                        id
                    });
                }
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                Some(id) = tries.next(), if !tries.is_empty() => drop(trying.remove(&id)),
                () = self.shared.stopped.notified() => {}
                () = clock.sleep(LOOK) => {}
            }
        }
        // They end by themselves, and give their claims back.
        while tries.next().await.is_some() {}
    }

    /// Tries until somebody serves the keys of `old`, or the fleet stops.
    async fn reopen(&self, old: &Arc<Partition>) {
        let id = old.core.id;
        // Waits for the change that stopped it; of one that a move left closed that move takes
        // care.
        let Some(mut claim) = self.claims.claim(&[id]).await else { return };
        let clock = &self.shared.parts.env.clock;
        let begun = clock.monotonic();
        let mut pause = PAUSE;
        for tried in 1.. {
            if self.stop.is_cancelled() || !self.is_here(old) {
                return;
            }
            let error = match self.open_again(old).await {
                Ok(()) => {
                    let waited = clock.monotonic().saturating_sub(begun);
                    tracing::info!(partition = %id, ?waited, "the partition was opened again");
                    return;
                }
                Err(error) => error,
            };
            tracing::warn!(partition = %id, %error, ?pause, "does not open again yet");
            if tried == 1 {
                // Changes of the map do not wait for what may take for ever.
                claim = claim.leave_closed(id);
            }
            if tried == TRIES {
                let reason = format!("it stopped writing and does not open again: {error}");
                old.core.stop(Status::ReadOnly(reason));
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                () = clock.sleep(pause) => {}
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Whether it is this very one that the host has open.
    fn is_here(&self, old: &Arc<Partition>) -> bool {
        self.opened.get(old.core.id).is_some_and(|open| Arc::ptr_eq(&open, old))
    }

    async fn open_again(&self, old: &Arc<Partition>) -> Result<(), Error> {
        match Partition::open(&self.shared, old.core.id).await {
            Ok(new) => {
                self.opened.replace(&[Arc::clone(old)], vec![new]);
                old.abandon().await;
                Ok(())
            }
            // It may be no more.
            Err(Error::WrongPartition) => self.follow(old).await,
            Err(error) => Err(error),
        }
    }

    /// Opens those that have the keys of `old` since a split or merge.
    async fn follow(&self, old: &Arc<Partition>) -> Result<(), Error> {
        let map = PartitionMap::load(self.shared.parts.coordinator.as_ref()).await?;
        if map.partitions().iter().any(|one| one.id == old.core.id) {
            return Err(Error::WrongPartition);
        }
        let is_open = |id: PartitionId| self.all.iter().any(|host| host.get(id).is_some());
        let heirs = map.partitions().iter().filter(|one| {
            one.keys.range().intersect(old.core.range()).is_some() && !is_open(one.id)
        });
        let mut new = Vec::new();
        for heir in heirs {
            match Partition::open(&self.shared, heir.id).await {
                Ok(opened) => new.push(opened),
                Err(error) => {
                    for opened in new {
                        opened.abandon().await;
                    }
                    return Err(error);
                }
            }
        }
        if !self.is_here(old) {
            // A neighbour it was merged with was faster.
            for opened in new {
                opened.abandon().await;
            }
            return Ok(());
        }
        // All that became the same one go at once: none may answer once that one takes writes (I6).
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
