//! From the layers' errors to the one table of codes. Each match is exhaustive: a new variant must
//! be mapped by hand.

use crate::auth;
use crate::capacity;
use crate::frontend::accounts::Unread;
use crate::index;
use crate::index::EncryptionFault;
use crate::index::Full;
use crate::index::LeaseRefusal;
use crate::protocol::Cause;
use crate::protocol::Error;
use crate::protocol::ErrorCode;
use crate::types::AccountName;
use crate::types::Outcome;

/// Which kind of thing the request was about, where the code depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Container,
    Blob,
}

pub(crate) fn from_index(error: &index::Error, subject: Subject) -> Error {
    use index::Error as E;
    match error {
        E::AccountNotFound => ErrorCode::ResourceNotFound.into(),
        E::ContainerNotFound => ErrorCode::ContainerNotFound.into(),
        E::ContainerExists => ErrorCode::ContainerAlreadyExists.into(),
        E::BlobNotFound => ErrorCode::BlobNotFound.into(),
        E::Condition(Outcome::NotModified) => ErrorCode::NotModified.into(),
        E::Condition(Outcome::AlreadyExists) => ErrorCode::BlobAlreadyExists.into(),
        E::Condition(Outcome::Failed | Outcome::Proceed) => ErrorCode::ConditionNotMet.into(),
        E::Lease(refusal) => from_lease(*refusal, subject).into(),
        E::SnapshotsPresent => ErrorCode::SnapshotsPresent.into(),
        E::Archived => ErrorCode::BlobArchived.into(),
        E::Rehydrating => ErrorCode::BlobBeingRehydrated.into(),
        E::TierOfKind => ErrorCode::InvalidBlobType.into(),
        E::Encryption(fault) => match fault {
            EncryptionFault::KeyMissing => ErrorCode::BlobUsesCustomerSpecifiedEncryption.into(),
            EncryptionFault::NotEncrypted => {
                ErrorCode::BlobDoesNotUseCustomerSpecifiedEncryption.into()
            }
            EncryptionFault::Mismatch => ErrorCode::BlobCustomerSpecifiedEncryptionMismatch.into(),
        },
        E::InvalidRange { len } => {
            Error::new(ErrorCode::InvalidRange).header("content-range", format!("bytes */{len}"))
        }
        E::UnknownBlock => ErrorCode::InvalidBlockList.into(),
        E::BlockIdLength => ErrorCode::InvalidBlobOrBlock.into(),
        E::WrongKind => ErrorCode::InvalidBlobType.into(),
        E::CopyPending => ErrorCode::PendingCopyOperation.into(),
        E::NoPendingCopy => ErrorCode::NoPendingCopyOperation.into(),
        E::OtherCopy => ErrorCode::CopyIdMismatch.into(),
        E::Sealed => ErrorCode::BlobIsSealed.into(),
        E::AppendPosition { .. } => ErrorCode::AppendPositionConditionNotMet.into(),
        E::LongerThanAllowed => ErrorCode::MaxBlobSizeConditionNotMet.into(),
        E::TooManyAppends => Error::new(ErrorCode::BlockCountExceedsLimit)
            .message("The committed block count cannot exceed the maximum limit of 50,000 blocks."),
        E::InvalidPages { len } => Error::new(ErrorCode::InvalidPageRange)
            .header("content-range", format!("bytes */{len}")),
        E::ComparedWithNewer => ErrorCode::PreviousSnapshotCannotBeNewer.into(),
        E::ComparedWithNothing => ErrorCode::PreviousSnapshotNotFound.into(),
        E::MadeAnew => ErrorCode::BlobOverwritten.into(),
        E::SequenceCondition => ErrorCode::SequenceNumberConditionNotMet.into(),
        E::SequenceExhausted => ErrorCode::SequenceNumberIncrementTooLarge.into(),
        E::TooManyBlocks => ErrorCode::BlockCountExceedsLimit.into(),
        E::Full(Full::Disks) => ErrorCode::InsufficientStorage.into(),
        E::Full(Full::Coordinator(_)) => first_disk_full(),
        E::WrongPartition => busy(Busy::PartitionMap),
        E::Overloaded => busy(Busy::Index),
        // Not which names: they may be another account's.
        E::Quarantined(partition) => Error::new(ErrorCode::ServerBusy)
            .cause(Cause::Busy(Busy::Quarantined.word()))
            .message(format!(
            "Partition {partition} of the index, which this request needs, is out of service: files \
             it needs are damaged, missing or cannot be used now. The operator of this server finds \
             more in its log."
        )),
        E::DiskOut(what) => {
            tracing::error!(%what, "index rows lie on a disk that is out of service");
            damaged_index()
        }
        E::Corrupt(what) => {
            tracing::error!(%what, "index rows are damaged");
            damaged_index()
        }
        E::Unavailable(why) => {
            tracing::error!(%why, "a partition is unavailable");
            internal("A part of the index is unavailable; see the server's log.")
        }
    }
}

/// The coordinator's file cannot grow. The coordinator logs that once a minute, with the path and
/// what is free; a line for each request would only hide it.
pub(crate) fn first_disk_full() -> Error {
    Error::new(ErrorCode::InsufficientStorage).message(
        "The disk of the first data directory is full. Free some space on it; another data \
         directory does not help. Reads go on.",
    )
}

/// As for a partition that was found damaged at the start.
fn damaged_index() -> Error {
    Error::new(ErrorCode::ServerBusy).cause(Cause::Busy(Busy::Quarantined.word())).message(
        "Files of the index, which this request needs, are damaged or cannot be read now. The \
         operator of this server finds more in its log; `blockyard check` names them.",
    )
}

fn from_lease(refusal: LeaseRefusal, subject: Subject) -> ErrorCode {
    use LeaseRefusal as R;
    match (refusal, subject) {
        (R::NotPresent, Subject::Container) => ErrorCode::LeaseNotPresentWithContainerOperation,
        (R::NotPresent, Subject::Blob) => ErrorCode::LeaseNotPresentWithBlobOperation,
        (R::Mismatch, Subject::Container) => ErrorCode::LeaseIdMismatchWithContainerOperation,
        (R::Mismatch, Subject::Blob) => ErrorCode::LeaseIdMismatchWithBlobOperation,
        (R::Lost, _) => ErrorCode::LeaseLost,
        (R::Missing, _) => ErrorCode::LeaseIdMissing,
        (R::NothingToActOn, _) => ErrorCode::LeaseNotPresentWithLeaseOperation,
        (R::ActsOnOther, _) => ErrorCode::LeaseIdMismatchWithLeaseOperation,
        (R::AlreadyPresent, _) => ErrorCode::LeaseAlreadyPresent,
        (R::BreakingNotAcquired, _) => ErrorCode::LeaseIsBreakingAndCannotBeAcquired,
        (R::BreakingNotChanged, _) => ErrorCode::LeaseIsBreakingAndCannotBeChanged,
        (R::BrokenNotRenewed, _) => ErrorCode::LeaseIsBrokenAndCannotBeRenewed,
    }
}

pub(crate) fn from_capacity(error: &capacity::Error) -> Error {
    use capacity::Error as E;
    match error {
        E::Full => ErrorCode::InsufficientStorage.into(),
        E::Corrupt { .. } => {
            tracing::error!(%error, "stored bytes are damaged");
            internal("The stored bytes do not match their checksum and are not served.")
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
pub(crate) fn unknown_account(name: &AccountName) -> Error {
    Error::new(ErrorCode::AuthenticationFailed)
        .detail("AuthenticationErrorDetail", format!("This server has no account named {name}."))
        .cause(Cause::Authentication("account"))
}

/// The answer to a request for an account that may be where the list of accounts was not read. The
/// bounds of that part are names of other accounts: only the log has them.
pub(crate) fn unread_account(name: &AccountName, unread: &Unread) -> Error {
    tracing::debug!(
        account = %name, partition = %unread.partition,
        "accounts cannot be read: {unread}"
    );
    Error::new(ErrorCode::ServerBusy).cause(Cause::Busy(Busy::Quarantined.word())).message(format!(
        "It is not known now whether there is an account {name}: a part of the list of accounts \
         cannot be read. Try again later. The log of this server says more."
    ))
}

pub(crate) fn from_auth(error: &auth::Error) -> Error {
    from_auth_alone(error).cause(cause(error))
}

fn from_auth_alone(error: &auth::Error) -> Error {
    use auth::Error as E;
    match error {
        // Anonymous access is not served yet, and the service hides what a stranger may not see.
        E::Missing => ErrorCode::NoAuthenticationInformation.into(),
        E::Token { detail } => Error::new(ErrorCode::InvalidAuthenticationInfo)
            .status(401)
            .detail("AuthenticationErrorDetail", detail),
        E::Malformed { detail } => Error::new(ErrorCode::InvalidAuthenticationInfo)
            .detail("AuthenticationErrorDetail", detail),
        E::UnknownScheme => Error::new(ErrorCode::InvalidAuthenticationInfo).detail(
            "AuthenticationErrorDetail",
            "Sign with SharedKey or SharedKeyLite, or send a Bearer token.",
        ),
        E::WrongSignature { detail } | E::ClockSkew { detail } | E::Refused { detail } => {
            Error::new(ErrorCode::AuthenticationFailed).detail("AuthenticationErrorDetail", detail)
        }
        E::SourceAddress { address } => {
            let message = format!(
                "{} Source IP: {address}",
                ErrorCode::AuthorizationSourceIPMismatch.message()
            );
            Error::new(ErrorCode::AuthorizationSourceIPMismatch).message(message)
        }
        E::Protocol => ErrorCode::AuthorizationProtocolMismatch.into(),
        E::Service => ErrorCode::AuthorizationServiceMismatch.into(),
        E::ResourceType => ErrorCode::AuthorizationResourceTypeMismatch.into(),
        E::Permission => ErrorCode::AuthorizationPermissionMismatch.into(),
        E::Unauthorized => ErrorCode::AuthorizationFailure.into(),
    }
}

/// What was short when a request was answered 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    /// Requests at a time: of all, of the account, or of those that anybody may send.
    Requests,
    /// Requests a second of the account.
    Rate,
    /// Memory for answers.
    AnswerMemory,
    /// Memory for bodies that come.
    BodyMemory,
    /// Nothing for the request itself: the source of its copy was slow, and others needed what the
    /// copy held.
    SlowSource,
    /// The queue of small bodies to be stored.
    Appends,
    /// The queue of a partition.
    Index,
    /// The partition map went on changing.
    PartitionMap,
    /// A partition out of service.
    Quarantined,
    /// Connections.
    Connections,
    /// Nothing: the fault dial wants it.
    FaultDial,
}

impl Busy {
    /// Every reason.
    pub(crate) const ALL: [Self; 11] = [
        Self::Requests,
        Self::Rate,
        Self::AnswerMemory,
        Self::BodyMemory,
        Self::SlowSource,
        Self::Appends,
        Self::Index,
        Self::PartitionMap,
        Self::Quarantined,
        Self::Connections,
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
            Self::Connections => "connections",
            Self::FaultDial => "fault_dial",
        }
    }
}

pub(crate) fn busy(short: Busy) -> Error {
    let cause = Cause::Busy(short.word());
    Error::new(ErrorCode::ServerBusy).header("retry-after", "1").cause(cause)
}

/// The operation is for users with a token; keys and signatures do not do.
pub(crate) fn only_bearer() -> Error {
    let detail = "Only authentication scheme Bearer is supported";
    Error::new(ErrorCode::AuthenticationFailed).detail("AuthenticationErrorDetail", detail)
}

/// The index answered another question than it was asked: a bug, answered as one.
pub(crate) fn mismatched() -> Error {
    tracing::error!("the index answered with the wrong kind of reply");
    ErrorCode::InternalError.into()
}

pub(crate) fn internal(message: &str) -> Error {
    Error::new(ErrorCode::InternalError).message(message)
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
        let unread = Unread { keys, partition: PartitionId::new(7) };
        assert!(unread.to_string().contains("alice"), "the log names them");
        let answer = format!("{:?}", unread_account(&name("bob"), &unread));
        assert!(answer.contains("bob"), "{answer}");
        assert!(!answer.contains("alice") && !answer.contains("carol"), "{answer}");
    }

    /// Found when it was read, not at the start: for whoever asks it is the same.
    #[test]
    fn damaged_rows_are_out_of_service_as_a_quarantined_partition_is() {
        let damaged = "block of extent 7".to_owned();
        let of = |error| from_index(&error, Subject::Container);
        let quarantined = of(index::Error::Quarantined(PartitionId::new(7)));
        assert_eq!(quarantined.http_status(), 503);
        for error in [index::Error::Corrupt(damaged.clone()), index::Error::DiskOut(damaged)] {
            let answer = of(error);
            assert_eq!(answer.http_status(), 503, "{answer:?}");
            let answer = format!("{answer:?}");
            assert!(answer.contains("ServerBusy") && !answer.contains("extent 7"), "{answer}");
        }
    }
}
