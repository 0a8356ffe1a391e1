//! Append Block and Append Blob Seal. An append writes the main row with its short tail of blocks.
//! A full tail moves into the last segment row. So the bytes written for an append do not grow with
//! the blob.

use crate::index::api::AppendBlock;
use crate::index::api::AppendedBlock;
use crate::index::api::Error;
use crate::index::api::Refused;
use crate::index::api::SealBlob;
use crate::index::api::WriteReply;
use crate::index::api::Written;
use crate::index::objects::blob_row;
use crate::index::objects::blob_row::Blob;
use crate::index::objects::encryption;
use crate::index::objects::evaluation::Evaluation;
use crate::index::objects::guard;
use crate::index::objects::keys;
use crate::index::objects::layout;
use crate::index::objects::layout::SegmentPlace;
use crate::index::objects::lock;
use crate::index::objects::values;
use crate::index::objects::values::BlobContent;
use crate::index::objects::values::Content;
use crate::index::objects::values::Entry;
use crate::index::objects::values::Layout;
use crate::index::objects::values::SegmentStart;
use crate::index::record::BlobRecord;
use crate::index::rows::Family;
use crate::types::APPENDS_MAX;
use crate::types::BlobKind;
use crate::types::BlockId;
use crate::types::Crc64;
use crate::types::Etag;
use crate::types::RoutingKey;

/// The most blocks in the main row.
const TAIL_ENTRIES_MAX: usize = 64;
/// The most bytes of blocks in the main row, approximately. Every append writes them again.
const TAIL_WEIGHT_MAX: usize = 8 * 1024;
/// The most blocks of a segment.
const SEGMENT_ENTRIES_MAX: usize = 1_000;
/// The most bytes of a segment, approximately. Every full tail writes them again.
const SEGMENT_WEIGHT_MAX: usize = 64 * 1024;
/// Bytes of a block id, which is the number of the block.
pub(super) const ID_LEN: u8 = 4;

/// Append Block.
pub(super) async fn append(
    eval: &mut Evaluation<'_>,
    append: &AppendBlock,
) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&append.key);
    let AppendBlob { mut blob, blocks, sealed } = load(eval, &key).await?;
    blob.record.lease = guard::change(&append.guard, &blob.record, eval.now)?;
    lock::may_change(&blob.record, eval.now)?;
    encryption::check_content(&append.guard.encryption, blob.record.under().as_ref())?;
    if sealed {
        return Err(Refused::Sealed.into());
    }
    let content = Content::from(&append.content);
    let (offset, len) = (blob.record.len, content.len());
    check_position(append.position, offset)?;
    let end = offset.checked_add(len).ok_or(Refused::LongerThanAllowed)?;
    if append.len_max.is_some_and(|max| end > max) {
        return Err(Refused::LongerThanAllowed.into());
    }
    if blocks >= APPENDS_MAX {
        return Err(Refused::TooManyAppends.into());
    }
    let mut layout = blob.content(&key)?.layout;
    let Layout::Appended { generation, directory, tail } = &mut layout else {
        return Err(keys::corrupt(
            Family::Main,
            key.as_bytes(),
            "not the layout of an append blob",
        ));
    };
    tail.push(Entry::new(id(blocks), len, append.crc64, content));
    if is_full(tail) {
        let spilled = std::mem::take(tail);
        let tail = FullTail { key: &key, generation: *generation, entries: spilled, end };
        spill(eval, tail, directory).await?;
    }
    let blocks = blocks.saturating_add(1);
    let record = &mut blob.record;
    record.kind = BlobKind::Append { blocks, sealed: false };
    record.len = end;
    record.crc64 = record.crc64.combine(append.crc64, len);
    record.last_modified = eval.now;
    record.etag = Etag::from_commit(eval.now);
    let content = BlobContent { id_len: ID_LEN, layout };
    eval.out.put(Family::Main, key.as_bytes().clone(), values::encode_blob(record, &content));
    let written = Written::at(eval.now, record.version());
    Ok(WriteReply::Appended(AppendedBlock { written, offset, blocks }))
}

/// Append Blob Seal.
pub(super) async fn seal(eval: &mut Evaluation<'_>, seal: &SealBlob) -> Result<WriteReply, Error> {
    let key = RoutingKey::blob(&seal.key);
    let AppendBlob { mut blob, blocks, sealed } = load(eval, &key).await?;
    let lease = guard::change(&seal.guard, &blob.record, eval.now)?;
    lock::may_change(&blob.record, eval.now)?;
    check_position(seal.position, blob.record.len)?;
    if !sealed {
        blob.record.kind = BlobKind::Append { blocks, sealed: true };
        blob.record.lease = lease;
        blob.record.last_modified = eval.now;
        blob.record.etag = Etag::from_commit(eval.now);
        eval.out.put(Family::Main, key.as_bytes().clone(), blob.encode());
    }
    let Blob { record, .. } = blob;
    let BlobRecord { etag, last_modified, .. } = record;
    let version = record.version();
    Ok(WriteReply::Written(Written { etag, last_modified, version }))
}

/// Builds the layout of a new append blob of these blocks, and renumbers them.
pub(super) fn build(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    mut entries: Vec<Entry>,
) -> BlobContent {
    for (number, entry) in (0u32..).zip(&mut entries) {
        entry.id = id(number);
    }
    let generation = eval.now.ticks();
    let mut directory: Vec<SegmentStart> = Vec::new();
    let mut start = 0u64;
    while is_full(&entries) {
        let mut weight = 0usize;
        let fitting = entries.iter().take(SEGMENT_ENTRIES_MAX).take_while(|entry| {
            weight = weight.saturating_add(layout::weight_of(entry));
            weight <= SEGMENT_WEIGHT_MAX
        });
        let rest = entries.split_off(fitting.count().max(1));
        let number = u32::try_from(directory.len()).unwrap_or(u32::MAX);
        let row = keys::layout_segment(key, generation, number);
        eval.out.put(Family::Layout, row, values::encode_segment(&entries));
        let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        directory.push(SegmentStart { start, entries: count });
        start = entries.iter().fold(start, |sum, entry| sum.saturating_add(entry.len));
        entries = rest;
    }
    let layout = Layout::Appended { generation, directory, tail: entries };
    BlobContent { id_len: ID_LEN, layout }
}

/// As [`build`], for one block, or for none if the content is empty.
pub(super) fn of_one(
    eval: &mut Evaluation<'_>,
    key: &RoutingKey,
    content: Content,
    crc64: Crc64,
) -> BlobContent {
    let len = content.len();
    let entry = Entry::new(id(0), len, crc64, content);
    build(eval, key, if len == 0 { Vec::new() } else { vec![entry] })
}

fn id(number: u32) -> BlockId {
    BlockId::from_bytes(&number.to_be_bytes()).expect("four bytes")
}

/// The current state of an append blob.
struct AppendBlob {
    blob: Blob,
    blocks: u32,
    sealed: bool,
}

async fn load(eval: &Evaluation<'_>, key: &RoutingKey) -> Result<AppendBlob, Error> {
    let blob = blob_row::current(eval, key).await?.ok_or(Refused::BlobNotFound)?;
    match blob.record.kind {
        BlobKind::Append { blocks, sealed } => Ok(AppendBlob { blob, blocks, sealed }),
        BlobKind::Block | BlobKind::Page { .. } => Err(Refused::WrongKind.into()),
    }
}

fn check_position(wanted: Option<u64>, len: u64) -> Result<(), Error> {
    if wanted.is_some_and(|wanted| wanted != len) {
        return Err(Refused::AppendPosition { len }.into());
    }
    Ok(())
}

fn is_full(tail: &[Entry]) -> bool {
    let weight: usize = tail.iter().map(layout::weight_of).sum();
    tail.len() >= TAIL_ENTRIES_MAX || weight >= TAIL_WEIGHT_MAX
}

/// Blocks for which the main row has no room.
struct FullTail<'a> {
    key: &'a RoutingKey,
    /// The generation of the layout.
    generation: u64,
    entries: Vec<Entry>,
    /// The end of the last block in the blob.
    end: u64,
}

/// Moves a tail into the last segment, or into a new one if that is full.
async fn spill(
    eval: &mut Evaluation<'_>,
    tail: FullTail<'_>,
    directory: &mut Vec<SegmentStart>,
) -> Result<(), Error> {
    let FullTail { key, generation, entries: mut tail, end } = tail;
    let segments = directory.len();
    if let Some(last) = directory.last_mut() {
        let number = last_number(key, segments)?;
        let mut entries =
            layout::segment(eval.view, key, SegmentPlace { generation, number }, last.entries)
                .await?;
        let weight: usize = entries.iter().chain(&tail).map(layout::weight_of).sum();
        if entries.len() + tail.len() <= SEGMENT_ENTRIES_MAX && weight <= SEGMENT_WEIGHT_MAX {
            entries.append(&mut tail);
            last.entries = u32::try_from(entries.len()).unwrap_or(u32::MAX);
            let row = keys::layout_segment(key, generation, number);
            eval.out.put(Family::Layout, row, values::encode_segment(&entries));
            return Ok(());
        }
    }
    let len = tail.iter().fold(0u64, |sum, entry| sum.saturating_add(entry.len));
    let entries = u32::try_from(tail.len()).unwrap_or(u32::MAX);
    directory.push(SegmentStart { start: end.saturating_sub(len), entries });
    let row = keys::layout_segment(key, generation, last_number(key, directory.len())?);
    eval.out.put(Family::Layout, row, values::encode_segment(&tail));
    Ok(())
}

fn last_number(key: &RoutingKey, segments: usize) -> Result<u32, Error> {
    u32::try_from(segments.saturating_sub(1))
        .map_err(|_| keys::corrupt(Family::Main, key.as_bytes(), "too many segments"))
}
