//! The index server: the partitions of a process, their hosts, and changes of the partition map.
//!
//! 1. `bootstrap.rs` writes the map of a new store.
//! 2. This file opens and closes the hosts, and passes each request to the host of its partition.
//!    `host.rs`: a host, which is a set of partitions that share memory, cache, background work and
//!    perhaps a thread.
//! 3. `change.rs`: splits, merges and moves; `give.rs`: moves to other nodes. `claims.rs` keeps a
//!    partition from taking part in two of them at a time. `plan.rs` carries out changes that a
//!    manager plans. `spread.rs` finds keys that cut a range into even parts.
//! 4. `status.rs` and `changes.rs` show the partitions and the latest changes of the map.
//!    `measure.rs` and `reports.rs` report the load to a manager.
//! 5. In a cluster, `assigned.rs` opens what the map gives to this process, and leaves what it
//!    gives to others.
//! 6. `reopen.rs` opens a partition again that stopped writing or did not open at the start.
//!    `rewrite.rs` rewrites files that hold old secrets. `cut.rs` reads all partitions as of one
//!    instant, for a backup.
//!
//! Each host may have a thread of its own. Hosts share only the pins of runs. They communicate
//! through the coordinator and the partitions' logs, as separate processes would.
//!
//! Not here: the decision when to change the map (the manager).

mod assigned;
mod bootstrap;
mod change;
mod changes;
mod claims;
mod cut;
mod give;
mod host;
mod measure;
mod plan;
mod reopen;
mod reports;
mod rewrite;
mod spread;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::env::Boxed;
use crate::env::Tasks;
use crate::env::boxed;
use crate::index::api::Error;
use crate::index::api::IndexHost;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Target;
use crate::index::api::Write;
use crate::index::api::WriteId;
use crate::index::api::WriteReply;
use crate::index::engine;
use crate::index::engine::Config;
use crate::index::engine::Dependencies;
use crate::index::engine::HostContext;
use crate::index::engine::Pins;
use crate::index::map::PartitionMap;
use crate::index::server::claims::Claims;
use crate::index::server::host::Closed;
use crate::index::server::host::Host;
use crate::index::server::reopen::Reopener;
use crate::types::ClusterNumber;
use crate::types::ExtentId;
use crate::types::HostId;
use crate::types::NodeId;
use crate::types::PartitionId;
use crate::types::RoutingKey;

pub use bootstrap::create_map;
pub use changes::LatestChanges;
pub use cut::{ConsistentCut, CutError};
pub use plan::LocalPartitions;
pub use reports::LoadReports;
pub use spread::even as even_cuts;

/// All hosts of one process.
#[derive(Debug)]
pub struct IndexServer {
    /// At least one. The id of a host is its position.
    hosts: Vec<Host>,
    /// Permits one change of a partition at a time, and none during shutdown.
    claims: Arc<Claims>,
    stop: CancellationToken,
    changes: LatestChanges,
    /// The tasks that carry out changes.
    control: Tasks,
}

impl IndexServer {
    /// Opens every partition of the coordinator's map, several at a time. Its descriptor names its
    /// host; the first host opens it if there is no such host. A new store first gets a map of
    /// [`Config::initial_partitions`]. `hosts` are the dependencies of each host, which differ only
    /// in their tasks. All hosts share the memory that `config` grants.
    ///
    /// A process of a cluster opens nothing yet: [`Self::follow_map`] does.
    ///
    /// A partition whose files are damaged or missing is quarantined: it answers
    /// [`crate::index::Damage::Quarantined`], and all others serve. A partition whose files cannot
    /// be used for another reason is tried again until it opens.
    ///
    /// # Errors
    /// If all partitions are quarantined: the error of the first. [`Error::Unavailable`] when the
    /// coordinator does not answer; [`Error::WrongPartition`] when another process opens them at
    /// the same time.
    pub async fn open(hosts: Vec<Dependencies>, config: Config) -> Result<Self, Error> {
        let cluster = hosts.first().map_or(ClusterNumber::ALONE, |first| first.cluster);
        let boundaries = bootstrap::even_boundaries(cluster, config.initial_partitions);
        Self::open_with(hosts, config, &boundaries).await
    }

    /// As [`Self::open`]. A new store gets partitions between these boundaries, which are ascending
    /// and not empty.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_with(
        hosts: Vec<Dependencies>,
        config: Config,
        boundaries: &[RoutingKey],
    ) -> Result<Self, Error> {
        let count = hosts.len().max(1);
        let first = hosts.first().ok_or_else(|| Error::Unavailable("no host".into()))?;
        let control = first.env.tasks.clone();
        let node = first.node;
        let map = first_map(first, boundaries).await?;
        let pins = Arc::<Pins>::default();
        let config = Config {
            memtable_bytes_max: config.memtable_bytes_max / count,
            block_cache_bytes: config.block_cache_bytes / count,
            replay_bytes_max: config.replay_bytes_max / count,
            ..config
        };
        let contexts: Vec<Arc<HostContext>> = (0..)
            .zip(hosts)
            .map(|(id, deps)| {
                Arc::new(HostContext::new(deps, config, HostId::of(node, id), Arc::clone(&pins)))
            })
            .collect();
        let opening = contexts.into_iter().map(|context| {
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            let here = |host: HostId| {
                host == context.host || (host.number() >= count && context.host.number() == 0)
            };
            let ids: Vec<PartitionId> =
                map.partitions().iter().filter(|p| here(p.host)).map(|p| p.id).collect();
            Host::open(context, ids)
        });
        let mut opened = Vec::new();
        let mut failed = None;
        for host in join_all(opening).await {
            match host {
                Ok(host) => opened.push(host),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if opened.iter().all(|host| host.opened.all().is_empty()) {
            let closed: Vec<Closed> = opened.iter().flat_map(|host| host.opened.closed()).collect();
            let mut out = closed.iter().all(Closed::is_quarantined).then_some(closed).into_iter();
            failed = failed.or_else(|| Some(out.next()?.into_iter().next()?.error));
        }
        if let Some(error) = failed {
            for host in &opened {
                host.shutdown().await;
            }
            return Err(error);
        }
        opened.iter().for_each(Host::begin_upkeep);
        let (claims, stop) = (Arc::<Claims>::default(), CancellationToken::new());
        let all: Vec<_> = opened.iter().map(|host| Arc::clone(&host.opened)).collect();
        for host in &opened {
            start_reopener(Reopener {
                context: Arc::clone(&host.context),
                opened: Arc::clone(&host.opened),
                all: all.clone(),
                claims: Arc::clone(&claims),
                stop: stop.clone(),
            });
        }
        tracing::info!(partitions = map.partitions().len(), hosts = count, "the index serves");
        let changes = LatestChanges::default();
        Ok(Self { hosts: opened, claims, stop, changes, control })
    }

    /// Carries out changes of the map in the tasks of `control` instead of those of the first host.
    /// With a thread of its own, `control` does not wait behind thousands of requests, which is
    /// when changes are needed.
    #[must_use]
    pub fn controlled_by(self, control: Tasks) -> Self {
        Self { control, ..self }
    }

    /// Refuses writes from now on, flushes all partitions so that the next start has nothing to
    /// replay, and ends all tasks. Reads are still answered.
    pub async fn shutdown(&self) {
        // First, because a change may be waiting for a partition to open.
        self.stop.cancel();
        // From now on no change begins.
        self.claims.none().await;
        join_all(self.hosts.iter().map(Host::shutdown)).await;
        tracing::info!("the index has stopped");
    }

    /// How many partitions are open.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.hosts.iter().map(|host| host.opened.all().len()).sum()
    }

    /// How many hosts there are.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// The hosts, in order.
    #[must_use]
    pub fn host_ids(&self) -> Vec<HostId> {
        self.hosts.iter().map(|host| host.context.host).collect()
    }

    /// Flushes all partitions now; for tests and before maintenance.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Unavailable`], [`Error::WrongPartition`].
    pub async fn flush(&self) -> Result<(), Error> {
        for host in &self.hosts {
            for partition in host.opened.all() {
                partition.flush().await?;
            }
        }
        Ok(())
    }

    /// The dependencies of the first host. Those of the others differ only in their tasks.
    fn deps(&self) -> Result<&Dependencies, Error> {
        let first = self.hosts.first().ok_or_else(|| Error::Unavailable("no host".into()))?;
        Ok(&first.context.deps)
    }

    /// The node of a cluster that this process is; zero if it is alone.
    fn node(&self) -> NodeId {
        self.hosts.first().map_or(NodeId::new(0), |host| host.context.host.node())
    }

    /// A host of this process, by its number there.
    #[must_use]
    pub fn host_id(&self, number: u64) -> HostId {
        HostId::of(self.node(), number)
    }

    async fn write_as(
        &self,
        target: Target,
        id: Option<WriteId>,
        write: Arc<Write>,
    ) -> Result<WriteReply, Error> {
        let host = self.host(target.host).ok_or(Error::WrongPartition)?;
        host.partition(target)?.write_once(target.epoch, id, write).await
    }

    fn host(&self, id: HostId) -> Option<&Host> {
        let here = self.hosts.get(usize::try_from(id.number()).ok()?)?;
        (here.context.host == id).then_some(here)
    }

    /// The host that has a partition open.
    fn host_of(&self, partition: PartitionId) -> Option<&Host> {
        self.hosts.iter().find(|host| host.opened.get(partition).is_some())
    }
}

/// The partitions that a server opens at its start: those of the map of a node alone, which gets
/// one if it has none.
async fn first_map(deps: &Dependencies, boundaries: &[RoutingKey]) -> Result<PartitionMap, Error> {
    if deps.node != NodeId::new(0) {
        return Ok(PartitionMap::default());
    }
    let (coordinator, hosts) = (deps.coordinator.as_ref(), [HostId::new(0)]);
    bootstrap::create(coordinator, (deps.cluster, &hosts), boundaries).await?;
    let map = PartitionMap::load(coordinator).await?;
    engine::upgrade(coordinator, deps.capacity.as_ref(), &map).await?;
    Ok(map)
}

/// Starts the task that opens stopped partitions of a host again, until the server stops.
fn start_reopener(reopener: Reopener) {
    let reopener = Arc::new(reopener);
    let (env, stop) = (reopener.context.deps.env.clone(), reopener.stop.clone());
    let run = move || Arc::clone(&reopener).run();
    drop(env.supervise("index reopener", stop, run));
}

#[async_trait]
impl IndexHost for IndexServer {
    async fn read(&self, target: Target, read: Read) -> Result<ReadReply, Error> {
        self.read_kept(target, &read).await
    }

    fn read_kept<'s, 'r, 'f>(
        &'s self,
        target: Target,
        read: &'r Read,
    ) -> Boxed<'f, Result<ReadReply, Error>>
    where
        's: 'f,
        'r: 'f,
    {
        boxed(move || async move {
            let host = self.host(target.host).ok_or(Error::WrongPartition)?;
            host.partition(target)?.read(target.epoch, read).await
        })
    }

    fn write_shared<'s, 'f>(
        &'s self,
        target: Target,
        write: Arc<Write>,
    ) -> Boxed<'f, Result<WriteReply, Error>>
    where
        's: 'f,
    {
        boxed(move || self.write_as(target, None, write))
    }

    fn write_once<'s, 'f>(
        &'s self,
        target: Target,
        id: WriteId,
        write: Arc<Write>,
    ) -> Boxed<'f, Result<WriteReply, Error>>
    where
        's: 'f,
    {
        boxed(move || self.write_as(target, Some(id), write))
    }

    async fn owned_extents(&self) -> Vec<ExtentId> {
        let partitions = self.hosts.iter().flat_map(|host| host.opened.all());
        let uses: BTreeSet<ExtentId> = partitions.flat_map(|one| one.core.uses()).collect();
        uses.into_iter().collect()
    }
}
