//! Runs every decoder of the engine on arbitrary bytes. The fuzz target calls it. No decoder may
//! panic.

#![deny(clippy::indexing_slicing)]

use bytes::Bytes;

use crate::index::engine::extents::{ExtentRecord, Sharers};
use crate::index::engine::log::manifest::Manifest;
use crate::index::engine::log::record::{Batch, HEADER_LEN, Header};
use crate::index::engine::run::block::Block;
use crate::index::engine::run::filter::Filter;
use crate::index::engine::run::footer::Footer;
use crate::index::map::PartitionDescriptor;

/// Decodes `bytes` as each of the engine's layouts, and returns how many decoders accepted them.
/// Never panics.
#[must_use]
pub fn decode_untrusted(bytes: &[u8]) -> usize {
    let bytes = Bytes::copy_from_slice(bytes);
    let body = bytes.slice(HEADER_LEN.min(bytes.len())..);
    let taken = [
        Header::decode(&bytes).is_some_and(|header| header.matches(&body)),
        Batch::decode(&bytes).is_some_and(|batch| batch.rows().is_some()),
        Batch::decode_answered(&bytes).is_some_and(|batch| batch.rows().is_some()),
        Manifest::decode(&bytes).is_some(),
        Manifest::decode_answered(&bytes).is_some(),
        Block::decode(&bytes).is_some_and(|block| walk(&block, &body).is_some()),
        Footer::decode(&bytes).is_some(),
        Filter::new(bytes.clone()).may_contain(&body),
        PartitionDescriptor::decode(&bytes).is_some(),
        ExtentRecord::decode(&bytes).is_ok(),
        Sharers::decode(&bytes).is_ok(),
    ];
    taken.iter().filter(|taken| **taken).count()
}

fn walk(block: &Block, key: &[u8]) -> Option<()> {
    block.get(key)?;
    let mut rows = block.iter_from(key)?;
    while rows.next_row()?.is_some() {}
    Some(())
}
