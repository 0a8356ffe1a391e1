//! Splits, merges and moves of partitions that are open in this process.

use std::sync::Arc;
use std::time::Duration;

use crate::coordinator::counter;
use crate::coordinator::counter::PARTITION_IDS;
use crate::index::api::{CHILDREN_MAX, ChangeError, ChangeEvent, ChangeKind, Changed, Error};
use crate::index::engine;
use crate::index::engine::Failed;
use crate::index::engine::HostContext;
use crate::index::engine::NotMoved;
use crate::index::engine::Partition;
use crate::index::server::IndexServer;
use crate::index::server::bootstrap;
use crate::index::server::changes::Replaced;
use crate::index::server::claims::Claim;
use crate::index::server::give;
use crate::index::server::host::Host;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::PartitionKeys;
use crate::types::RoutingKey;
use crate::types::Stripe;
use crate::types::Timestamp;

mod error;

/// The most tries of a move. A try fails when the partition rolls its log meanwhile.
const MOVE_TRIES: usize = 4;
/// The pause between tries to open a partition that this process owns and no host serves.
const REOPEN_PAUSE: Duration = Duration::from_millis(100);
/// The tries to open it before the caller of the move gets an error. A task continues to try, with
/// pauses that grow to `REOPEN_PAUSE_MAX`.
const REOPEN_TRIES: usize = 20;
const REOPEN_PAUSE_MAX: Duration = Duration::from_secs(5);

impl IndexServer {
    /// Splits a partition at `keys`; each key is the lower bound of a child. Writes wait briefly;
    /// reads continue. A split that has begun is completed even if the caller is cancelled.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub async fn split(
        self: &Arc<Self>,
        partition: PartitionId,
        keys: &[RoutingKey],
    ) -> Result<Changed, ChangeError> {
        let (server, keys) = (Arc::clone(self), keys.to_vec());
        let task = async move { server.carry_out_split(partition, &keys).await };
        self.in_a_task("partition split", task).await
    }

    /// Distributes the blobs of a partition by hash over `stripes` new ones. Writes wait briefly;
    /// reads continue. A change that has begun is completed even if the caller is cancelled.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub async fn stripe(
        self: &Arc<Self>,
        partition: PartitionId,
        stripes: u8,
    ) -> Result<Changed, ChangeError> {
        let server = Arc::clone(self);
        let task = async move { server.carry_out_stripe(partition, None, stripes).await };
        self.in_a_task("partition striping", task).await
    }

    /// As [`Self::stripe`], for a part of the partition's range. The ranges below and above it
    /// become partitions in the same change.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub async fn stripe_part(
        self: &Arc<Self>,
        partition: PartitionId,
        part: KeyRange,
        stripes: u8,
    ) -> Result<Changed, ChangeError> {
        let server = Arc::clone(self);
        let task = async move { server.carry_out_stripe(partition, Some(part), stripes).await };
        self.in_a_task("partition striping", task).await
    }

    /// Merges neighbours, given in key order, or all stripes of a range. The host of the first gets
    /// the result; the others are moved to it before. Writes wait briefly; reads continue. A merge
    /// that has begun is completed even if the caller is cancelled.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub async fn merge(
        self: &Arc<Self>,
        partitions: &[PartitionId],
    ) -> Result<Changed, ChangeError> {
        let (server, partitions) = (Arc::clone(self), partitions.to_vec());
        let task = async move { server.carry_out_merge(&partitions).await };
        self.in_a_task("partition merge", task).await
    }

    /// Moves a partition to another host. It keeps its id. Writes wait briefly; reads continue. A
    /// move that has begun is completed even if the caller is cancelled.
    ///
    /// # Errors
    /// [`ChangeError`].
    pub async fn move_to(
        self: &Arc<Self>,
        partition: PartitionId,
        host: HostId,
    ) -> Result<Changed, ChangeError> {
        let server = Arc::clone(self);
        let task = async move {
            let mut claim = server.claim(&[partition]).await?;
            server.carry_out_move(&mut claim, partition, host).await
        };
        self.in_a_task("partition move", task).await
    }

    /// Waits for other changes of these partitions. None begins before the claim is dropped.
    async fn claim(&self, partitions: &[PartitionId]) -> Result<Claim, ChangeError> {
        let claim = self.claims.claim(partitions).await;
        self.still_serves()?;
        claim.ok_or(ChangeError::NoSuchPartition)
    }

    /// In a task, because a change that is cancelled half-way would leave a range without an owner.
    async fn in_a_task<T: Send + 'static>(
        &self,
        name: &'static str,
        task: impl Future<Output = Result<T, ChangeError>> + Send + 'static,
    ) -> Result<T, ChangeError> {
        let done = self.control.spawn(name, task).await;
        let lost = || Error::Unavailable(format!("the task of a {name} ended early"));
        done.unwrap_or_else(|_| Err(ChangeError::Failed(lost())))
    }

    async fn carry_out_split(
        &self,
        partition: PartitionId,
        keys: &[RoutingKey],
    ) -> Result<Changed, ChangeError> {
        let _claim = self.claim(&[partition]).await?;
        let host = self.host_of(partition).ok_or(ChangeError::NoSuchPartition)?;
        let parent = host.opened.get(partition).ok_or(ChangeError::NoSuchPartition)?;
        if parent.core.keys.stripe().is_some() {
            return Err(ChangeError::Striped);
        }
        let ranges = cut(parent.core.range(), keys).ok_or(ChangeError::BadKeys)?;
        let parts = ranges.into_iter().map(PartitionKeys::from).collect();
        self.divide(ChangeKind::Split, host, parent, parts).await
    }

    async fn carry_out_stripe(
        &self,
        partition: PartitionId,
        part: Option<KeyRange>,
        stripes: u8,
    ) -> Result<Changed, ChangeError> {
        let _claim = self.claim(&[partition]).await?;
        let host = self.host_of(partition).ok_or(ChangeError::NoSuchPartition)?;
        let parent = host.opened.get(partition).ok_or(ChangeError::NoSuchPartition)?;
        if parent.core.keys.stripe().is_some() {
            return Err(ChangeError::Striped);
        }
        let whole = parent.core.range();
        let part = part.unwrap_or_else(|| whole.clone());
        if whole.intersect(&part).as_ref() != Some(&part) {
            return Err(ChangeError::BadKeys);
        }
        let stripe = |stripe| PartitionKeys::striped(part.clone(), stripe);
        let striped: Vec<PartitionKeys> = Stripe::all(stripes).map(stripe).collect();
        if striped.is_empty() || !part.lies_in_a_container() {
            return Err(ChangeError::NotStripable);
        }
        let below = KeyRange::new(whole.low().clone(), Some(part.low().clone()));
        let above = part.high().map(|end| KeyRange::new(end.clone(), whole.high().cloned()));
        let is_any = |range: &KeyRange| range.high().is_none_or(|high| range.low() < high);
        let below = Some(below).filter(is_any).map(PartitionKeys::from);
        let above = above.filter(is_any).map(PartitionKeys::from);
        let parts = below.into_iter().chain(striped).chain(above).collect();
        self.divide(ChangeKind::Stripe, host, Arc::clone(&parent), parts).await
    }

    /// Replaces a partition by new ones that tile its keys.
    async fn divide(
        &self,
        kind: ChangeKind,
        host: &Host,
        parent: Arc<Partition>,
        parts: Vec<PartitionKeys>,
    ) -> Result<Changed, ChangeError> {
        let (partition, range) = (parent.core.id, parent.core.range().clone());
        let ids = self.fresh_ids(parts.len()).await?;
        let parts = ids.iter().copied().zip(parts).collect();
        let split = parent.split(parts).await?;
        let pause = replace(host, &[parent], split.children, split.frozen_at).await;
        host.context.deps.metrics.split(pause);
        let replaced = Replaced { from: vec![partition], to: ids.clone(), range };
        self.note(kind, replaced, host.context.host, pause);
        tracing::info!(%partition, children = ids.len(), ?kind, ?pause, "partition split");
        Ok(Changed { partitions: ids, pause })
    }

    async fn carry_out_merge(
        self: &Arc<Self>,
        partitions: &[PartitionId],
    ) -> Result<Changed, ChangeError> {
        let mut claim = self.claim(partitions).await?;
        let find = |id: &PartitionId| self.host_of(*id).and_then(|host| host.opened.get(*id));
        let found = partitions.iter().map(find).collect::<Option<Vec<_>>>();
        let found = found.ok_or(ChangeError::NoSuchPartition)?;
        let joined = PartitionKeys::joined(found.iter().map(|part| part.core.keys.as_ref()));
        if joined.is_none() || found.len() > CHILDREN_MAX {
            return Err(ChangeError::NotNeighbours);
        }
        let striped = found.iter().any(|part| part.core.keys.stripe().is_some());
        let kind = if striped { ChangeKind::Unstripe } else { ChangeKind::Merge };
        let first = partitions.first().and_then(|id| self.host_of(*id));
        let host = first.ok_or(ChangeError::NoSuchPartition)?;
        let mut has_moved = false;
        let merged = self.gather(&mut claim, host, partitions, &mut has_moved).await;
        let merged = match merged {
            Ok(parts) => self.unite(kind, host, parts).await,
            Err(error) => Err(error),
        };
        // Partitions that were moved are not moved back.
        merged.map_err(|error| if has_moved { error.after_a_move() } else { error })
    }

    /// Moves partitions of `claim` to one host. Sets `has_moved` once a partition was moved.
    async fn gather(
        self: &Arc<Self>,
        claim: &mut Claim,
        host: &Host,
        partitions: &[PartitionId],
        has_moved: &mut bool,
    ) -> Result<Vec<Arc<Partition>>, ChangeError> {
        let to = host.context.host;
        for partition in partitions {
            let is_here = self.host_of(*partition).is_some_and(|from| from.context.host == to);
            self.carry_out_move(claim, *partition, to).await?;
            *has_moved |= !is_here;
        }
        let found = partitions.iter().map(|id| host.opened.get(*id)).collect::<Option<Vec<_>>>();
        found.ok_or(ChangeError::NoSuchPartition)
    }

    /// Replaces partitions of one host by one.
    async fn unite(
        &self,
        kind: ChangeKind,
        host: &Host,
        parts: Vec<Arc<Partition>>,
    ) -> Result<Changed, ChangeError> {
        let old: Vec<PartitionId> = parts.iter().map(|part| part.core.id).collect();
        let ids = self.fresh_ids(1).await?;
        let id = *ids.first().ok_or(ChangeError::NotNeighbours)?;
        let merged = engine::merge(&host.context, id, &parts).await?;
        let (partition, frozen_at) = (merged.partition, merged.frozen_at);
        let range = partition.core.range().clone();
        let pause = replace(host, &parts, vec![partition], frozen_at).await;
        host.context.deps.metrics.merged(pause);
        let replaced = Replaced { from: old, to: ids.clone(), range };
        self.note(kind, replaced, host.context.host, pause);
        tracing::info!(partition = %id, of = parts.len(), ?pause, "partitions merged");
        Ok(Changed { partitions: ids, pause })
    }

    /// Moves a partition of `claim`.
    async fn carry_out_move(
        self: &Arc<Self>,
        claim: &mut Claim,
        partition: PartitionId,
        to: HostId,
    ) -> Result<Changed, ChangeError> {
        let from = self.host_of(partition).ok_or(ChangeError::NoSuchPartition)?;
        if to.node() != from.context.host.node() {
            let range = from.opened.get(partition).map(|open| open.core.range().clone());
            let given = give::give_away(from, partition, to).await?;
            from.context.deps.metrics.moved(given.pause);
            let (from, to_be) = (vec![partition], vec![partition]);
            if let Some(range) = range {
                self.note(ChangeKind::Move, Replaced { from, to: to_be, range }, to, given.pause);
            }
            return Ok(given);
        }
        let to = self.host(to).ok_or(ChangeError::NoSuchHost)?;
        if from.context.host == to.context.host {
            return Ok(Changed { partitions: vec![partition], pause: Duration::ZERO });
        }
        let old = from.opened.get(partition).ok_or(ChangeError::NoSuchPartition)?;
        let mut tries = 1;
        let (new, frozen_at) = loop {
            match engine::hand_off(&old, &to.context).await {
                Ok(done) => break (done.partition, done.frozen_at),
                Err(NotMoved::Busy(_) | NotMoved::Unread(_)) if tries < MOVE_TRIES => tries += 1,
                Err(NotMoved::Busy(reason)) => return Err(ChangeError::Busy(reason.into())),
                Err(NotMoved::Unread(reason)) => {
                    return Err(Error::Unavailable(reason).into());
                }
                Err(NotMoved::Failed(failed)) => return Err(failed.into()),
                Err(NotMoved::Owned(failed, frozen_at)) => {
                    tracing::warn!(
                        %partition, ?failed,
                        "the partition was moved and must be opened again"
                    );
                    // The old host no longer serves it, even if the new host cannot open it.
                    from.opened.replace(&[Arc::clone(&old)], Vec::new());
                    // In a task of its own, so that a panic does not end this one.
                    let (server, at) = (Arc::clone(self), Arc::clone(&to.context));
                    let opening = async move { server.reopen(&at, partition, REOPEN_TRIES).await };
                    match self.in_a_task("partition reopen", opening).await {
                        Ok(new) => break (new, frozen_at),
                        Err(error) => {
                            old.abandon().await;
                            self.open_later(claim.leave_closed(partition), to, frozen_at);
                            return Err(error);
                        }
                    }
                }
            }
        };
        from.opened.replace(&[Arc::clone(&old)], Vec::new());
        let range = new.core.range().clone();
        to.opened.add(new);
        let pause = self.moved(to, partition, range, frozen_at);
        old.abandon().await;
        Ok(Changed { partitions: vec![partition], pause })
    }

    /// Records a move once the new host serves the partition. Returns the pause.
    fn moved(
        &self,
        to: &Host,
        partition: PartitionId,
        range: KeyRange,
        frozen_at: Duration,
    ) -> Duration {
        let deps = &to.context.deps;
        let pause = deps.env.clock.monotonic().saturating_sub(frozen_at);
        deps.metrics.moved(pause);
        let host = to.context.host;
        let replaced = Replaced { from: vec![partition], to: vec![partition], range };
        self.note(ChangeKind::Move, replaced, host, pause);
        tracing::info!(%partition, %host, ?pause, "partition moved");
        pause
    }

    /// Opens a partition that this process owns and no host serves, in at most `tries` tries.
    async fn reopen(
        &self,
        context: &Arc<HostContext>,
        partition: PartitionId,
        tries: usize,
    ) -> Result<Partition, ChangeError> {
        let mut tried = 1;
        loop {
            match Partition::open(context, partition).await {
                Ok(opened) => return Ok(opened),
                // The descriptor was changed already, so this is not a refusal.
                Err(error) if tried == tries => return Err(ChangeError::Failed(error)),
                Err(error) => {
                    tracing::warn!(%partition, %error, "the partition does not open; trying again");
                    tried += 1;
                    self.still_serves().map_err(ChangeError::Failed)?;
                    context.deps.env.clock.sleep(REOPEN_PAUSE).await;
                }
            }
        }
    }

    /// Starts a task that opens the only partition of a claim on its new host, however long that
    /// takes. The task is restarted after a panic.
    fn open_later(self: &Arc<Self>, claim: Claim, to: &Host, frozen_at: Duration) {
        let (server, claim, host) = (Arc::clone(self), Arc::new(claim), to.context.host);
        // The claim ends with the task. A shutdown waits for it before it closes partitions.
        let opening = move || Arc::clone(&server).keep_opening(Arc::clone(&claim), host, frozen_at);
        let env = &to.context.deps.env;
        drop(env.supervise("partition reopen", self.stop.clone(), opening));
    }

    /// Tries to open a partition that no host serves, until it is open or the server stops. The
    /// cause may pass: a disk that is full or takes no writes.
    async fn keep_opening(self: Arc<Self>, claim: Arc<Claim>, host: HostId, frozen_at: Duration) {
        let (Some(host), Some(partition)) = (self.host(host), claim.first()) else { return };
        if host.opened.get(partition).is_some() {
            // The run that panicked had opened it.
            return;
        }
        let clock = &host.context.deps.env.clock;
        tracing::error!(
            %partition,
            "the partition does not open; its keys are not served until it does"
        );
        let mut pause = REOPEN_PAUSE;
        while self.still_serves().is_ok() {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                () = clock.sleep(pause) => {}
            }
            pause = (pause * 2).min(REOPEN_PAUSE_MAX);
            match self.reopen(&host.context, partition, 1).await {
                Ok(new) => {
                    let range = new.core.range().clone();
                    host.opened.add(new);
                    self.moved(host, partition, range, frozen_at);
                    break;
                }
                Err(error) => {
                    tracing::warn!(%partition, %error, "the partition still does not open");
                }
            }
        }
    }

    fn note(&self, kind: ChangeKind, replaced: Replaced, host: HostId, pause: Duration) {
        let at = self.deps().map_or(Timestamp::ZERO, |deps| deps.env.clock.now());
        let Replaced { from, to, range } = replaced;
        self.changes.note(ChangeEvent { number: 0, at, kind, from, to, range, host, pause });
    }

    fn still_serves(&self) -> Result<(), Error> {
        if self.stop.is_cancelled() {
            return Err(Error::Unavailable("the index is stopping".into()));
        }
        Ok(())
    }

    /// Ids that no partition has or had. The counter did not give out those of a store's first map.
    async fn fresh_ids(&self, count: usize) -> Result<Vec<PartitionId>, Error> {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let deps = self.deps()?;
        loop {
            let ids =
                counter::allocate(deps.coordinator.as_ref(), deps.cluster, PARTITION_IDS, count);
            let ids = ids.await.map_err(|error| Failed::refused(&error))?;
            if ids.start >= bootstrap::first_map_ids(deps.cluster).end {
                return Ok(ids.map(PartitionId::new).collect());
            }
        }
    }
}

/// Replaces old partitions of a host by new ones. Returns for how long the range took no writes.
async fn replace(
    host: &Host,
    old: &[Arc<Partition>],
    new: Vec<Partition>,
    frozen_at: Duration,
) -> Duration {
    host.opened.replace(old, new);
    let pause = host.context.deps.env.clock.monotonic().saturating_sub(frozen_at);
    for old in old {
        old.abandon().await;
    }
    pause
}

/// The ranges between `keys`; `None` if the keys do not divide `range`.
fn cut(range: &KeyRange, keys: &[RoutingKey]) -> Option<Vec<KeyRange>> {
    let ascending = keys.is_sorted_by(|a, b| a < b);
    let inside = keys
        .iter()
        .all(|key| range.contains(key.as_bytes()) && key != range.low() && !is_inside_a_table(key));
    if keys.is_empty() || keys.len() >= CHILDREN_MAX || !ascending || !inside {
        return None;
    }
    let lows = std::iter::once(range.low()).chain(keys);
    let highs = keys.iter().map(Some).chain([range.high()]);
    Some(lows.zip(highs).map(|(low, high)| KeyRange::new(low.clone(), high.cloned())).collect())
}

/// Whether a key lies among the container rows of an account, which stay in one partition
/// (`api-spec/keys.md`).
pub(super) fn is_inside_a_table(key: &RoutingKey) -> bool {
    const CONTAINER: std::ops::Range<usize> = 8..16;
    key.as_bytes().len() > CONTAINER.end
        && key.as_bytes().get(..8).is_some_and(|account| account != [0; 8])
        && key.as_bytes().get(CONTAINER).is_some_and(|container| container == [0; 8])
}

#[cfg(test)]
mod stripe_tests;
#[cfg(test)]
mod tests;
