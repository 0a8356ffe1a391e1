//! The parts in which a blob was uploaded. Source: S3, GetObjectAttributes.

use crate::index::api::BlobPartView;
use crate::index::api::BlobPartsView;
use crate::index::api::Error;
use crate::index::api::ReadBlobParts;
use crate::index::objects::encryption;
use crate::index::objects::guard;
use crate::index::objects::layout;
use crate::index::objects::layout::Segments;
use crate::index::objects::part_range::has_parts;
use crate::index::objects::revision;
use crate::index::objects::revision::RevisionOf;
use crate::index::objects::values::Entry;
use crate::index::objects::values::Layout;
use crate::index::record::BlobRecord;
use crate::index::rows::Rows;
use crate::types::ChecksumValue;
use crate::types::PartNumber;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// A blob and a page of its parts.
pub(super) async fn page(
    view: &dyn Rows,
    read: &ReadBlobParts,
    now: Timestamp,
) -> Result<BlobPartsView, Error> {
    let key = RoutingKey::blob(&read.key);
    let of = RevisionOf { revision: read.revision, guard: &read.guard };
    let blob = revision::load(view, &key, of).await?;
    guard::read(&read.guard, &blob.record, now)?;
    encryption::check(&read.guard.encryption, blob.record.under().as_ref())?;
    let record = blob.record.clone();
    let mut page = Page::new(read, &record);
    let total = match blob.content(&key)?.layout {
        Layout::Blocks(entries) if has_parts(&record) => {
            page.add(&entries);
            Some(u32::try_from(entries.len()).unwrap_or(u32::MAX))
        }
        Layout::Segments { generation, directory } if has_parts(&record) => {
            for (place, start) in (Segments { generation, directory: &directory }).places() {
                if page.is_full() {
                    break;
                }
                page.add(&layout::segment(view, &key, place, start.entries).await?);
            }
            Some(directory.iter().fold(0u32, |sum, one| sum.saturating_add(one.entries)))
        }
        Layout::Whole(_)
        | Layout::Blocks(_)
        | Layout::Segments { .. }
        | Layout::Appended { .. }
        | Layout::Pages { .. } => None,
    };
    let Page { parts, more, .. } = page;
    Ok(BlobPartsView { record, total, parts, more })
}

/// A page that is being filled.
struct Page {
    after: u32,
    limit: usize,
    /// Whether the CRC-64 of a block may be shown. None is kept of encrypted content.
    has_crc64: bool,
    parts: Vec<BlobPartView>,
    more: bool,
}

impl Page {
    fn new(read: &ReadBlobParts, record: &BlobRecord) -> Self {
        Self {
            after: read.after,
            limit: usize::try_from(read.limit).unwrap_or(usize::MAX),
            has_crc64: !record.is_under_key(),
            parts: Vec::new(),
            more: false,
        }
    }

    /// Whether nothing further changes it.
    const fn is_full(&self) -> bool {
        self.limit == 0 || self.more
    }

    /// Adds the requested ones of the next blocks. The number of a part is the id of its block.
    fn add(&mut self, entries: &[Entry]) {
        for entry in entries {
            let number = PartNumber::of_block(&entry.id).map(PartNumber::get);
            let Some(number) = number.filter(|number| *number > self.after) else { continue };
            if self.parts.len() == self.limit {
                self.more = self.limit > 0;
                return;
            }
            let mut checksums =
                entry.fields.as_ref().map(|fields| fields.checksums.clone()).unwrap_or_default();
            if self.has_crc64 {
                checksums.push(ChecksumValue::from(entry.crc64).of_whole());
            }
            self.parts.push(BlobPartView { number, len: entry.len, checksums });
        }
    }
}
