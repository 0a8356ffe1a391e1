//! All records of a cluster, kept up to date in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use tokio::sync::watch;

use crate::capacity::groups::record::Unread;
use crate::capacity::groups::store::{self, AllGroups, Error, GroupAt, Stored};
use crate::coordinator;
use crate::coordinator::{Coordinator, Event, Follows, Revision, Snapshot, follow};
use crate::env::Clock;
use crate::types::GroupId;

/// Follows the records of all groups. It may be behind the coordinator, never ahead; what it knows
/// of a group only gets newer.
#[derive(Debug)]
pub struct GroupFollower {
    coordinator: Arc<dyn Coordinator>,
    known: Mutex<Known>,
    /// The revision up to which all changes are known.
    followed: watch::Sender<Revision>,
}

#[derive(Debug, Default)]
struct Known {
    groups: BTreeMap<GroupId, Stored>,
    /// All changes up to this revision are in `groups`.
    revision: Revision,
}

/// What is known of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    /// Its record.
    Record(GroupAt),
    /// Its record cannot be read.
    Unread(Unread),
    /// Nothing. It may have been made meanwhile: [`GroupFollower::find`] asks.
    Unknown,
}

impl GroupFollower {
    /// Reads all records. [`Self::follow`] keeps them up to date.
    ///
    /// # Errors
    /// Those of [`Coordinator::range`].
    pub async fn start(coordinator: Arc<dyn Coordinator>) -> Result<Self, coordinator::Error> {
        let all = store::read_all(coordinator.as_ref()).await?;
        let (followed, known) = (watch::Sender::new(all.revision), Mutex::default());
        let follower = Self { coordinator, known, followed };
        follower.take_groups(all);
        Ok(follower)
    }

    /// Follows the changes for ever. If changes were missed, all records are read again.
    ///
    /// Cancel safe: another call goes on.
    pub async fn follow(&self, clock: &dyn Clock) {
        follow(self.coordinator.as_ref(), clock, self).await;
    }

    /// The revision up to which all changes are known. The receiver hears of each change.
    #[must_use]
    pub fn followed(&self) -> watch::Receiver<Revision> {
        self.followed.subscribe()
    }

    /// What is known of a group.
    #[must_use]
    pub fn get(&self, group: GroupId) -> Followed {
        match self.lock().groups.get(&group).cloned() {
            Some(Stored { record: Ok(record), revision }) => {
                Followed::Record(GroupAt { record, revision })
            }
            Some(Stored { record: Err(unread), .. }) => Followed::Unread(unread),
            None => Followed::Unknown,
        }
    }

    /// The record of a group. It is read if the group is unknown; `None` if it was never made.
    ///
    /// # Errors
    /// [`Error::Unread`], [`Error::Coordinator`].
    pub async fn find(&self, group: GroupId) -> Result<Option<GroupAt>, Error> {
        match self.get(group) {
            Followed::Record(at) => Ok(Some(at)),
            Followed::Unread(unread) => Err(Error::Unread { group, unread }),
            Followed::Unknown => self.read(group).await,
        }
    }

    /// Reads a record again, whatever is known of it, and notes it.
    ///
    /// # Errors
    /// As of [`Self::find`].
    pub async fn read(&self, group: GroupId) -> Result<Option<GroupAt>, Error> {
        let found = store::read(self.coordinator.as_ref(), group).await?;
        if let Some(at) = &found {
            self.note(at.clone());
        }
        Ok(found)
    }

    /// Notes a record that was read or written here, if it is newer than what is known.
    pub fn note(&self, at: GroupAt) {
        let mut known = self.lock();
        // All changes up to this revision are known, also that a record was removed.
        if at.revision > known.revision {
            let (group, revision) = (at.record.id(), at.revision);
            known.set(group, Stored { record: Ok(at.record), revision });
        }
    }

    /// All records that are known and can be read, by ids.
    #[must_use]
    pub fn all(&self) -> Vec<GroupAt> {
        let known = self.lock();
        let readable = known.groups.values().filter_map(|stored| {
            let record = stored.record.as_ref().ok()?.clone();
            Some(GroupAt { record, revision: stored.revision })
        });
        readable.collect()
    }

    fn take_groups(&self, all: AllGroups) {
        let mut known = self.lock();
        // A store that is older than what was known was restored: only what it has counts. Else
        // what was read or written here meanwhile stays.
        let is_restored = all.revision < known.revision;
        known.groups.retain(|_, stored| !is_restored && stored.revision > all.revision);
        for (group, stored) in all.groups {
            known.set(group, stored);
        }
        known.revision = all.revision;
        drop(known);
        self.followed.send_replace(all.revision);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follows for GroupFollower {
    fn prefix(&self) -> &'static [u8] {
        store::prefix()
    }

    fn revision(&self) -> Revision {
        self.lock().revision
    }

    fn take(&self, events: Vec<Event>) {
        let Some(last) = events.last().map(|event| event.revision) else { return };
        let mut known = self.lock();
        for Event { key, value, revision } in events {
            match (store::group_of(&key), value) {
                (Some(group), Some(value)) => {
                    known.set(group, Stored::of(group, &value, revision));
                }
                (Some(group), None) => known.remove(group, revision),
                (None, _) => tracing::error!(?key, "a key in the coordinator belongs to no group"),
            }
        }
        known.revision = known.revision.max(last);
        drop(known);
        self.followed.send_replace(last);
    }

    fn take_all(&self, all: Snapshot) {
        self.take_groups(store::all_of(all));
    }
}

impl Known {
    /// Sets what is known of a group, unless something newer is known.
    fn set(&mut self, group: GroupId, stored: Stored) {
        if self.groups.get(&group).is_some_and(|known| known.revision >= stored.revision) {
            return;
        }
        if let Err(unread) = &stored.record {
            tracing::error!(%group, %unread, "the record of a group cannot be read");
        }
        self.groups.insert(group, stored);
    }

    fn remove(&mut self, group: GroupId, at: Revision) {
        if self.groups.get(&group).is_some_and(|known| known.revision < at) {
            self.groups.remove(&group);
        }
    }
}

#[cfg(test)]
mod tests;
