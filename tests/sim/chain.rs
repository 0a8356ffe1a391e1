//! What is known of the versions of a name, for `kept.rs`.

use std::time::Duration;

use blockyard::index::BlobRecord;
use blockyard::types::Crc64;
use blockyard::types::Metadata;
use blockyard::types::Retention;
use blockyard::types::RetentionMode;
use blockyard::types::Revision;
use blockyard::types::Timestamp;
use blockyard::types::VersionId;
use blockyard::types::Versioning;

use crate::requests::metadata;

/// A request is evaluated so soon, or not at all.
const ON_THE_WAY: Duration = Duration::from_secs(5);

/// The times at which something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

impl Span {
    /// Whether it is over at a time in `now`.
    fn is_over(self, now: Self) -> Truth {
        Truth { may: self.from <= now.to, may_not: self.to > now.from }
    }
}

/// Whether something is so, as far as that is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truth {
    may: bool,
    may_not: bool,
}

impl Truth {
    const YES: Self = Self { may: true, may_not: false };
    const NO: Self = Self { may: false, may_not: true };

    pub(crate) const fn may_be(self) -> bool {
        self.may
    }

    pub(crate) const fn may_not_be(self) -> bool {
        self.may_not
    }
}

/// A version or a delete marker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The mark in its metadata.
    pub(crate) mark: u64,
    pub(crate) crc64: Crc64,
    pub(crate) is_marker: bool,
    pub(crate) is_null: bool,
    /// The time in its id; `None` (unknown) without an answer.
    pub(crate) time: Option<Timestamp>,
    pub(crate) retention: Option<Retention>,
    pub(crate) hold: Option<bool>,
    /// Whether a list showed it as softly deleted.
    pub(crate) is_deleted: bool,
    /// The metadata that a list showed.
    pub(crate) shown: Option<Metadata>,
    /// Whether a list showed it as the current blob.
    pub(crate) is_current: bool,
}

impl Entry {
    pub(crate) fn of(mark: u64, crc64: Crc64) -> Self {
        Self {
            mark,
            crc64,
            is_marker: false,
            is_null: false,
            time: None,
            retention: None,
            hold: None,
            is_deleted: false,
            shown: None,
            is_current: false,
        }
    }

    pub(crate) fn marker() -> Self {
        Self { is_marker: true, ..Self::of(0, Crc64::EMPTY) }
    }

    /// An entry as a list shows it.
    pub(crate) fn seen(record: &BlobRecord, revision: Revision) -> Self {
        let version = record.version();
        Self {
            is_marker: record.is_delete_marker(),
            is_null: version.is_some_and(|version| version.is_null),
            time: version.map(|version| version.time),
            retention: record.retention(),
            hold: record.legal_hold(),
            is_deleted: record.deleted().is_some(),
            shown: Some(record.metadata.clone()),
            is_current: revision.is_current(),
            ..Self::of(0, record.crc64)
        }
    }

    /// Whether it is held at a time in `now`. `bypass`: a retention that is not locked does not
    /// hold it.
    pub(crate) fn held(&self, bypass: bool, now: Span) -> Truth {
        if self.hold == Some(true) {
            return Truth::YES;
        }
        let counts = |of: &Retention| !bypass || of.mode == RetentionMode::Locked;
        self.retention.filter(counts).map_or(Truth::NO, |of| active(of, now))
    }

    /// Whether `new` may not replace its retention.
    pub(crate) fn shortened(&self, new: Option<Retention>, bypass: bool, now: Span) -> Truth {
        let Some(old) = self.retention else { return Truth::NO };
        let extends = new.is_some_and(|new| new.mode == old.mode && new.until >= old.until);
        if extends || bypass && old.mode == RetentionMode::Unlocked {
            return Truth::NO;
        }
        active(old, now)
    }

    /// Whether a list shows this entry.
    fn is_shown_as(&self, seen: &Self) -> bool {
        let is_marked = self.is_marker
            || seen.shown.as_ref().is_some_and(|shown| *shown == metadata(self.mark));
        (self.is_marker, self.is_null, self.crc64) == (seen.is_marker, seen.is_null, seen.crc64)
            && (self.retention, self.hold) == (seen.retention, seen.hold)
            && self.time.is_none_or(|time| seen.time == Some(time))
            && is_marked
    }
}

/// Whether a retention is active at a time in `now`, with room for the way to the partition.
fn active(retention: Retention, now: Span) -> Truth {
    let later = now.to.plus(ON_THE_WAY);
    Truth { may: retention.until > now.from, may_not: retention.until <= later }
}

/// What was softly deleted.
#[derive(Clone, Debug)]
pub(crate) struct Deleted {
    entry: Entry,
    /// Until when it can be restored. Without an answer the end is not known.
    until: Span,
}

/// Later than every time of a history.
const NOT_KNOWN: Timestamp = Timestamp::from_ticks(u64::MAX);

/// The versions of a name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    /// Oldest first; the current one is the last.
    pub(crate) versions: Vec<Entry>,
    /// The last is not current, though it is no marker: it was restored.
    pub(crate) is_headless: bool,
    pub(crate) deleted: Vec<Deleted>,
    /// The state after a request that has no answer yet.
    pub(crate) in_doubt: Option<Box<Self>>,
}

impl Chain {
    pub(crate) fn current(&self) -> Option<&Entry> {
        self.versions.last().filter(|last| !last.is_marker && !self.is_headless)
    }

    fn sort(&mut self) {
        // One without a known time is the newest.
        self.versions.sort_by_key(|of| of.time.map_or(u64::MAX, Timestamp::ticks));
    }

    /// With another version on top.
    pub(crate) fn pushed(mut self, entry: Entry, versioning: Option<Versioning>) -> Self {
        let is_null = versioning == Some(Versioning::Suspended);
        if is_null {
            self.versions.retain(|of| !of.is_null);
        }
        self.sort();
        self.is_headless = false;
        self.versions.push(Entry { is_null, ..entry });
        self
    }

    /// With a change of the current version, which stays as one if it is kept.
    pub(crate) fn changed(mut self, entry: Entry, versioning: Option<Versioning>) -> Self {
        let is_suspended = versioning == Some(Versioning::Suspended);
        match self.versions.last_mut() {
            Some(last) if is_suspended && last.is_null => {
                (last.mark, last.retention, last.hold) = (entry.mark, None, None);
                self
            }
            _ => self.pushed(entry, versioning),
        }
    }

    /// Without one of the versions, from `asked` on. For how long it can be restored.
    pub(crate) fn removed(
        mut self,
        at: usize,
        asked: Timestamp,
        restorable_for: Option<Duration>,
    ) -> Self {
        let is_last = at + 1 == self.versions.len();
        let was_current = is_last && self.current().is_some();
        let gone = self.versions.remove(at);
        if is_last && (was_current || gone.is_marker) {
            self.sort();
            self.is_headless = false;
        }
        self.is_headless &= !self.versions.is_empty();
        if let Some(period) = restorable_for.filter(|_| !gone.is_marker) {
            let until = Span { from: asked.plus(period), to: NOT_KNOWN };
            self.deleted.push(Deleted { entry: gone, until });
        }
        self
    }

    /// The state after a restore within `now`. Deleted entries that may have expired stay in the
    /// list; the next comparison decides.
    pub(crate) fn restored(mut self, now: Span) -> Self {
        let has_current = self.current().is_some();
        let top = if has_current { self.versions.pop() } else { None };
        for deleted in std::mem::take(&mut self.deleted) {
            let meanwhile = Span { to: now.to.plus(ON_THE_WAY), ..now };
            if deleted.until.is_over(meanwhile).may_be() {
                self.deleted.push(deleted);
                continue;
            }
            let newest = self.versions.last().and_then(|of| of.time);
            self.is_headless |= !has_current && newest < deleted.entry.time;
            self.versions.push(deleted.entry);
            self.sort();
        }
        self.versions.extend(top);
        self
    }

    /// Notes that all requests were evaluated before a time. Deletions can be restored for so long.
    pub(crate) fn evaluated_before(&mut self, time: Timestamp, restorable_for: Duration) {
        for deleted in self.deleted.iter_mut().filter(|of| of.until.to == NOT_KNOWN) {
            deleted.until.to = time.plus(restorable_for);
        }
    }

    /// Learns the id of the newest version.
    pub(crate) fn learn(&mut self, version: Option<VersionId>) {
        if let (Some(version), Some(last)) = (version, self.versions.last_mut()) {
            last.time = Some(version.time);
        }
    }

    /// The same as lists show it, or how they differ. What may have ended may be shown or not, and
    /// may have been restored.
    pub(crate) fn matched(
        &self,
        seen: &[Entry],
        deleted: &[Entry],
        now: Span,
    ) -> Result<Self, String> {
        let mut left: Vec<&Entry> = seen.iter().collect();
        let mut take = |entry: &Entry| {
            let at = left.iter().position(|one| entry.is_shown_as(one))?;
            Some(left.remove(at).clone())
        };
        let mut found = Self { is_headless: self.is_headless, ..Self::default() };
        for entry in &self.versions {
            let shown = take(entry).ok_or_else(|| format!("{entry:?} is not in {seen:?}"))?;
            found.versions.push(Entry { mark: entry.mark, ..shown });
        }
        let mut shown_deleted: Vec<&Entry> = deleted.iter().collect();
        for gone in &self.deleted {
            let is_over = gone.until.is_over(now);
            let at = shown_deleted.iter().position(|one| gone.entry.is_shown_as(one));
            if let Some(at) = at {
                shown_deleted.remove(at);
                if !is_over.may_not_be() {
                    return Err(format!("{gone:?} is shown beyond its end"));
                }
                found.deleted.push(gone.clone());
            } else if let Some(shown) = take(&gone.entry) {
                // It was restored near its end.
                found.versions.push(Entry { mark: gone.entry.mark, ..shown });
            } else if !is_over.may_be() {
                return Err(format!("{gone:?} is gone before its end"));
            }
        }
        if let Some(extra) = left.first().or_else(|| shown_deleted.first()) {
            return Err(format!("{extra:?} is beyond {self:?}"));
        }
        // The list tells which one is current.
        found.sort();
        let current = found.versions.iter().position(|of| of.is_current);
        if let Some(current) = current {
            let current = found.versions.remove(current);
            found.versions.push(current);
        }
        found.is_headless =
            current.is_none() && found.versions.last().is_some_and(|of| !of.is_marker);
        let expected = self.current().map(|of| of.crc64);
        let shown = found.current().map(|of| of.crc64);
        if expected != shown && self.deleted.is_empty() && found.deleted.is_empty() {
            return Err(format!("another version is current: {found:?}, not {self:?}"));
        }
        Ok(found)
    }
}
