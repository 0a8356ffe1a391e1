//! Changes and ranges of page blobs. All offsets and lengths are bytes and multiples of
//! [`crate::types::PAGE_BYTES`].

use std::ops::Range;

use serde::Deserialize;
use serde::Serialize;

use crate::index::api::Guard;
use crate::index::api::NewContent;
use crate::index::api::Written;
use crate::index::record::BlobRecord;
use crate::types::BlobKey;
use crate::types::BlobProperties;
use crate::types::ByteRange;
use crate::types::Revision;
use crate::types::RoutingKey;
use crate::types::Timestamp;

/// `x-ms-if-sequence-number-*`: the condition on the sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceBounds {
    /// At most.
    pub at_most: Option<u64>,
    /// Less than.
    pub below: Option<u64>,
    /// Equal to.
    pub equal: Option<u64>,
}

impl SequenceBounds {
    /// Whether `sequence` is as demanded.
    #[must_use]
    pub fn hold(&self, sequence: u64) -> bool {
        self.at_most.is_none_or(|bound| sequence <= bound)
            && self.below.is_none_or(|bound| sequence < bound)
            && self.equal.is_none_or(|bound| sequence == bound)
    }
}

/// Writes or clears a range of pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WritePages {
    /// The blob.
    pub key: BlobKey,
    /// The precondition.
    pub guard: Guard,
    /// The condition on the sequence number.
    pub sequence: SequenceBounds,
    /// The pages, half-open, not empty.
    pub range: Range<u64>,
    /// The bytes, as long as the range, each location on its own; `None` clears.
    pub content: Option<NewContent>,
}

/// The change of the sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SequenceAction {
    /// The higher of this and the present number.
    Max(u64),
    /// This.
    Update(u64),
    /// One more.
    Increment,
}

/// Set Blob Properties of a page blob: its length, sequence number, and properties.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdatePages {
    /// The blob.
    pub key: BlobKey,
    /// The precondition.
    pub guard: Guard,
    /// Replaces the system properties, if any is given.
    pub properties: Option<BlobProperties>,
    /// The new length.
    pub len: Option<u64>,
    /// The new sequence number.
    pub sequence: Option<SequenceAction>,
}

/// The answer to a change of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagesWritten {
    /// The new tag and time.
    pub written: Written,
    /// The sequence number.
    pub sequence: u64,
    /// Where to continue clearing, if one change could not do all because very many small writes
    /// lie in the range. A new length is not set yet then.
    pub rest: Option<u64>,
}

/// Get Page Ranges, with and without a difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadPages {
    /// The blob.
    pub key: BlobKey,
    /// Which of its states.
    pub revision: Revision,
    /// The older revision it is compared with: only what changed since then is wanted.
    pub since: Option<Timestamp>,
    /// The precondition.
    pub guard: Guard,
    /// Only pages that this touches.
    pub range: Option<ByteRange>,
    /// Ranges at most, above 0.
    pub limit: usize,
}

/// A range of pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRange {
    /// Bytes, half-open.
    pub range: Range<u64>,
    /// Cleared since the snapshot compared with; never so without one.
    pub cleared: bool,
}

/// A part of a blob's page ranges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRanges {
    /// The blob.
    pub record: BlobRecord,
    /// In order; neighbours are joined.
    pub ranges: Vec<PageRange>,
    /// Where to go on; `None` at the end.
    pub next: Option<u64>,
}

/// Pages of one location, or kept in the row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSpan {
    /// Bytes of the blob, half-open.
    pub range: Range<u64>,
    /// Bytes of the content before them.
    pub skip: u64,
    /// One location at most; `None` for zeros that hide what older layers show.
    pub content: Option<NewContent>,
}

/// Marks a part of a page blob as shared, so that other rows may name it, and returns its location
/// as [`SharedPages`]. A caller requests the parts one by one. Otherwise like
/// [`crate::index::Share`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharePages {
    /// The source.
    pub key: BlobKey,
    /// Which of its states.
    pub revision: Revision,
    /// The precondition; conditions as of a read.
    pub guard: Guard,
    /// Only the changes since this snapshot, as Get Page Ranges finds them.
    pub since: Option<Timestamp>,
    /// Where the part begins: 0, then as answered.
    pub from: u64,
}

/// The answer to [`SharePages`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedPages {
    /// The written spans, in order. The rest is zeros, or as in the snapshot to compare with.
    pub spans: Vec<PageSpan>,
    /// Where the next part begins; `None` at the end.
    pub next: Option<u64>,
}

/// Adds spans to a layer that no row names yet: the pages of a copy in the making. Until
/// [`crate::index::PutCopy`] names the layer it counts as garbage, so the caller notes it in
/// [`crate::index::InFlight`] before the first of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FillLayer {
    /// The destination.
    pub blob: RoutingKey,
    /// The layer as answered to the first of these; `None` begins one.
    pub layer: Option<u64>,
    /// In order, beyond those already there.
    pub spans: Vec<PageSpan>,
}
