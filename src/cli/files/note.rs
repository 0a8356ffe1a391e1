//! The note of an unfinished download: which pieces have come, with their digests.
//!
//! Its first line says of which blob they are. Each further line is `START LEN DIGEST`. Lines are
//! added after the bytes were written. A power failure may lose bytes and keep their line, so the
//! digest of each piece is checked before it is taken.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;

use crate::types::Md5;

use super::blobs::Piece;

/// Of which blob the pieces are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// The version of this format.
    pub(super) blockyard_download: u32,
    /// The blob's URL, without a signature.
    pub(super) url: String,
    /// Its `ETag`, without quotes.
    pub(super) etag: String,
    /// Bytes of the blob.
    pub(super) size: u64,
}

impl Header {
    /// That of a blob.
    pub(super) fn new(url: String, etag: &str, size: u64) -> Self {
        Self { blockyard_download: 1, url, etag: etag.trim_matches('"').to_owned(), size }
    }

    /// The first line of the note.
    pub(super) fn line(&self) -> String {
        let json = serde_json::to_string(self).expect("texts and numbers");
        format!("{json}\n")
    }
}

/// The line of a piece that has come.
pub(super) fn line(piece: Piece, digest: Md5) -> String {
    format!("{} {} {}\n", piece.start, piece.len, digest.to_base64())
}

/// The pieces in a note; `None` if it is of another blob, of another state of it, or no note. A
/// last line that was cut off is ignored.
pub(super) fn read(text: &str, wanted: &Header) -> Option<BTreeMap<u64, (Piece, Md5)>> {
    let (first, rest) = text.split_once('\n')?;
    let header: Header = serde_json::from_str(first).ok()?;
    if header != *wanted {
        return None;
    }
    let whole = rest.rsplit_once('\n').map_or("", |(lines, _)| lines);
    let pieces = whole.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        let piece = Piece { start: number()?, len: number()? };
        let digest = Md5::from_base64(words.next()?)?;
        let end = piece.start.checked_add(piece.len)?;
        (piece.len > 0 && end <= wanted.size).then_some((piece.start, (piece, digest)))
    });
    Some(pieces.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pieces_of_the_same_state_of_the_same_blob_are_taken() {
        let header = Header::new("http://h/a/c/b".to_owned(), "\"0x8D\"", 20);
        let piece = Piece { start: 8, len: 8 };
        let text = format!("{}{}", header.line(), line(piece, Md5::of(b"x")));
        let found = read(&text, &header).unwrap();
        assert_eq!(found.get(&8), Some(&(piece, Md5::of(b"x"))));
        for other in [
            Header::new("http://h/a/c/other".to_owned(), "0x8D", 20),
            Header::new("http://h/a/c/b".to_owned(), "0x8E", 20),
            Header::new("http://h/a/c/b".to_owned(), "0x8D", 21),
        ] {
            assert_eq!(read(&text, &other), None);
        }
        assert_eq!(read("", &header), None);
        assert_eq!(read("no note\n8 8 x\n", &header), None);
    }

    #[test]
    fn lines_that_were_cut_off_or_lie_outside_are_ignored() {
        let header = Header::new(String::new(), "e", 20);
        let good = line(Piece { start: 0, len: 4 }, Md5::of(b"x"));
        let outside = line(Piece { start: 16, len: 8 }, Md5::of(b"x"));
        let huge = line(Piece { start: u64::MAX, len: 8 }, Md5::of(b"x"));
        let empty = line(Piece { start: 4, len: 0 }, Md5::of(b"x"));
        let cut = good.trim_end();
        let text = format!("{}{good}{outside}{huge}{empty}4 4\n\n8 4 zz\n4{cut}", header.line());
        let found = read(&text, &header).unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [0]);
    }
}
