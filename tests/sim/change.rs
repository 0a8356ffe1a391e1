//! Changes of a blob, and their preconditions.

use std::ops::Range;

use blockyard::index::SequenceAction;
use blockyard::types::AccessTier;
use blockyard::types::BlockSource;
use blockyard::types::Etag;
use blockyard::types::LeaseAction;
use blockyard::types::Timestamp;
use uuid::Uuid;

use crate::content::Body;
use crate::content::Segment;
use crate::state::Marks;

/// A precondition on the tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TagDemand {
    #[default]
    None,
    IfMatch(Etag),
    IfAbsent,
}

/// The preconditions of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    pub(crate) tag: TagDemand,
    pub(crate) lease: Option<Uuid>,
}

/// The scope of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Blob,
    WithSnapshots,
    Snapshots,
    One(Timestamp),
}

/// A requested change.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Makes a new blob with this content: a block blob with these bytes, an empty blob of another
    /// kind, or a copy.
    Make {
        body: Body,
        marks: Marks,
    },
    Stage {
        segment: Segment,
    },
    Commit {
        list: Vec<(BlockSource, u32)>,
        marks: Marks,
    },
    /// Starts an upload.
    Start {
        upload: u64,
        marks: Marks,
    },
    /// Stages a part; the id of the segment is its number.
    Part {
        upload: u64,
        segment: Segment,
    },
    /// Completes an upload with these parts.
    Complete {
        upload: u64,
        list: Vec<Segment>,
    },
    Abort {
        upload: u64,
    },
    Append {
        segment: Segment,
        position: Option<u64>,
        len_max: Option<u64>,
    },
    Seal {
        position: Option<u64>,
    },
    /// Without a tag the pages are cleared.
    Write {
        range: Range<u64>,
        tag: Option<u64>,
        sequence: Option<u64>,
    },
    Reshape {
        len: Option<u64>,
        sequence: Option<SequenceAction>,
    },
    Mark {
        mark: u64,
    },
    Tags {
        tags: u64,
    },
    Tier {
        tier: AccessTier,
    },
    Lease {
        action: LeaseAction,
    },
    Snapshot {
        mark: Option<u64>,
    },
    Delete {
        scope: Scope,
    },
}

impl Change {
    /// Its name in the counts.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Make { body: Body::Blocks(_), .. } => "made blocks",
            Self::Make { body: Body::Appended { .. }, .. } => "made append blobs",
            Self::Make { body: Body::Pages(_), .. } => "made page blobs",
            Self::Stage { .. } => "staged",
            Self::Commit { .. } => "committed",
            Self::Start { .. } => "uploads started",
            Self::Part { .. } => "parts staged",
            Self::Complete { .. } => "uploads completed",
            Self::Abort { .. } => "uploads aborted",
            Self::Append { .. } => "appended",
            Self::Seal { .. } => "sealed",
            Self::Write { tag: Some(_), .. } => "pages written",
            Self::Write { tag: None, .. } => "pages cleared",
            Self::Reshape { .. } => "reshaped",
            Self::Mark { .. } => "marked",
            Self::Tags { .. } => "tagged",
            Self::Tier { .. } => "tiers set",
            Self::Lease { action: LeaseAction::Acquire { .. } } => "leases acquired",
            Self::Lease { action: LeaseAction::Renew { .. } } => "leases renewed",
            Self::Lease { action: LeaseAction::Change { .. } } => "leases changed",
            Self::Lease { action: LeaseAction::Release { .. } } => "leases released",
            Self::Lease { action: LeaseAction::Break { .. } } => "leases broken",
            Self::Snapshot { .. } => "snapshots taken",
            Self::Delete { scope: Scope::Blob } => "deleted",
            Self::Delete { scope: Scope::WithSnapshots } => "deleted with snapshots",
            Self::Delete { scope: Scope::Snapshots } => "all snapshots deleted",
            Self::Delete { scope: Scope::One(_) } => "snapshots deleted",
        }
    }

    /// Whether the blob gets a new tag.
    pub(crate) const fn renews_etag(&self) -> bool {
        match self {
            Self::Make { .. }
            | Self::Commit { .. }
            | Self::Append { .. }
            | Self::Write { .. }
            | Self::Reshape { .. }
            | Self::Mark { .. } => true,
            // A second completion has the tag of the first.
            Self::Start { .. }
            | Self::Part { .. }
            | Self::Complete { .. }
            | Self::Abort { .. }
            | Self::Stage { .. }
            | Self::Seal { .. }
            | Self::Tags { .. }
            | Self::Tier { .. }
            | Self::Lease { .. }
            | Self::Snapshot { .. }
            | Self::Delete { .. } => false,
        }
    }
}
