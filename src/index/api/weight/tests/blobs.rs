//! Writes of blobs.

use super::*;
use crate::index::api::UndeleteBlob;
use crate::index::record::{CopyJob, CopyRecord, CopyStatus};
use crate::types::Revision;

/// The write, and what its payload takes at least.
pub(super) fn writes() -> Vec<(Write, usize)> {
    let list: Vec<BlockListEntry> =
        (0..50_000).map(|n| BlockListEntry { source: BlockSource::Latest, id: id(n) }).collect();
    let commit = CommitBlocks {
        key: key("n"),
        guard: Guard::default(),
        properties: BlobProperties::default(),
        metadata: metadata(8_000),
        tags: tags(),
        list,
        tier: None,
    };
    let update = |change| {
        let guard = Guard::default();
        Write::UpdateBlob(UpdateBlob { key: key("n"), revision: Revision::Current, guard, change })
    };
    let inline = NewContent::Inline(vec![0; 4_096].into());
    let empty = NewContent::Inline(bytes::Bytes::new());
    let rows: Vec<bytes::Bytes> = (0..1_000).map(|_| vec![0; 1_000].into()).collect();
    let etags = 500 * size_of::<Option<Etag>>();
    let of_tags = 10 * (128 + 256);
    let of_list = 50_000 * size_of::<BlockListEntry>();
    vec![
        (put(inline, metadata(0), Tags::default()), 4_096 + 1_024 + 1_000 + etags + 3 * LONG),
        (put(empty, metadata(8_000), tags()), 8_000 + of_tags + 3 * LONG),
        (Write::CommitBlocks(commit), of_list + 8_000 + of_tags),
        end_copy(),
        fill_layer(),
        (Write::ForgetGarbage { keys: rows }, 1_000 * (1_000 + size_of::<bytes::Bytes>())),
        (update(BlobChange::Metadata(metadata(8_000))), 8_000),
        (update(BlobChange::Tags(tags())), of_tags),
        (Write::Prove, 0),
    ]
}

/// A long name, under 500 entity tags.
fn put(content: NewContent, metadata: Metadata, tags: Tags) -> Write {
    let conditions =
        Conditions { if_match: Some(EtagMatch::Tags(vec![None; 500])), ..Conditions::default() };
    let properties =
        BlobProperties { content_type: Some("t".repeat(1_000)), ..BlobProperties::default() };
    Write::PutBlob(PutBlob {
        key: key(&"n".repeat(1_024)),
        guard: Guard { conditions, ..Guard::default() },
        properties,
        metadata,
        tags,
        kind: NewKind::Block,
        content,
        crc64: Crc64::EMPTY,
        tier: None,
        fields: new_fields(),
    })
}

/// Texts of 3 times [`LONG`].
fn new_fields() -> NewBlobFields {
    let object = ObjectProperties {
        expires: Some(long()),
        redirect: Some(long()),
        owner: Some(long()),
        ..ObjectProperties::default()
    };
    NewBlobFields { object: object.if_any(), ..NewBlobFields::default() }
}

fn end_copy() -> (Write, usize) {
    let block = |n: usize| CopiedBlock {
        id: id(n),
        len: 1,
        crc64: Crc64::EMPTY,
        content: NewContent::Shared(locations(2)),
        checksums: vec![ChecksumValue::from(Crc64::EMPTY).of_whole()],
    };
    let content = CopiedContent::Blocks((0..50_000).map(block).collect());
    let end = EndCopy {
        blob: RoutingKey::blob(&key("n")),
        id: Uuid::nil(),
        end: CopyEnd::Success { content, crc64: Crc64::EMPTY },
    };
    let inside = 2 * size_of::<Location>() + size_of::<ContentChecksum>() + 8;
    let least = 50_000 * (size_of::<CopiedBlock>() + inside);
    (Write::EndCopy(Box::new(end)), least)
}

fn fill_layer() -> (Write, usize) {
    let content = NewContent::Shared(locations(1));
    let span = |n| PageSpan { range: n..n + 1, skip: 0, content: Some(content.clone()) };
    let spans = (0..10_000).map(span).collect();
    let fill = FillLayer { blob: RoutingKey::blob(&key("n")), layer: None, spans };
    (Write::FillLayer(fill), 10_000 * (size_of::<PageSpan>() + size_of::<Location>()))
}

/// Changes of blobs that the list above lacks.
pub(super) fn of_blobs() -> Vec<(Write, usize)> {
    let (guard, guarded) = long_guard();
    let guarded = guarded + 1_024;
    let (guard, revision) = (|| guard.clone(), Revision::Current);
    let share = Share { key: long_key(), revision, guard: guard(), range: None };
    let pages = SharePages { key: long_key(), revision, guard: guard(), since: None, from: 0 };
    let seal = SealBlob { key: long_key(), guard: guard(), position: None };
    let delete = DeleteBlob { key: long_key(), guard: guard(), scope: DeleteScope::Blob };
    let action = LeaseAction::Renew { id: Uuid::nil() };
    let lease = LeaseBlob { key: long_key(), guard: guard(), action };
    let taken = SnapshotBlob { key: long_key(), guard: guard(), metadata: Some(metadata(LONG)) };
    let tier = SetTier {
        key: long_key(),
        revision,
        guard: guard(),
        tier: AccessTier::Hot,
        priority: RehydratePriority::Standard,
        rehydration: Duration::ZERO,
    };
    vec![
        put_copy(),
        (Write::Share(Box::new(share)), guarded),
        (Write::SharePages(Box::new(pages)), guarded),
        (Write::SealBlob(seal), guarded),
        (Write::DeleteBlob(delete), guarded),
        (Write::LeaseBlob(lease), guarded),
        (Write::SnapshotBlob(taken), guarded + LONG),
        (Write::UndeleteBlob(UndeleteBlob { key: long_key(), guard: guard() }), guarded),
        (Write::SetTier(tier), guarded),
    ]
}

fn put_copy() -> (Write, usize) {
    let (guard, guarded) = long_guard();
    let copy = CopyRecord {
        id: Uuid::nil(),
        source: long(),
        status: CopyStatus::Pending,
        description: Some(long()),
        copied: 0,
        total: 0,
        completed: None,
    };
    let job = CopyJob {
        id: Uuid::nil(),
        source: secret(),
        etag: Some(long()),
        md5: None,
        crc64: None,
        lease: None,
    };
    let put = PutCopy {
        key: long_key(),
        guard,
        kind: BlobKind::Block,
        properties: long_properties(),
        metadata: metadata(LONG),
        tags: tags(),
        tier: None,
        content: CopiedContent::Whole(inline()),
        crc64: Crc64::EMPTY,
        copy: Some(Box::new(copy)),
        increment: None,
        job: Some(Box::new(job)),
        fields: NewBlobFields::default(),
    };
    (Write::PutCopy(Box::new(put)), guarded + 1_024 + 7 * LONG + 10 * (128 + 256))
}
