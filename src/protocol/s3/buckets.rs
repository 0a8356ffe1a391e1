//! Operations on buckets.

use crate::protocol::model::Operation;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::AccountOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::ContainerSettings;
use crate::protocol::model::operation::Document;
use crate::protocol::model::operation::DocumentBody;
use crate::protocol::model::operation::ListContainers;
use crate::protocol::model::operation::Parsed;
use crate::protocol::s3::acl;
use crate::protocol::s3::arguments;
use crate::protocol::s3::locks;
use crate::protocol::s3::naming;
use crate::protocol::s3::request::Request;
use crate::protocol::s3::upload::upload_of_any_length;
use crate::protocol::wire::xml;
use crate::types::Collation;
use crate::types::Metadata;
use crate::types::PublicAccess;

/// The longest configuration of a new bucket, bytes.
const CONFIGURATION_BYTES_MAX: u64 = 16 << 10;
/// Characters of a region at most.
const REGION_MAX: usize = 64;
/// The most buckets of a page, as S3 documents; a page may have fewer.
const BUCKETS_MAX: u32 = 10_000;

/// `ListBuckets`.
pub(super) fn list(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let owned = |name: &str| Ok::<_, Refusal>(request.query.get(name)?.map(str::to_owned));
    let list = ListContainers {
        deleted: false,
        prefix: owned("prefix")?,
        marker: arguments::token(request.query, "continuation-token")?,
        max_results: arguments::buckets_max(request.query, BUCKETS_MAX)?,
        metadata: false,
        owner: None,
        exact: true,
    };
    Ok(Parsed::ready(AccountOperation::ListContainers(list).into()))
}

/// `CreateBucket`. The body, if there is one, names the region of the bucket.
pub(super) fn create(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let container = request.bucket()?;
    naming::bucket(&container)?;
    let operation: Operation = ContainerOperation::CreateContainer {
        container,
        metadata: Metadata::default(),
        public_access: PublicAccess::Private,
        encryption_scope: None,
        settings: ContainerSettings {
            collation: Collation::Utf8,
            acl: acl::of_new_bucket(request.headers)?,
            object_lock: locks::of_new_bucket(request.headers)?,
            keeps_own: true,
            ..ContainerSettings::default()
        },
    }
    .into();
    // Without a length the body may be empty, or come over HTTP/2.
    let upload = upload_of_any_length(request.headers, CONFIGURATION_BYTES_MAX)?;
    let body = DocumentBody { upload, decode: configuration };
    Ok(Parsed::NeedsBody { operation: Box::new(operation), body })
}

/// Reads a `CreateBucketConfiguration`.
fn configuration(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    let Operation::Container(ContainerOperation::CreateContainer { settings, .. }) = operation
    else {
        return Err(Reason::InternalError.into());
    };
    if document.bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(());
    }
    let root = xml::parse(document.bytes, "CreateBucketConfiguration")?;
    for unserved in ["Location", "Bucket", "Tags"] {
        if root.child(unserved).is_some() {
            return Err(Refusal::new(Reason::NotImplemented)
                .message(format!("Blockyard does not serve {unserved} of a new bucket.")));
        }
    }
    root.only(&["LocationConstraint"])?;
    settings.region = match root.child_text("LocationConstraint") {
        None | Some("") => None,
        Some(region) => {
            check_region(region)?;
            Some(region.to_owned())
        }
    };
    Ok(())
}

/// Checks the name of a region; `EU` is an old one.
fn check_region(region: &str) -> Result<(), Refusal> {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let is_word = region.len() <= REGION_MAX && region.bytes().all(is_plain);
    if is_word || region == "EU" { Ok(()) } else { Err(Reason::InvalidLocation.into()) }
}

/// `HeadBucket`, `GetBucketLocation`.
pub(super) fn head(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let (container, precondition) = (request.bucket()?, Precondition::default());
    Ok(Parsed::ready(ContainerOperation::GetContainer { container, precondition }.into()))
}

/// `DeleteBucket`.
pub(super) fn delete(request: &Request<'_>) -> Result<Parsed, Refusal> {
    let (container, precondition) = (request.bucket()?, Precondition::default());
    Ok(Parsed::ready(ContainerOperation::DeleteIfEmpty { container, precondition }.into()))
}
