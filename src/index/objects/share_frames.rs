//! The frames of a range of a blob that does not begin and end between blocks. A copy names them
//! instead of storing their bytes again.

use std::ops::Range;

use crate::capacity::part_of_frames;
use crate::index::api::Error;
use crate::index::api::Frames;
use crate::index::objects::contents::Content;
use crate::index::objects::layout;
use crate::index::objects::layout::Segments;
use crate::index::objects::values::Layout;
use crate::index::objects::values::SegmentStart;
use crate::index::rows::Rows;
use crate::types::ByteLen;
use crate::types::RoutingKey;

/// The known frames of a range.
#[derive(Debug, Default)]
pub(super) struct FramesOfRange {
    /// The frames in order; none if the range divides frames, or if some of its bytes are in rows,
    /// encrypted, or pages.
    pub(super) frames: Vec<Frames>,
    /// Whether some of them are not marked as shared.
    pub(super) is_owned: bool,
}

/// The segments that a range touches.
pub(super) fn touched(directory: &[SegmentStart], range: &Range<u64>) -> Range<usize> {
    let after = |offset: u64| directory.partition_point(|segment| segment.start <= offset);
    let first = after(range.start).saturating_sub(1);
    first..after(range.end.saturating_sub(1)).max(first)
}

/// Finds the frames that hold a range of a blob.
pub(super) async fn find(
    view: &dyn Rows,
    key: &RoutingKey,
    layout: &Layout,
    range: &Range<u64>,
) -> Result<FramesOfRange, Error> {
    let found = match layout {
        Layout::Whole(content) => fill(0, [content], range),
        Layout::Pages { .. } => None,
        Layout::Blocks(entries) => fill(0, entries.iter().map(|entry| &entry.content), range),
        Layout::Segments { generation, directory } => {
            let touched = touched(directory, range);
            let start = directory.get(touched.start).map_or(0, |segment| segment.start);
            let segments = Segments { generation: *generation, directory };
            let mut entries = Vec::new();
            for (place, segment) in segments.places().take(touched.end).skip(touched.start) {
                entries.append(&mut layout::segment(view, key, place, segment.entries).await?);
            }
            fill(start, entries.iter().map(|entry| &entry.content), range)
        }
        Layout::Appended { .. } => {
            let entries = layout::entries(view, key, layout).await?;
            fill(0, entries.iter().map(|entry| &entry.content), range)
        }
    };
    Ok(found.unwrap_or_default())
}

/// The frames of contents, the first of which begins at `start`; `None` if they do not fill the
/// range.
fn fill<'a>(
    start: u64,
    contents: impl IntoIterator<Item = &'a Content>,
    range: &Range<u64>,
) -> Option<FramesOfRange> {
    let mut at = start;
    let mut found = FramesOfRange::default();
    for content in contents {
        let end = at.checked_add(content.len())?;
        let is_wanted = at < range.end && end > range.start;
        match content {
            Content::Inline(_) | Content::Encrypted(_) | Content::Authenticated(_) if is_wanted => {
                return None;
            }
            Content::Stored(locations) | Content::Shared(locations) if is_wanted => {
                found.is_owned |= matches!(content, Content::Stored(_));
                let mut begin = at;
                for location in locations {
                    let end = begin.checked_add(location.len.get())?;
                    let (from, to) = (range.start.max(begin), range.end.min(end));
                    if from < to {
                        let part = from - begin..to - begin;
                        found.frames.push(Frames {
                            extent: location.extent,
                            offset: part_of_frames(location, &part)?,
                            len: ByteLen::new(to - from),
                        });
                    }
                    begin = end;
                }
            }
            Content::Inline(_)
            | Content::Encrypted(_)
            | Content::Authenticated(_)
            | Content::Stored(_)
            | Content::Shared(_) => {}
        }
        at = end;
    }
    (at >= range.end).then_some(found)
}
