//! Requests of senders without permissions of their own: anonymous callers, and holders of a key of
//! another account.
//!
//! Source: "Configure anonymous read access for containers and blobs"; S3, "Canned ACL".

use crate::auth::Exposure;
use crate::frontend::accounts::Account;
use crate::frontend::lookup;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Address;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::ListBlobs;
use crate::types::Audience;
use crate::types::PublicAccess;

/// A request of a sender without permissions of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnonymousRead<'a> {
    /// The account that it is about.
    pub(crate) account: &'a Account,
    /// The account, container and blob that it names.
    pub(crate) address: &'a Address,
    /// The public access that it needs; `None` for a request that is malformed, or that public
    /// access never permits.
    pub(crate) exposure: Option<Exposure>,
    /// The audience of the sender.
    pub(crate) audience: Audience,
}

/// The rule that permits a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// The public access of the container.
    ByContainer,
    /// The access control list of the container permits a list of its blobs; see [`only_lists`].
    ListOnly,
    /// Only the access control list of the blob can permit it. [`demand_open`] adds the condition
    /// to the operation, so that the partition decides it with the read.
    ByBlob,
}

/// Admits a request if the public access or the access control list of its container permits it, or
/// if the list of the blob may permit it. `refuse` makes the dialect's refusal of such senders.
///
/// # Errors
/// `PublicAccessNotPermitted` when the account's switch is off, else what `refuse` returns: the
/// same for a container without public access and for one that does not exist.
pub(crate) async fn permit(
    front: &FrontEnd,
    AnonymousRead { account, address, exposure, audience }: AnonymousRead<'_>,
    refuse: impl Fn() -> Refusal,
) -> Result<Opened, Refusal> {
    let (Some(wanted), Some(container)) = (exposure, &address.container) else {
        return Err(refuse());
    };
    if !account.anonymous {
        return Err(Reason::PublicAccessNotPermitted.into());
    }
    match lookup::container(&front.rows, account, container).await {
        Ok(record) if is_public(record.public_access, wanted) => Ok(Opened::ByContainer),
        Ok(record) if wanted == Exposure::Container && record.acl().opens_to(audience) => {
            Ok(Opened::ListOnly)
        }
        Ok(_) if wanted == Exposure::Blob => Ok(Opened::ByBlob),
        Ok(_) => Err(refuse()),
        Err(error) if error.reason == Reason::ContainerNotFound => Err(refuse()),
        Err(error) => Err(error),
    }
}

/// Whether public access permits this to everyone.
const fn is_public(access: PublicAccess, wanted: Exposure) -> bool {
    match (access, wanted) {
        (PublicAccess::Container, Exposure::Blob | Exposure::Container)
        | (PublicAccess::Blob, Exposure::Blob) => true,
        (PublicAccess::Blob, Exposure::Container) | (PublicAccess::Private, _) => false,
    }
}

/// Whether the access control list of a container permits an operation: to list the blobs, by name,
/// length and time. It does not permit lists with other properties of blobs, which may be private.
pub(crate) const fn only_lists(operation: &Operation) -> bool {
    let Operation::Container(ContainerOperation::ListBlobs(list)) = operation else { return false };
    // All operations are named, so that a new one cannot be forgotten.
    let ListBlobs {
        container: _,
        prefix: _,
        delimiter: _,
        marker: _,
        start_from: _,
        end_before: _,
        after: _,
        exact: _,
        max_results: _,
        content_etag: _,
        columns: _,
        metadata,
        uncommitted,
        snapshots,
        versions,
        deleted,
        versions_only,
        tags,
        copy,
        retention,
        legal_hold,
    } = list;
    let of_other_states = *snapshots || versions.is_some() || *deleted || *versions_only;
    let protection = *retention || *legal_hold;
    !(*metadata || *uncommitted || *tags || *copy || of_other_states || protection)
}

/// Makes an operation fail unless the blob's access control list permits `audience`. Returns
/// whether such a list can permit the operation at all: it can permit reads of the content and the
/// properties.
pub(crate) fn demand_open(operation: &mut Operation, audience: Audience) -> bool {
    if let Operation::Blob(
        BlobOperation::GetBlob { path, precondition, .. }
        | BlobOperation::GetBlobPart { path, precondition, .. }
        | BlobOperation::GetBlobProperties { path, precondition }
        | BlobOperation::GetBlobMetadata { path, precondition },
    ) = operation
        // A snapshot keeps the access control list that it was taken with, and no request can
        // change it.
        && path.revision.snapshot().is_none()
    {
        precondition.open_to = Some(audience);
        return true;
    }
    false
}
