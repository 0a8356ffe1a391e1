//! Commands for partitions, carried out by the index.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::env::Clock;
use crate::env::Env;
use crate::frontend::Accounts;
use crate::index::CHILDREN_MAX;
use crate::index::ChangeError;
use crate::index::IndexServer;
use crate::index::PartitionStatus;
use crate::index::Router;
use crate::types::ContainerKey;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::RoutingKey;

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
    index: Arc<IndexServer>,
    directory: Arc<Directory>,
    history: Arc<MapHistory>,
    load: Arc<LoadHistory>,
    clock: Arc<dyn Clock>,
}

impl PartitionStore {
    /// A store over the partitions of this process. Names come from the accounts that the front end
    /// serves, and through the router.
    #[must_use]
    pub fn new(
        index: Arc<IndexServer>,
        accounts: Accounts,
        router: Arc<Router>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let directory = Arc::new(Directory::new(accounts, router, Arc::clone(&clock)));
        let (history, load) = (Arc::default(), Arc::default());
        Self { index, directory, history, load, clock }
    }

    /// Keeps the load of the last ten minutes from now on, until `stop` fires. Each sample, every
    /// two seconds, costs about a microsecond of processor time for each partition.
    pub fn keep_history(&self, env: &Env, stop: CancellationToken) {
        let (store, ending) = (self.clone(), stop.clone());
        let keep = move || {
            let (store, ending) = (store.clone(), ending.clone());
            async move {
                loop {
                    store.sample();
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
    pub(in crate::admin) fn sample(&self) {
        let taken = self.clock.monotonic();
        if self.load.is_due(taken) {
            self.load.note(self.clock.now(), taken, self.index.counts());
        }
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
    pub(super) async fn map_view(&self, after: u64, since: Option<u64>) -> MapView {
        let changes: Vec<_> = self.index.changes_after(after);
        let latest = match changes.last() {
            Some(last) => Some(last.number),
            None => self.index.changes_after(0).last().map(|last| last.number),
        };
        // Read after the changes, so that the partitions that they made exist or have changed
        // again.
        let now = self.clock.now();
        let delta = self.history.delta(now, self.index.status(), since);
        let bounds = delta.partitions.iter().map(|p| ContainerKey::of(p.range.low().as_bytes()));
        self.directory.look_up(bounds.collect()).await;
        let view = |partition| PartitionView::new(partition, self.directory.as_ref());
        MapView {
            now: now.to_iso(),
            number: delta.number,
            since: delta.since,
            gone: delta.gone.iter().map(|id| id.get()).collect(),
            hosts: self.index.hosts(),
            latest_change: latest.unwrap_or(0),
            partitions: delta.partitions.into_iter().map(view).collect(),
            changes: changes.into_iter().map(ChangeView::from).collect(),
        }
    }

    /// Splits the partition in which all of `texts` lie, at these keys.
    pub(super) async fn split_at(&self, texts: &[String]) -> Result<Made, PartitionError> {
        let mut keys = Vec::new();
        for text in texts {
            let key = self.directory.key(text).await?;
            if self.index.status().iter().any(|partition| *partition.range.low() == key) {
                return Err(PartitionError::AlreadyBorder(text.clone()));
            }
            keys.push(key);
        }
        keys.sort_unstable();
        keys.dedup();
        for _ in 0..TRIES {
            if let Some(partition) = one_owner(&self.index.status(), &keys)? {
                match self.index.split(partition, &keys).await {
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
        Ok(self.index.split(id, &keys).await?.into())
    }

    /// Distributes the blobs of a partition over stripes.
    pub(super) async fn stripe(&self, partition: u64, stripes: u8) -> Result<Made, PartitionError> {
        Ok(self.index.stripe(PartitionId::new(partition), stripes).await?.into())
    }

    /// Merges all stripes of the range of a partition.
    pub(super) async fn unstripe(&self, partition: u64) -> Result<Made, PartitionError> {
        let status = self.index.status();
        let one = status.iter().find(|one| one.id.get() == partition);
        let one = one.ok_or(ChangeError::NoSuchPartition)?;
        let of_it = status.iter().filter(|other| other.range == one.range);
        let ids: Vec<PartitionId> = of_it.map(|stripe| stripe.id).collect();
        if one.stripe.is_none() {
            return Ok(Made { partitions: vec![partition], ..Made::default() });
        }
        Ok(self.index.merge(&ids).await?.into())
    }

    /// Merges neighbouring partitions, or all stripes of a range, in any order.
    pub(super) async fn merge(&self, partitions: &[u64]) -> Result<Made, PartitionError> {
        let status = self.index.status();
        let mut places = Vec::new();
        for id in partitions {
            let place = status.iter().position(|partition| partition.id.get() == *id);
            places.push((place.ok_or(ChangeError::NoSuchPartition)?, PartitionId::new(*id)));
        }
        places.sort_unstable();
        let ids: Vec<PartitionId> = places.into_iter().map(|(_, id)| id).collect();
        Ok(self.index.merge(&ids).await?.into())
    }

    /// Moves a partition to another host.
    pub(super) async fn move_to(&self, partition: u64, host: u64) -> Result<Made, PartitionError> {
        let moved =
            self.index.move_to(PartitionId::new(partition), self.index.host_id(host)).await?;
        Ok(moved.into())
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
                let found = self.index.even_cuts_of(&model.range(), wanted.ways).await?;
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
        made.partitions = inside(&self.index.status(), &range).map(|p| p.id.get()).collect();
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
            let done = match next_split(&self.index.status(), keys) {
                NextSplit::None => return Ok(made),
                NextSplit::Later => Err(ChangeError::NoSuchPartition),
                NextSplit::At(partition, keys) => self.index.split(partition, &keys).await,
            };
            match done {
                Err(ChangeError::NoSuchPartition) => {
                    failures += 1;
                    self.clock.sleep(TRY_PAUSE).await;
                }
                done => add(&mut made, &done?.into()),
            }
        }
        Err(ChangeError::Busy("their ranges keep changing").into())
    }

    /// Moves the partitions of a range to the hosts in turn.
    async fn distribute(&self, range: &KeyRange, made: &mut Made) -> Result<(), PartitionError> {
        let here: Vec<_> = inside(&self.index.status(), range).map(|p| (p.id, p.host)).collect();
        let hosts = u64::try_from(self.index.hosts()).unwrap_or(u64::MAX);
        for (place, (partition, host)) in (0_u64..).zip(here) {
            let wanted = self.index.host_id(place % hosts.max(1));
            if host != wanted {
                add(made, &self.index.move_to(partition, wanted).await?.into());
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
