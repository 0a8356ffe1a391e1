//! Commands for partitions, carried out by the processes that serve them.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::env::Clock;
use crate::env::Env;
use crate::frontend::Accounts;
use crate::index::CHILDREN_MAX;
use crate::index::ChangeError;
use crate::index::PartitionControl;
use crate::index::PartitionStatus;
use crate::index::Plan;
use crate::index::Router;
use crate::index::ServedPartitions;
use crate::index::even_cuts;
use crate::types::ContainerKey;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::NodeId;
use crate::types::PartitionId;
use crate::types::RoutingKey;

use super::change_log::ChangeLog;
use super::directory::Directory;
use super::error::PartitionError;
use super::history::MapHistory;
use super::load_history::LoadHistory;
use super::load_history::TICK;
use super::load_views::HistoryView;
use super::prepare::CHARACTERS;
use super::prepare::Prefix;
use super::prepare::Prepare;
use super::views::ChangeView;
use super::views::Made;
use super::views::MapView;
use super::views::PartitionView;

/// The largest number of parts of a split.
const SPLIT_MAX: usize = CHILDREN_MAX;
/// The largest number of partitions of a preparation.
const PREPARE_MAX: usize = 256;
/// Attempts when the map changes during a command.
const TRIES: usize = 8;
/// The pause between two attempts.
const TRY_PAUSE: Duration = Duration::from_millis(20);

/// Shows, splits, merges and moves partitions; cheap to clone.
#[derive(Clone, Debug)]
pub struct PartitionStore {
    index: Arc<dyn PartitionControl>,
    directory: Arc<Directory>,
    history: Arc<MapHistory>,
    changes: Arc<ChangeLog>,
    load: Arc<LoadHistory>,
    clock: Arc<dyn Clock>,
}

impl PartitionStore {
    /// A store over these partitions. Names come from the accounts that the front end serves, and
    /// through the router.
    #[must_use]
    pub fn new(
        index: Arc<dyn PartitionControl>,
        accounts: Accounts,
        router: Arc<Router>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let names = (accounts, router);
        let directory = Directory::new(Arc::clone(&index), names, Arc::clone(&clock));
        let (directory, history) = (Arc::new(directory), Arc::default());
        let (changes, load) = (Arc::default(), Arc::default());
        Self { index, directory, history, changes, load, clock }
    }

    /// Keeps the load of the last ten minutes from now on, until `stop` fires. Each sample, every
    /// two seconds, costs about a microsecond of processor time for each partition, and in a
    /// cluster a call to each other process.
    pub fn keep_history(&self, env: &Env, stop: CancellationToken) {
        let (store, ending) = (self.clone(), stop.clone());
        let keep = move || {
            let (store, ending) = (store.clone(), ending.clone());
            async move {
                loop {
                    store.sample().await;
                    tokio::select! {
                        biased;
                        () = ending.cancelled() => return,
                        () = store.clock.sleep(TICK) => {}
                    }
                }
            }
        };
        drop(env.supervise("partition history", stop, keep));
    }

    /// Takes a sample of the load if the next one is due.
    pub(in crate::admin) async fn sample(&self) {
        let taken = self.clock.monotonic();
        if !self.load.is_due(taken) {
            return;
        }
        match self.index.counts().await {
            Ok(counts) => self.load.note(self.clock.now(), taken, counts),
            Err(error) => tracing::debug!(%error, "the load of partitions is not known"),
        }
    }

    /// The status of all partitions, in key order; stripes of one range by number.
    async fn status(&self) -> Result<Vec<PartitionStatus>, PartitionError> {
        Ok(self.index.served().await?.partitions)
    }

    /// The load of the last ten minutes, or what has come since sample number `after`, and the
    /// containers, unless they are those that `names` numbers.
    pub(super) async fn history_view(&self, after: Option<u64>, names: Option<u64>) -> HistoryView {
        let part = self.load.after(after);
        let ends = part.stays.iter().flat_map(|stay| [Some(stay.range.low()), stay.range.high()]);
        let ends = ends.flatten().map(|end| ContainerKey::of(end.as_bytes()));
        self.directory.look_up(ends.collect()).await;
        let contents = self.directory.contents().await;
        let now = self.clock.now().to_iso();
        HistoryView::new(now, part, self.directory.as_ref(), &contents, names)
    }

    /// All partitions, or those that changed since an earlier answer, and the changes of the map
    /// after change number `after`.
    pub(super) async fn map_view(
        &self,
        after: u64,
        since: Option<u64>,
    ) -> Result<MapView, PartitionError> {
        self.changes.add(self.index.changes(&self.changes.known()).await?);
        let (changes, latest) = self.changes.after(after);
        // Read after the changes, so that the partitions that they made exist or have changed
        // again.
        let now = self.clock.now();
        let ServedPartitions { hosts, partitions } = self.index.served().await?;
        let delta = self.history.delta(now, partitions, since);
        let bounds = delta.partitions.iter().map(|p| ContainerKey::of(p.range.low().as_bytes()));
        self.directory.look_up(bounds.collect()).await;
        let known = self.directory.as_ref();
        Ok(MapView {
            now: now.to_iso(),
            number: delta.number,
            since: delta.since,
            gone: delta.gone.iter().map(|id| id.get()).collect(),
            hosts: hosts.len(),
            latest_change: latest,
            partitions: delta
                .partitions
                .into_iter()
                .map(|p| PartitionView::new(p, known))
                .collect(),
            changes: changes.iter().map(|change| ChangeView::new(change, known)).collect(),
        })
    }

    /// Splits the partition in which all of `texts` lie, at these keys.
    pub(super) async fn split_at(&self, texts: &[String]) -> Result<Made, PartitionError> {
        let mut keys = Vec::new();
        let status = self.status().await?;
        for text in texts {
            let key = self.directory.key(text).await?;
            if status.iter().any(|partition| *partition.range.low() == key) {
                return Err(PartitionError::AlreadyBorder(text.clone()));
            }
            keys.push(key);
        }
        keys.sort_unstable();
        keys.dedup();
        for _ in 0..TRIES {
            if let Some(partition) = one_owner(&self.status().await?, &keys)? {
                match self.index.change(Plan::Split(partition, keys.clone())).await {
                    Err(ChangeError::NoSuchPartition) => {}
                    done => return Ok(done?.into()),
                }
            }
            self.clock.sleep(TRY_PAUSE).await;
        }
        Err(ChangeError::NoSuchPartition.into())
    }

    /// Splits a partition into parts of equal load, or of equally many rows if the load is unknown.
    pub(super) async fn split_evenly(
        &self,
        partition: u64,
        parts: usize,
    ) -> Result<Made, PartitionError> {
        if !(2..=SPLIT_MAX).contains(&parts) {
            return Err(PartitionError::Parts(SPLIT_MAX));
        }
        let id = PartitionId::new(partition);
        let keys = self.index.even_cuts(id, parts).await?;
        if keys.is_empty() {
            return Err(PartitionError::TooFewKeys(partition));
        }
        Ok(self.index.change(Plan::Split(id, keys)).await?.into())
    }

    /// Distributes the blobs of a partition over stripes.
    pub(super) async fn stripe(&self, partition: u64, stripes: u8) -> Result<Made, PartitionError> {
        let id = PartitionId::new(partition);
        let found = self.status().await?.into_iter().find(|one| one.id == id);
        let range = found.ok_or(ChangeError::NoSuchPartition)?.range;
        Ok(self.index.change(Plan::Stripe(id, range, stripes)).await?.into())
    }

    /// Merges all stripes of the range of a partition.
    pub(super) async fn unstripe(&self, partition: u64) -> Result<Made, PartitionError> {
        let status = self.status().await?;
        let one = status.iter().find(|one| one.id.get() == partition);
        let one = one.ok_or(ChangeError::NoSuchPartition)?;
        let of_it = status.iter().filter(|other| other.range == one.range);
        let ids: Vec<PartitionId> = of_it.map(|stripe| stripe.id).collect();
        if one.stripe.is_none() {
            return Ok(Made { partitions: vec![partition], ..Made::default() });
        }
        Ok(self.index.change(Plan::Merge(ids)).await?.into())
    }

    /// Merges neighbouring partitions, or all stripes of a range, in any order.
    pub(super) async fn merge(&self, partitions: &[u64]) -> Result<Made, PartitionError> {
        let status = self.status().await?;
        let mut places = Vec::new();
        for id in partitions {
            let place = status.iter().position(|partition| partition.id.get() == *id);
            places.push((place.ok_or(ChangeError::NoSuchPartition)?, PartitionId::new(*id)));
        }
        places.sort_unstable();
        let ids: Vec<PartitionId> = places.into_iter().map(|(_, id)| id).collect();
        Ok(self.index.change(Plan::Merge(ids)).await?.into())
    }

    /// Moves a partition to another host of a node, or of the node that it is on.
    pub(super) async fn move_to(
        &self,
        partition: u64,
        node: Option<&str>,
        host: u64,
    ) -> Result<Made, PartitionError> {
        let (id, served) = (PartitionId::new(partition), self.index.served().await?);
        let at = match node {
            Some(name) => {
                let is_meant = |node: &NodeId| self.index.node_name(*node).as_deref() == Some(name);
                let found = served.hosts.iter().map(|host| host.node()).find(is_meant);
                found.ok_or_else(|| PartitionError::NoSuchNode(name.to_owned()))?
            }
            None => {
                let found = served.partitions.iter().find(|one| one.id == id);
                found.ok_or(ChangeError::NoSuchPartition)?.host.node()
            }
        };
        let to = HostId::of(at, host);
        if !served.hosts.contains(&to) {
            return Err(ChangeError::NoSuchHost.into());
        }
        Ok(self.index.change(Plan::Move(id, to)).await?.into())
    }

    /// Creates partitions for the names with a prefix before such names exist.
    pub(super) async fn prepare(&self, wanted: &Prepare) -> Result<Made, PartitionError> {
        if !(2..=PREPARE_MAX).contains(&wanted.ways) {
            return Err(PartitionError::Parts(PREPARE_MAX));
        }
        let prefix = self.directory.prefix(&wanted.container, &wanted.prefix).await?;
        let range = prefix.range();
        let inner = match &wanted.like {
            Some(like) => {
                let model = Prefix { text: like, ..prefix };
                let model_range = model.range();
                let spread = self.index.row_spread(&model_range, wanted.ways).await?;
                let found = even_cuts(spread, wanted.ways, &model_range);
                if found.is_empty() {
                    return Err(PartitionError::NoSibling(like.clone()));
                }
                found.iter().filter_map(|key| prefix.like(&model, key)).collect()
            }
            None => {
                let characters = wanted.characters.as_deref().unwrap_or(CHARACTERS);
                prefix.evenly(characters, wanted.ways)?
            }
        };
        let mut keys = vec![range.low().clone()];
        keys.extend(inner);
        keys.extend(range.high().cloned());
        let mut made = self.split_at_all(&keys).await?;
        made.partitions = inside(&self.status().await?, &range).map(|p| p.id.get()).collect();
        if wanted.spread {
            self.distribute(&range, &mut made).await?;
        }
        Ok(made)
    }

    /// Splits partitions so that one begins at each of `keys`, which are ascending.
    async fn split_at_all(&self, keys: &[RoutingKey]) -> Result<Made, PartitionError> {
        let mut made = Made::default();
        let mut failures = 0;
        while failures < TRIES {
            let done = match next_split(&self.status().await?, keys) {
                NextSplit::None => return Ok(made),
                NextSplit::Later => Err(ChangeError::NoSuchPartition),
                NextSplit::At(partition, keys) => {
                    self.index.change(Plan::Split(partition, keys)).await
                }
            };
            match done {
                Err(ChangeError::NoSuchPartition) => {
                    failures += 1;
                    self.clock.sleep(TRY_PAUSE).await;
                }
                done => add(&mut made, &done?.into()),
            }
        }
        Err(ChangeError::Busy("their ranges keep changing".into()).into())
    }

    /// Moves the partitions of a range to the hosts in turn.
    async fn distribute(&self, range: &KeyRange, made: &mut Made) -> Result<(), PartitionError> {
        let ServedPartitions { hosts, partitions } = self.index.served().await?;
        let here = inside(&partitions, range).map(|p| (p.id, p.host));
        for ((partition, host), wanted) in here.zip(hosts.iter().copied().cycle()) {
            if host != wanted {
                add(made, &self.index.change(Plan::Move(partition, wanted)).await?.into());
            }
        }
        Ok(())
    }
}

/// The partitions that begin inside a range, in key order.
fn inside<'a>(
    status: &'a [PartitionStatus],
    range: &'a KeyRange,
) -> impl Iterator<Item = &'a PartitionStatus> {
    status.iter().filter(|partition| range.contains(partition.range.low().as_bytes()))
}

/// The partition in which all keys lie; `None` while one of them is moving to another host.
fn one_owner(
    status: &[PartitionStatus],
    keys: &[RoutingKey],
) -> Result<Option<PartitionId>, PartitionError> {
    let mut found: Option<PartitionId> = None;
    for key in keys {
        let Some(owner) = owner(status, key) else { return Ok(None) };
        match found {
            Some(first) if first != owner.id => {
                return Err(PartitionError::SeveralPartitions(first.get(), owner.id.get()));
            }
            _ => found = Some(owner.id),
        }
    }
    Ok(found)
}

/// The next split, until a partition begins at each key.
enum NextSplit {
    /// A partition begins at each key.
    None,
    /// The partition is moving to another host.
    Later,
    /// Split this partition at these keys.
    At(PartitionId, Vec<RoutingKey>),
}

fn next_split(status: &[PartitionStatus], keys: &[RoutingKey]) -> NextSplit {
    let is_border = |key: &RoutingKey| status.iter().any(|p| p.range.low() == key);
    let mut rest = keys.iter().filter(|key| !is_border(key)).peekable();
    let Some(first) = rest.peek() else { return NextSplit::None };
    let Some(owner) = owner(status, first) else { return NextSplit::Later };
    let inside = rest.take_while(|key| owner.range.contains(key.as_bytes()));
    NextSplit::At(owner.id, inside.take(CHILDREN_MAX - 1).cloned().collect())
}

/// The partition in which a key lies; `None` while it is moving to another host.
fn owner<'a>(status: &'a [PartitionStatus], key: &RoutingKey) -> Option<&'a PartitionStatus> {
    status.iter().find(|partition| partition.range.contains(key.as_bytes()))
}

fn add(made: &mut Made, change: &Made) {
    made.changes += change.changes;
    made.pause_ms = made.pause_ms.max(change.pause_ms);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index;

    #[test]
    fn merge_that_moved_partitions_is_not_reported_as_nothing() {
        let refused = ChangeError::Refused(index::Error::Full(index::Full::Disks));
        let text = PartitionError::from(refused.clone()).to_string();
        assert!(text.starts_with("nothing was changed: "), "{text}");
        let text = PartitionError::from(ChangeError::PartlyDone(Box::new(refused))).to_string();
        assert!(!text.contains("nothing was changed"), "{text}");
        assert!(text.contains("were moved") && text.contains("partitions list"), "{text}");
    }
}
