//! Copies by reference between a client's own blobs, across partitions: the source marks, the destination names (ADR 0009).

use blockyard::index::CopiedContent;
use blockyard::index::Error;
use blockyard::index::NewContent;
use blockyard::index::Share;
use blockyard::index::SharedBlob;
use blockyard::index::Write;
use blockyard::index::WriteReply;
use blockyard::index::inflight::CopyGuard;
use blockyard::types::Crc64;
use blockyard::types::Crc64Combiner;
use blockyard::types::Location;

use crate::change::Change;
use crate::change::Demand;
use crate::change::Scope;
use crate::client::Client;
use crate::client::Payload;
use crate::content::Body;
use crate::content::Segment;
use crate::index::key;
use crate::requests;
use crate::requests::is_refusal;
use crate::seeds::Violation;
use crate::state::Marks;

impl Client<'_> {
    /// Copies another blob to this name, or a block of it into a staged block.
    pub(crate) async fn copy(&self, name: &str) -> Result<(), Violation> {
        let draw = self.session.draw;
        let source = self.name();
        let Some(body) = self.with_blob(&source, |blob| blob.body().cloned()) else {
            return Ok(());
        };
        let block = draw.one(body.segments()).copied();
        if draw.percent(30)
            && let Some(block) = block
        {
            return self.copy_block(name, &source, &body, block).await;
        }
        let Some((shared, guard)) = self.share(&source, &body, None).await? else { return Ok(()) };
        if name != source && draw.percent(30) {
            // Once it is marked, the copy does not need its source any more.
            let lease = self.likely(&source).committed.and_then(|c| c.lease).map(|l| l.id);
            let demand = Demand { lease, ..Demand::default() };
            let change = Change::Delete { scope: Scope::WithSnapshots };
            self.change(&source, change, demand, Payload::Nothing).await?;
        }
        let marks = Marks { tier: None, ..self.marks() };
        let content = self.flattened(shared);
        // A blob in one piece has no blocks.
        let body = match (&content, body) {
            (CopiedContent::Whole(_), Body::Blocks(segments)) => {
                Body::Blocks(segments.into_iter().map(|one| Segment { id: None, ..one }).collect())
            }
            (_, body) => body,
        };
        let crc64 = body.crc64().expect("page blobs are not shared");
        let change = Change::Make { body, marks };
        let demand = self.demand(name, &change);
        let payload = Payload::Copied(content, crc64, guard);
        self.change(name, change, demand, payload).await?;
        self.session.counts.add("copies", 1);
        self.show_tags(name, marks.tags).await
    }

    /// Of one block sometimes as Put Blob From URL names it: without blocks.
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
        source: &str,
        body: &Body,
        block: Segment,
    ) -> Result<(), Violation> {
        let before = body.segments().iter().take_while(|one| one.tag != block.tag);
        let start: u64 = before.map(|one| one.len).sum();
        let range = start..start + block.len;
        let Some((content, guard)) = self.share(source, body, Some(range)).await? else {
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
        let payload = Payload::Copied(content, crc64, guard);
        self.change(name, change, demand, payload).await?;
        self.session.counts.add("blocks copied", 1);
        Ok(())
    }

    /// Has the source mark what it holds, which is surely `body`.
    async fn share(
        &self,
        source: &str,
        body: &Body,
        range: Option<std::ops::Range<u64>>,
    ) -> Result<Option<(CopiedContent, CopyGuard)>, Violation> {
        // Before the look-up, so that an audit knows of the copy.
        let guard = self.stack.inflight.copy();
        let share = Share {
            key: key(source),
            snapshot: None,
            guard: requests::guard(Demand::default()),
            range,
        };
        let SharedBlob { record, content } =
            match self.stack.router.write(Write::Share(Box::new(share))).await {
                Ok(WriteReply::Shared(shared)) => *shared,
                Ok(other) => return Err(format!("unexpected answer {other:?}")),
                Err(Error::Full | Error::Overloaded) => return Ok(None),
                Err(error) if is_refusal(&error) => return Ok(None),
                Err(Error::Unavailable(_)) if self.excused() => return Ok(None),
                Err(error) => return Err(format!("share with {:?}: {error}", self.session.plan)),
            };
        if (record.len, record.kind) != (body.len(), body.kind()) {
            return Err(format!("{source}: shared {record:?}, but it holds {body:?}"));
        }
        let Some(content) = content else { return Ok(None) };
        guard.met(content.pieces().flat_map(locations).map(|location| location.extent));
        Ok(Some((content, guard)))
    }
}

fn locations(content: &NewContent) -> &[Location] {
    match content {
        NewContent::Inline(_) => &[],
        NewContent::Stored(locations) | NewContent::Shared(locations) => locations,
        NewContent::Encrypted(_, bytes) => locations(bytes),
    }
}
