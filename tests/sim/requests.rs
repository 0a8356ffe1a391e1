//! Requests of the index for changes, and the interpretation of its answers.

use blockyard::index::AbortUpload;
use blockyard::index::AppendBlock;
use blockyard::index::BlobChange;
use blockyard::index::CommitBlocks;
use blockyard::index::CopiedContent;
use blockyard::index::DeleteBlob;
use blockyard::index::Error;
use blockyard::index::Guard;
use blockyard::index::LeaseBlob;
use blockyard::index::NewBlobFields;
use blockyard::index::NewContent;
use blockyard::index::PutBlob;
use blockyard::index::PutCopy;
use blockyard::index::Refused;
use blockyard::index::SealBlob;
use blockyard::index::SequenceBounds;
use blockyard::index::SetTier;
use blockyard::index::SnapshotBlob;
use blockyard::index::StageBlock;
use blockyard::index::UpdateBlob;
use blockyard::index::UpdatePages;
use blockyard::index::Write;
use blockyard::index::WritePages;
use blockyard::index::WriteReply;
use blockyard::index::Written;
use blockyard::types::BlobKey;
use blockyard::types::BlobProperties;
use blockyard::types::BlockId;
use blockyard::types::BlockListEntry;
use blockyard::types::Conditions;
use blockyard::types::Crc64;
use blockyard::types::DeleteScope;
use blockyard::types::EtagMatch;
use blockyard::types::Metadata;
use blockyard::types::NewKind;
use blockyard::types::RehydratePriority;
use blockyard::types::Tags;
use blockyard::types::TierState;
use blockyard::types::Timestamp;
use bytes::Bytes;

use crate::answer::Done;
use crate::answer::More;
use crate::change::Change;
use crate::change::Demand;
use crate::change::Scope;
use crate::change::TagDemand;
use crate::content::Body;
use crate::state::Marks;
use crate::tier::REHYDRATION;
use crate::uploads;
use blockyard::types::Revision;

/// The stored bytes of a change.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    /// It has no bytes.
    Nothing,
    New(NewContent, Crc64),
    Copied(CopiedContent, Crc64),
}

/// The request for a change.
pub(crate) fn request(key: BlobKey, change: &Change, demand: Demand, given: Given) -> Write {
    let guard = guard(demand);
    match change {
        Change::Make { body, marks } => make(key, guard, (body, *marks), given),
        Change::Stage { segment } => {
            let (content, crc64) = given.one();
            let id = block_id(segment.id.unwrap());
            Write::StageBlock(StageBlock { key, guard, id, content, crc64 })
        }
        Change::Commit { list, marks } => {
            let list = list
                .iter()
                .map(|(source, id)| BlockListEntry { source: *source, id: block_id(*id) });
            Write::CommitBlocks(CommitBlocks {
                key,
                guard,
                properties: BlobProperties::default(),
                metadata: metadata(marks.mark),
                tags: tags(marks.tags),
                list: list.collect(),
                tier: marks.tier,
            })
        }
        Change::Start { .. }
        | Change::Part { .. }
        | Change::Complete { .. }
        | Change::Abort { .. } => of_upload(key, change, guard, given),
        Change::Append { position, len_max, .. } => {
            let ((content, crc64), position, len_max) = (given.one(), *position, *len_max);
            Write::AppendBlock(AppendBlock { key, guard, position, len_max, content, crc64 })
        }
        Change::Seal { position } => Write::SealBlob(SealBlob { key, guard, position: *position }),
        Change::Write { range, tag, sequence } => {
            let sequence = SequenceBounds { equal: *sequence, ..SequenceBounds::default() };
            let content = tag.map(|_| given.one().0);
            Write::WritePages(WritePages { key, guard, sequence, range: range.clone(), content })
        }
        Change::Reshape { len, sequence } => {
            let (len, sequence) = (*len, *sequence);
            Write::UpdatePages(UpdatePages { key, guard, properties: None, len, sequence })
        }
        Change::Mark { mark } => {
            let change = BlobChange::Metadata(metadata(*mark));
            Write::UpdateBlob(UpdateBlob { key, revision: Revision::Current, guard, change })
        }
        Change::Tags { tags: new } => {
            let change = BlobChange::Tags(tags(*new));
            Write::UpdateBlob(UpdateBlob { key, revision: Revision::Current, guard, change })
        }
        Change::Tier { tier } => Write::SetTier(SetTier {
            key,
            revision: Revision::Current,
            guard,
            tier: *tier,
            priority: RehydratePriority::Standard,
            rehydration: REHYDRATION,
        }),
        Change::Lease { action } => Write::LeaseBlob(LeaseBlob { key, guard, action: *action }),
        Change::Snapshot { mark } => {
            Write::SnapshotBlob(SnapshotBlob { key, guard, metadata: mark.map(metadata) })
        }
        Change::Delete { scope } => {
            let scope = match *scope {
                Scope::Blob => DeleteScope::Blob,
                Scope::WithSnapshots => DeleteScope::BlobAndSnapshots,
                Scope::Snapshots => DeleteScope::Snapshots,
                Scope::One(at) => DeleteScope::Snapshot(at),
            };
            Write::DeleteBlob(DeleteBlob { key, guard, scope })
        }
    }
}

/// The request for a change of an upload.
fn of_upload(key: BlobKey, change: &Change, guard: Guard, given: Given) -> Write {
    if let Change::Start { upload, marks } = change {
        Write::StartUpload(Box::new(uploads::start(key, *upload, *marks)))
    } else if let Change::Part { upload, segment } = change {
        Write::StagePart(uploads::part(key, *upload, *segment, given.one()))
    } else if let Change::Complete { upload, list } = change {
        let parts = list.iter().map(|segment| uploads::named(*segment)).collect();
        Write::CompleteUpload(Box::new(uploads::complete(key, *upload, guard, parts)))
    } else if let Change::Abort { upload } = change {
        Write::AbortUpload(AbortUpload { key, upload: uploads::id(*upload) })
    } else {
        panic!("no change of an upload: {change:?}")
    }
}

fn make(key: BlobKey, guard: Guard, (body, marks): (&Body, Marks), given: Given) -> Write {
    let (properties, metadata) = (BlobProperties::default(), metadata(marks.mark));
    let tags = tags(marks.tags);
    match given {
        Given::Copied(content, crc64) => Write::PutCopy(Box::new(PutCopy {
            key,
            guard,
            kind: body.kind(),
            properties,
            metadata,
            tags,
            tier: marks.tier.map(|tier| TierState::new(tier, Timestamp::ZERO)),
            content,
            crc64,
            copy: None,
            increment: None,
            job: None,
            fields: NewBlobFields::default(),
        })),
        Given::New(..) | Given::Nothing => {
            let (content, crc64) = given.one();
            let kind = match body {
                Body::Blocks(_) => NewKind::Block,
                Body::Appended { .. } => NewKind::Append,
                Body::Pages(pages) => NewKind::Page { len: pages.len, sequence: pages.sequence },
            };
            let tier = marks.tier;
            Write::PutBlob(PutBlob {
                key,
                guard,
                properties,
                metadata,
                kind,
                tags,
                content,
                crc64,
                tier,
                fields: NewBlobFields::default(),
            })
        }
    }
}

impl Given {
    /// The one piece of content.
    fn one(self) -> (NewContent, Crc64) {
        match self {
            Self::Nothing => (NewContent::Inline(Bytes::new()), Crc64::EMPTY),
            Self::New(content, crc64) => (content, crc64),
            Self::Copied(content, crc64) => {
                let mut pieces = content.pieces();
                (pieces.next().expect("one piece").clone(), crc64)
            }
        }
    }
}

/// What an answer shows; `None` if it is not the answer to a change of a blob.
pub(crate) fn done(reply: &WriteReply) -> Option<Done> {
    let of = |written: &Written, more| Done {
        etag: Some(written.etag),
        at: Some(written.last_modified),
        more,
    };
    Some(match reply {
        WriteReply::Written(written) => of(written, More::Nothing),
        WriteReply::Appended(block) => {
            of(&block.written, More::Appended { offset: block.offset, blocks: block.blocks })
        }
        WriteReply::Pages(pages) if pages.rest.is_none() => {
            of(&pages.written, More::Sequence(pages.sequence))
        }
        WriteReply::Snapshotted(taken) => {
            Done { at: Some(taken.snapshot), ..of(&taken.written, More::Taken(taken.snapshot)) }
        }
        WriteReply::Leased(leased) => {
            Done { at: Some(leased.now), ..of(&leased.written, More::Leased(*leased)) }
        }
        WriteReply::UploadCompleted(completed) => of(&completed.written, More::Nothing),
        WriteReply::PartStaged(_)
        | WriteReply::Done
        | WriteReply::Deleted(_)
        | WriteReply::Undeleted { .. }
        | WriteReply::TierSet { .. } => Done::default(),
        WriteReply::Account(_)
        | WriteReply::Closed(_)
        | WriteReply::Shared(_)
        | WriteReply::SharedPages(_)
        | WriteReply::Layer(_)
        | WriteReply::Pages(_)
        | WriteReply::Purged { .. } => return None,
    })
}

/// Whether this error refuses a change because of the state of the blob.
pub(crate) const fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::Refused(
            Refused::BlobNotFound
                | Refused::Condition(_)
                | Refused::Lease(_)
                | Refused::SnapshotsPresent
                | Refused::Archived
                | Refused::Rehydrating
                | Refused::TierOfKind
                | Refused::Incremental
                | Refused::OtherIncrement
                | Refused::EarlierIncrement
                | Refused::LowerTier
                | Refused::TierTooSmall
                | Refused::BeyondTier
                | Refused::UnknownBlock
                | Refused::WrongKind
                | Refused::CopyPending
                | Refused::Sealed
                | Refused::AppendPosition { .. }
                | Refused::LongerThanAllowed
                | Refused::InvalidPages { .. }
                | Refused::SequenceCondition
                | Refused::Upload(_)
        )
    )
}

/// The guard of a demand.
pub(crate) fn guard(demand: Demand) -> Guard {
    let mut conditions = Conditions::default();
    match demand.tag {
        TagDemand::None => {}
        TagDemand::IfMatch(etag) => conditions.if_match = Some(EtagMatch::Tags(vec![Some(etag)])),
        TagDemand::IfAbsent => conditions.if_none_match = Some(EtagMatch::Any),
    }
    Guard { conditions, lease: demand.lease, ..Guard::default() }
}

/// The metadata that encodes a mark.
pub(crate) fn metadata(mark: u64) -> Metadata {
    Metadata::new(vec![("mark".to_owned(), mark.to_string())]).unwrap()
}

/// The tags that encode a number; 0 means no tags.
pub(crate) fn tags(number: u64) -> Tags {
    let mut pairs = Vec::new();
    if number > 0 {
        pairs.push(("k".to_owned(), (number % 3).to_string()));
    }
    if number % 4 == 1 {
        pairs.push(("odd".to_owned(), String::new()));
    }
    Tags::new(pairs).unwrap()
}

/// The id of a block.
pub(crate) fn block_id(id: u32) -> BlockId {
    BlockId::from_bytes(&id.to_be_bytes()).unwrap()
}
