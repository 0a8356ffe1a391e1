//! Every decoder of rows on bytes from anywhere: the entry of the fuzz target.

#![deny(clippy::indexing_slicing)]

use bytes::Bytes;

use crate::index::objects::keys;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::objects::values::DeadContainer;
use crate::index::objects::values::Entry;
use crate::index::objects::values::GarbageValue;
use crate::index::objects::values::Span;
use crate::index::objects::values::StagedBlock;
use crate::index::objects::values::StagedSummary;
use crate::index::record::AccountRecord;
use crate::index::record::BlobRecord;
use crate::index::record::ContainerRecord;
use crate::index::record::CopyJob;
use crate::index::rows::Family;
use crate::types::RoutingKey;

/// Decodes `bytes` as each kind of row value and key; tells how many took them. Never panics.
#[must_use]
pub fn decode_untrusted(bytes: &[u8]) -> usize {
    let row = Bytes::copy_from_slice(bytes);
    let staged = RoutingKey::of_row(&row).map(|blob| keys::parse_staged(&row, &blob).is_ok());
    let family = Family::Main;
    let blob = values::decode_record_head::<BlobRecord>(family, bytes, bytes);
    let taken = [
        blob.is_ok_and(|(_, content)| values::decode_content(bytes, content).is_ok()),
        values::decode_record::<AccountRecord>(family, bytes, bytes).is_ok(),
        values::decode_record::<ContainerRecord>(family, bytes, bytes).is_ok(),
        values::decode_record::<CopyJob>(family, bytes, bytes).is_ok(),
        values::decode::<BlobContent>(family, bytes, bytes).is_ok(),
        values::decode::<Vec<Entry>>(family, bytes, bytes).is_ok(),
        values::decode::<StagedBlock>(family, bytes, bytes).is_ok(),
        values::decode::<StagedSummary>(family, bytes, bytes).is_ok(),
        values::decode::<Span>(family, bytes, bytes).is_ok_and(|span| {
            // What a read does with content first: lengths of any size do not overflow.
            span.content.is_none_or(|content| content.len() >= content.len_of(0))
        }),
        values::decode::<GarbageValue>(family, bytes, bytes).is_ok(),
        values::decode::<DeadContainer>(family, bytes, bytes).is_ok(),
        keys::parse_purge(bytes).is_some(),
        keys::routing_key(family, &row).is_ok(),
        staged == Some(true),
    ];
    taken.iter().filter(|taken| **taken).count()
}
