//! Commands about partitions, carried out by the index server.

use std::sync::Arc;
use std::time::Duration;

use crate::env::Clock;
use crate::frontend::Accounts;
use crate::index::CHILDREN_MAX;
use crate::index::ChangeError;
use crate::index::IndexServer;
use crate::index::PartitionStatus;
use crate::index::Router;
use crate::types::HostId;
use crate::types::KeyRange;
use crate::types::PartitionId;
use crate::types::RoutingKey;

use super::directory::Directory;
use super::error::PartitionError;
use super::looks::Looks;
use super::names;
use super::prepare::CHARACTERS;
use super::prepare::Prefix;
use super::prepare::Prepare;
use super::views::ChangeView;
use super::views::Made;
use super::views::MapView;
use super::views::PartitionView;

/// Parts of one split by number, and of a preparation.
const SPLIT_MAX: usize = CHILDREN_MAX;
const PREPARE_MAX: usize = 256;
/// Tries when the map changes under a command.
const TRIES: usize = 8;
/// Between them.
const TRY_PAUSE: Duration = Duration::from_millis(20);

/// Shows, splits, merges and moves partitions; cheap to clone.
#[derive(Clone, Debug)]
pub struct PartitionStore {
    index: Arc<IndexServer>,
    directory: Arc<Directory>,
    looks: Arc<Looks>,
    clock: Arc<dyn Clock>,
}

impl PartitionStore {
    /// Over the partitions of this process, with names from the accounts a front end serves.
    #[must_use]
    pub fn new(
        index: Arc<IndexServer>,
        names: (Accounts, Arc<Router>),
        clock: Arc<dyn Clock>,
    ) -> Self {
        let directory = Arc::new(Directory::new(names, Arc::clone(&clock)));
        Self { index, directory, looks: Arc::default(), clock }
    }

    /// All partitions, or those that changed since a look, and the changes of the map after the one
    /// of this number.
    pub(super) async fn look(&self, after: u64, since: Option<u64>) -> MapView {
        let changes: Vec<_> = self.index.changes_after(after);
        let latest = match changes.last() {
            Some(last) => Some(last.number),
            None => self.index.changes_after(0).last().map(|last| last.number),
        };
        // After the changes, so that whatever they made is there or has changed again.
        let now = self.clock.now();
        let told = self.looks.tell(now, self.index.status(), since);
        let bounds =
            told.partitions.iter().map(|p| names::owner(p.range.low().as_bytes())).collect();
        self.directory.look_up(bounds).await;
        let view = |partition| PartitionView::new(partition, self.directory.as_ref());
        MapView {
            now: now.to_iso(),
            look: told.number,
            since: told.since,
            gone: told.gone.iter().map(|id| id.get()).collect(),
            hosts: self.index.hosts(),
            latest_change: latest.unwrap_or(0),
            partitions: told.partitions.into_iter().map(view).collect(),
            changes: changes.into_iter().map(ChangeView::from).collect(),
        }
    }

    /// Splits the partition in which all of `texts` lie, there.
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

    /// Splits a partition into parts of the same load or, where that is not known, of as many rows.
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

    /// Deals the blobs of a partition out to stripes.
    pub(super) async fn stripe(&self, partition: u64, stripes: u8) -> Result<Made, PartitionError> {
        Ok(self.index.stripe(PartitionId::new(partition), stripes).await?.into())
    }

    /// Merges all stripes of the range that a partition is a stripe of.
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

    /// Merges partitions that lie side by side, or all stripes of a range, given in any order.
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
        let moved = self.index.move_to(PartitionId::new(partition), HostId::new(host)).await?;
        Ok(moved.into())
    }

    /// Gives the names that start with a prefix partitions of their own before there are any.
    pub(super) async fn prepare(&self, wanted: &Prepare) -> Result<Made, PartitionError> {
        if !(2..=PREPARE_MAX).contains(&wanted.ways) {
            return Err(PartitionError::Parts(PREPARE_MAX));
        }
        let (account, container, collation) =
            self.directory.container_of(&wanted.container).await?;
        let prefix = Prefix { account, container, collation, text: &wanted.prefix };
        let range = prefix.range();
        let inner = match &wanted.like {
            Some(like) => {
                let sibling = Prefix { text: like, ..prefix };
                let found = self.index.even_cuts_of(&sibling.range(), wanted.ways).await?;
                if found.is_empty() {
                    return Err(PartitionError::NoSibling(like.clone()));
                }
                found.iter().filter_map(|key| prefix.like(&sibling, key)).collect()
            }
            None => {
                let characters = wanted.characters.as_deref().unwrap_or(CHARACTERS);
                prefix.evenly(characters, wanted.ways)?
            }
        };
        let mut keys = vec![range.low().clone()];
        keys.extend(inner);
        keys.extend(range.high().cloned());
        let mut made = self.cut(&keys).await?;
        made.partitions = inside(&self.index.status(), &range).map(|p| p.id.get()).collect();
        if wanted.spread {
            self.spread(&range, &mut made).await?;
        }
        Ok(made)
    }

    /// Has partitions begin at `keys`, ascending, wherever none does yet.
    async fn cut(&self, keys: &[RoutingKey]) -> Result<Made, PartitionError> {
        let mut made = Made::default();
        let mut failures = 0;
        while failures < TRIES {
            let done = match next_cut(&self.index.status(), keys) {
                NextCut::None => return Ok(made),
                NextCut::Later => Err(ChangeError::NoSuchPartition),
                NextCut::At(partition, keys) => self.index.split(partition, &keys).await,
            };
            match done {
                Err(ChangeError::NoSuchPartition) => {
                    failures += 1;
                    self.clock.sleep(TRY_PAUSE).await;
                }
                done => add(&mut made, &done?.into()),
            }
        }
        Err(ChangeError::Busy.into())
    }

    /// Deals the partitions of a range out to the hosts in turn.
    async fn spread(&self, range: &KeyRange, made: &mut Made) -> Result<(), PartitionError> {
        let here: Vec<_> = inside(&self.index.status(), range).map(|p| (p.id, p.host)).collect();
        let hosts = u64::try_from(self.index.hosts()).unwrap_or(u64::MAX);
        for (place, (partition, host)) in (0_u64..).zip(here) {
            let wanted = HostId::new(place % hosts.max(1));
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

/// The one partition all keys lie in; none while one of them is between two hosts.
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

/// What is to be split next for partitions to begin at all keys.
enum NextCut {
    /// They do.
    None,
    /// The partition is between two hosts.
    Later,
    /// This one, there.
    At(PartitionId, Vec<RoutingKey>),
}

fn next_cut(status: &[PartitionStatus], keys: &[RoutingKey]) -> NextCut {
    let is_border = |key: &RoutingKey| status.iter().any(|p| p.range.low() == key);
    let mut rest = keys.iter().filter(|key| !is_border(key)).peekable();
    let Some(first) = rest.peek() else { return NextCut::None };
    let Some(owner) = owner(status, first) else { return NextCut::Later };
    let inside = rest.take_while(|key| owner.range.contains(key.as_bytes()));
    NextCut::At(owner.id, inside.take(CHILDREN_MAX - 1).cloned().collect())
}

/// The partition a key lies in; none while it is between two hosts.
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
    fn merge_that_moved_partitions_is_not_told_as_nothing() {
        let refused = ChangeError::Refused(index::Error::Full(index::Full::Disks));
        let text = PartitionError::from(refused.clone()).to_string();
        assert!(text.starts_with("nothing was changed: "), "{text}");
        let text = PartitionError::from(ChangeError::PartlyDone(Box::new(refused))).to_string();
        assert!(!text.contains("nothing was changed"), "{text}");
        assert!(text.contains("were moved") && text.contains("partitions list"), "{text}");
    }
}
