//! Notes how the head of a request spells its metadata names, while the bytes of the connection are
//! read (ADR 0043). HTTP/1 only.
//!
//! hyper's parser alone decides what a request is. The notes are used only for the case of a name
//! that hyper has parsed. At worst a name has the case of another head of the connection, or lower
//! case: if a client sends a request before it has the answer of the last one, and if the rest of a
//! body looks like a head.

#![deny(clippy::indexing_slicing)]

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use http::Extensions;
use memchr::memchr;

use crate::frontend::layered::Layer;
use crate::protocol::azure::METADATA_PREFIX;
use crate::types::Metadata;

/// Bytes of a line that are kept until its end is read, and bytes of all names of a head. Metadata
/// has 8 KiB at most.
const BYTES_MAX: usize = 16 << 10;
/// The end of a request line. The rest of the line does not matter.
const VERSIONS: [&[u8]; 2] = [b"HTTP/1.1", b"HTTP/1.0"];
/// The beginning of a request line whose request sets no metadata, so that its head is not
/// examined. Reads are most requests.
const READS: [&[u8]; 2] = [b"GET ", b"HEAD "];
/// Bytes at the end of a line that show whether it is a request line.
const VERSION_TAIL: usize = 9;
/// Bytes of a head. Longer text is a body that looks like a head.
const HEAD_BYTES_MAX: usize = 256 << 10;

/// The metadata names of a head without their prefix, as they are spelled.
#[derive(Clone, Debug)]
struct Names(Vec<String>);

/// Metadata with its names as the head of its request spells them.
pub(super) fn respelled(metadata: Metadata, extensions: &Extensions) -> Metadata {
    let Some(Names(names)) = extensions.get::<Names>() else { return metadata };
    // Text that looks like an earlier head is part of a body.
    metadata.respelled(|name| {
        names.iter().rev().find(|spelled| spelled.eq_ignore_ascii_case(name)).cloned()
    })
}

/// The bytes that a connection has read of the head of its next request.
#[derive(Debug, Default)]
pub struct Spelling {
    scan: Mutex<Scan>,
}

#[derive(Debug, Default)]
struct Scan {
    stage: Stage,
    /// The beginning of a line whose end is not read yet; for a line before the head, its last
    /// bytes.
    held: Vec<u8>,
    names: Vec<String>,
    /// Bytes of `names`.
    bytes: usize,
    /// Bytes of the lines of the head.
    len: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// The request line is not read yet.
    #[default]
    Before,
    /// Lines of the head are read.
    Head,
    /// The head is read, or has no metadata. If more is read before it is given to a request, it
    /// was not a head, or this is the rest of it.
    After,
    /// The request has it, and its answer is not there yet.
    Given,
}

impl Spelling {
    /// Notes bytes that are read. Those after the head are ignored.
    pub fn read(&self, bytes: &[u8]) {
        self.with(|scan| scan.read(bytes));
    }

    /// Gives the spellings of the head that has been read to its request.
    pub fn give(&self, extensions: &mut Extensions) {
        let names = self.with(|scan| {
            scan.stage = Stage::Given;
            scan.held = Vec::new();
            std::mem::take(&mut scan.names)
        });
        if !names.is_empty() {
            extensions.insert(Names(names));
        }
    }

    /// Begins to note the head of the next request. The last one has its answer.
    pub fn next(&self) {
        self.with(|scan| *scan = Scan::default());
    }

    fn with<T>(&self, change: impl FnOnce(&mut Scan) -> T) -> T {
        change(&mut self.scan.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Scan {
    fn read(&mut self, mut bytes: &[u8]) {
        if self.stage == Stage::After && !bytes.is_empty() {
            *self = Self::default();
        }
        while matches!(self.stage, Stage::Before | Stage::Head) {
            let end = memchr(b'\n', bytes).and_then(|end| bytes.split_at_checked(end));
            let Some((line, rest)) = end else { return self.hold(bytes) };
            bytes = rest.get(1..).unwrap_or_default();
            if self.held.is_empty() {
                self.line(line);
            } else {
                self.hold(line);
                let held = std::mem::take(&mut self.held);
                self.line(&held);
            }
        }
    }

    /// Keeps the part of a line that matters.
    fn hold(&mut self, part: &[u8]) {
        if self.stage == Stage::Before {
            // An unread body may precede the request line.
            let tail = part.len().saturating_sub(VERSION_TAIL);
            self.held.extend_from_slice(part.get(tail..).unwrap_or_default());
            let surplus = self.held.len().saturating_sub(VERSION_TAIL);
            self.held.drain(..surplus);
            return;
        }
        let room = BYTES_MAX.saturating_sub(self.held.len()).min(part.len());
        self.held.extend_from_slice(part.get(..room).unwrap_or_default());
    }

    /// A line without its end.
    fn line(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self.stage {
            Stage::Before if VERSIONS.iter().any(|version| line.ends_with(version)) => {
                let is_read = READS.iter().any(|method| line.starts_with(method));
                self.stage = if is_read { Stage::After } else { Stage::Head };
            }
            Stage::Before | Stage::After | Stage::Given => {}
            Stage::Head if line.is_empty() => self.stage = Stage::After,
            Stage::Head => {
                self.len += line.len() + 1;
                if self.len > HEAD_BYTES_MAX {
                    *self = Self::default();
                    return;
                }
                let of_metadata = line
                    .split_at_checked(METADATA_PREFIX.len())
                    .filter(|(start, _)| start.eq_ignore_ascii_case(METADATA_PREFIX.as_bytes()));
                if let Some((_, rest)) = of_metadata {
                    self.name(rest);
                }
            }
        }
    }

    /// The rest of a line after the prefix.
    fn name(&mut self, rest: &[u8]) {
        let Some((name, _)) = memchr(b':', rest).and_then(|end| rest.split_at_checked(end)) else {
            return;
        };
        // An empty name is refused. Each takes room beside its bytes.
        let bytes = self.bytes + name.len() + size_of::<String>();
        let fits = !name.is_empty() && bytes <= BYTES_MAX;
        if let (Ok(name), true) = (std::str::from_utf8(name), fits) {
            self.bytes = bytes;
            self.names.push(name.to_owned());
        }
    }
}

/// Notes what a connection reads.
#[derive(Debug)]
pub(in crate::frontend) struct Noting(pub(in crate::frontend) Arc<Spelling>);

impl Layer for Noting {
    fn read(&mut self, bytes: &[u8]) {
        self.0.read(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "PUT /a/b HTTP/1.1\r\nHost: h\r\nx-ms-META-One: 1\r\n\
                        X-Ms-Meta-tWO:2\r\nx-ms-met: 3\r\nx-ms-meta-: 4\r\n\r\n";

    fn given(spelling: &Spelling) -> Vec<String> {
        let mut extensions = Extensions::new();
        spelling.give(&mut extensions);
        extensions.get::<Names>().map(|names| names.0.clone()).unwrap_or_default()
    }

    #[test]
    fn names_are_as_the_head_spells_them() {
        let spelling = Spelling::default();
        spelling.read(HEAD.as_bytes());
        assert_eq!(given(&spelling), ["One", "tWO"]);
        assert!(given(&spelling).is_empty(), "they belong to one request");
    }

    #[test]
    fn the_head_of_a_read_is_not_looked_at() {
        let read = HEAD.replace("PUT", "GET");
        for size in [read.len(), 30, 20] {
            let spelling = Spelling::default();
            for piece in read.as_bytes().chunks(size) {
                spelling.read(piece);
            }
            assert!(given(&spelling).is_empty(), "pieces of {size}");
            spelling.next();
            spelling.read(HEAD.as_bytes());
            assert_eq!(given(&spelling), ["One", "tWO"], "the next request");
        }
    }

    #[test]
    fn a_head_may_come_in_any_pieces() {
        for size in 1..HEAD.len() {
            let spelling = Spelling::default();
            for piece in HEAD.as_bytes().chunks(size) {
                spelling.read(piece);
            }
            assert_eq!(given(&spelling), ["One", "tWO"], "pieces of {size}");
        }
    }

    #[test]
    fn a_body_says_nothing() {
        let spelling = Spelling::default();
        spelling.read(format!("{HEAD}x-ms-meta-Body: 1\r\n").as_bytes());
        assert_eq!(given(&spelling), ["One", "tWO"]);
        spelling.read(b"x-ms-meta-More: 1\r\n\r\n");
        spelling.read(HEAD.as_bytes());
        assert!(given(&spelling).is_empty(), "the answer is not there yet");
    }

    #[test]
    fn the_rest_of_a_body_may_precede_the_next_head() {
        let part = "PUT /x HTTP/1.1\r\nx-ms-meta-ONE: 1\r\n";
        let like_a_head = format!("{part}\r\nx\r\n");
        let long = "no line ".repeat(9_000);
        for rest in ["", "\r\n\r\n", "x-ms-meta-Rest: 1\r\n\r\n", &long, &like_a_head] {
            let spelling = Spelling::default();
            spelling.read(HEAD.as_bytes());
            given(&spelling);
            spelling.next();
            for piece in rest.as_bytes().chunks(1_000).chain([HEAD.as_bytes()]) {
                spelling.read(piece);
            }
            assert_eq!(given(&spelling), ["One", "tWO"], "{} bytes", rest.len());
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let spelling = Spelling::default();
        spelling.read(b"PUT / HTTP/1.1\r\n");
        for _ in 0..100 {
            spelling.read(&[b'x'; 1_000]);
        }
        assert_eq!(spelling.with(|scan| scan.held.len()), BYTES_MAX);
        spelling.read(b"\r\n");
        for number in 0..100_000 {
            spelling.read(format!("x-ms-meta-:\r\nx-ms-meta-{number}: 1\r\n").as_bytes());
            let (names, bytes) = spelling.with(|scan| (scan.names.len(), scan.bytes));
            assert!(names <= 1_000 && bytes <= BYTES_MAX, "{names} names, {bytes} bytes");
        }
        assert!(given(&spelling).is_empty(), "no head is so long");
    }

    #[test]
    fn the_last_head_counts() {
        let spelling = Spelling::default();
        spelling.read(b"PUT /x HTTP/1.1\r\nx-ms-meta-ONE: 1\r\n");
        spelling.read(HEAD.as_bytes());
        let mut extensions = Extensions::new();
        spelling.give(&mut extensions);
        let metadata = Metadata::new([("one".to_owned(), "1"), ("three".to_owned(), "3")]).unwrap();
        let metadata = respelled(metadata, &extensions);
        assert_eq!(metadata.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["One", "three"]);
    }
}
