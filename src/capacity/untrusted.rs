//! All decoders of this role on arbitrary bytes: the entry of the fuzz target.
//!
//! Almost every input fails its checksum, so each layout is tried a second time with a corrected
//! checksum. The code behind the checksum must not panic either.

#![deny(clippy::indexing_slicing)]

use bytes::Bytes;

use crate::capacity::extent::frame::Expected;
use crate::capacity::extent::frame::Head;
use crate::capacity::extent::frame::Placed;
use crate::capacity::extent::frame::RawFrame;
use crate::capacity::extent::frame::head_len;
use crate::capacity::extent::frame::starts_frame;
use crate::capacity::extent::frame::verify_frames;
use crate::capacity::extent::header::Header;
use crate::capacity::extent::header::Slot;
use crate::capacity::extent::header::parse_padding;
use crate::capacity::extent::map::Map;
use crate::capacity::journal::layout::BATCH_HEADER;
use crate::capacity::journal::layout::BatchHeader;
use crate::capacity::journal::layout::RingId;
use crate::capacity::journal::layout::Superblock;
use crate::capacity::journal::layout::decode_body;
use crate::capacity::remote::decode_any;
use crate::capacity::units::get_u32;
use crate::capacity::units::get_u64;
use crate::capacity::units::index;
use crate::types::Crc32c;
use crate::types::Crc32cHasher;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// Decodes `bytes` as each layout on disk and as each message between nodes. Returns how many
/// decoders accepted them. Never panics.
#[must_use]
pub fn decode_untrusted(bytes: &[u8]) -> usize {
    let taken = [
        Header::parse(bytes).is_some(),
        slot(bytes),
        frames(bytes),
        frames(&with_frame_crc(bytes)),
        received(bytes),
        received(&with_frame_crc(bytes)),
        Superblock::decode(bytes).is_some(),
        batch(bytes),
        batch(&with_crc(bytes, index(BATCH_HEADER) - 4)),
    ];
    taken.iter().filter(|taken| **taken).count() + decode_any(bytes)
}

fn slot(page: &[u8]) -> bool {
    Slot::parse(page).is_some_and(|slot| {
        parse_padding(page, &slot).is_some() || Map::parse(page, &slot).is_some()
    })
}

fn frames(bytes: &[u8]) -> bool {
    let (Some(extent), Some(offset)) = (get_u64(bytes, 8), get_u64(bytes, 16)) else {
        return false;
    };
    // Offsets of real extents are far below this limit: the writer rolls to a new extent at a few
    // GiB.
    let offset = ExtentOffset::new(offset % (1 << 40));
    let head = Head::parse(bytes, ExtentId::new(extent), offset);
    let whole = verify_frames(bytes, ExtentId::new(extent), offset);
    starts_frame(bytes) && (head.is_some() || whole.is_some())
}

/// Frames as another process sends them. It may name any offset.
fn received(bytes: &[u8]) -> bool {
    let fields = [8, 16, 32].map(|at| get_u64(bytes, at).unwrap_or(0));
    let [extent, offset, epoch] = fields;
    let (extent, offset) = (ExtentId::new(extent), ExtentOffset::new(offset));
    let bytes = Bytes::copy_from_slice(bytes);
    let pieces = [bytes.slice(..bytes.len() / 2), bytes.slice(bytes.len() / 2..)];
    let appended =
        Placed::received(&pieces, Expected { extent, end: offset }, Epoch::new(epoch)).is_some();
    let expected = Expected { extent, end: ExtentOffset::START };
    Placed::copied(&[RawFrame { offset, bytes }], expected).is_some() || appended
}

/// The bytes with the checksum that a frame's head of this length would have.
fn with_frame_crc(bytes: &[u8]) -> Vec<u8> {
    let mut fixed = bytes.to_vec();
    let len = u64::from(get_u32(bytes, 24).unwrap_or(0)) % (1 << 21);
    let Some(table) = bytes.get(48..index(head_len(len.max(1)))) else { return fixed };
    let mut crc = Crc32cHasher::default();
    crc.update(bytes.get(..44).unwrap_or_default());
    crc.update(table);
    put_u32(&mut fixed, 44, crc.finish().get());
    fixed
}

fn batch(bytes: &[u8]) -> bool {
    let Some(header) = BatchHeader::decode(bytes, RingId::new(get_u64(bytes, 8).unwrap_or(0)))
    else {
        return false;
    };
    let body = Bytes::copy_from_slice(bytes.get(index(BATCH_HEADER)..).unwrap_or_default());
    let honest = BatchHeader {
        body: u64::try_from(body.len()).unwrap_or(u64::MAX),
        body_crc: Crc32c::of(&body),
        ..header
    };
    decode_body(&header, &body).is_some() || decode_body(&honest, &body).is_some()
}

/// The bytes with the checksum of the first `at` bytes behind them.
fn with_crc(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut fixed = bytes.to_vec();
    let crc = Crc32c::of(bytes.get(..at).unwrap_or_default());
    put_u32(&mut fixed, at, crc.get());
    fixed
}

fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}
