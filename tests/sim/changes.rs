//! The random choice of a client's next change. Most changes succeed, and some must be refused.

use std::time::Duration;

use blockyard::index::SequenceAction;
use blockyard::types::AccessTier;
use blockyard::types::BlockSource;
use blockyard::types::Etag;
use blockyard::types::LeaseAction;
use blockyard::types::PAGE_BYTES;
use futures_util::future::join_all;
use uuid::Uuid;

use crate::change::Change;
use crate::change::Demand;
use crate::change::Scope;
use crate::change::TagDemand;
use crate::client::Client;
use crate::client::Payload;
use crate::content::Body;
use crate::content::Segment;
use crate::draw::content;
use crate::index::NAMES;
use crate::index::SHARED;
use crate::index::shared_name;
use crate::seeds::Violation;
use crate::state::Marks;
use crate::state::State;
use crate::state::zeros;

/// Number of block ids. There are few, so that blocks are staged again.
const BLOCKS: u64 = 5;

/// The most pages of a page blob: several windows of 64 KiB.
const PAGES_MAX: u64 = 400;

impl Client<'_> {
    pub(crate) async fn step(&self) -> Result<(), Violation> {
        let draw = self.session.draw;
        let name = self.name();
        // Other kinds of blobs mostly do not get changes that only block blobs accept.
        let spared = self.is_of_other_kind(&name) && draw.percent(85);
        match draw.between(0, 99) {
            0..=5 => self.upload(&name).await,
            6..=11 => self.put(&name).await,
            12..=23 if !spared => self.stage(&name).await,
            24..=31 if !spared => self.commit(&name).await,
            12..=47 => self.grow(&name).await,
            48..=50 => {
                let change = Change::Mark { mark: self.tag() };
                self.ask(&name, change).await
            }
            51..=53 => self.set_tags(&name).await,
            54..=57 => self.lease(&name).await,
            58..=61 => {
                let mark = draw.percent(20).then(|| self.tag());
                self.ask(&name, Change::Snapshot { mark }).await
            }
            62..=63 => self.set_tier(&name).await,
            64..=68 => self.copy(&name).await,
            69..=74 => self.delete(&name).await,
            75 => self.batch().await,
            76..=85 => self.check_blob(&name).await,
            86..=88 => self.check_layout(&name).await,
            89..=90 => self.check_snapshot(&name).await,
            91..=92 => self.check_list().await,
            93 => self.check_upload_list().await,
            94..=95 => self.check_uploads(&name).await,
            96..=97 => self.log().await,
            _ => self.contest().await,
        }
    }

    fn is_of_other_kind(&self, name: &str) -> bool {
        let committed = self.likely(name).committed;
        committed.is_some_and(|committed| !matches!(committed.body, Body::Blocks(_)))
    }

    /// One of the client's own names, or one that all clients change.
    fn name(&self) -> String {
        if self.session.draw.percent(15) {
            return shared_name(self.session.draw.between(0, SHARED - 1));
        }
        self.own_name()
    }

    /// One of the client's own names.
    pub(crate) fn own_name(&self) -> String {
        format!("{}/{}", self.number, self.session.draw.between(0, NAMES - 1))
    }

    pub(crate) fn likely(&self, name: &str) -> State {
        self.with_blob(name, |blob| blob.likely().clone())
    }

    pub(crate) fn marks(&self) -> Marks {
        let draw = self.session.draw;
        let tags = if draw.percent(20) { self.drawn_tags() } else { 0 };
        let tier = draw.percent(5).then_some(AccessTier::Cool);
        Marks { mark: self.tag(), tags, tier }
    }

    /// Random tags for a blob. None before the container's row surely exists: reclaim needs it to
    /// complete updates of the tag index that a crash interrupted.
    fn drawn_tags(&self) -> u64 {
        let ready = self.session.model.borrow().container;
        if ready { self.session.draw.between(0, 8) } else { 0 }
    }

    /// A change without bytes.
    pub(crate) async fn ask(&self, name: &str, change: Change) -> Result<(), Violation> {
        let demand = self.demand(name, &change);
        self.change(name, change, demand, Payload::Nothing).await.map(drop)
    }

    /// A change with these bytes.
    pub(crate) async fn ask_with(
        &self,
        name: &str,
        change: Change,
        segment: Segment,
    ) -> Result<(), Violation> {
        let bytes = content(segment.tag, segment.len);
        let demand = self.demand(name, &change);
        self.change(name, change, demand, Payload::Bytes(bytes)).await.map(drop)
    }

    async fn put(&self, name: &str) -> Result<(), Violation> {
        let (draw, marks) = (self.session.draw, self.marks());
        match draw.between(0, 9) {
            0..=3 => {
                let segment = Segment { id: None, tag: self.tag(), len: self.length() };
                let body = Body::Blocks(vec![segment]);
                self.ask_with(name, Change::Make { body, marks }, segment).await?;
            }
            4..=6 => {
                let body = Body::Appended { segments: Vec::new(), sealed: false };
                self.ask(name, Change::Make { body, marks: Marks { tier: None, ..marks } }).await?;
            }
            _ => {
                let pages = draw.between(0, PAGES_MAX);
                let body = zeros(pages * PAGE_BYTES, draw.between(0, 3));
                self.ask(name, Change::Make { body, marks: Marks { tier: None, ..marks } }).await?;
            }
        }
        self.show_tags(name, marks.tags).await
    }

    async fn stage(&self, name: &str) -> Result<(), Violation> {
        let id = u32::try_from(self.session.draw.between(0, BLOCKS - 1)).unwrap();
        let segment = Segment { id: Some(id), tag: self.tag(), len: self.length() };
        self.ask_with(name, Change::Stage { segment }, segment).await
    }

    async fn commit(&self, name: &str) -> Result<(), Violation> {
        let draw = self.session.draw;
        let sources = [BlockSource::Committed, BlockSource::Uncommitted, BlockSource::Latest];
        let known = self.with_blob(name, |blob| blob.known().cloned());
        let mut list = Vec::new();
        for id in 0..u32::try_from(BLOCKS).unwrap() {
            // Most lists can be committed.
            let staged = known.as_ref().is_none_or(|state| state.staged.contains_key(&id));
            if draw.percent(if staged { 80 } else { 3 }) {
                let latest = draw.percent(80);
                let source =
                    if latest { BlockSource::Latest } else { *draw.one(&sources).unwrap() };
                list.insert(
                    usize::try_from(draw.between(0, list.len() as u64)).unwrap(),
                    (source, id),
                );
            }
        }
        let marks = self.marks();
        self.ask(name, Change::Commit { list, marks }).await?;
        self.show_tags(name, marks.tags).await
    }

    /// A change that mostly fits the blob's kind.
    async fn grow(&self, name: &str) -> Result<(), Violation> {
        let draw = self.session.draw;
        let body = self.likely(name).committed.map(|committed| committed.body);
        match body {
            _ if draw.percent(2) => self.append(name, 0).await,
            _ if draw.percent(2) => self.write_pages(name, PAGES_MAX * PAGE_BYTES).await,
            Some(Body::Appended { segments, .. }) => {
                let len = segments.iter().map(|segment| segment.len).sum();
                match draw.between(0, 19) {
                    0 => self.seal(name, len).await,
                    // Small blocks that fill a tail and a segment.
                    1..=3 => self.append_many(name).await,
                    _ => self.append(name, len).await,
                }
            }
            Some(Body::Pages(pages)) => match draw.between(0, 9) {
                0..=1 => self.reshape(name, pages.len).await,
                _ => self.write_pages(name, pages.len).await,
            },
            Some(Body::Blocks(_)) | None => self.stage(name).await,
        }
    }

    async fn append(&self, name: &str, len: u64) -> Result<(), Violation> {
        let draw = self.session.draw;
        let segment = Segment { id: None, tag: self.tag(), len: self.length() };
        let wrong = u64::from(draw.percent(10));
        let position = draw.percent(30).then_some(len + wrong);
        let len_max = draw.percent(20).then_some(len + segment.len - wrong);
        self.ask_with(name, Change::Append { segment, position, len_max }, segment).await
    }

    async fn append_many(&self, name: &str) -> Result<(), Violation> {
        for _ in 0..self.session.draw.between(5, 20) {
            let segment = Segment { id: None, tag: self.tag(), len: 900 };
            let change = Change::Append { segment, position: None, len_max: None };
            self.ask_with(name, change, segment).await?;
        }
        Ok(())
    }

    async fn seal(&self, name: &str, len: u64) -> Result<(), Violation> {
        let draw = self.session.draw;
        let position = draw.percent(50).then_some(len + u64::from(draw.percent(20)));
        self.ask(name, Change::Seal { position }).await
    }

    async fn write_pages(&self, name: &str, len: u64) -> Result<(), Violation> {
        let draw = self.session.draw;
        let pages = (len / PAGE_BYTES).max(1);
        // Some ranges begin beyond the end.
        let first = draw.between(0, if draw.percent(3) { pages } else { pages - 1 });
        let longest = if draw.percent(70) { 8 } else { 160 };
        let count = draw.between(1, longest.min(pages - first).max(1));
        let range = first * PAGE_BYTES..(first + count) * PAGE_BYTES;
        let sequence = draw.percent(10).then(|| draw.between(0, 3));
        if draw.percent(25) {
            return self.ask(name, Change::Write { range, tag: None, sequence }).await;
        }
        let (tag, start) = (self.tag(), range.start);
        let bytes = content(tag, range.end - range.start);
        let change = Change::Write { range, tag: Some(tag), sequence };
        let demand = self.demand(name, &change);
        self.change(name, change, demand, Payload::Pages(start, bytes)).await.map(drop)
    }

    async fn reshape(&self, name: &str, len: u64) -> Result<(), Violation> {
        let draw = self.session.draw;
        let sequence = match draw.between(0, 5) {
            0 => Some(SequenceAction::Max(draw.between(0, 4))),
            1 => Some(SequenceAction::Update(draw.between(0, 4))),
            2 => Some(SequenceAction::Increment),
            _ => None,
        };
        let pages = draw.between(0, PAGES_MAX.min(len / PAGE_BYTES + 40));
        let len = (sequence.is_none() || draw.percent(30)).then_some(pages * PAGE_BYTES);
        self.ask(name, Change::Reshape { len, sequence }).await
    }

    async fn set_tags(&self, name: &str) -> Result<(), Violation> {
        let tags = self.drawn_tags();
        self.ask(name, Change::Tags { tags }).await?;
        self.show_tags(name, tags).await
    }

    async fn set_tier(&self, name: &str) -> Result<(), Violation> {
        use AccessTier::{Archive, Cold, Cool, Hot};
        let tier = *self.session.draw.one(&[Hot, Cool, Cold, Archive]).unwrap();
        self.ask(name, Change::Tier { tier }).await
    }

    async fn lease(&self, name: &str) -> Result<(), Violation> {
        let draw = self.session.draw;
        let held = self.likely(name).committed.and_then(|committed| committed.lease);
        let fresh = Uuid::from_u128(u128::from(self.tag()));
        let own = held.map_or(fresh, |lease| lease.id);
        let id = if draw.percent(90) { own } else { fresh };
        // Short durations, so that leases end within a history.
        let span = |longest| Duration::from_millis(draw.between(1, longest));
        let duration = draw.percent(70).then(|| span(400));
        let action = match (held, draw.between(0, 9)) {
            (None, 0..=8) | (Some(_), 0..=1) => {
                LeaseAction::Acquire { proposed: Some(id), duration }
            }
            (_, 2..=3) => LeaseAction::Renew { id },
            (_, 4) => LeaseAction::Change { id, to: fresh },
            (_, 5..=6) => LeaseAction::Release { id },
            _ => LeaseAction::Break { period: draw.percent(60).then(|| span(200)) },
        };
        self.ask(name, Change::Lease { action }).await
    }

    async fn delete(&self, name: &str) -> Result<(), Violation> {
        let change = Change::Delete { scope: self.scope(name) };
        self.ask(name, change).await
    }

    fn scope(&self, name: &str) -> Scope {
        let draw = self.session.draw;
        let snapshots = self.likely(name).snapshots;
        let Some(taken) = draw.one(&snapshots) else { return Scope::Blob };
        match (taken.at, draw.between(0, 9)) {
            (Some(at), 0..=4) => Scope::One(at),
            (_, 5) => Scope::Snapshots,
            (_, 6..=8) => Scope::WithSnapshots,
            _ => Scope::Blob,
        }
    }

    /// Several concurrent changes of different blobs, as the parts of a batch.
    async fn batch(&self) -> Result<(), Violation> {
        let draw = self.session.draw;
        let first = draw.between(0, NAMES - 1);
        let tier = draw.percent(50);
        let parts = (0..draw.between(2, 4)).map(|part| async move {
            let name = format!("{}/{}", self.number, (first + part) % NAMES);
            if tier { self.set_tier(&name).await } else { self.delete(&name).await }
        });
        self.session.counts.add("batches", 1);
        join_all(parts).await.into_iter().collect()
    }

    pub(crate) fn length(&self) -> u64 {
        // The largest length is rare: a history has many small steps.
        let len = self.session.draw.length();
        if len > 200_000 { len % 90_000 + 1 } else { len }
    }

    pub(crate) fn demand(&self, name: &str, change: &Change) -> Demand {
        Demand { tag: self.demand_tag(name, change), lease: self.demand_lease(name, change) }
    }

    fn demand_lease(&self, name: &str, change: &Change) -> Option<Uuid> {
        let draw = self.session.draw;
        let one = matches!(change, Change::Delete { scope: Scope::One(_) });
        let free = matches!(
            change,
            Change::Lease { .. }
                | Change::Start { .. }
                | Change::Part { .. }
                | Change::Abort { .. }
        );
        if one || free {
            return None;
        }
        match self.likely(name).committed.and_then(|committed| committed.lease) {
            Some(lease) if draw.percent(85) => Some(lease.id),
            _ => draw.percent(3).then(|| Uuid::from_u128(1)),
        }
    }

    fn demand_tag(&self, name: &str, change: &Change) -> TagDemand {
        let draw = self.session.draw;
        let one = matches!(change, Change::Delete { scope: Scope::One(_) });
        let unconditional = matches!(
            change,
            Change::Stage { .. }
                | Change::Tier { .. }
                | Change::Start { .. }
                | Change::Part { .. }
                | Change::Abort { .. }
        );
        if one || unconditional || draw.percent(70) {
            return TagDemand::None;
        }
        let etag = self.with_blob(name, |blob| blob.known()?.committed.as_ref()?.etag);
        match etag {
            Some(etag) if draw.percent(70) => TagDemand::IfMatch(etag),
            // A tag that no blob has.
            Some(_) if draw.percent(50) => TagDemand::IfMatch(Etag::parse("0x1").unwrap()),
            _ if matches!(change, Change::Make { .. }) => TagDemand::IfAbsent,
            _ => TagDemand::None,
        }
    }
}
