//! A blob, snapshot or version under check: its row, and the totals of its blocks so far.

use bytes::Bytes;

use crate::index::objects::keys;
use crate::index::objects::keys::DeletedKey;
use crate::index::objects::values::BlobContent;
use crate::index::objects::values::Entry;
use crate::index::objects::values::Layout;
use crate::index::objects::values::SegmentStart;
use crate::index::record::BlobRecord;
use crate::types::BlobKind;
use crate::types::Crc64;
use crate::types::Crc64Combiner;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// The row in which content is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The main row.
    Current,
    /// The row of a snapshot.
    Snapshot,
    /// The row of the version of this time.
    Version(Timestamp),
    /// The row of something that was softly deleted.
    Deleted(DeletedKey),
}

/// A blob, a snapshot or a version of it.
pub(super) struct Committed {
    pub(super) place: Place,
    pub(super) record: BlobRecord,
    pub(super) content: BlobContent,
    /// The length of the blocks so far.
    pub(super) len: u64,
    pub(super) crc64: Crc64,
    /// The segment rows seen so far.
    pub(super) segments: usize,
    combiner: Crc64Combiner,
    /// Of an append blob: the number of its blocks so far.
    appended: u32,
    /// Whether one of these blocks was out of order.
    disordered: bool,
}

impl Committed {
    pub(super) fn new(place: Place, record: BlobRecord, content: BlobContent) -> Self {
        let combiner = Crc64Combiner::default();
        Self {
            place,
            record,
            content,
            len: 0,
            crc64: Crc64::EMPTY,
            segments: 0,
            combiner,
            appended: 0,
            disordered: false,
        }
    }

    /// Adds the next block.
    pub(super) fn add(&mut self, entry: &Entry) {
        if let BlobKind::Append { .. } = self.record.kind {
            self.disordered |= entry.id.as_bytes() != self.appended.to_be_bytes();
            self.appended = self.appended.saturating_add(1);
        }
        self.len = self.len.saturating_add(entry.len);
        self.crc64 = self.combiner.combine(self.crc64, entry.crc64, entry.len);
    }

    /// Whether its layout is one content without bytes.
    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.content.layout, Layout::Whole(content) if content.len() == 0)
    }

    /// The segments of a long layout.
    pub(super) fn directory(&self) -> &[SegmentStart] {
        match &self.content.layout {
            Layout::Segments { directory, .. } | Layout::Appended { directory, .. } => directory,
            Layout::Whole(_) | Layout::Blocks(_) | Layout::Pages { .. } => &[],
        }
    }

    /// Takes the tail of an append blob: the blocks after its segments.
    pub(super) fn take_tail(&mut self) -> Vec<Entry> {
        match &mut self.content.layout {
            Layout::Appended { tail, .. } => std::mem::take(tail),
            Layout::Whole(_)
            | Layout::Blocks(_)
            | Layout::Segments { .. }
            | Layout::Pages { .. } => Vec::new(),
        }
    }

    /// The key of the next segment row; `None` if the layout has no segments.
    pub(super) fn next_segment(&self, blob: &RoutingKey) -> Option<Bytes> {
        let (Layout::Segments { generation, .. } | Layout::Appended { generation, .. }) =
            &self.content.layout
        else {
            return None;
        };
        let number = u32::try_from(self.segments).unwrap_or(u32::MAX);
        Some(keys::layout_segment(blob, *generation, number))
    }

    /// The inconsistencies, once all rows were seen.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = self.misplaced().into_iter().collect();
        let expected = self.directory().len();
        if expected != self.segments {
            problems.push(format!("{} of {expected} segments", self.segments));
        }
        if self.disordered {
            problems.push("an appended block is out of order".to_owned());
        }
        if let BlobKind::Append { blocks, .. } = self.record.kind
            && blocks != self.appended
        {
            let found = self.appended;
            problems.push(format!("{found} appended blocks, the record says {blocks}"));
        }
        if self.record.len != self.len {
            problems.push(format!("{} bytes, the record says {}", self.len, self.record.len));
        }
        if self.record.crc64 != self.crc64 {
            problems.push("the blocks' CRC-64 is not that of the record".to_owned());
        }
        problems
    }
}
