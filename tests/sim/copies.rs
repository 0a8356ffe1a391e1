//! Copies by reference between a client's own blobs, across partitions: the source is marked as
//! shared, and the destination names its locations (ADR 0009).

use std::time::Duration;

use blockyard::index::CopiedContent;
use blockyard::index::Damage;
use blockyard::index::Error;
use blockyard::index::FillLayer;
use blockyard::index::NewContent;
use blockyard::index::Share;
use blockyard::index::SharePages;
use blockyard::index::SharedBlob;
use blockyard::index::Write;
use blockyard::index::WriteReply;
use blockyard::index::inflight::CopyNote;
use blockyard::types::Crc64;
use blockyard::types::Crc64Combiner;
use blockyard::types::Location;
use blockyard::types::RoutingKey;
use blockyard::types::Timestamp;

use crate::change::Change;
use crate::change::Demand;
use crate::change::Scope;
use crate::client::Client;
use crate::client::Payload;
use crate::content::Body;
use crate::content::Pages;
use crate::content::Segment;
use crate::index::key;
use crate::requests;
use crate::requests::is_refusal;
use crate::rig::Failing;
use crate::seeds::Violation;
use crate::state::Marks;

impl Client<'_> {
    /// Copies another blob to this name, or a block of it into a staged block.
    pub(crate) async fn copy(&self, name: &str) -> Result<(), Violation> {
        let draw = self.session.draw;
        let source = self.own_name();
        let Some((body, snapshot)) = self.source(&source) else { return Ok(()) };
        if let Body::Pages(pages) = &body {
            return self.copy_pages(name, (&source, snapshot), pages).await;
        }
        let block = draw.one(body.segments()).copied();
        if draw.percent(30)
            && let Some(block) = block
        {
            return self.copy_block(name, (&source, snapshot), &body, block).await;
        }
        let Some((shared, note)) = self.share((&source, snapshot), &body, None).await? else {
            return Ok(());
        };
        if name != source && draw.percent(30) {
            // After the mark the copy no longer needs its source.
            let lease = self.likely(&source).committed.and_then(|c| c.lease).map(|l| l.id);
            let demand = Demand { lease, ..Demand::default() };
            let change = Change::Delete { scope: Scope::WithSnapshots };
            self.change(&source, change, demand, Payload::Nothing).await?;
            // An audit may pass both blobs meanwhile.
            self.stack.env.clock.sleep(Duration::from_millis(draw.between(0, 30))).await;
        }
        let marks = Marks { tier: None, ..self.marks() };
        let content = self.flattened(shared);
        // A blob without blocks has one piece.
        let body = match (&content, body) {
            (CopiedContent::Whole(_), Body::Blocks(segments)) => {
                Body::Blocks(segments.into_iter().map(|one| Segment { id: None, ..one }).collect())
            }
            (_, body) => body,
        };
        let crc64 = body.crc64().expect("page blobs are not shared");
        let change = Change::Make { body, marks };
        let demand = self.demand(name, &change);
        let payload = Payload::Copied(content, crc64, note);
        self.change(name, change, demand, payload).await?;
        self.session.counts.add("copies", 1);
        self.show_tags(name, marks.tags).await
    }

    /// The certain content of a blob or of one of its snapshots.
    fn source(&self, name: &str) -> Option<(Body, Option<Timestamp>)> {
        let known = self.with_blob(name, |blob| blob.known().cloned());
        let snapshots = known.map(|state| state.snapshots).unwrap_or_default();
        match self.session.draw.one(&snapshots) {
            Some(taken) if taken.at.is_some() && self.session.draw.percent(50) => {
                Some((taken.was.body.clone(), taken.at))
            }
            Some(_) | None => Some((self.with_blob(name, |blob| blob.body().cloned())?, None)),
        }
    }

    /// Copies a page blob part by part into a layer. The last step makes the layer the content of
    /// the blob.
    async fn copy_pages(
        &self,
        name: &str,
        (source, snapshot): (&str, Option<Timestamp>),
        pages: &Pages,
    ) -> Result<(), Violation> {
        // Noted before the layer is made, so that reclaim does not remove it.
        let making = self.stack.inflight.layer(RoutingKey::blob(&key(name)));
        let mut layer = None;
        let mut from = Some(0);
        while let Some(start) = from {
            let note = self.stack.inflight.copy();
            let part = Write::SharePages(Box::new(SharePages {
                key: key(source),
                revision: snapshot.into(),
                guard: requests::guard(Demand::default()),
                since: None,
                from: start,
            }));
            let part = match self.tell(part).await? {
                Some(WriteReply::SharedPages(part)) => part,
                Some(other) => return Err(format!("unexpected answer {other:?}")),
                None => return Ok(()),
            };
            let spans =
                part.spans.iter().filter_map(|span| span.content.as_ref()).flat_map(locations);
            note.met(spans.map(|location| location.extent));
            let fill = FillLayer { blob: RoutingKey::blob(&key(name)), layer, spans: part.spans };
            match self.tell(Write::FillLayer(fill)).await? {
                Some(WriteReply::Layer(filled)) => layer = Some(filled),
                Some(other) => return Err(format!("unexpected answer {other:?}")),
                None => return Ok(()),
            }
            from = part.next;
        }
        let layer = layer.expect("one part at least");
        let marks = Marks { tier: None, ..self.marks() };
        let change = Change::Make { body: Body::Pages(pages.copied()), marks };
        let demand = self.demand(name, &change);
        let content = CopiedContent::Pages { layer, len: pages.len };
        let payload = Payload::Copied(content, Crc64::EMPTY, self.stack.inflight.copy());
        self.change(name, change, demand, payload).await?;
        drop(making);
        self.session.counts.add("page blobs copied", 1);
        self.show_tags(name, marks.tags).await
    }

    /// Executes a step of a copy; `None` if the copy is abandoned.
    async fn tell(&self, write: Write) -> Result<Option<WriteReply>, Violation> {
        match self.stack.router.write(write).await {
            Ok(reply) => Ok(Some(reply)),
            Err(Error::Full(_) | Error::Overloaded) => Ok(None),
            Err(error) if is_refusal(&error) => Ok(None),
            Err(Error::Corrupt(Damage::Quarantined(_))) if self.excused(Failing::Quarantined) => {
                Ok(None)
            }
            Err(Error::Unavailable(_)) if self.excused(Failing::Writes) => Ok(None),
            Err(error) => Err(format!("copy with {:?}: {error}", self.session.plan)),
        }
    }

    /// Sometimes turns content of one block into content without blocks, as Put Blob From URL does.
    fn flattened(&self, content: CopiedContent) -> CopiedContent {
        match &content {
            CopiedContent::Blocks(blocks) if self.session.draw.percent(50) => {
                match blocks.as_slice() {
                    [one] => CopiedContent::Whole(one.content.clone()),
                    _ => content,
                }
            }
            CopiedContent::Whole(_) | CopiedContent::Blocks(_) | CopiedContent::Pages { .. } => {
                content
            }
        }
    }

    async fn copy_block(
        &self,
        name: &str,
        source: (&str, Option<Timestamp>),
        body: &Body,
        block: Segment,
    ) -> Result<(), Violation> {
        let before = body.segments().iter().take_while(|one| one.tag != block.tag);
        let start: u64 = before.map(|one| one.len).sum();
        let range = start..start + block.len;
        let Some((content, note)) = self.share(source, body, Some(range)).await? else {
            return Ok(());
        };
        let mut combiner = Crc64Combiner::default();
        let crc64 = match &content {
            CopiedContent::Whole(_) | CopiedContent::Pages { .. } => body.crc64().unwrap(),
            CopiedContent::Blocks(blocks) => {
                blocks.iter().fold(Crc64::EMPTY, |sum, b| combiner.combine(sum, b.crc64, b.len))
            }
        };
        let id = u32::try_from(self.session.draw.between(0, 4)).unwrap();
        let change = Change::Stage { segment: Segment { id: Some(id), ..block } };
        let demand = self.demand(name, &change);
        let payload = Payload::Copied(content, crc64, note);
        self.change(name, change, demand, payload).await?;
        self.session.counts.add("blocks copied", 1);
        Ok(())
    }

    /// Marks the content of the source, which is certainly `body`, as shared.
    async fn share(
        &self,
        (source, snapshot): (&str, Option<Timestamp>),
        body: &Body,
        range: Option<std::ops::Range<u64>>,
    ) -> Result<Option<(CopiedContent, CopyNote)>, Violation> {
        // Noted before the look-up, so that an audit respects the copy.
        let note = self.stack.inflight.copy();
        let (key, demand) = (key(source), requests::guard(Demand::default()));
        let share = Share { key, revision: snapshot.into(), guard: demand, range };
        let SharedBlob { record, content, .. } =
            match self.tell(Write::Share(Box::new(share))).await? {
                Some(WriteReply::Shared(shared)) => *shared,
                Some(other) => return Err(format!("unexpected answer {other:?}")),
                None => return Ok(None),
            };
        if (record.len, record.kind) != (body.len(), body.kind()) {
            return Err(format!("{source}: shared {record:?}, but it holds {body:?}"));
        }
        let Some(content) = content else { return Ok(None) };
        note.met(content.pieces().flat_map(locations).map(|location| location.extent));
        Ok(Some((content, note)))
    }
}

fn locations(content: &NewContent) -> &[Location] {
    match content {
        NewContent::Inline(_) => &[],
        NewContent::Stored(locations) | NewContent::Shared(locations) => locations,
        NewContent::Encrypted(_, bytes) | NewContent::Authenticated(_, bytes) => locations(bytes),
    }
}
