//! Calls of a client without a reference model: the content of a blob that it looked up must be
//! readable and equal to the written bytes.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use blockyard::capacity::ExtentInfo;
use blockyard::capacity::ExtentKind;
use blockyard::index::BlobView;
use blockyard::index::DeleteBlob;
use blockyard::index::Error;
use blockyard::index::Guard;
use blockyard::index::NewBlobFields;
use blockyard::index::Piece;
use blockyard::index::PutBlob;
use blockyard::index::Read;
use blockyard::index::ReadBlob;
use blockyard::index::ReadReply;
use blockyard::index::Refused;
use blockyard::index::Write;
use blockyard::index::inflight::ReadNote;
use blockyard::protocol::model::Reason;
use blockyard::types::BlobProperties;
use blockyard::types::Crc64;
use blockyard::types::DeleteScope;
use blockyard::types::ExtentId;
use blockyard::types::Metadata;
use blockyard::types::NewKind;
use blockyard::types::RoutingKey;
use blockyard::types::Tags;

use crate::draw::Draw;
use crate::draw::content;
use crate::index::key;
use crate::seeds::Violation;
use crate::stack::Stack;
use blockyard::types::Revision;

/// The client.
pub(crate) struct Calls<'a> {
    pub(crate) stack: &'a Stack,
    pub(crate) draw: &'a Draw,
    tags: Cell<u64>,
}

/// The result of a look-up, and the in-flight note that protects it.
pub(crate) struct Opened {
    pub(crate) view: Box<BlobView>,
    _note: ReadNote,
}

impl<'a> Calls<'a> {
    pub(crate) fn new(stack: &'a Stack, draw: &'a Draw) -> Self {
        Self { stack, draw, tags: Cell::default() }
    }

    pub(crate) async fn pause(&self, milliseconds: u64) {
        let time = Duration::from_millis(self.draw.between(0, milliseconds));
        self.stack.env.clock.sleep(time).await;
    }

    /// Stores new bytes and, after at most `wait` milliseconds, writes a row that names them.
    /// Refusals of a stalled or full disk are accepted.
    pub(crate) async fn put(&self, name: &str, wait: u64) {
        self.tags.set(self.tags.get() + 1);
        let bytes = content(self.tags.get(), self.draw.between(30_000, 48_000));
        let (crc64, len) = (Crc64::of(&bytes), bytes.len() as u64);
        let stored = match self.stack.pool.store(vec![bytes], len).await {
            Ok(stored) => stored,
            Err(error) => {
                let expected = [Reason::ServerBusy, Reason::InsufficientStorage];
                assert!(expected.contains(&error.reason), "storing {name}: {error:?}");
                return;
            }
        };
        if wait > 0 {
            self.pause(wait).await;
        }
        let put = Write::PutBlob(PutBlob {
            key: key(name),
            guard: Guard::default(),
            properties: BlobProperties::default(),
            metadata: Metadata::default(),
            kind: NewKind::Block,
            tags: Tags::default(),
            content: stored.content(),
            crc64,
            tier: None,
            fields: NewBlobFields::default(),
        });
        let committing = stored.committing();
        if let Err(Error::Overloaded) = self.stack.router.write(put).await {
            committing.refused();
        }
    }

    pub(crate) async fn delete(&self, name: &str) {
        let scope = DeleteScope::Blob;
        let delete =
            Write::DeleteBlob(DeleteBlob { key: key(name), guard: Guard::default(), scope });
        drop(self.stack.router.write(delete).await);
    }

    pub(crate) async fn open(&self, name: &str) -> Result<Option<Opened>, Violation> {
        self.open_revision(name, Revision::Current).await
    }

    /// Looks up a state of a blob.
    pub(crate) async fn open_revision(
        &self,
        name: &str,
        revision: Revision,
    ) -> Result<Option<Opened>, Violation> {
        let mut note = self.stack.inflight.read(self.stack.env.clock.monotonic());
        let (key, range) = (key(name), None);
        let position = RoutingKey::blob(&key);
        let read = ReadBlob { key, revision, guard: Guard::default(), range, pieces: true };
        match self.stack.router.read(position.as_bytes(), Read::Blob(read)).await {
            Ok(ReadReply::Blob(view)) => {
                note.names(extents(&view));
                Ok(Some(Opened { view, _note: note }))
            }
            Err(Error::Refused(Refused::BlobNotFound | Refused::VersionNotFound)) => Ok(None),
            Ok(other) => Err(format!("{name}: unexpected answer {other:?}")),
            Err(error) => Err(format!("{name}: {error}")),
        }
    }

    /// Reads the bytes that were looked up and compares them.
    pub(crate) async fn finish(&self, opened: &Opened) -> Result<(), Violation> {
        let mut bytes = Vec::new();
        for piece in &opened.view.pieces {
            let Piece::Stored { location, range } = piece else {
                return Err(format!("not in an extent: {piece:?}"));
            };
            let read = self.stack.capacity.read(location, range.clone()).await;
            bytes.extend(read.map_err(|error| format!("a running read: {error}"))?.concat());
        }
        if Crc64::of(&bytes) != opened.view.record.crc64 {
            return Err("a read shows other bytes than it looked up".to_owned());
        }
        Ok(())
    }

    /// Waits until the data extents that `count` accepts have at most `bytes_max` bytes together.
    pub(crate) async fn space_comes_back(
        &self,
        count: impl Fn(&ExtentInfo) -> bool,
        bytes_max: u64,
    ) -> Result<(), Violation> {
        let mut stored = 0;
        for _ in 0..20 {
            self.stack.env.clock.sleep(Duration::from_secs(1)).await;
            let infos = self.stack.capacity.extents().await;
            let counted = infos.iter().filter(|one| one.kind == ExtentKind::Data && count(one));
            stored = counted.map(|one| one.len - one.freed).sum();
            if stored <= bytes_max {
                return Ok(());
            }
        }
        Err(format!("{stored} bytes are stored that nobody names or reads"))
    }

    /// Looks a blob up and reads it after at most `wait` milliseconds.
    pub(crate) async fn read(&self, name: &str, wait: u64) -> Result<(), Violation> {
        if let Some(opened) = self.open(name).await? {
            self.pause(wait).await;
            self.finish(&opened).await?;
        }
        Ok(())
    }
}

pub(crate) fn extents(view: &BlobView) -> BTreeSet<ExtentId> {
    view.pieces.iter().filter_map(Piece::extent).collect()
}
