//! Blocks of large blobs: how many, and their ids, by which a block that is already there is
//! recognised.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::protocol::azure::answers::StagedBlock;
use crate::types::Md5;

use super::blobs::Piece;
use super::url::plain;

/// Blocks of a blob. Source: "Put Block List".
pub(super) const BLOCKS_MAX: u64 = 50_000;
/// The largest block. Source: "Put Block".
pub(super) const BLOCK_BYTES_MAX: u64 = 4_000 << 20;
/// Block sizes that are chosen for large files are multiples of this.
const STEP: u64 = 1 << 20;
/// The first bytes of an id: what makes the ids of this program, and their version.
const MARK: [u8; 4] = *b"by1\0";

/// The size of blocks for `len` bytes: the wanted one, or a larger one if there would be too many
/// blocks.
pub(super) fn block_size(wanted: u64, len: u64) -> u64 {
    let least = len.div_ceil(BLOCKS_MAX);
    if least <= wanted { wanted } else { least.next_multiple_of(STEP) }
}

/// The pieces of `len` bytes.
pub(super) fn pieces(len: u64, size: u64) -> impl Iterator<Item = Piece> + Clone {
    let count = len.div_ceil(size.max(1));
    (0..count).map(move |number| {
        let start = number * size;
        Piece { start, len: size.min(len - start) }
    })
}

/// The id of a block: its place, its length and the digest of its content. A block with the same id
/// has the same bytes at the same place, whatever became of the file in the meantime. All ids have
/// the same length, as the service demands of the blocks of a blob.
pub(super) fn block_id(piece: Piece, digest: Md5) -> String {
    let mut bytes = MARK.to_vec();
    bytes.extend(piece.start.to_be_bytes());
    bytes.extend(piece.len.to_be_bytes());
    bytes.extend(digest.as_bytes());
    STANDARD.encode(bytes)
}

/// The id of a block that a server copies: its content is that of the source with this
/// URL and `ETag`. Two sources may have the same `ETag`. A signature in the URL says nothing of the
/// content, and the next run has another.
pub(super) fn copied_block_id(piece: Piece, url: &str, etag: &str) -> String {
    let state = format!("{}?{}", plain(url), etag.trim_matches('"'));
    block_id(piece, Md5::of(state.as_bytes()))
}

/// The staged blocks of a blob that an earlier run may have left.
#[derive(Debug, Default)]
pub(super) struct Staged(HashMap<String, u64>);

impl Staged {
    /// These blocks.
    pub(super) fn new(blocks: Vec<StagedBlock>) -> Self {
        Self(blocks.into_iter().map(|block| (block.id, block.size)).collect())
    }

    /// Whether the block with this id is there, with its whole length.
    pub(super) fn has(&self, id: &str, len: u64) -> bool {
        self.0.get(id) == Some(&len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_all_bytes_once() {
        for (len, size) in [(0, 4), (1, 4), (4, 4), (5, 4), (1 << 30, 8 << 20), (3, 1 << 30)] {
            let mut at = 0;
            for piece in pieces(len, size) {
                assert_eq!(piece.start, at);
                assert!((1..=size).contains(&piece.len));
                at += piece.len;
            }
            assert_eq!(at, len);
        }
    }

    #[test]
    fn blocks_grow_so_that_there_are_not_too_many() {
        assert_eq!(block_size(8 << 20, 0), 8 << 20);
        assert_eq!(block_size(8 << 20, 50_000 * (8 << 20)), 8 << 20);
        let len = 50_000 * (8 << 20) + 1;
        assert_eq!(block_size(8 << 20, len), 9 << 20);
        let len = 190 << 40;
        assert!(pieces(len, block_size(1, len)).count() <= 50_000);
        assert!(block_size(1, len) <= BLOCK_BYTES_MAX);
    }

    #[test]
    fn only_a_block_with_the_same_bytes_at_the_same_place_is_taken() {
        let piece = Piece { start: 8, len: 4 };
        let digest = Md5::of(b"abcd");
        let id = block_id(piece, digest);
        let staged = Staged::new(vec![StagedBlock { id: id.clone(), size: 4 }]);
        assert!(staged.has(&id, 4));
        assert!(!staged.has(&id, 3), "cut off");
        let others = [
            block_id(Piece { start: 4, len: 4 }, digest),
            block_id(Piece { start: 8, len: 3 }, digest),
            block_id(piece, Md5::of(b"abcx")),
            copied_block_id(piece, "http://h/c/b", "0x8D"),
        ];
        for other in others {
            assert_eq!(other.len(), id.len(), "the service wants one length");
            assert!(!staged.has(&other, 4), "{other}");
        }
        assert!(STANDARD.decode(&id).unwrap().len() <= 64, "the longest id of the service");
    }

    #[test]
    fn copied_blocks_are_identified_by_source_and_state() {
        let of = |url, etag| copied_block_id(Piece { start: 8, len: 4 }, url, etag);
        let id = of("http://h/c/b", "0x8D");
        assert_eq!(of("http://h/c/b?sig=1", "\"0x8D\""), id);
        assert_ne!(of("http://h/c/other", "0x8D"), id);
        assert_ne!(of("http://h/c/b", "0x8E"), id);
    }
}
