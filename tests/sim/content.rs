//! The reference model of the content of blobs.

use std::collections::BTreeMap;
use std::ops::Range;

use blockyard::types::BlobKind;
use blockyard::types::Crc64;
use blockyard::types::PAGE_BYTES;
use bytes::Bytes;

use crate::draw::content;

/// A part of a blob: a block, the body of a Put Blob, which has no id, or the body of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) id: Option<u32>,
    pub(crate) tag: u64,
    pub(crate) len: u64,
}

/// The content of a blob, by its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Blocks(Vec<Segment>),
    Appended { segments: Vec<Segment>, sealed: bool },
    Pages(Pages),
}

/// One page: the write that it is from, and its place in that write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    tag: u64,
    /// Length of the whole write, bytes.
    len: u64,
    at: u64,
}

/// A page blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pages {
    pub(crate) len: u64,
    pub(crate) sequence: u64,
    /// The pages by offset. Missing pages are zeros.
    shown: BTreeMap<u64, Page>,
    /// Tag and length of writes in layers that earlier snapshots froze. They stay as long as the
    /// blob, even if none of their pages is visible (ADR 0010).
    frozen: BTreeMap<u64, u64>,
}

impl Pages {
    pub(crate) const fn new(len: u64, sequence: u64) -> Self {
        Self { len, sequence, shown: BTreeMap::new(), frozen: BTreeMap::new() }
    }

    /// The content of a copy of this blob.
    pub(crate) fn copied(&self) -> Self {
        Self { frozen: BTreeMap::new(), ..self.clone() }
    }

    /// Writes the pages of a range, or clears them without a tag.
    pub(crate) fn write(&mut self, range: &Range<u64>, tag: Option<u64>) {
        let len = range.end - range.start;
        for at in (0..len).step_by(usize::try_from(PAGE_BYTES).unwrap()) {
            match tag {
                Some(tag) => self.shown.insert(range.start + at, Page { tag, len, at }),
                None => self.shown.remove(&(range.start + at)),
            };
        }
    }

    pub(crate) fn resize(&mut self, len: u64) {
        self.shown.retain(|at, _| *at < len);
        self.len = len;
    }

    /// Freezes the visible pages when a snapshot is taken.
    pub(crate) fn freeze(&mut self) {
        let shown: Vec<(u64, u64)> = self.shown.values().map(|page| (page.tag, page.len)).collect();
        self.frozen.extend(shown);
    }

    /// The ranges of written pages that touch `range`, with adjacent ranges joined.
    pub(crate) fn ranges(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for (&at, _) in self.shown.range(range.clone()) {
            match ranges.last_mut() {
                Some(last) if last.end == at => last.end += PAGE_BYTES,
                _ => ranges.push(at..at + PAGE_BYTES),
            }
        }
        ranges
    }
}

impl Body {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Blocks(segments) | Self::Appended { segments, .. } => {
                segments.iter().map(|segment| segment.len).sum()
            }
            Self::Pages(pages) => pages.len,
        }
    }

    /// The parts of the content. Those with ids are blocks.
    pub(crate) fn segments(&self) -> &[Segment] {
        match self {
            Self::Blocks(segments) | Self::Appended { segments, .. } => segments,
            Self::Pages(_) => &[],
        }
    }

    pub(crate) fn kind(&self) -> BlobKind {
        match self {
            Self::Blocks(_) => BlobKind::Block,
            Self::Appended { segments, sealed } => {
                BlobKind::Append { blocks: u32::try_from(segments.len()).unwrap(), sealed: *sealed }
            }
            Self::Pages(pages) => BlobKind::Page { sequence: pages.sequence },
        }
    }

    /// The bytes of a range within the content.
    pub(crate) fn bytes(&self, range: &Range<u64>) -> Bytes {
        match self {
            Self::Blocks(segments) | Self::Appended { segments, .. } => cut(segments, range),
            Self::Pages(pages) => pages.bytes(range),
        }
    }

    /// The CRC-64 in the record; page blobs have none.
    pub(crate) fn crc64(&self) -> Option<Crc64> {
        match self {
            Self::Blocks(_) | Self::Appended { .. } => {
                Some(Crc64::of(&self.bytes(&(0..self.len()))))
            }
            Self::Pages(_) => None,
        }
    }

    /// Adds the bytes that may be stored for it, by tag.
    pub(crate) fn stored(&self, all: &mut BTreeMap<u64, u64>) {
        match self {
            Self::Blocks(segments) | Self::Appended { segments, .. } => {
                all.extend(segments.iter().map(|segment| (segment.tag, segment.len)));
            }
            Self::Pages(pages) => {
                all.extend(pages.shown.values().map(|page| (page.tag, page.len)));
                all.extend(&pages.frozen);
            }
        }
    }
}

fn cut(segments: &[Segment], range: &Range<u64>) -> Bytes {
    let mut bytes = Vec::new();
    let mut start = 0;
    for segment in segments {
        let (from, to) = (range.start.max(start), range.end.min(start + segment.len));
        if from < to {
            let whole = content(segment.tag, segment.len);
            bytes.extend_from_slice(&whole[index(from - start)..index(to - start)]);
        }
        start += segment.len;
    }
    bytes.into()
}

impl Pages {
    fn bytes(&self, range: &Range<u64>) -> Bytes {
        let mut bytes = vec![0; index(range.end - range.start)];
        let first = range.start - range.start % PAGE_BYTES;
        let mut writes: BTreeMap<u64, Bytes> = BTreeMap::new();
        for (&at, page) in self.shown.range(first..range.end) {
            let whole = writes.entry(page.tag).or_insert_with(|| content(page.tag, page.len));
            let (from, to) = (range.start.max(at), range.end.min(at + PAGE_BYTES));
            let source = index(page.at + from - at)..index(page.at + to - at);
            bytes[index(from - range.start)..index(to - range.start)]
                .copy_from_slice(&whole[source]);
        }
        bytes.into()
    }
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap()
}
