//! The reference model of one blob with its snapshots, and the effect of a change on it.

use std::collections::BTreeMap;
use std::ops::Range;

use blockyard::index::BlobRecord;
use blockyard::index::SequenceAction;
use blockyard::types::AccessTier;
use blockyard::types::BlockSource;
use blockyard::types::Etag;
use blockyard::types::Timestamp;

use crate::change::Change;
use crate::change::Demand;
use crate::change::Scope;
use crate::change::TagDemand;
use crate::content::Body;
use crate::content::Pages;
use crate::content::Segment;
use crate::lease::Lease;
use crate::requests::metadata;
use crate::requests::tags;
use crate::tier::Tier;
use crate::when::When;

/// A committed blob, or a snapshot of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    pub(crate) body: Body,
    /// The mark in its metadata.
    pub(crate) mark: u64,
    /// The number that its tags encode.
    pub(crate) tags: u64,
    pub(crate) tier: Option<Tier>,
    pub(crate) lease: Option<Lease>,
    /// Its tag; `None` (unknown) after a change without an answer.
    pub(crate) etag: Option<Etag>,
    /// The upload whose completion was its last change.
    pub(crate) upload: Option<u64>,
}

/// The fields of a new blob other than its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) mark: u64,
    pub(crate) tags: u64,
    pub(crate) tier: Option<AccessTier>,
}

impl Committed {
    fn new(body: Body, marks: Marks, lease: Option<Lease>) -> Self {
        let Marks { mark, tags, tier } = marks;
        let tier = tier.map(Tier::new);
        Self { body, mark, tags, tier, lease, etag: None, upload: None }
    }

    /// Whether a record read at `when` shows it. If so, its tag and the end of its lease become
    /// known.
    pub(crate) fn see(&mut self, record: &BlobRecord, when: When) -> bool {
        let same = record.kind == self.body.kind()
            && record.len == self.body.len()
            && record.metadata == metadata(self.mark)
            && record.tags == tags(self.tags)
            && self.etag.is_none_or(|etag| etag == record.etag)
            && self.body.crc64().is_none_or(|crc64| crc64 == record.crc64);
        self.etag = Some(record.etag);
        let leased = match (&mut self.lease, &record.lease) {
            (None, None) => true,
            (Some(lease), Some(seen)) => lease.see(seen),
            (None, Some(_)) | (Some(_), None) => false,
        };
        let tier = match (self.tier, &record.tier) {
            (None, None) => true,
            (Some(tier), Some(seen)) => tier.is_shown(seen, when),
            (None, Some(_)) | (Some(_), None) => false,
        };
        same && leased && tier
    }

    /// Whether it may be in the archive (`archived`), or may not be.
    pub(crate) fn may_be_archived(&self, archived: bool, when: When) -> bool {
        match self.tier {
            None => !archived,
            Some(tier) => tier.at(when).iter().any(|tier| tier.archived() == archived),
        }
    }
}

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Its time; `None` (unknown) without an answer.
    pub(crate) at: Option<Timestamp>,
    pub(crate) was: Committed,
}

/// One possible state of a blob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) committed: Option<Committed>,
    pub(crate) staged: BTreeMap<u32, Segment>,
    /// Its snapshots, ordered by time.
    pub(crate) snapshots: Vec<Taken>,
    /// Uploads that have not ended.
    pub(crate) uploads: BTreeMap<u64, Upload>,
    /// Uploads that were completed. None is forgotten: a history is shorter than a week.
    pub(crate) completed: BTreeMap<u64, Completed>,
}

/// An upload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Upload {
    pub(crate) marks: Marks,
    pub(crate) parts: BTreeMap<u32, Segment>,
}

/// An upload that was completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Completed {
    list: Vec<Segment>,
    /// The tag that the completion answered; `None` (unknown) without an answer.
    pub(crate) etag: Option<Etag>,
}

/// The possible outcomes of a change.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    pub(crate) done: Vec<State>,
    pub(crate) refused: bool,
}

/// What depends on the time of a change.
#[derive(Clone, Copy)]
struct Moment {
    when: When,
    /// Whether the lease is held.
    held: bool,
    tier: Option<Tier>,
}

impl State {
    /// The possible outcomes of a change at some time in `when`.
    pub(crate) fn after(&self, change: &Change, demand: Demand, when: When) -> Outcomes {
        let current = self.committed.as_ref();
        let lease = current.and_then(|current| current.lease);
        let held = [true, false].into_iter().filter(|held| match lease {
            Some(lease) => lease.may_be(*held, when),
            None => !*held,
        });
        let tier = current.and_then(|current| current.tier);
        let tiers: Vec<Option<Tier>> = match tier {
            Some(tier) => tier.at(when).into_iter().map(Some).collect(),
            None => vec![None],
        };
        let mut outcomes = Outcomes::default();
        for held in held {
            for &tier in &tiers {
                match self.step(change, demand, Moment { when, held, tier }) {
                    Some(state) if outcomes.done.contains(&state) => {}
                    Some(state) => outcomes.done.push(state),
                    None => outcomes.refused = true,
                }
            }
        }
        outcomes
    }

    /// The state after a change; `None` if the change is refused.
    fn step(&self, change: &Change, demand: Demand, moment: Moment) -> Option<Self> {
        if let Some(again) = self.completed_again(change) {
            return again;
        }
        self.holds(demand.tag)?;
        let mut next = self.clone();
        match change {
            Change::Make { body, marks } => {
                let lease = self.writable(demand, moment)?;
                next.make(Committed::new(body.clone(), *marks, lease));
            }
            Change::Stage { segment } => {
                self.writable(demand, moment)?;
                self.takes_blocks()?;
                next.staged.insert(segment.id?, *segment);
            }
            Change::Commit { list, marks } => {
                let lease = self.writable(demand, moment)?;
                self.takes_blocks()?;
                let segments = list.iter().map(|(source, id)| self.block(*source, *id));
                let segments = segments.collect::<Option<Vec<Segment>>>()?;
                next.make(Committed::new(Body::Blocks(segments), *marks, lease));
            }
            Change::Start { .. } | Change::Part { .. } | Change::Abort { .. } => {
                next.upload(change)?;
            }
            Change::Complete { upload, list } => {
                let lease = self.writable(demand, moment)?;
                next.complete(*upload, list, lease)?;
            }
            Change::Append { .. }
            | Change::Seal { .. }
            | Change::Write { .. }
            | Change::Reshape { .. } => {
                let lease = self.kept(demand, moment)?;
                if next.grow(change)? {
                    next.changed(lease);
                }
            }
            Change::Mark { mark } => {
                let lease = self.writable(demand, moment)?;
                next.committed.as_mut()?.mark = *mark;
                next.changed(lease);
            }
            Change::Tags { tags } => {
                let lease = self.kept(demand, moment)?;
                let committed = next.committed.as_mut()?;
                (committed.tags, committed.lease) = (*tags, lease);
            }
            Change::Tier { tier } => {
                self.right(demand, moment)?;
                let committed = next.committed.as_mut()?;
                if !matches!(committed.body, Body::Blocks(_)) {
                    return None;
                }
                committed.tier = Some(Tier::after(moment.tier, *tier, moment.when)?);
            }
            Change::Lease { action } => {
                let committed = next.committed.as_mut()?;
                let (held, when) = (moment.held, moment.when);
                committed.lease = Lease::act(committed.lease, held, *action, when).ok()?;
            }
            Change::Snapshot { mark } => {
                self.right(demand, moment)?;
                next.snapshot(*mark, moment)?;
            }
            Change::Delete { scope } => next.delete(*scope, || self.kept(demand, moment))?,
        }
        Some(next)
    }

    /// Changes an append or page blob. Returns whether that gives it a new tag.
    fn grow(&mut self, change: &Change) -> Option<bool> {
        if let Change::Append { segment, position, len_max } = change {
            self.append(*segment, *position, *len_max)?;
        } else if let Change::Seal { position } = change {
            return self.seal(*position);
        } else if let Change::Write { range, tag, sequence } = change {
            self.write(range, *tag, *sequence)?;
        } else if let Change::Reshape { len, sequence } = change {
            self.reshape(*len, *sequence)?;
        }
        Some(true)
    }

    /// Blocks are refused where the blob is of another kind.
    fn takes_blocks(&self) -> Option<()> {
        let current = self.committed.as_ref();
        current.is_none_or(|blob| matches!(blob.body, Body::Blocks(_))).then_some(())
    }

    fn holds(&self, demand: TagDemand) -> Option<()> {
        let current = self.committed.as_ref();
        match demand {
            TagDemand::None => Some(()),
            TagDemand::IfAbsent => current.is_none().then_some(()),
            TagDemand::IfMatch(etag) => (current?.etag == Some(etag)).then_some(()),
        }
    }

    /// Checks the lease id: if one is sent, it must be the holder's.
    fn right(&self, demand: Demand, moment: Moment) -> Option<()> {
        let lease = self.committed.as_ref().and_then(|committed| committed.lease);
        let right = demand.lease.is_none_or(|id| moment.held && lease.is_some_and(|l| l.id == id));
        right.then_some(())
    }

    /// The lease after a write; `None` if the lease prevents the write.
    fn kept(&self, demand: Demand, moment: Moment) -> Option<Option<Lease>> {
        self.right(demand, moment)?;
        let lease = self.committed.as_ref().and_then(|committed| committed.lease);
        match (moment.held, demand.lease) {
            (true, None) => None,
            (true, Some(_)) => Some(lease),
            (false, _) => Some(None),
        }
    }

    /// As [`Self::kept`], for a write that is refused for archived blobs.
    fn writable(&self, demand: Demand, moment: Moment) -> Option<Option<Lease>> {
        if moment.tier.is_some_and(Tier::archived) {
            return None;
        }
        self.kept(demand, moment)
    }

    fn make(&mut self, committed: Committed) {
        self.committed = Some(committed);
        self.staged.clear();
    }

    /// Notes a change of the blob itself, which gives it a new tag.
    fn changed(&mut self, kept: Option<Lease>) {
        if let Some(committed) = &mut self.committed {
            (committed.lease, committed.etag, committed.upload) = (kept, None, None);
        }
    }

    /// A second completion changes nothing, and nothing is demanded. `None` if it is no such
    /// change.
    fn completed_again(&self, change: &Change) -> Option<Option<Self>> {
        let Change::Complete { upload, list } = change else { return None };
        let completed = self.completed.get(upload)?;
        Some((completed.list == *list).then(|| self.clone()))
    }

    /// Changes an upload, but for its completion.
    fn upload(&mut self, change: &Change) -> Option<()> {
        if let Change::Start { upload, marks } = change {
            let started = Upload { marks: *marks, parts: BTreeMap::new() };
            self.uploads.insert(*upload, started);
        } else if let Change::Part { upload, segment } = change {
            self.uploads.get_mut(upload)?.parts.insert(segment.id?, *segment);
        } else if let Change::Abort { upload } = change {
            self.uploads.remove(upload)?;
        }
        Some(())
    }

    /// Makes the blob of parts.
    fn complete(&mut self, upload: u64, list: &[Segment], lease: Option<Lease>) -> Option<()> {
        let Upload { marks, parts } = self.uploads.remove(&upload)?;
        let is_there = |segment: &Segment| parts.get(&segment.id?).filter(|one| *one == segment);
        if list.is_empty() || list.iter().any(|segment| is_there(segment).is_none()) {
            return None;
        }
        let committed = Committed::new(Body::Blocks(list.to_vec()), marks, lease);
        self.make(Committed { upload: Some(upload), ..committed });
        self.completed.insert(upload, Completed { list: list.to_vec(), etag: None });
        Some(())
    }

    fn append(
        &mut self,
        segment: Segment,
        position: Option<u64>,
        len_max: Option<u64>,
    ) -> Option<()> {
        let body = &mut self.committed.as_mut()?.body;
        let at = body.len();
        let Body::Appended { segments, sealed: false } = body else { return None };
        let fits = len_max.is_none_or(|len_max| at + segment.len <= len_max);
        if !fits || position.is_some_and(|position| position != at) {
            return None;
        }
        segments.push(segment);
        Some(())
    }

    /// Seals it. Returns whether it was not sealed before.
    fn seal(&mut self, position: Option<u64>) -> Option<bool> {
        let body = &mut self.committed.as_mut()?.body;
        let at = body.len();
        let Body::Appended { sealed, .. } = body else { return None };
        if position.is_some_and(|position| position != at) {
            return None;
        }
        Some(!std::mem::replace(sealed, true))
    }

    fn pages(&mut self) -> Option<&mut Pages> {
        match &mut self.committed.as_mut()?.body {
            Body::Pages(pages) => Some(pages),
            Body::Blocks(_) | Body::Appended { .. } => None,
        }
    }

    fn write(&mut self, range: &Range<u64>, tag: Option<u64>, sequence: Option<u64>) -> Option<()> {
        let pages = self.pages()?;
        if range.end > pages.len || sequence.is_some_and(|wanted| wanted != pages.sequence) {
            return None;
        }
        pages.write(range, tag);
        Some(())
    }

    fn reshape(&mut self, len: Option<u64>, sequence: Option<SequenceAction>) -> Option<()> {
        let pages = self.pages()?;
        pages.sequence = match sequence {
            None => pages.sequence,
            Some(SequenceAction::Max(new)) => pages.sequence.max(new),
            Some(SequenceAction::Update(new)) => new,
            Some(SequenceAction::Increment) => pages.sequence + 1,
        };
        pages.resize(len.unwrap_or(pages.len));
        Some(())
    }

    fn snapshot(&mut self, mark: Option<u64>, moment: Moment) -> Option<()> {
        let committed = self.committed.as_mut()?;
        if moment.tier.is_some_and(Tier::archived) {
            return None;
        }
        let mut was = Committed { lease: None, upload: None, ..committed.clone() };
        if let Some(mark) = mark {
            (was.mark, was.etag) = (mark, None);
        }
        if let Some(pages) = self.pages() {
            pages.freeze();
        }
        self.snapshots.push(Taken { at: None, was });
        Some(())
    }

    fn delete(&mut self, scope: Scope, kept: impl FnOnce() -> Option<Option<Lease>>) -> Option<()> {
        self.committed.as_ref()?;
        match scope {
            Scope::Blob if !self.snapshots.is_empty() => return None,
            Scope::Blob | Scope::WithSnapshots => {
                kept()?;
                let (uploads, completed) =
                    (std::mem::take(&mut self.uploads), std::mem::take(&mut self.completed));
                *self = Self { uploads, completed, ..Self::default() };
            }
            Scope::Snapshots => {
                kept()?;
                self.snapshots.clear();
            }
            Scope::One(at) => {
                let found = self.snapshots.iter().position(|taken| taken.at == Some(at))?;
                self.snapshots.remove(found);
            }
        }
        Some(())
    }

    fn block(&self, source: BlockSource, id: u32) -> Option<Segment> {
        let staged = self.staged.get(&id).copied();
        let committed = || {
            let segments = self.committed.as_ref()?.body.segments();
            segments.iter().find(|segment| segment.id == Some(id)).copied()
        };
        match source {
            BlockSource::Committed => committed(),
            BlockSource::Uncommitted => staged,
            BlockSource::Latest => staged.or_else(committed),
        }
    }

    /// The uploads that were completed, and their parts.
    pub(crate) fn ended(&self) -> impl Iterator<Item = (u64, Vec<Segment>)> + '_ {
        self.completed.iter().map(|(upload, completed)| (*upload, completed.list.clone()))
    }

    /// Adds the bytes that may be stored for it, by tag.
    pub(crate) fn stored(&self, all: &mut BTreeMap<u64, u64>) {
        let bodies = self.committed.iter().chain(self.snapshots.iter().map(|taken| &taken.was));
        bodies.for_each(|committed| committed.body.stored(all));
        let parts = self.uploads.values().flat_map(|upload| upload.parts.values());
        let staged = self.staged.values().chain(parts);
        all.extend(staged.map(|segment| (segment.tag, segment.len)));
    }
}

/// A page blob of zeros.
pub(crate) const fn zeros(len: u64, sequence: u64) -> Body {
    Body::Pages(Pages::new(len, sequence))
}
