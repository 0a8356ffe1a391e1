//! Copies into a blob.

use crate::index::api::CopiedContent;
use crate::index::api::Error;
use crate::index::api::PutCopy;
use crate::index::api::WriteReply;
use crate::index::objects::append;
use crate::index::objects::blob;
use crate::index::objects::garbage;
use crate::index::objects::guard;
use crate::index::objects::layout;
use crate::index::objects::page_copy;
use crate::index::objects::staged;
use crate::index::objects::tags;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::objects::values::Content;
use crate::index::objects::values::Entry;
use crate::index::objects::values::Layout;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::index::rows::RowBatch;
use crate::index::rows::Rows;
use crate::types::BlobKind;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// Put Blob From URL, Copy Blob.
pub(super) async fn put(
    view: &dyn Rows,
    put: &PutCopy,
    now: Timestamp,
    out: &mut RowBatch,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&put.key);
    let old = blob::load(view, &key).await?;
    let before = old.as_ref().map(|old| &old.record);
    let lease = guard::create(&put.guard, before, now)?;
    before.map_or(Ok(()), |before| guard::not_archived(before, now))?;
    let len = match &put.content {
        CopiedContent::Pages { len, .. } => *len,
        CopiedContent::Whole(_) | CopiedContent::Blocks(_) => {
            put.content.pieces().map(|piece| Content::from(piece).len()).sum()
        }
    };
    let record = BlobRecord {
        properties: put.properties.clone(),
        metadata: put.metadata.clone(),
        kind: put.kind,
        tags: put.tags.clone(),
        tier: put.tier.clone(),
        copy: put.copy.clone(),
        lease,
        ..BlobRecord::after(before, now, len, put.crc64)
    };
    tags::changed(&key, (&blob::tags_of(old.as_ref()), &put.tags), now, out);
    let mut dropped = staged::discard(view, &key, out).await?;
    if let Some(old) = old {
        let layout = old.content(&key)?.layout;
        dropped.extend(layout::owned(view, &key, &layout, out).await?);
        layout::remove_rows(&key, &layout, now, out);
    }
    let (content, kept) = match &put.content {
        CopiedContent::Pages { layer, .. } => {
            (page_copy::adopt(view, &key, *layer, out).await?, Vec::new())
        }
        CopiedContent::Whole(new) if matches!(put.kind, BlobKind::Append { .. }) => {
            let content = Content::from(new);
            let kept = content.locations().to_vec();
            (append::of_one(&key, (content, put.crc64), now, out), kept)
        }
        CopiedContent::Whole(new) => {
            let content = Content::from(new);
            let kept = content.locations().to_vec();
            (BlobContent { id_len: 0, layout: Layout::Whole(content) }, kept)
        }
        CopiedContent::Blocks(blocks) => {
            let entries: Vec<Entry> = blocks
                .iter()
                .map(|block| Entry {
                    id: block.id.clone(),
                    len: block.len,
                    crc64: block.crc64,
                    content: Content::from(&block.content),
                })
                .collect();
            let kept = entries.iter().flat_map(|e| e.content.locations()).copied().collect();
            let content = match put.kind {
                BlobKind::Append { .. } => append::build(&key, entries, now, out),
                BlobKind::Block | BlobKind::Page { .. } => layout::build(&key, entries, now, out),
            };
            (content, kept)
        }
    };
    garbage::write(&key, now, &dropped, &kept, out);
    out.put(Family::Main, key.as_bytes().clone(), values::encode_blob(&record, &content));
    Ok(blob::written(now))
}
