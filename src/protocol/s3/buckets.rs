//! Operations on buckets.

use crate::protocol::model::Precondition;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::AccountOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::ListContainers;
use crate::protocol::model::operation::Parsed;
use crate::protocol::s3::acl;
use crate::protocol::s3::request::Request;
use crate::types::Metadata;
use crate::types::PublicAccess;

/// `ListBuckets`.
pub(super) fn list(_: &Request<'_>) -> Result<Parsed, Refusal> {
    Ok(Parsed::Ready(AccountOperation::ListContainers(ListContainers::default()).into()))
}

/// `CreateBucket`.
pub(super) fn create(request: &Request<'_>) -> Result<Parsed, Refusal> {
    acl::of_new_bucket(request.headers)?;
    let create = ContainerOperation::CreateContainer {
        container: request.bucket()?,
        metadata: Metadata::default(),
        public_access: PublicAccess::Private,
        encryption_scope: None,
    };
    Ok(Parsed::Ready(create.into()))
}

/// `HeadBucket`.
pub(super) fn head(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let (container, precondition) = (request.bucket()?, Precondition::default());
    Ok(Parsed::Ready(ContainerOperation::GetContainer { container, precondition }.into()))
}

/// `DeleteBucket`.
pub(super) fn delete(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let (container, precondition) = (request.bucket()?, Precondition::default());
    Ok(Parsed::Ready(ContainerOperation::DeleteContainer { container, precondition }.into()))
}
