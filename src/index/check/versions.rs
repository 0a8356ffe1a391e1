//! Checks the versions family: snapshots, versions, delete markers, the null version.

use crate::index::api::Error;
use crate::index::check::BlobCheck;
use crate::index::check::committed::Committed;
use crate::index::check::committed::Place;
use crate::index::objects::keys;
use crate::index::objects::keys::DeletedState;
use crate::index::objects::keys::VersionKey;
use crate::index::objects::values;
use crate::index::objects::values::NullVersion;
use crate::index::record::BlobFields;
use crate::index::rows::Family;
use crate::index::rows::Row;
use crate::types::Timestamp;

impl BlobCheck<'_> {
    pub(super) async fn version(&mut self, row: &Row) -> Result<(), Error> {
        match keys::parse_version(&row.key, self.key)? {
            VersionKey::Snapshot(_) => {
                self.report.snapshots += 1;
                self.committed(Place::Snapshot, row).await
            }
            VersionKey::Version(committed) => self.committed(Place::Version(committed), row).await,
            VersionKey::Deleted(at) => {
                self.has_deleted = true;
                self.committed(Place::Deleted(at), row).await
            }
            VersionKey::Null => {
                let null: NullVersion = values::decode(Family::Versions, &row.key, &row.value)?;
                self.null_version = Some(null.committed);
                Ok(())
            }
        }
    }

    /// Checks that the newest row of the blob counts its snapshots.
    pub(super) fn finish_snapshots(&mut self, all: &[Committed]) {
        let count = all.iter().filter(|committed| committed.place == Place::Snapshot).count();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        // The main row comes first, versions from the newest on.
        let counts = match all.iter().find(|committed| committed.counts_snapshots()) {
            Some(head) => head.record.snapshots,
            None => 0,
        };
        if counts != count {
            self.problem(format!("{count} snapshots, the record says {counts}"));
        }
    }

    /// Checks that the version named by the null version's row exists and is a null version, and
    /// that no other version is one.
    pub(super) fn finish_versions(&mut self, all: &[Committed]) {
        let nulls = all.iter().filter_map(|committed| {
            let Place::Version(time) = committed.place else { return None };
            let version = committed.record.fields.as_ref()?.version?;
            version.is_null.then_some(time)
        });
        let nulls: Vec<Timestamp> = nulls.collect();
        let named: Vec<Timestamp> = self.null_version.into_iter().collect();
        let current = all.iter().find(|committed| committed.place == Place::Current);
        let version = current.map(|current| current.record.version());
        let is_null = version.is_some_and(|version| version.is_none_or(|version| version.is_null));
        if is_null && !named.is_empty() {
            self.problem(format!("the current blob is the null version, and {named:?} is too"));
        }
        if nulls != named {
            self.problem(format!(
                "null versions {nulls:?}, the row of the null version names {named:?}"
            ));
        }
    }
}

impl Committed {
    /// Whether it is a row that may count the snapshots.
    pub(super) const fn counts_snapshots(&self) -> bool {
        match self.place {
            Place::Current | Place::Version(_) => true,
            Place::Snapshot | Place::Deleted(_) => false,
        }
    }

    /// An inconsistency between the record and the key of its row.
    pub(super) fn misplaced(&self) -> Option<String> {
        let none = BlobFields::default();
        let fields = self.record.fields.as_deref().unwrap_or(&none);
        if fields.delete_marker && (self.record.len != 0 || !self.is_empty()) {
            return Some("a delete marker has content".to_owned());
        }
        let version = fields.version.map(|version| version.time);
        match self.place {
            Place::Current if fields.delete_marker || fields.deleted.is_some() => {
                Some("the current blob is a deleted one".to_owned())
            }
            Place::Version(time) if version.is_some_and(|version| version != time) => {
                Some(format!("version {version:?} in the row of version {time:?}"))
            }
            Place::Version(_) if version.is_none() => {
                Some("a version that does not say its id".to_owned())
            }
            Place::Version(_) | Place::Snapshot if fields.deleted.is_some() => {
                Some("it was deleted, and is among what was not".to_owned())
            }
            Place::Deleted(_) if fields.deleted.is_none() => {
                Some("it is among what was deleted, and does not say so".to_owned())
            }
            Place::Deleted(at)
                if at.state == DeletedState::Version && version.is_some_and(|v| v != at.time) =>
            {
                Some(format!("version {version:?} in the row of version {:?}", at.time))
            }
            Place::Current | Place::Snapshot | Place::Version(_) | Place::Deleted(_) => None,
        }
    }
}
