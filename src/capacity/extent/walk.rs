//! Reads an extent file frame by frame: to find the end of an open extent after a crash, to scrub,
//! to check.

use std::ops::Range;

use bytes::Bytes;

use crate::capacity::extent::frame::{HEAD_MAX, HEADER, Head, frame_end, head_len, starts_frame};
use crate::capacity::extent::map::Body;
use crate::capacity::units::{PAGE, index, offset_up, size};
use crate::env::DiskError;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// Bytes that a walk reads at a time. A full frame with its head fits.
const WINDOW: u64 = 2 * 1024 * 1024;

/// The content of the file at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// An intact frame. The next one is expected at `end`.
    Frame {
        /// Where it ends.
        end: ExtentOffset,
    },
    /// A frame with a good head and a damaged payload.
    Damaged {
        /// Where it ends.
        end: ExtentOffset,
        /// Whether one of its pages is all zeros. Then the page of a freed frame was given back, or
        /// the page was lost.
        holed: bool,
    },
    /// No frame starts here.
    Nothing,
}

/// Reads an extent file from front to back.
#[derive(Debug)]
pub(crate) struct Walker {
    body: Body,
    extent: ExtentId,
    start: ExtentOffset,
    bytes: Bytes,
}

/// The contiguous frames from an offset on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    /// Where the last good frame ends.
    pub(crate) end: ExtentOffset,
    /// Padding passed on the way.
    pub(crate) padding: Vec<Range<ExtentOffset>>,
    /// Frames passed.
    pub(crate) frames: u64,
}

impl Walker {
    /// A walk over one file.
    pub(crate) fn new(body: Body, extent: ExtentId) -> Self {
        Self { body, extent, start: ExtentOffset::START, bytes: Bytes::new() }
    }

    /// Follows intact frames from `from` to the last one.
    pub(crate) async fn follow(&mut self, from: ExtentOffset) -> Result<Reach, DiskError> {
        let mut reach = Reach { end: from, ..Reach::default() };
        'frames: loop {
            for start in [reach.end, offset_up(reach.end)] {
                if let Found::Frame { end } = self.examine(start).await? {
                    if start > reach.end {
                        reach.padding.push(reach.end..start);
                    }
                    reach.end = end;
                    reach.frames += 1;
                    continue 'frames;
                }
                if reach.end.get().is_multiple_of(PAGE) {
                    break;
                }
            }
            return Ok(reach);
        }
    }

    /// Examines the bytes at a logical offset.
    pub(crate) async fn examine(&mut self, offset: ExtentOffset) -> Result<Found, DiskError> {
        let header = self.read(offset, HEADER).await?;
        let Some(len) = Head::claimed_len(&header) else { return Ok(Found::Nothing) };
        let head = self.read(offset, head_len(len)).await?;
        let Some(head) = Head::parse(&head, self.extent, offset) else { return Ok(Found::Nothing) };
        let payload = self.read(offset + head.head_len(), head.len).await?;
        let end = frame_end(offset, head.len);
        if size(payload.len()) == head.len && head.verify(0, &payload) {
            return Ok(Found::Frame { end });
        }
        let holed = holed(offset + head.head_len(), &payload);
        Ok(Found::Damaged { end, holed })
    }

    /// The next offset in `range` where a frame with a good head starts, searching every byte.
    pub(crate) async fn search(
        &mut self,
        range: Range<ExtentOffset>,
    ) -> Result<Option<ExtentOffset>, DiskError> {
        let mut at = range.start;
        while at < range.end {
            let bytes = self.read(at, WINDOW.min(range.end - at + HEAD_MAX)).await?;
            if size(bytes.len()) < HEADER {
                return Ok(None);
            }
            let last = bytes.len() - index(HEADER);
            for skip in 0..=last {
                let here = at + size(skip);
                if here >= range.end {
                    return Ok(None);
                }
                let rest = bytes.get(skip..).unwrap_or_default();
                if starts_frame(rest) && self.examine(here).await? != Found::Nothing {
                    return Ok(Some(here));
                }
            }
            at = at + size(last) + 1;
        }
        Ok(None)
    }

    /// Whether the page after the one with this logical offset is all zeros. If so, a freed frame
    /// may start here whose first page also holds a live frame.
    pub(crate) async fn before_hole(&mut self, offset: ExtentOffset) -> Result<bool, DiskError> {
        self.is_hole(offset_up(offset + 1)).await
    }

    /// Whether the bytes from a logical offset to the next page are all zeros, as in a hole.
    pub(crate) async fn is_hole(&mut self, offset: ExtentOffset) -> Result<bool, DiskError> {
        let end = offset_up(offset + 1);
        let bytes = self.read(offset, end - offset).await?;
        Ok(bytes.iter().all(|b| *b == 0))
    }

    /// Whether this logical range is in memory, so that [`Self::read`] does not read the file.
    pub(crate) fn holds(&self, at: ExtentOffset, end: ExtentOffset) -> bool {
        at >= self.start && end <= self.start + size(self.bytes.len())
    }

    /// Up to `len` bytes at a logical offset.
    pub(crate) async fn read(
        &mut self,
        offset: ExtentOffset,
        len: u64,
    ) -> Result<Bytes, DiskError> {
        if !self.holds(offset, offset + len) {
            self.bytes = self.body.read(offset, len.max(WINDOW)).await?;
            self.start = offset;
        }
        let from = index(offset - self.start).min(self.bytes.len());
        let to = (from + index(len)).min(self.bytes.len());
        Ok(self.bytes.slice(from..to))
    }
}

/// Whether a page of the payload, other than the first, is all zeros.
fn holed(start: ExtentOffset, payload: &[u8]) -> bool {
    let skip = index(offset_up(start) - start);
    payload
        .get(skip..)
        .unwrap_or_default()
        .chunks(index(PAGE))
        .any(|page| page.iter().all(|b| *b == 0))
}
