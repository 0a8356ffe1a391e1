//! One client: changes and reads its own blobs, one request at a time, and races the others for contested names.

use std::time::Duration;

use blockyard::capacity::Capacity;
use blockyard::index::BlobChange;
use blockyard::index::BlobView;
use blockyard::index::CommitBlocks;
use blockyard::index::DeleteBlob;
use blockyard::index::Error;
use blockyard::index::Guard;
use blockyard::index::ListBlobs;
use blockyard::index::ListEntry;
use blockyard::index::Piece;
use blockyard::index::PutBlob;
use blockyard::index::Read;
use blockyard::index::ReadBlob;
use blockyard::index::ReadReply;
use blockyard::index::StageBlock;
use blockyard::index::UpdateBlob;
use blockyard::index::Write;
use blockyard::index::WriteReply;
use blockyard::types::BlobProperties;
use blockyard::types::BlockId;
use blockyard::types::BlockListEntry;
use blockyard::types::BlockSource;
use blockyard::types::ByteRange;
use blockyard::types::Conditions;
use blockyard::types::Crc64;
use blockyard::types::DeleteScope;
use blockyard::types::Etag;
use blockyard::types::EtagMatch;
use blockyard::types::Metadata;
use blockyard::types::NewKind;
use blockyard::types::RoutingKey;
use bytes::Bytes;

use crate::draw::content;
use crate::index::Attempt;
use crate::index::NAMES;
use crate::index::Session;
use crate::index::key;
use crate::model::Answer;
use crate::model::Blob;
use crate::model::Change;
use crate::model::Demand;
use crate::model::Segment;
use crate::model::State;
use crate::rig::Trouble;
use crate::seeds::Violation;
use crate::stack::Stack;

/// Block ids in use; few, so that blocks are staged again.
const BLOCKS: u64 = 5;

/// A client.
pub(crate) struct Client<'a> {
    pub(crate) number: u64,
    pub(crate) stack: &'a Stack,
    pub(crate) session: &'a Session<'a>,
}

/// What a read brought, or that it failed with the session's trouble as excuse.
enum Seen<T> {
    Value(T),
    Excused,
}

impl Client<'_> {
    pub(crate) async fn run(self, steps: u64) -> Result<(), Violation> {
        for _ in 0..steps {
            if self.session.is_down() {
                break;
            }
            self.step().await?;
        }
        Ok(())
    }

    async fn step(&self) -> Result<(), Violation> {
        let draw = self.session.draw;
        let name = format!("{}/{}", self.number, draw.between(0, NAMES - 1));
        match draw.between(0, 99) {
            0..=19 => self.put(&name).await,
            20..=41 => self.stage(&name).await,
            42..=54 => self.commit(&name).await,
            55..=61 => {
                let mark = self.tag();
                self.change(&name, Change::Mark { mark }, None).await
            }
            62..=69 => self.change(&name, Change::Delete, None).await,
            70..=84 => self.check_blob(&name).await,
            85..=90 => self.check_blocks(&name).await,
            91..=96 => self.check_list().await,
            _ => self.contest().await,
        }
    }

    fn tag(&self) -> u64 {
        self.session.model.borrow_mut().tag()
    }

    fn with_blob<T>(&self, name: &str, work: impl FnOnce(&mut Blob) -> T) -> T {
        let mut model = self.session.model.borrow_mut();
        work(model.blobs.entry(name.to_owned()).or_default())
    }

    // Changes

    async fn put(&self, name: &str) -> Result<(), Violation> {
        let segment = Segment { id: None, tag: self.tag(), len: self.length() };
        let mark = self.tag();
        let bytes = content(segment.tag, segment.len);
        self.change(name, Change::Put { segment, mark }, Some(bytes)).await
    }

    async fn stage(&self, name: &str) -> Result<(), Violation> {
        let id = u32::try_from(self.session.draw.between(0, BLOCKS - 1)).unwrap();
        let segment = Segment { id: Some(id), tag: self.tag(), len: self.length() };
        let bytes = content(segment.tag, segment.len);
        self.change(name, Change::Stage { segment }, Some(bytes)).await
    }

    async fn commit(&self, name: &str) -> Result<(), Violation> {
        let draw = self.session.draw;
        let sources = [BlockSource::Committed, BlockSource::Uncommitted, BlockSource::Latest];
        let known = self.with_blob(name, |blob| blob.known().cloned());
        let mut list = Vec::new();
        for id in 0..u32::try_from(BLOCKS).unwrap() {
            // Mostly lists that can be committed, sometimes not.
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
        let mark = self.tag();
        self.change(name, Change::Commit { list, mark }, None).await
    }

    fn length(&self) -> u64 {
        // Rarely the largest: a history is about many small steps.
        let len = self.session.draw.length();
        if len > 200_000 { len % 90_000 + 1 } else { len }
    }

    fn demand(&self, name: &str, change: &Change) -> Demand {
        let draw = self.session.draw;
        if matches!(change, Change::Stage { .. }) || draw.percent(70) {
            return Demand::None;
        }
        let etag = self.with_blob(name, |blob| blob.known()?.committed.as_ref()?.etag);
        match etag {
            Some(etag) if draw.percent(70) => Demand::IfMatch(etag),
            // A tag nothing has.
            Some(_) if draw.percent(50) => Demand::IfMatch(Etag::parse("0x1").unwrap()),
            _ if matches!(change, Change::Put { .. }) => Demand::IfAbsent,
            _ => Demand::None,
        }
    }

    async fn change(
        &self,
        name: &str,
        change: Change,
        body: Option<Bytes>,
    ) -> Result<(), Violation> {
        if self.with_blob(name, |blob| blob.is_blurred()) {
            return Ok(());
        }
        let demand = self.demand(name, &change);
        self.with_blob(name, |blob| blob.ask(change.clone(), demand));
        let answer = self.send(name, &change, demand, body).await?;
        self.session.counts.add(answer.name(), 1);
        if answer == Answer::NotDone {
            // Full or overloaded: room comes with time.
            self.stack.env.clock.sleep(Duration::from_millis(20)).await;
        }
        self.with_blob(name, |blob| blob.answer(answer)).map_err(|why| format!("{name}: {why}"))
    }

    async fn send(
        &self,
        name: &str,
        change: &Change,
        demand: Demand,
        body: Option<Bytes>,
    ) -> Result<Answer, Violation> {
        let Some(bytes) = body else {
            let write = request(name, change, demand);
            return self.write(write).await;
        };
        let crc64 = Crc64::of(&bytes);
        let Some(stored) = self.store(bytes).await else { return Ok(Answer::NotDone) };
        let key = key(name);
        let guard = guard(demand);
        let content = stored.content();
        let write = match change {
            Change::Put { mark, .. } => Write::PutBlob(PutBlob {
                key,
                guard,
                properties: BlobProperties::default(),
                metadata: metadata(*mark),
                kind: NewKind::Block,
                tags: blockyard::types::Tags::default(),
                content,
                crc64,
                tier: None,
            }),
            Change::Stage { segment } => {
                let id = block_id(segment.id.unwrap());
                Write::StageBlock(StageBlock { key, guard, id, content, crc64 })
            }
            Change::Commit { .. } | Change::Mark { .. } | Change::Delete => unreachable!(),
        };
        let committing = stored.committing();
        let answer = self.write(write).await?;
        if !matches!(answer, Answer::Done(_) | Answer::Unknown) {
            committing.refused();
        }
        Ok(answer)
    }

    /// Bytes before pointers, as the front end does it.
    async fn store(&self, bytes: Bytes) -> Option<blockyard::frontend::write::Stored> {
        let len = bytes.len() as u64;
        if self.stack.pool.fits_in_memory(len) {
            return self.stack.pool.store(vec![bytes], len).await.ok();
        }
        let mut writer = self.stack.pool.stream();
        let cut = usize::try_from(self.session.draw.between(0, len)).unwrap();
        writer.push(bytes.slice(..cut)).await.ok()?;
        writer.push(bytes.slice(cut..)).await.ok()?;
        writer.finish().await.ok()
    }

    async fn write(&self, write: Write) -> Result<Answer, Violation> {
        match self.stack.router.write(write).await {
            Ok(WriteReply::Written(written)) => Ok(Answer::Done(Some(written.etag))),
            Ok(WriteReply::Done) => Ok(Answer::Done(None)),
            Ok(other) => Err(format!("unexpected answer {other:?}")),
            Err(Error::BlobNotFound | Error::Condition(_) | Error::UnknownBlock) => {
                Ok(Answer::Refused)
            }
            Err(Error::Full | Error::Overloaded) => Ok(Answer::NotDone),
            Err(Error::Unavailable(_)) if self.excused() => Ok(Answer::Unknown),
            Err(error) => Err(format!("write with {:?}: {error}", self.session.plan)),
        }
    }

    fn excused(&self) -> bool {
        self.session.is_down() || self.session.plan.trouble != Trouble::None
    }

    /// Whether a small blob, stored beside the index, can be written and deleted.
    pub(crate) async fn can_write(&self) -> Result<bool, Violation> {
        let bytes = content(self.tag(), 8_000);
        let Some(stored) = self.store(bytes.clone()).await else { return Ok(false) };
        let write = Write::PutBlob(PutBlob {
            key: key("probe"),
            guard: Guard::default(),
            properties: BlobProperties::default(),
            metadata: Metadata::default(),
            kind: NewKind::Block,
            tags: blockyard::types::Tags::default(),
            content: stored.content(),
            crc64: Crc64::of(&bytes),
            tier: None,
        });
        // Whatever comes of it, these bytes are left to reclaim.
        drop(stored.committing());
        if !matches!(self.write(write).await?, Answer::Done(_)) {
            return Ok(false);
        }
        let delete =
            DeleteBlob { key: key("probe"), guard: Guard::default(), scope: DeleteScope::Blob };
        Ok(matches!(self.write(Write::DeleteBlob(delete)).await?, Answer::Done(_)))
    }

    /// Deletes every blob of every client, as long as that takes.
    pub(crate) async fn delete_all(&self) -> Result<(), Violation> {
        let names: Vec<String> = self.session.model.borrow().blobs.keys().cloned().collect();
        for name in names {
            for _ in 0..20 {
                let known = self.with_blob(&name, |blob| blob.known().cloned());
                if known.is_some_and(|state| state == State::default()) {
                    break;
                }
                // An empty list drops staged blocks, which a delete needs a blob for.
                let mark = self.tag();
                self.change(&name, Change::Commit { list: Vec::new(), mark }, None).await?;
                self.change(&name, Change::Delete, None).await?;
            }
        }
        Ok(())
    }

    // Reads

    /// Reads a blob, or a range of it.
    async fn check_blob(&self, name: &str) -> Result<(), Violation> {
        let draw = self.session.draw;
        let range = if draw.percent(50) {
            let first = draw.between(0, 60_000);
            ByteRange::new(first, Some(first + draw.between(0, 60_000)))
        } else {
            None
        };
        self.check_range(name, range).await
    }

    async fn check_range(&self, name: &str, range: Option<ByteRange>) -> Result<(), Violation> {
        let seen = match self.read(name, range).await {
            Ok(Seen::Value(seen)) => seen,
            Ok(Seen::Excused) => return Ok(()),
            Err(why) => return Err(format!("{name}: {why}")),
        };
        let what = match &seen {
            Read1::Missing => "no blob".to_owned(),
            Read1::PastEnd(len) => format!("a range past the end {len}"),
            Read1::Bytes { view, .. } => format!("{:?}", view.record),
        };
        let fits = |state: &mut State| match (&seen, state.committed.as_mut()) {
            (Read1::Missing, committed) => committed.is_none(),
            (Read1::PastEnd(len), Some(committed)) => committed.len() == *len,
            (Read1::Bytes { view, bytes }, Some(committed)) => {
                let record = &view.record;
                let span = usize::try_from(view.range.start).unwrap()
                    ..usize::try_from(view.range.end).unwrap();
                let right = record.len == committed.len()
                    && record.metadata == metadata(committed.mark)
                    && committed.etag.is_none_or(|etag| etag == record.etag)
                    && committed.bytes().slice(span) == *bytes
                    && record.crc64 == Crc64::of(&committed.bytes());
                committed.etag = Some(record.etag);
                right
            }
            (Read1::PastEnd(_) | Read1::Bytes { .. }, None) => false,
        };
        let result = self.with_blob(name, |blob| blob.see(&what, fits));
        result.map_err(|why| format!("{name}: {why}"))
    }

    async fn read(&self, name: &str, range: Option<ByteRange>) -> Result<Seen<Read1>, Violation> {
        let _reading = self.stack.inflight.read(self.stack.env.clock.now());
        let mut view = match self.view(name, range, Demand::None).await {
            Ok(view) => view,
            Err(Error::BlobNotFound) => return Ok(Seen::Value(Read1::Missing)),
            Err(Error::InvalidRange { len }) => return Ok(Seen::Value(Read1::PastEnd(len))),
            Err(error) => return self.excuse(&error),
        };
        let mut bytes = Vec::new();
        let mut pieces = std::mem::take(&mut view.pieces);
        let mut end = view.pieces_end;
        loop {
            for piece in std::mem::take(&mut pieces) {
                match piece {
                    Piece::Inline(inline) => bytes.extend_from_slice(&inline),
                    Piece::Zeros(len) => {
                        bytes.resize(bytes.len() + usize::try_from(len).unwrap(), 0);
                    }
                    Piece::Stored { location, range } => {
                        match self.stack.capacity.read(&location, range).await {
                            Ok(parts) => bytes.extend_from_slice(&parts.concat()),
                            Err(error) => return self.excuse(&error),
                        }
                    }
                    Piece::Encrypted { .. } => panic!("no request came with a key"),
                }
            }
            if end >= view.range.end {
                break;
            }
            let rest = ByteRange::new(end, Some(view.range.end - 1));
            match self.view(name, rest, Demand::IfMatch(view.record.etag)).await {
                Ok(more) => (pieces, end) = (more.pieces, more.pieces_end),
                Err(error) => return self.excuse(&error),
            }
        }
        Ok(Seen::Value(Read1::Bytes { view, bytes: bytes.into() }))
    }

    async fn view(
        &self,
        name: &str,
        range: Option<ByteRange>,
        demand: Demand,
    ) -> Result<Box<BlobView>, Error> {
        let key = key(name);
        let position = RoutingKey::blob(&key);
        let read =
            Read::Blob(ReadBlob { key, snapshot: None, guard: guard(demand), range, pieces: true });
        let reply = self.stack.router.read(position.as_bytes(), read).await?;
        let ReadReply::Blob(view) = reply else { panic!("a blob was asked for: {reply:?}") };
        Ok(view)
    }

    fn excuse<T>(&self, error: &dyn std::fmt::Display) -> Result<Seen<T>, Violation> {
        if self.excused() {
            return Ok(Seen::Excused);
        }
        Err(format!("read with {:?}: {error}", self.session.plan))
    }

    async fn check_blocks(&self, name: &str) -> Result<(), Violation> {
        let key = key(name);
        let position = RoutingKey::blob(&key);
        let read = Read::BlockList(key, None, Guard::default());
        let (committed, uncommitted) = match self.stack.router.read(position.as_bytes(), read).await
        {
            Ok(ReadReply::BlockList(list)) => (list.committed, list.uncommitted),
            Ok(other) => return Err(format!("unexpected answer {other:?}")),
            Err(Error::BlobNotFound) => (Vec::new(), Vec::new()),
            Err(error) => return self.excuse::<()>(&error).map(|_| ()),
        };
        let what = format!("blocks {committed:?}, uncommitted {uncommitted:?}");
        let same = |segments: Vec<&Segment>, views: &[blockyard::index::BlockView]| {
            segments.len() == views.len()
                && segments.iter().zip(views).all(|(segment, view)| {
                    Some(&view.id) == segment.id.map(block_id).as_ref() && view.len == segment.len
                })
        };
        let fits = |state: &mut State| {
            let blocks = state.committed.iter().flat_map(|committed| &committed.segments);
            same(blocks.filter(|segment| segment.id.is_some()).collect(), &committed)
                && same(state.staged.values().collect(), &uncommitted)
        };
        let result = self.with_blob(name, |blob| blob.see(&what, fits));
        result.map_err(|why| format!("{name}: {why}"))
    }

    /// Lists the client's own names, page by page.
    async fn check_list(&self) -> Result<(), Violation> {
        let draw = self.session.draw;
        let staged_too = draw.percent(50);
        let mut list = ListBlobs {
            account: key("x").account,
            container: key("x").container,
            collation: key("x").collation,
            prefix: format!("{}/", self.number),
            delimiter: None,
            start_from: None,
            from: None,
            limit: usize::try_from(draw.between(1, 4)).unwrap(),
            uncommitted: staged_too,
            snapshots: false,
        };
        let mut entries = Vec::new();
        loop {
            let page =
                match self.stack.router.read(&list.position(), Read::Blobs(list.clone())).await {
                    Ok(ReadReply::Blobs(page)) => page,
                    Ok(other) => return Err(format!("unexpected answer {other:?}")),
                    Err(error) => return self.excuse::<()>(&error).map(|_| ()),
                };
            if page.entries.len() > list.limit {
                return Err(format!("{} entries, asked for {}", page.entries.len(), list.limit));
            }
            entries.extend(page.entries);
            list.from = page.next;
            if list.from.is_none() {
                break;
            }
        }
        self.see_list(&entries, staged_too)
    }

    fn see_list(&self, entries: &[ListEntry], staged_too: bool) -> Result<(), Violation> {
        let names: Vec<&str> = entries
            .iter()
            .map(|entry| match entry {
                ListEntry::Blob { name, .. }
                | ListEntry::Uncommitted { name }
                | ListEntry::Prefix { name } => name.as_str(),
            })
            .collect();
        if !names.is_sorted_by(|a, b| a < b) {
            return Err(format!("list out of order, or twice the same: {names:?}"));
        }
        for number in 0..NAMES {
            let name = format!("{}/{number}", self.number);
            let entry = names.iter().position(|listed| *listed == name).map(|at| &entries[at]);
            let what = format!("{entry:?} in a list, uncommitted too: {staged_too}");
            let fits = |state: &mut State| match (entry, state.committed.as_mut()) {
                (Some(ListEntry::Blob { record, .. }), Some(committed)) => {
                    let right = record.len == committed.len()
                        && record.metadata == metadata(committed.mark)
                        && committed.etag.is_none_or(|etag| etag == record.etag);
                    committed.etag = Some(record.etag);
                    right
                }
                (Some(ListEntry::Uncommitted { .. }), None) => {
                    staged_too && !state.staged.is_empty()
                }
                (None, None) => !staged_too || state.staged.is_empty(),
                (None | Some(_), _) => false,
            };
            let result = self.with_blob(&name, |blob| blob.see(&what, fits));
            result.map_err(|why| format!("{name}: {why}"))?;
        }
        Ok(())
    }

    /// Reads all the client's blobs whole, their blocks and their list.
    pub(crate) async fn check_all(&self) -> Result<(), Violation> {
        self.check_list().await?;
        for number in 0..NAMES {
            let name = format!("{}/{number}", self.number);
            self.check_blocks(&name).await?;
            self.check_range(&name, None).await?;
        }
        self.check_list().await
    }

    // Contests

    /// Of all who create a name if it is absent, one wins (I9).
    async fn contest(&self) -> Result<(), Violation> {
        let name = format!("contest/{}", self.session.draw.between(0, 3));
        let tag = self.tag();
        let bytes = content(tag, 100);
        let Some(stored) = self.store(bytes.clone()).await else { return Ok(()) };
        let write = Write::PutBlob(PutBlob {
            key: key(&name),
            guard: guard(Demand::IfAbsent),
            properties: BlobProperties::default(),
            metadata: metadata(tag),
            kind: NewKind::Block,
            tags: blockyard::types::Tags::default(),
            content: stored.content(),
            crc64: Crc64::of(&bytes),
            tier: None,
        });
        // Until answered: a kill may come first.
        self.note(&name, tag, Some(Attempt::Unknown));
        let committing = stored.committing();
        let attempt = match self.write(write).await? {
            Answer::Done(_) => Some(Attempt::Won),
            Answer::Unknown => Some(Attempt::Unknown),
            Answer::Refused | Answer::NotDone => None,
        };
        if attempt.is_none() {
            committing.refused();
        }
        self.note(&name, tag, attempt);
        Ok(())
    }

    fn note(&self, name: &str, tag: u64, attempt: Option<Attempt>) {
        let mut model = self.session.model.borrow_mut();
        let attempts = model.contests.entry(name.to_owned()).or_default();
        match attempt {
            Some(attempt) => attempts.insert(tag, attempt),
            None => attempts.remove(&tag),
        };
    }

    pub(crate) async fn check_contests(&self) -> Result<(), Violation> {
        let contests = self.session.model.borrow().contests.clone();
        for (name, attempts) in contests {
            let won: Vec<u64> = attempts
                .iter()
                .filter(|(_, attempt)| **attempt == Attempt::Won)
                .map(|(tag, _)| *tag)
                .collect();
            if won.len() > 1 {
                return Err(format!("{name} was created {} times", won.len()));
            }
            let found = match self.read(&name, None).await? {
                Seen::Value(Read1::Bytes { bytes, .. }) => Some(bytes),
                Seen::Value(Read1::Missing | Read1::PastEnd(_)) | Seen::Excused => None,
            };
            let allowed = match won.first() {
                Some(tag) => found == Some(content(*tag, 100)),
                None => {
                    found.is_none_or(|bytes| attempts.keys().any(|tag| bytes == content(*tag, 100)))
                }
            };
            if !allowed {
                return Err(format!(
                    "{name} holds what nobody, or a loser, put there: {attempts:?}"
                ));
            }
        }
        Ok(())
    }
}

/// What a read of a blob brought.
enum Read1 {
    Missing,
    PastEnd(u64),
    Bytes { view: Box<BlobView>, bytes: Bytes },
}

fn request(name: &str, change: &Change, demand: Demand) -> Write {
    let key = key(name);
    let guard = guard(demand);
    match change {
        Change::Commit { list, mark } => Write::CommitBlocks(CommitBlocks {
            key,
            guard,
            properties: BlobProperties::default(),
            metadata: metadata(*mark),
            tags: blockyard::types::Tags::default(),
            list: list
                .iter()
                .map(|(source, id)| BlockListEntry { source: *source, id: block_id(*id) })
                .collect(),
            tier: None,
        }),
        Change::Mark { mark } => {
            let change = BlobChange::Metadata(metadata(*mark));
            Write::UpdateBlob(UpdateBlob { key, snapshot: None, guard, change })
        }
        Change::Delete => Write::DeleteBlob(DeleteBlob { key, guard, scope: DeleteScope::Blob }),
        Change::Put { .. } | Change::Stage { .. } => unreachable!("these have a body"),
    }
}

fn guard(demand: Demand) -> Guard {
    let mut conditions = Conditions::default();
    match demand {
        Demand::None => {}
        Demand::IfMatch(etag) => conditions.if_match = Some(EtagMatch::Tags(vec![Some(etag)])),
        Demand::IfAbsent => conditions.if_none_match = Some(EtagMatch::Any),
    }
    Guard { conditions, ..Guard::default() }
}

fn metadata(mark: u64) -> Metadata {
    Metadata::new(vec![("mark".to_owned(), mark.to_string())]).unwrap()
}

fn block_id(id: u32) -> BlockId {
    BlockId::from_bytes(&id.to_be_bytes()).unwrap()
}
