//! The model: what requests make of a chain.

use super::*;

impl Chain {
    /// The current blob.
    pub(super) fn current(&self) -> Option<&Version> {
        self.versions.last().filter(|version| !version.is_marker && !self.is_headless)
    }

    pub(super) fn current_mut(&mut self) -> Option<&mut Version> {
        let is_headless = self.is_headless;
        self.versions.last_mut().filter(|version| !version.is_marker && !is_headless)
    }

    /// How a request for the current blob is refused.
    pub(super) fn missing(&self, versioning: Option<Versioning>) -> Refused {
        match self.versions.last() {
            Some(last) if versioning.is_some() && last.is_marker => Refused::BlobDeleted(last.id()),
            Some(_) | None => Refused::BlobNotFound,
        }
    }

    /// Whether a replaced or deleted current blob stays.
    pub(super) fn is_kept(&self, versioning: Option<Versioning>) -> bool {
        match versioning {
            None => false,
            Some(Versioning::Enabled) => true,
            Some(Versioning::Suspended) => self.current().is_none_or(|of| !of.id().is_null),
        }
    }

    /// A new version on top. Until when can be restored what gives way to it.
    pub(super) fn push(
        &mut self,
        (versioning, until): (Option<Versioning>, Option<Timestamp>),
        state: State,
        is_marker: bool,
    ) {
        let now = state.modified;
        if !self.is_kept(versioning) && self.current().is_some() {
            let gone = self.versions.pop().unwrap();
            let state = if is_marker { DeletedState::Blob } else { DeletedState::Snapshot };
            self.delete(DeletedKey { state, time: now }, gone, until);
        }
        if let Some(last) = self.versions.last_mut() {
            last.id = Some(last.id());
        }
        if versioning == Some(Versioning::Suspended) {
            let is_null = |version: &mut Version| version.id().is_null;
            for gone in self.versions.extract_if(.., is_null).collect::<Vec<_>>() {
                self.delete_version(gone, until);
            }
        }
        self.is_headless = false;
        self.versions.sort_by_key(|version| version.id().time);
        let is_null = versioning == Some(Versioning::Suspended);
        let id = versioning.map(|_| VersionId { time: state.modified, is_null });
        self.versions.push(Version { id, is_marker, state });
    }

    /// The states of the blob that can be read.
    pub(super) fn readable(&self) -> Vec<(Revision, State)> {
        let current = self.current().map(|of| (Revision::Current, of.state.clone()));
        let former = self
            .versions
            .iter()
            .filter(|of| !of.is_marker)
            .filter_map(|of| Some((Revision::Version(of.id?.time), of.state.clone())));
        let snapshots =
            self.snapshots.iter().map(|(time, of)| (Revision::Snapshot(*time), of.clone()));
        current.into_iter().chain(former).chain(snapshots).collect()
    }

    /// The state that a step means.
    pub(super) fn pick(&self, pick: Pick) -> Option<(Revision, State)> {
        let mut all = self.readable();
        (!all.is_empty()).then(|| all.swap_remove(pick % all.len()))
    }

    pub(super) fn state_mut(&mut self, revision: Revision) -> Option<&mut State> {
        match revision {
            Revision::Current => self.current_mut().map(|of| &mut of.state),
            Revision::Snapshot(time) => self.snapshots.get_mut(&time),
            Revision::Version(time) => {
                let mut all = self.versions.iter_mut();
                all.find(|of| of.id.is_some_and(|id| id.time == time)).map(|of| &mut of.state)
            }
            Revision::Null => {
                self.versions.iter_mut().find(|of| of.id().is_null).map(|of| &mut of.state)
            }
        }
    }

    /// After a version was removed: a current blob that has no blocks has no staged ones.
    pub(super) fn drop_unlike(&mut self) {
        if self.current().is_some_and(|of| of.state.kind != Kind::Block) {
            self.staged.clear();
        }
    }

    /// Removes a version. Returns it, or how the request is refused.
    pub(super) fn remove(&mut self, at: Option<usize>, former: bool) -> Result<Version, Refused> {
        let at = at.ok_or(Refused::VersionNotFound)?;
        let is_last = at + 1 == self.versions.len();
        if former && is_last && self.current().is_some() {
            return Err(Refused::CurrentVersion);
        }
        if self.versions.len() == 1 && !self.snapshots.is_empty() {
            return Err(Refused::SnapshotsPresent);
        }
        let was_current = is_last && self.current().is_some();
        let gone = self.versions.remove(at);
        if is_last && (was_current || gone.is_marker) {
            self.versions.sort_by_key(|version| version.id().time);
            self.is_headless = false;
        }
        if self.versions.is_empty() {
            self.is_headless = false;
        }
        Ok(gone)
    }

    /// Keeps what was deleted, if it can be restored for some time.
    pub(super) fn delete(&mut self, key: DeletedKey, version: Version, until: Option<Timestamp>) {
        if let Some(until) = until {
            self.deleted.insert(key, Deletion { version, until });
        }
    }

    /// As [`Self::delete`], for a version.
    pub(super) fn delete_version(&mut self, mut gone: Version, until: Option<Timestamp>) {
        if !gone.is_marker {
            gone.id = Some(gone.id());
            let key = DeletedKey { state: DeletedState::Version, time: gone.id().time };
            self.delete(key, gone, until);
        }
    }
}

impl State {
    pub(super) fn new(kind: Kind, bytes: Vec<u8>, modified: Timestamp) -> Self {
        Self {
            kind,
            bytes,
            blocks: Vec::new(),
            metadata: Metadata::default(),
            tags: Tags::default(),
            modified,
            retention: None,
            hold: None,
        }
    }
}
