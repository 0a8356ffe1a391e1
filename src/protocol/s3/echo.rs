//! The parts of a request that its answer repeats.

use http::Method;
use http::request::Parts;

use crate::protocol::model::Address;
use crate::protocol::s3::asked::Asked;
use crate::protocol::s3::form::FormAnswer;
use crate::protocol::s3::parse;
use crate::protocol::s3::routes::S3Operation;
use crate::protocol::wire::query::Query;
use crate::types::OwnerIds;
use crate::types::Timestamp;

/// The parts of a request that its answer repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Echo {
    pub(super) request_id: String,
    pub(super) time: Timestamp,
    /// Whether the method is HEAD.
    pub(super) head: bool,
    /// Other parts of the request that determine the answer.
    pub(super) asked: Asked,
    /// The path, percent-encoded.
    pub(super) resource: String,
    /// The operation, once it is admitted.
    pub(super) operation: Option<S3Operation>,
    /// The bucket, when the answer names it.
    pub(super) bucket: String,
    /// The key, when the answer names it.
    pub(super) key: String,
    /// The raw query, if the answer repeats parts of it.
    pub(super) query: Option<String>,
    /// The canonical id of the account's root user, if the answer has it. The name of the account
    /// follows.
    pub(super) owner: String,
    pub(super) owner_name: String,
    /// The canonical id and the shown name of the user that sent the request; `None` for others.
    pub(super) sender: Option<[String; 2]>,
    /// The region of buckets that were made without one.
    pub(super) region: String,
    /// The options of a form for its answer.
    pub(super) form: Option<Box<FormAnswer>>,
}

impl S3Echo {
    /// Reads as much as possible from a head, well-formed or not. `request_id` is a fresh id,
    /// `time` the time of the answer.
    #[must_use]
    pub fn new(head: &Parts, request_id: String, time: Timestamp) -> Self {
        Self {
            request_id,
            time,
            head: head.method == Method::HEAD,
            asked: Asked::default(),
            resource: head.uri.path().to_owned(),
            operation: None,
            bucket: String::new(),
            key: String::new(),
            query: None,
            owner: String::new(),
            owner_name: String::new(),
            sender: None,
            region: String::new(),
            form: None,
        }
    }

    /// The request's id, as header and body have it.
    #[must_use]
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// Adds the operation, and the parts of the URL that its answer repeats. `region` is that of
    /// buckets that were made without one.
    pub fn admitted(&mut self, head: &Parts, address: &Address, region: &str) {
        self.operation = parse::operation(head, address).ok();
        if self.operation.is_some_and(shows_owner) {
            self.owner = OwnerIds::of(&address.account).canonical;
            address.account.as_str().clone_into(&mut self.owner_name);
        }
        self.asked = Asked::of(head, self.operation);
        self.form = FormAnswer::of(head, address).map(Box::new);
        if self.operation.is_some_and(is_about_buckets) {
            region.clone_into(&mut self.region);
        }
        if self.operation.is_some_and(repeats) {
            self.query = head.uri.query().map(str::to_owned);
            self.bucket = address.container.as_ref().map_or("", |name| name.as_str()).to_owned();
            self.key = address.blob.as_ref().map_or("", |name| name.as_str()).to_owned();
        }
    }

    /// Adds the user that sent the request.
    pub fn sent_by(&mut self, canonical: &str, display: &str) {
        self.sender = Some([canonical.to_owned(), display.to_owned()]);
    }

    /// A parameter of the query, decoded.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        self.parameters().get(name).ok().flatten().map(str::to_owned)
    }

    /// The query of a list.
    pub(super) fn parameters(&self) -> Query {
        Query::parse_exact(self.query.as_deref()).unwrap_or_default()
    }
}

const fn shows_owner(operation: S3Operation) -> bool {
    repeats(operation) || matches!(operation, S3Operation::GetBucketAcl | S3Operation::GetObjectAcl)
}

/// Whether the document of the answer repeats names from the URL.
const fn repeats(operation: S3Operation) -> bool {
    matches!(
        operation,
        S3Operation::ListBuckets
            | S3Operation::ListObjects
            | S3Operation::ListObjectsV2
            | S3Operation::ListObjectVersions
            | S3Operation::CreateMultipartUpload
            | S3Operation::CompleteMultipartUpload
            | S3Operation::ListParts
            | S3Operation::ListMultipartUploads
    )
}

/// Whether an answer shows the region of buckets.
const fn is_about_buckets(operation: S3Operation) -> bool {
    matches!(
        operation,
        S3Operation::ListBuckets | S3Operation::HeadBucket | S3Operation::GetBucketLocation
    )
}
