//! Short ways to say requests.

use bytes::Bytes;

use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::types::Revision;
use crate::types::*;

pub(super) const ACCOUNT: AccountId = AccountId::new(1);
pub(super) const CONTAINER: ContainerId = ContainerId::new(0x8000_0000_0000_0000);

pub(super) fn partition() -> Partition {
    Partition::new(KeyRange::all())
}

pub(super) fn key(name: &str) -> BlobKey {
    key_in(CONTAINER, name)
}

pub(super) fn key_in(container: ContainerId, name: &str) -> BlobKey {
    let name = BlobName::new(name).unwrap();
    BlobKey { account: ACCOUNT, container, collation: Collation::Utf16, name }
}

pub(super) fn inline(bytes: &[u8]) -> (NewContent, Crc64) {
    (NewContent::Inline(Bytes::copy_from_slice(bytes)), Crc64::of(bytes))
}

/// Bytes that stand in extent `extent` at `offset`; what they are does not matter to rows.
pub(super) fn location(extent: u64, offset: u64, len: u64) -> Location {
    Location {
        extent: ExtentId::new(extent),
        offset: ExtentOffset::new(offset),
        len: ByteLen::new(len),
        crc: Crc32c::new(7),
    }
}

pub(super) fn stored(locations: &[Location]) -> (NewContent, Crc64) {
    (NewContent::Stored(locations.to_vec()), Crc64::of(b"stored"))
}

pub(super) fn put(key: &BlobKey, content: (NewContent, Crc64)) -> PutBlob {
    PutBlob {
        key: key.clone(),
        guard: Guard::default(),
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        kind: NewKind::Block,
        tags: Tags::default(),
        content: content.0,
        crc64: content.1,
        tier: None,
        fields: NewBlobFields::default(),
    }
}

pub(super) fn block_id(text: &str) -> BlockId {
    BlockId::from_bytes(text.as_bytes()).unwrap()
}

pub(super) fn stage(key: &BlobKey, id: &str, content: (NewContent, Crc64)) -> Write {
    Write::StageBlock(StageBlock {
        key: key.clone(),
        guard: Guard::default(),
        id: block_id(id),
        content: content.0,
        crc64: content.1,
    })
}

/// A block list: `+id` uncommitted, `=id` committed, `id` latest.
pub(super) fn commit(key: &BlobKey, ids: &[&str]) -> CommitBlocks {
    let entry = |text: &&str| {
        let (source, id) = match text.split_at(1) {
            ("+", id) => (BlockSource::Uncommitted, id),
            ("=", id) => (BlockSource::Committed, id),
            _ => (BlockSource::Latest, *text),
        };
        BlockListEntry { source, id: block_id(id) }
    };
    CommitBlocks {
        key: key.clone(),
        guard: Guard::default(),
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        tags: Tags::default(),
        list: ids.iter().map(entry).collect(),
        tier: None,
    }
}

pub(super) fn make(key: &BlobKey, kind: NewKind) -> Write {
    Write::PutBlob(PutBlob { kind, ..put(key, inline(b"")) })
}

pub(super) fn append(key: &BlobKey, content: (NewContent, Crc64)) -> AppendBlock {
    AppendBlock {
        key: key.clone(),
        guard: Guard::default(),
        position: None,
        len_max: None,
        content: content.0,
        crc64: content.1,
    }
}

pub(super) fn seal(key: &BlobKey) -> SealBlob {
    SealBlob { key: key.clone(), guard: Guard::default(), position: None }
}

pub(super) fn delete(key: &BlobKey) -> Write {
    delete_of(key, DeleteScope::Blob)
}

pub(super) fn delete_of(key: &BlobKey, scope: DeleteScope) -> Write {
    Write::DeleteBlob(DeleteBlob { key: key.clone(), guard: Guard::default(), scope })
}

pub(super) fn read(key: &BlobKey) -> ReadBlob {
    let guard = Guard::default();
    ReadBlob { key: key.clone(), revision: Revision::Current, guard, range: None, pieces: true }
}

impl Partition {
    pub(super) fn must(&mut self, write: &Write) -> WriteReply {
        self.write(write).unwrap()
    }

    pub(super) fn blob(&self, read: &ReadBlob) -> Result<BlobView, Error> {
        let ReadReply::Blob(view) = self.read(&Read::Blob(read.clone()))? else {
            panic!("not a blob")
        };
        Ok(*view)
    }

    pub(super) fn block_list(&self, key: &BlobKey) -> Result<BlockListView, Error> {
        let ReadReply::BlockList(view) =
            self.read(&Read::BlockList(key.clone(), Revision::Current, Guard::default()))?
        else {
            panic!("not a block list")
        };
        Ok(*view)
    }

    /// Every location in garbage rows, sorted.
    pub(super) fn garbage(&self) -> Vec<Location> {
        let mut all = Vec::new();
        let mut from = Some(Bytes::new());
        while let Some(start) = from {
            let reply = self.read(&Read::Garbage { from: start, limit: 2 }).unwrap();
            let ReadReply::Garbage(GarbagePage { rows, next }) = reply else {
                panic!("not garbage")
            };
            all.extend(rows.into_iter().flat_map(|row| row.locations));
            from = next;
        }
        all.sort_by_key(|l| (l.extent, l.offset));
        all
    }

    /// All pages of a list, `limit` entries each.
    pub(super) fn list_all(&self, list: &ListBlobs) -> Vec<String> {
        let mut names = Vec::new();
        let mut list = list.clone();
        loop {
            let ReadReply::Blobs(page) = self.read(&Read::Blobs(list.clone())).unwrap() else {
                panic!("not a page")
            };
            assert!(page.entries.len() <= list.limit);
            names.extend(page.entries.iter().map(show));
            let Some(next) = page.next else { return names };
            list.from = Some(next);
        }
    }
}

/// An entry as text: `name`, `name@ticks` for a snapshot, `name!ticks` for a version,
/// `name?` with staged blocks only,
/// `name#id` for an upload, `group>` for a prefix.
pub(super) fn show(entry: &ListEntry) -> String {
    match entry {
        ListEntry::Blob { name, revision: Revision::Current | Revision::Null, .. } => name.clone(),
        ListEntry::Blob { name, revision: Revision::Snapshot(taken), .. } => {
            format!("{name}@{}", taken.ticks())
        }
        ListEntry::Blob { name, revision: Revision::Version(time), .. } => {
            format!("{name}!{}", time.ticks())
        }
        ListEntry::VersionsOnly { name, .. } => format!("{name}!"),
        ListEntry::Uncommitted { name } => format!("{name}?"),
        ListEntry::Upload { name, id, .. } => format!("{name}#{id}"),
        ListEntry::Prefix { name } => format!("{name}>"),
    }
}

pub(super) fn list() -> ListBlobs {
    ListBlobs::first_page(ACCOUNT, CONTAINER, Collation::Utf16, 3)
}

/// The copy of a whole blob, with all that describes it.
pub(super) fn copied(shared: SharedBlob, to: &str) -> Write {
    let SharedBlob { record, content, .. } = shared;
    Write::PutCopy(Box::new(PutCopy {
        key: key(to),
        guard: Guard::default(),
        kind: record.kind,
        properties: record.properties,
        metadata: record.metadata,
        tags: record.tags,
        tier: None,
        content: content.unwrap(),
        crc64: record.crc64,
        copy: None,
        increment: None,
        job: None,
        fields: NewBlobFields::default(),
    }))
}

/// What the rows of all blobs name, each location once.
pub(super) fn references(p: &Partition) -> Vec<Location> {
    let read = Read::References(ListReferences::all());
    let ReadReply::References(found) = p.read(&read).unwrap() else { panic!("not references") };
    let mut all = found.locations;
    all.sort_by_key(|location| (location.extent, location.offset));
    all.dedup();
    all
}

/// Create Container, with nothing but a name and an id.
pub(super) fn create_container(text: &str, id: u64) -> Write {
    Write::CreateContainer(CreateContainer {
        account: ACCOUNT,
        name: ContainerName::new(text).unwrap(),
        id: ContainerId::new(id),
        collation: Collation::Utf16,
        metadata: Metadata::default(),
        public_access: PublicAccess::Private,
        encryption_scope: None,
        owner: None,
        region: None,
        acl: CannedAcl::Private,
        object_lock: false,
    })
}
