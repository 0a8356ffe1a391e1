//! Layouts of committed blobs: short ones are in the main row, long ones are divided into segments.

#![deny(clippy::indexing_slicing)]

use crate::index::api::Error;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::keys;
use crate::index::objects::pages;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::objects::values::Entry;
use crate::index::objects::values::Layout;
use crate::index::objects::values::SegmentStart;
use crate::index::rows::Family;
use crate::index::rows::Rows;
use crate::types::Location;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// The most blocks in a main row.
const ROW_ENTRIES_MAX: usize = 64;
/// The most bytes of layout in a main row, approximately: a list reads main rows.
const ROW_WEIGHT_MAX: usize = 16 * 1024;
/// Set in the second generation that one write makes. No time has this bit.
const SECOND_GENERATION: u64 = 1 << 63;
/// The most blocks of a segment.
const SEGMENT_ENTRIES_MAX: usize = 1_000;
/// The most bytes of a segment, approximately. Inline blocks and blocks with many locations take
/// more bytes than others.
const SEGMENT_WEIGHT_MAX: usize = 256 * 1024;

/// Makes the layout of a block list. Writes segment rows if the list is long.
pub(super) fn build(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    entries: Vec<Entry>,
) -> BlobContent {
    let id_len = entries.first().map_or(0, |e| id_len(e.id.as_bytes()));
    let weight: usize = entries.iter().map(weight_of).sum();
    if entries.len() <= ROW_ENTRIES_MAX && weight <= ROW_WEIGHT_MAX {
        return BlobContent { id_len, layout: Layout::Blocks(entries) };
    }
    let generation = eval.now.ticks();
    let mut directory = Vec::new();
    let mut start = 0u64;
    let mut rest = entries.as_slice();
    while !rest.is_empty() {
        let (segment, after) = rest.split_at(segment_len(rest));
        let number = u32::try_from(directory.len()).expect("at most 50,000 blocks");
        let key = keys::layout_segment(blob, generation, number);
        eval.out.put(Family::Layout, key, values::encode_segment(segment));
        let entries = u32::try_from(segment.len()).expect("at most 1,000 blocks");
        directory.push(SegmentStart { start, entries });
        start = segment.iter().fold(start, |sum, entry| sum.saturating_add(entry.len));
        rest = after;
    }
    BlobContent { id_len, layout: Layout::Segments { generation, directory } }
}

/// The length of a block id, at most 64.
pub(super) fn id_len(id: &[u8]) -> u8 {
    u8::try_from(id.len()).unwrap_or(u8::MAX)
}

/// The number of `entries`, at least one, for the next segment.
fn segment_len(entries: &[Entry]) -> usize {
    let mut weight = 0usize;
    let fitting = entries.iter().take(SEGMENT_ENTRIES_MAX).take_while(|entry| {
        weight = weight.saturating_add(weight_of(entry));
        weight <= SEGMENT_WEIGHT_MAX
    });
    fitting.count().max(1)
}

/// An estimate of the bytes that a block takes in a row.
pub(super) fn weight_of(entry: &Entry) -> usize {
    const NUMBERS: usize = 16;
    let fields = entry.fields.as_ref().map_or(0, |fields| fields.weight());
    entry.content.weight() + entry.id.as_bytes().len() + NUMBERS + fields
}

/// The identity of a segment's row in [`Family::Layout`].
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentPlace {
    /// The generation of the layout.
    pub(super) generation: u64,
    /// The number of the segment, counted from 0.
    pub(super) number: u32,
}

/// The segments of a long layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segments<'a> {
    /// The generation in their keys.
    pub(super) generation: u64,
    /// One for each segment, in order.
    pub(super) directory: &'a [SegmentStart],
}

impl<'a> Segments<'a> {
    /// The place and start of each segment, in order.
    pub(super) fn places(self) -> impl Iterator<Item = (SegmentPlace, &'a SegmentStart)> {
        let Self { generation, directory } = self;
        let place = move |number| SegmentPlace { generation, number };
        (0u32..).map(place).zip(directory)
    }
}

/// A layout that two rows name.
pub(super) struct SharedLayout {
    /// The layout for the row that had it.
    pub(super) kept: Layout,
    /// The layout for the other row.
    pub(super) copy: Layout,
}

/// Reads the first `entries` blocks of one segment of a long layout. The row of an append blob's
/// segment may have more blocks than a snapshot has.
pub(super) async fn segment(
    view: &dyn Rows,
    blob: &RoutingKey,
    place: SegmentPlace,
    entries: u32,
) -> Result<Vec<Entry>, Error> {
    let key = keys::layout_segment(blob, place.generation, place.number);
    let Some(value) = view.get(Family::Layout, &key).await? else {
        return Err(keys::corrupt(Family::Layout, &key, "missing segment"));
    };
    let mut found = values::decode_segment(&key, &value)?;
    let wanted = usize::try_from(entries).unwrap_or(usize::MAX);
    if found.len() < wanted {
        return Err(keys::corrupt(Family::Layout, &key, "short segment"));
    }
    found.truncate(wanted);
    Ok(found)
}

/// All blocks of a layout in order; none if Put Blob made it, or if it has pages.
pub(super) async fn entries(
    view: &dyn Rows,
    blob: &RoutingKey,
    layout: &Layout,
) -> Result<Vec<Entry>, Error> {
    match layout {
        Layout::Whole(_) | Layout::Pages { .. } => Ok(Vec::new()),
        Layout::Blocks(entries) => Ok(entries.clone()),
        Layout::Segments { generation, directory } => {
            segments(view, blob, Segments { generation: *generation, directory }).await
        }
        Layout::Appended { generation, directory, tail } => {
            let segmented = Segments { generation: *generation, directory };
            let mut all = segments(view, blob, segmented).await?;
            all.extend_from_slice(tail);
            Ok(all)
        }
    }
}

async fn segments(
    view: &dyn Rows,
    blob: &RoutingKey,
    segments: Segments<'_>,
) -> Result<Vec<Entry>, Error> {
    let mut all = Vec::new();
    for (place, start) in segments.places() {
        all.append(&mut segment(view, blob, place, start.entries).await?);
    }
    Ok(all)
}

/// Marks all bytes of a layout as shared, and makes a second layout of them, with segments of the
/// generation `now`.
pub(super) async fn share(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    layout: Layout,
) -> Result<SharedLayout, Error> {
    let generation = eval.now.ticks();
    share_as(eval, blob, layout, generation).await
}

/// As [`share`], with another generation of the segments of the second layout, for a write that
/// makes a third layout. No time is so late.
pub(super) async fn share_once_more(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    layout: Layout,
) -> Result<SharedLayout, Error> {
    let generation = eval.now.ticks() | SECOND_GENERATION;
    share_as(eval, blob, layout, generation).await
}

async fn share_as(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    mut layout: Layout,
    made: u64,
) -> Result<SharedLayout, Error> {
    match &mut layout {
        Layout::Whole(content) => content.mark(),
        Layout::Blocks(entries) => entries.iter_mut().for_each(|entry| entry.content.mark()),
        Layout::Segments { generation, directory } => {
            let segments = Segments { generation: *generation, directory };
            share_segments(eval, blob, segments, made).await?;
        }
        Layout::Appended { generation, directory, tail } => {
            let segments = Segments { generation: *generation, directory };
            share_segments(eval, blob, segments, made).await?;
            tail.iter_mut().for_each(|entry| entry.content.mark());
        }
        Layout::Pages { layers } => {
            // From now on the old layers do not change. Later writes to the blob go to a new layer.
            let copy = Layout::Pages { layers: layers.clone() };
            layers.insert(0, eval.now.ticks());
            return Ok(SharedLayout { kept: layout, copy });
        }
    }
    let mut copy = layout.clone();
    match &mut copy {
        Layout::Segments { generation, .. } | Layout::Appended { generation, .. } => {
            *generation = made;
        }
        Layout::Whole(_) | Layout::Blocks(_) | Layout::Pages { .. } => {}
    }
    Ok(SharedLayout { kept: layout, copy })
}

async fn share_segments(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    segments: Segments<'_>,
    made: u64,
) -> Result<(), Error> {
    for (place, start) in segments.places() {
        let SegmentPlace { generation, number } = place;
        let mut entries = segment(eval.view, blob, place, start.entries).await?;
        let owns = entries.iter().any(|entry| !entry.content.owned().is_empty());
        entries.iter_mut().for_each(|entry| entry.content.mark());
        let value = values::encode_segment(&entries);
        if owns {
            eval.out.put(
                Family::Layout,
                keys::layout_segment(blob, generation, number),
                value.clone(),
            );
        }
        eval.out.put(Family::Layout, keys::layout_segment(blob, made, number), value);
    }
    Ok(())
}

/// Removes the rows of a layout beside the main row. The layers of page blobs are left to reclaim.
pub(super) fn remove_rows(eval: &mut Evaluation<'_>, blob: &RoutingKey, layout: &Layout) {
    let since = eval.now;
    remove_rows_since(eval, blob, layout, since);
}

/// As [`remove_rows`], but layers of a page blob count as dropped at `since`.
pub(super) fn remove_rows_since(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    layout: &Layout,
    since: Timestamp,
) {
    match layout {
        Layout::Whole(_) | Layout::Blocks(_) => {}
        Layout::Segments { generation, directory }
        | Layout::Appended { generation, directory, .. } => {
            for (number, _) in (0u32..).zip(directory) {
                eval.out.delete(Family::Layout, keys::layout_segment(blob, *generation, number));
            }
        }
        Layout::Pages { layers } => pages::drop_layers(eval, blob, layers, since),
    }
}

/// The locations that become garbage when a layout is removed. Shared bytes, which only the audit
/// can find, are counted in `out`.
pub(super) async fn owned(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    layout: &Layout,
) -> Result<Vec<Location>, Error> {
    if let Layout::Whole(content) = layout {
        eval.out.shared_dropped += content.shared_len();
        return Ok(content.owned().to_vec());
    }
    let entries = entries(eval.view, blob, layout).await?;
    Ok(owned_by(eval, &entries))
}

/// Removes a layout: its rows beside the main row. Returns the locations that become garbage.
pub(super) async fn discard(
    eval: &mut Evaluation<'_>,
    blob: &RoutingKey,
    layout: &Layout,
) -> Result<Vec<Location>, Error> {
    let dropped = owned(eval, blob, layout).await?;
    remove_rows(eval, blob, layout);
    Ok(dropped)
}

/// As [`owned`], for the blocks of a layout.
pub(super) fn owned_by(eval: &mut Evaluation<'_>, blocks: &[Entry]) -> Vec<Location> {
    eval.out.shared_dropped += blocks.iter().map(|block| block.content.shared_len()).sum::<u64>();
    blocks.iter().flat_map(|block| block.content.owned()).copied().collect()
}
