//! Errors, refusals and damages, one of each variant at least.

use super::*;

pub(in crate::index::api::tests) fn damages() -> Vec<Damage> {
    vec![
        Damage::Rows("a block".to_owned()),
        Damage::DiskOut("disk 2".to_owned()),
        Damage::Quarantined(PartitionId::new(7)),
    ]
}

pub(in crate::index::api::tests) fn errors() -> Vec<Error> {
    let mut errors = vec![
        Error::WrongPartition,
        Error::Overloaded,
        Error::Full(Full::Disks),
        Error::Full(Full::Coordinator("no space".to_owned())),
        Error::Unavailable("stopping".to_owned()),
        Error::NoAnswer("a node is away".to_owned()),
    ];
    errors.extend(damages().into_iter().map(Error::Corrupt));
    errors.extend(refused().into_iter().map(Error::Refused));
    errors
}

fn refused_by_locks() -> [Refused; 7] {
    [
        Refused::LegalHold,
        Refused::Retained(RetentionMode::Locked),
        Refused::NoObjectLock,
        Refused::RetentionInPast,
        Refused::ObjectLocked,
        Refused::NotClosed,
        Refused::NotVersioned,
    ]
}

fn refused_by_tiers_and_increments() -> [Refused; 6] {
    [
        Refused::LowerTier,
        Refused::TierTooSmall,
        Refused::BeyondTier,
        Refused::Incremental,
        Refused::OtherIncrement,
        Refused::EarlierIncrement,
    ]
}

fn refused_by_pages() -> [Refused; 6] {
    [
        Refused::InvalidPages { len: 512 },
        Refused::SequenceCondition,
        Refused::SequenceExhausted,
        Refused::ComparedWithNewer,
        Refused::ComparedWithNothing,
        Refused::MadeAnew,
    ]
}

pub(in crate::index::api::tests) fn refused() -> Vec<Refused> {
    let leases = [
        LeaseRefusal::NotPresent,
        LeaseRefusal::Lost,
        LeaseRefusal::Mismatch,
        LeaseRefusal::Missing,
        LeaseRefusal::NothingToActOn,
        LeaseRefusal::ActsOnOther,
        LeaseRefusal::AlreadyPresent,
        LeaseRefusal::BreakingNotAcquired,
        LeaseRefusal::BreakingNotChanged,
        LeaseRefusal::BrokenNotRenewed,
    ];
    let outcomes = [Outcome::Failed, Outcome::AlreadyExists, Outcome::NothingToMatch];
    let faults =
        [EncryptionFault::KeyMissing, EncryptionFault::NotEncrypted, EncryptionFault::Mismatch];
    let mut all = vec![
        Refused::AccountNotFound,
        Refused::ContainerNotFound,
        Refused::ContainerExists,
        Refused::ContainerNotEmpty,
        Refused::ContainerClosed,
        Refused::ContainerReopened,
        Refused::BlobNotFound,
        Refused::NotOpen,
        Refused::BlobDeleted(VersionId::null(TIME)),
        Refused::VersionNotFound,
        Refused::DeleteMarker(VersionId { time: TIME, is_null: false }),
        Refused::CurrentVersion,
        Refused::NotSoftlyDeleted,
        Refused::SnapshotsPresent,
        Refused::NotModified { content_etag: Some(ContentEtag::opaque([3; 16], 4)) },
        Refused::Archived,
        Refused::Rehydrating,
        Refused::TierOfKind,
        Refused::InvalidRange { len: 1 },
        Refused::UnknownBlock,
        Refused::BlockIdLength,
        Refused::WrongKind,
        Refused::CopyPending,
        Refused::NoPendingCopy,
        Refused::OtherCopy,
        Refused::Sealed,
        Refused::AppendPosition { len: u64::MAX },
        Refused::LongerThanAllowed,
        Refused::TooManyAppends,
        Refused::TooManyBlocks,
    ];
    let uploads = [
        UploadRefusal::NotFound,
        UploadRefusal::Order,
        UploadRefusal::UnknownPart(1),
        UploadRefusal::NoPartChecksum(2),
        UploadRefusal::NoSuchPart,
        UploadRefusal::SmallPart { number: 3, len: 4 },
        UploadRefusal::Length { len: 5 },
        UploadRefusal::ChecksumKind,
        UploadRefusal::Checksum,
    ];
    all.extend(refused_by_locks());
    all.extend(refused_by_tiers_and_increments());
    all.extend(refused_by_pages());
    all.extend(uploads.map(Refused::Upload));
    all.extend(leases.map(Refused::Lease));
    all.extend(outcomes.map(Refused::Condition));
    all.extend(faults.map(Refused::Encryption));
    all
}
