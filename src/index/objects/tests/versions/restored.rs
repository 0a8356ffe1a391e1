//! Soft delete: what is deleted, restored and ended, and how lists show it.

use super::*;

impl Chain {
    /// Deletes a snapshot.
    pub(super) fn delete_snapshot(&mut self, taken: Timestamp, until: Option<Timestamp>) {
        let state = self.snapshots.remove(&taken).unwrap();
        let version = Version { id: None, is_marker: false, state };
        self.delete(DeletedKey { state: DeletedState::Snapshot, time: taken }, version, until);
    }

    /// Deletes all snapshots.
    pub(super) fn delete_snapshots(&mut self, until: Option<Timestamp>) {
        for taken in self.snapshots.keys().copied().collect::<Vec<_>>() {
            self.delete_snapshot(taken, until);
        }
    }

    /// The key of the blob that was deleted last, if it can be restored.
    fn base(&self, now: Timestamp) -> Option<DeletedKey> {
        let mut left = self.deleted.iter().filter(|(_, of)| now < of.until);
        let last = left.rfind(|(key, _)| key.state == DeletedState::Blob);
        last.map(|(key, _)| *key)
    }

    /// Whether the blob that was deleted last may become current.
    fn gives_way(&self, base: &Version) -> bool {
        let Some(last) = self.versions.last() else { return true };
        let before = self.versions.iter().rev().nth(1);
        self.current().is_none()
            && last.is_marker
            && last.id().is_null
            && before.is_none_or(|before| before.id().time < base.id().time)
    }

    /// Undelete Blob; `None` if nothing is there.
    fn restore(&mut self, now: Timestamp) -> Option<()> {
        let base = self.base(now);
        let all = std::mem::take(&mut self.deleted);
        let (mut found, ended): (BTreeMap<_, _>, BTreeMap<_, _>) =
            all.into_iter().partition(|(_, of)| now < of.until);
        self.deleted = ended;
        if let Some(key) = base
            && self.gives_way(&found[&key].version)
        {
            self.versions.pop();
            self.versions.push(found.remove(&key).unwrap().version);
            self.drop_unlike();
        }
        let has_current = self.current().is_some();
        let mut top = if has_current { self.versions.pop() } else { None };
        for (key, Deletion { mut version, .. }) in found.into_iter().rev() {
            if key.state != DeletedState::Version {
                self.snapshots.insert(key.time, version.state);
                continue;
            }
            let all = self.versions.iter().chain(&top);
            let has_null = all.map(Version::id).any(|id| id.is_null);
            let is_null = version.id().is_null && !has_null;
            version.id = Some(VersionId { is_null, ..version.id() });
            let is_newest = self.versions.last().is_none_or(|of| of.id().time < key.time);
            self.is_headless |= is_newest && !has_current;
            self.versions.push(version);
            self.versions.sort_by_key(|version| version.id().time);
        }
        self.versions.extend(top.take());
        (!self.versions.is_empty()).then_some(())
    }
}

impl World {
    pub(super) fn undelete(&mut self, name: &'static str) {
        let before = self.chains[name].clone();
        let undelete = UndeleteBlob { key: key(name), guard: Guard::default() };
        let reply = self.write(Write::UndeleteBlob(undelete));
        let now = self.now();
        if self.chain(name).restore(now).is_none() {
            assert_eq!(reply, Err(Error::Refused(Refused::BlobNotFound)));
            *self.chain(name) = before;
            return;
        }
        assert_eq!(reply, Ok(WriteReply::Undeleted { has_more: false }));
    }

    pub(super) fn permanently(&mut self, name: &'static str, pick: Pick) {
        let deleted = &self.chains[name].deleted;
        let Some((&key_of, _)) = deleted.iter().nth(pick % deleted.len().max(1)) else { return };
        let DeletedKey { state, time } = key_of;
        let revision = match state {
            DeletedState::Version => Revision::Version(time),
            DeletedState::Snapshot | DeletedState::Blob => Revision::Snapshot(time),
        };
        let reply = self.write(delete_of(&key(name), DeleteScope::Permanently(revision)));
        let now = self.now();
        if self.chain(name).deleted.remove(&key_of).unwrap().until <= now {
            // Something else may have that time.
            assert!(matches!(reply, Err(Error::Refused(_))), "{reply:?}");
            return;
        }
        assert_eq!(reply, Ok(WriteReply::Deleted(Deleted::default())));
    }

    /// Removes what can no longer be restored, as reclaim does.
    pub(super) fn expire(&mut self) {
        let now = self.now();
        let read = Read::EndedDeletions { from: Bytes::new(), now, limit: 100 };
        let ReadReply::EndedDeletions(page) = self.partition.read(&read).unwrap() else {
            panic!("not ended deletions")
        };
        for key in page.blobs {
            self.write(Write::ExpireDeleted { key, all: false }).unwrap();
        }
        for name in NAMES {
            self.chain(name).deleted.retain(|_, of| now < of.until);
        }
    }

    /// What a list shows of a blob before its snapshots and versions.
    pub(super) fn listed_first(&self, name: &str, asked: &ListBlobs) -> Vec<String> {
        let (chain, now) = (&self.chains[name], self.now());
        let left = |(key, of): (&DeletedKey, &Deletion)| (now < of.until).then_some(*key);
        let left: Vec<DeletedKey> = chain.deleted.iter().filter_map(left).collect();
        let has_versions = chain.versions.iter().any(|of| !of.is_marker)
            || left.iter().any(|key| key.state == DeletedState::Version);
        let is_only = asked.versions_only && chain.current().is_none() && has_versions;
        let only = is_only.then(|| format!("{name}!"));
        let base = chain.base(now).filter(|_| chain.current().is_none());
        let shown = left.into_iter().filter(|_| asked.deleted).filter_map(|key| {
            let ticks = key.time.ticks();
            match key.state {
                DeletedState::Version => {
                    asked.history.has_versions().then(|| format!("{name}!{ticks}"))
                }
                DeletedState::Blob if base == Some(key) => Some(name.to_owned()),
                DeletedState::Blob | DeletedState::Snapshot => {
                    asked.history.has_snapshots().then(|| format!("{name}@{ticks}"))
                }
            }
        });
        only.into_iter().chain(shown).collect()
    }
}

/// Undelete Blob makes a blob current that is older than versions which were made meanwhile.
#[test]
fn a_page_behind_a_version_newer_than_the_restored_blob_does_not_show_it_again() {
    let mut world = World::new();
    for step in [
        Step::Versioning,
        Step::SoftDelete,
        Step::Put { name: 0, kind: Kind::Block, stored: false },
        Step::Versioning,
        Step::Snapshot { name: 0 },
        Step::Versioning,
        Step::Snapshot { name: 0 },
        Step::Undelete { name: 0 },
        Step::DeleteVersion { name: 0, pick: 2, former: false },
        Step::Undelete { name: 0 },
    ] {
        world.check_step(&step);
    }
    world.check_lists();
}
