//! Maps the errors of lower layers to refusals. Each match is exhaustive, so that a new variant
//! must be mapped.

use crate::auth;
use crate::capacity;
use crate::frontend::accounts::Unread;
use crate::index;
use crate::index::Damage;
use crate::index::EncryptionFault;
use crate::index::Full;
use crate::index::LeaseRefusal;
use crate::protocol::model::Cause;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::AccountName;
use crate::types::Outcome;

/// The kind of resource of a request, where the code depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Container,
    Blob,
}

pub(crate) fn from_index(error: &index::Error, subject: Subject) -> Refusal {
    use index::Error as E;
    match error {
        E::Full(Full::Disks) => Reason::InsufficientStorage.into(),
        E::Full(Full::Coordinator(_)) => first_disk_full(),
        E::WrongPartition => busy(Busy::PartitionMap),
        E::Overloaded => busy(Busy::Index),
        // The names are left out: they may be another account's.
        E::Corrupt(Damage::Quarantined(partition)) => Refusal::new(Reason::ServerBusy)
            .cause(Cause::Busy(Busy::Quarantined.word()))
            .message(format!(
            "Partition {partition} of the index, which this request needs, is out of service: files \
             it needs are damaged, missing or cannot be used now. The operator of this server finds \
             more in its log."
        )),
        E::Corrupt(Damage::DiskOut(what)) => {
            tracing::error!(%what, "index rows lie on a disk that is out of service");
            damaged_index()
        }
        E::Corrupt(Damage::Rows(what)) => {
            tracing::error!(%what, "index rows are damaged");
            damaged_index()
        }
        E::Unavailable(why) => {
            tracing::error!(%why, "a partition is unavailable");
            internal("A part of the index is unavailable; see the server's log.")
        }
        E::NoAnswer(why) => {
            tracing::warn!(%why, "a partition does not answer");
            busy(Busy::Nodes)
        }
        E::Refused(refused) => from_refused(refused, subject),
    }
}

/// Maps a refusal by the state of an account, container or blob.
fn from_refused(refused: &index::Refused, subject: Subject) -> Refusal {
    use index::Refused as R;
    match refused {
        R::AccountNotFound => Reason::ResourceNotFound.into(),
        R::ContainerNotFound => Reason::ContainerNotFound.into(),
        R::ContainerExists => Reason::ContainerAlreadyExists.into(),
        R::ContainerNotEmpty => Reason::ContainerNotEmpty.into(),
        R::ContainerClosed | R::ContainerReopened | R::NotClosed => busy(Busy::Container),
        R::BlobNotFound => Reason::BlobNotFound.into(),
        R::BlobDeleted(marker) => Refusal::new(Reason::BlobNotFound).marker(*marker),
        R::VersionNotFound => Reason::VersionNotFound.into(),
        R::DeleteMarker(marker) => Refusal::new(Reason::DeleteMarker).marker(*marker),
        R::CurrentVersion => Reason::CurrentVersion.into(),
        R::NotSoftlyDeleted => Reason::NotSoftlyDeleted.into(),
        R::NotOpen => Reason::BlobNotOpen.into(),
        R::NotModified { content_etag: None } | R::Condition(Outcome::NotModified) => {
            Reason::NotModified.into()
        }
        R::NotModified { content_etag: Some(tag) } => {
            Refusal::new(Reason::NotModified).detail(Detail::ContentEtag, format!("\"{tag}\""))
        }
        R::Condition(Outcome::AlreadyExists) => Reason::BlobAlreadyExists.into(),
        R::Condition(Outcome::NothingToMatch) => Reason::NothingToMatch.into(),
        R::Condition(Outcome::Failed | Outcome::Proceed) => Reason::ConditionNotMet.into(),
        R::Lease(refusal) => from_lease(*refusal, subject).into(),
        R::SnapshotsPresent => Reason::SnapshotsPresent.into(),
        R::LegalHold => Reason::BlobImmutableDueToLegalHold.into(),
        R::Retained(_) => Reason::BlobImmutableDueToPolicy.into(),
        R::NoObjectLock => Reason::NoObjectLock.into(),
        R::RetentionInPast => Reason::RetentionInPast.into(),
        R::ObjectLocked => Reason::ObjectLocked.into(),
        R::NotVersioned => Reason::NotVersioned.into(),
        R::Archived => Reason::BlobArchived.into(),
        R::Rehydrating => Reason::BlobBeingRehydrated.into(),
        R::TierOfKind => Reason::InvalidBlobType.into(),
        R::LowerTier => Reason::CannotChangeToLowerTier.into(),
        R::TierTooSmall => Reason::BlobTierInadequateForContentLength.into(),
        R::BeyondTier => Reason::ContentLengthLargerThanTierLimit.into(),
        R::Encryption(fault) => match fault {
            EncryptionFault::KeyMissing => Reason::BlobUsesCustomerSpecifiedEncryption.into(),
            EncryptionFault::NotEncrypted => {
                Reason::BlobDoesNotUseCustomerSpecifiedEncryption.into()
            }
            EncryptionFault::Mismatch => Reason::BlobCustomerSpecifiedEncryptionMismatch.into(),
        },
        R::InvalidRange { len } => Refusal::new(Reason::InvalidRange).satisfiable(*len),
        R::UnknownBlock => Reason::InvalidBlockList.into(),
        R::BlockIdLength => Reason::InvalidBlobOrBlock.into(),
        R::WrongKind => Reason::InvalidBlobType.into(),
        R::CopyPending => Reason::PendingCopyOperation.into(),
        R::Incremental => Reason::OperationNotAllowedOnIncrementalCopyBlob.into(),
        R::OtherIncrement => Reason::IncrementalCopyBlobMismatch.into(),
        R::EarlierIncrement => Reason::IncrementalCopyOfEarlierVersionSnapshotNotAllowed.into(),
        R::NoPendingCopy => Reason::NoPendingCopyOperation.into(),
        R::OtherCopy => Reason::CopyIdMismatch.into(),
        R::Sealed => Reason::BlobIsSealed.into(),
        R::AppendPosition { .. } => Reason::AppendPositionConditionNotMet.into(),
        R::LongerThanAllowed => Reason::MaxBlobSizeConditionNotMet.into(),
        R::TooManyAppends => Refusal::new(Reason::BlockCountExceedsLimit)
            .message("The committed block count cannot exceed the maximum limit of 50,000 blocks."),
        R::InvalidPages { len } => Refusal::new(Reason::InvalidPageRange).satisfiable(*len),
        R::ComparedWithNewer => Reason::PreviousSnapshotCannotBeNewer.into(),
        R::ComparedWithNothing => Reason::PreviousSnapshotNotFound.into(),
        R::MadeAnew => Reason::BlobOverwritten.into(),
        R::SequenceCondition => Reason::SequenceNumberConditionNotMet.into(),
        R::SequenceExhausted => Reason::SequenceNumberIncrementTooLarge.into(),
        R::TooManyBlocks => Reason::BlockCountExceedsLimit.into(),
        R::Upload(refusal) => from_upload(*refusal),
    }
}

/// Maps a refusal by the state of an upload in parts.
fn from_upload(refusal: index::UploadRefusal) -> Refusal {
    use index::UploadRefusal as U;
    match refusal {
        U::NotFound => Reason::UploadNotFound.into(),
        U::Order => Reason::PartOrder.into(),
        U::UnknownPart(_) => Reason::InvalidBlockList.into(),
        U::NoPartChecksum(number) => Refusal::new(Reason::UploadMismatch).message(format!(
            "The upload was created with a composite checksum. The complete request must include \
             the checksum for each part. It was missing for part {number} in the request."
        )),
        U::NoSuchPart => Reason::PartNotFound.into(),
        U::SmallPart { .. } => Reason::PartTooSmall.into(),
        U::Length { len } => Refusal::new(Reason::UploadMismatch).message(format!(
            "The parts have {len} bytes together, which is not the size that the request gives."
        )),
        U::ChecksumKind => Refusal::new(Reason::UploadMismatch).message(
            "The checksum of the request is of another type or algorithm than that of the upload.",
        ),
        U::Checksum => Reason::ChecksumMismatch.into(),
    }
}

/// The coordinator's file cannot grow. The coordinator logs that once a minute, with the path and
/// the free space; a line for each request would hide it.
pub(crate) fn first_disk_full() -> Refusal {
    Refusal::new(Reason::InsufficientStorage).message(
        "The disk of the first data directory is full. Free some space on it; another data \
         directory does not help. Reads go on.",
    )
}

/// The same answer as for a partition that was found damaged at the start.
fn damaged_index() -> Refusal {
    Refusal::new(Reason::ServerBusy).cause(Cause::Busy(Busy::Quarantined.word())).message(
        "Files of the index, which this request needs, are damaged or cannot be read now. The \
         operator of this server finds more in its log; `blockyard check` names them.",
    )
}

fn from_lease(refusal: LeaseRefusal, subject: Subject) -> Reason {
    use LeaseRefusal as R;
    match (refusal, subject) {
        (R::NotPresent, Subject::Container) => Reason::LeaseNotPresentWithContainerOperation,
        (R::NotPresent, Subject::Blob) => Reason::LeaseNotPresentWithBlobOperation,
        (R::Mismatch, Subject::Container) => Reason::LeaseIdMismatchWithContainerOperation,
        (R::Mismatch, Subject::Blob) => Reason::LeaseIdMismatchWithBlobOperation,
        (R::Lost, _) => Reason::LeaseLost,
        (R::Missing, _) => Reason::LeaseIdMissing,
        (R::NothingToActOn, _) => Reason::LeaseNotPresentWithLeaseOperation,
        (R::ActsOnOther, _) => Reason::LeaseIdMismatchWithLeaseOperation,
        (R::AlreadyPresent, _) => Reason::LeaseAlreadyPresent,
        (R::BreakingNotAcquired, _) => Reason::LeaseIsBreakingAndCannotBeAcquired,
        (R::BreakingNotChanged, _) => Reason::LeaseIsBreakingAndCannotBeChanged,
        (R::BrokenNotRenewed, _) => Reason::LeaseIsBrokenAndCannotBeRenewed,
    }
}

pub(crate) fn from_capacity(error: &capacity::Error) -> Refusal {
    use capacity::Error as E;
    match error {
        E::Full => Reason::InsufficientStorage.into(),
        E::Corrupt { .. } => {
            tracing::error!(%error, "stored bytes are damaged");
            internal("The stored bytes do not match their checksum and are not served.")
        }
        E::NoAnswer { .. } => {
            tracing::warn!(%error, "a capacity call has no answer");
            busy(Busy::Nodes)
        }
        E::Poisoned { .. }
        | E::Ended { .. }
        | E::Unreadable { .. }
        | E::OutOfService { .. }
        | E::NoSuchExtent { .. }
        | E::Sealed { .. }
        | E::Fenced { .. }
        | E::WrongOffset { .. } => {
            tracing::error!(%error, "a capacity call failed");
            internal("Storage failed; see the server's log.")
        }
    }
}

/// Every cause that [`from_auth`] gives, and [`unknown_account`].
pub(crate) const CAUSES: [Cause; 14] = [
    Cause::Authentication("missing"),
    Cause::Authentication("token"),
    Cause::Authentication("malformed"),
    Cause::Authentication("scheme"),
    Cause::Authentication("signature"),
    Cause::Authentication("clock"),
    Cause::Authentication("refused"),
    Cause::Authentication("account"),
    Cause::Authorization("source_address"),
    Cause::Authorization("protocol"),
    Cause::Authorization("service"),
    Cause::Authorization("resource_type"),
    Cause::Authorization("permission"),
    Cause::Authorization("role"),
];

fn cause(error: &auth::Error) -> Cause {
    use auth::Error as E;
    match error {
        E::Missing => Cause::Authentication("missing"),
        E::Token { .. } => Cause::Authentication("token"),
        E::Malformed { .. } => Cause::Authentication("malformed"),
        E::UnknownScheme => Cause::Authentication("scheme"),
        E::WrongSignature { .. } => Cause::Authentication("signature"),
        E::ClockSkew { .. } => Cause::Authentication("clock"),
        E::Refused { .. } => Cause::Authentication("refused"),
        E::SourceAddress { .. } => Cause::Authorization("source_address"),
        E::Protocol => Cause::Authorization("protocol"),
        E::Service => Cause::Authorization("service"),
        E::ResourceType => Cause::Authorization("resource_type"),
        E::Permission => Cause::Authorization("permission"),
        E::Unauthorized => Cause::Authorization("role"),
    }
}

/// The answer to a request for an account that is not served.
pub(crate) fn unknown_account(name: &AccountName) -> Refusal {
    Refusal::new(Reason::AuthenticationFailed)
        .detail(Detail::AuthenticationFailure, format!("This server has no account named {name}."))
        .cause(Cause::Authentication("account"))
}

/// The answer to a request for an account that may be in a part of the list of accounts that was
/// not read. The bounds of that part are names of other accounts, so only the log has them.
pub(crate) fn unread_account(name: &AccountName, unread: &Unread) -> Refusal {
    tracing::debug!(
        account = %name, partition = %unread.partition,
        "accounts cannot be read: {unread}"
    );
    Refusal::new(Reason::ServerBusy).cause(Cause::Busy(Busy::Quarantined.word())).message(format!(
        "It is not known now whether there is an account {name}: a part of the list of accounts \
         cannot be read. Try again later. The log of this server says more."
    ))
}

/// The answer to a request whose access key may be in a part of the list of accounts that was not
/// read.
pub(crate) fn unread_key(unread: &Unread) -> Refusal {
    tracing::debug!(partition = %unread.partition, "accounts cannot be read: {unread}");
    Refusal::new(Reason::ServerBusy).cause(Cause::Busy(Busy::Quarantined.word())).message(
        "It is not known now whether there is such an access key: a part of the list of accounts \
         cannot be read. Try again later. The log of this server says more.",
    )
}

pub(crate) fn from_auth(error: &auth::Error) -> Refusal {
    from_auth_alone(error).cause(cause(error))
}

fn from_auth_alone(error: &auth::Error) -> Refusal {
    use auth::Error as E;
    match error {
        // As on the service: anonymous callers do not learn whether the resource exists.
        E::Missing => Reason::NoAuthenticationInformation.into(),
        E::Token { detail } => Refusal::new(Reason::InvalidAuthenticationInfo)
            .status(401)
            .detail(Detail::AuthenticationFailure, detail),
        E::Malformed { detail } => Refusal::new(Reason::InvalidAuthenticationInfo)
            .detail(Detail::AuthenticationFailure, detail),
        E::UnknownScheme => Refusal::new(Reason::InvalidAuthenticationInfo).detail(
            Detail::AuthenticationFailure,
            "Sign with SharedKey or SharedKeyLite, or send a Bearer token.",
        ),
        E::WrongSignature { detail } | E::ClockSkew { detail } | E::Refused { detail } => {
            Refusal::new(Reason::AuthenticationFailed).detail(Detail::AuthenticationFailure, detail)
        }
        E::SourceAddress { address } => {
            let message = format!(
                "This request is not authorized to perform this operation using this source IP. \
                 Source IP: {address}"
            );
            Refusal::new(Reason::AuthorizationSourceIPMismatch).message(message)
        }
        E::Protocol => Reason::AuthorizationProtocolMismatch.into(),
        E::Service => Reason::AuthorizationServiceMismatch.into(),
        E::ResourceType => Reason::AuthorizationResourceTypeMismatch.into(),
        E::Permission => Reason::AuthorizationPermissionMismatch.into(),
        E::Unauthorized => Reason::AuthorizationFailure.into(),
    }
}

/// The scarce resource when a request was answered 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    /// Running requests: of all accounts, of the account, or anonymous ones.
    Requests,
    /// Requests per second of the account.
    Rate,
    /// Memory for answers.
    AnswerMemory,
    /// Memory for request bodies.
    BodyMemory,
    /// The source of a copy was slow, and others needed the resources that the copy held.
    SlowSource,
    /// The queue of small bodies to be stored.
    Appends,
    /// The queue of a partition.
    Index,
    /// The partition map changed again and again.
    PartitionMap,
    /// A partition out of service.
    Quarantined,
    /// A container that is being deleted.
    Container,
    /// Connections.
    Connections,
    /// Other nodes of the cluster do not answer.
    Nodes,
    /// Nothing: the fault dial injected the 503.
    FaultDial,
}

impl Busy {
    /// Every reason.
    pub(crate) const ALL: [Self; 13] = [
        Self::Requests,
        Self::Rate,
        Self::AnswerMemory,
        Self::BodyMemory,
        Self::SlowSource,
        Self::Appends,
        Self::Index,
        Self::PartitionMap,
        Self::Quarantined,
        Self::Container,
        Self::Connections,
        Self::Nodes,
        Self::FaultDial,
    ];

    /// One word, as in metrics.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Rate => "rate",
            Self::AnswerMemory => "answer_memory",
            Self::BodyMemory => "body_memory",
            Self::SlowSource => "slow_source",
            Self::Appends => "appends",
            Self::Index => "index",
            Self::PartitionMap => "partition_map",
            Self::Quarantined => "quarantined",
            Self::Container => "container",
            Self::Connections => "connections",
            Self::Nodes => "nodes",
            Self::FaultDial => "fault_dial",
        }
    }
}

pub(crate) fn busy(short: Busy) -> Refusal {
    let cause = Cause::Busy(short.word());
    Refusal::new(Reason::ServerBusy).detail(Detail::RetryAfter, "1").cause(cause)
}

/// The operation needs a bearer token; keys and shared access signatures do not suffice.
pub(crate) fn only_bearer() -> Refusal {
    let detail = "Only authentication scheme Bearer is supported";
    Refusal::new(Reason::AuthenticationFailed).detail(Detail::AuthenticationFailure, detail)
}

pub(crate) fn internal(message: &str) -> Refusal {
    Refusal::new(Reason::InternalError).message(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::KeyRange;
    use crate::types::PartitionId;
    use crate::types::RoutingKey;

    #[test]
    fn answer_for_an_unread_account_names_no_other_account() {
        let name = |name| AccountName::new(name).unwrap();
        let key = |other| RoutingKey::account(&name(other));
        let keys = KeyRange::new(key("alice"), Some(key("carol")));
        let unread = Unread { keys, partition: PartitionId::new(7), in_doubt: false };
        assert!(unread.to_string().contains("alice"), "the log names them");
        let answer = format!("{:?}", unread_account(&name("bob"), &unread));
        assert!(answer.contains("bob"), "{answer}");
        assert!(!answer.contains("alice") && !answer.contains("carol"), "{answer}");
    }

    /// Damage that a read finds is answered like damage found at the start.
    #[test]
    fn damaged_rows_are_out_of_service_as_a_quarantined_partition_is() {
        let damaged = "block of extent 7".to_owned();
        let of = |error| from_index(&error, Subject::Container);
        let quarantined = of(index::Error::Corrupt(Damage::Quarantined(PartitionId::new(7))));
        assert_eq!(quarantined.reason, Reason::ServerBusy);
        for error in [
            index::Error::damaged_rows(damaged.clone()),
            index::Error::Corrupt(Damage::DiskOut(damaged)),
        ] {
            let answer = of(error);
            assert_eq!(answer.reason, Reason::ServerBusy, "{answer:?}");
            let answer = format!("{answer:?}");
            assert!(answer.contains("ServerBusy") && !answer.contains("extent 7"), "{answer}");
        }
    }
}
