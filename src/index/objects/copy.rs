//! Copies into a blob.

use crate::index::api::CopiedBlock;
use crate::index::api::CopiedContent;
use crate::index::api::Error;
use crate::index::api::PutCopy;
use crate::index::api::WriteReply;
use crate::index::objects::append;
use crate::index::objects::blob_row;
use crate::index::objects::chain;
use crate::index::objects::chain::InTheWay;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::garbage;
use crate::index::objects::guard;
use crate::index::objects::incremental;
use crate::index::objects::keys;
use crate::index::objects::layout;
use crate::index::objects::new_fields;
use crate::index::objects::page_copy;
use crate::index::objects::part_fields::PartFields;
use crate::index::objects::repeated;
use crate::index::objects::staged;
use crate::index::objects::tags;
use crate::index::objects::tier_limits;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::objects::values::Content;
use crate::index::objects::values::Entry;
use crate::index::objects::values::Layout;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::types::BlobKind;
use crate::types::Crc64;
use crate::types::Location;
use crate::types::RoutingKey;

/// Put Blob From URL, Copy Blob.
pub(super) async fn put(eval: &mut Evaluation<'_>, put: &PutCopy) -> Result<WriteReply, Error> {
    if let Some(increment) = &put.increment {
        return incremental::put(eval, put, increment).await;
    }
    let key = RoutingKey::blob(&put.key);
    let old = blob_row::current(eval, &key).await?;
    let before = old.as_ref().map(|old| &old.record);
    let lease = guard::create(&put.guard, before, eval.now)?;
    guard::replaceable(&put.guard, before, eval.now)?;
    let taken: Vec<Location> =
        put.content.pieces().flat_map(|new| Content::from(new).owned().to_vec()).collect();
    let again = repeated::answer(eval, &key, &put.guard, (old.as_ref(), &taken)).await?;
    if let Some(answer) = again {
        return Ok(answer);
    }
    let laid =
        lay(eval, &key, Copied { kind: put.kind, content: &put.content, crc64: put.crc64 }).await?;
    let tier = put.tier.as_ref().map(|tier| tier.rehydrating.map_or(tier.tier, |begun| begun.to));
    let total = put.copy.as_ref().map_or(0, |copy| copy.total);
    let pending_pages = put.job.is_some() && matches!(put.kind, BlobKind::Page { .. });
    let len = if pending_pages { total } else { laid.len };
    tier_limits::check_new(tier, laid.kind, len)?;
    let mut record = BlobRecord {
        properties: put.properties.clone(),
        metadata: put.metadata.clone(),
        kind: laid.kind,
        tags: put.tags.clone(),
        tier: put.tier.clone(),
        copy: put.copy.clone(),
        lease,
        fields: new_fields::of(laid.kind, &put.fields),
        ..BlobRecord::after(before, eval.now, len, put.crc64)
    };
    record.put_under(put.guard.encryption.applied());
    tags::changed(eval, &key, &blob_row::tags_of(old.as_ref()), &put.tags);
    let mut dropped = staged::discard(eval, &key).await?;
    let of = InTheWay::of(old.as_ref());
    let way = chain::make_way(eval, &key, &put.guard, of).await?;
    way.finish(&mut record, &put.guard, eval.now)?;
    dropped.extend(way.dropped);
    if let Some(job) = &put.job {
        eval.out.put(Family::Work, keys::copy_work(&key), values::encode_record(&**job));
    }
    garbage::write(eval, &key, &dropped, &laid.kept);
    eval.out.put(Family::Main, key.as_bytes().clone(), values::encode_blob(&record, &laid.content));
    Ok(blob_row::written_as(eval.now, &record))
}

/// Copied content in the layout of a blob's row.
pub(super) struct Laid {
    pub(super) kind: BlobKind,
    pub(super) len: u64,
    pub(super) content: BlobContent,
    /// The locations that it names.
    pub(super) kept: Vec<Location>,
}

/// Content to be copied into a blob.
pub(super) struct Copied<'a> {
    /// The kind of the blob.
    pub(super) kind: BlobKind,
    /// Its content.
    pub(super) content: &'a CopiedContent,
    /// The checksum of the content.
    pub(super) crc64: Crc64,
}

/// Makes the layout of copied content in a blob of `kind`.
pub(super) async fn lay(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    copied: Copied<'_>,
) -> Result<Laid, Error> {
    let Copied { kind, content: copied, crc64 } = copied;
    let len = match copied {
        CopiedContent::Pages { len, .. } => *len,
        CopiedContent::Whole(_) | CopiedContent::Blocks(_) => {
            copied.pieces().map(|piece| Content::from(piece).len()).sum()
        }
    };
    let pieces = || copied.pieces().map(Content::from);
    let kept = pieces().flat_map(|content| content.locations().to_vec()).collect();
    let (kind, content) = match (kind, copied) {
        (kind, CopiedContent::Pages { layer, .. }) => {
            (kind, page_copy::adopt(eval, key, *layer).await?)
        }
        // The destination of a pending copy has no pages yet.
        (BlobKind::Page { .. }, CopiedContent::Whole(_) | CopiedContent::Blocks(_)) => (
            kind,
            BlobContent { id_len: 0, layout: Layout::Pages { layers: vec![eval.now.ticks()] } },
        ),
        (BlobKind::Append { sealed, .. }, CopiedContent::Whole(new)) => {
            let blocks = u32::from(len > 0);
            let content = append::of_one(eval, key, Content::from(new), crc64);
            (BlobKind::Append { blocks, sealed }, content)
        }
        (BlobKind::Append { sealed, .. }, CopiedContent::Blocks(blocks)) => {
            let count = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
            let content = append::build(eval, key, entries(blocks));
            (BlobKind::Append { blocks: count, sealed }, content)
        }
        (BlobKind::Block, CopiedContent::Whole(new)) => {
            (kind, BlobContent { id_len: 0, layout: Layout::Whole(Content::from(new)) })
        }
        (BlobKind::Block, CopiedContent::Blocks(blocks)) => {
            (kind, layout::build(eval, key, entries(blocks)))
        }
    };
    Ok(Laid { kind, len, content, kept })
}

fn entries(blocks: &[CopiedBlock]) -> Vec<Entry> {
    let fields = |block: &CopiedBlock| {
        let checksums = block.checksums.clone();
        let fields = PartFields { checksums, ..PartFields::default() };
        (!block.checksums.is_empty()).then(|| Box::new(fields))
    };
    let entry = |block: &CopiedBlock| Entry {
        id: block.id,
        len: block.len,
        crc64: block.crc64,
        content: Content::from(&block.content),
        fields: fields(block),
    };
    blocks.iter().map(entry).collect()
}
