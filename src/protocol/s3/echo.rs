//! What an answer repeats of its request.

use http::Method;
use http::request::Parts;

use crate::protocol::model::Address;
use crate::protocol::s3::parse;
use crate::protocol::s3::routes::S3Operation;
use crate::protocol::wire::query::Query;
use crate::types::OwnerIds;
use crate::types::Timestamp;

/// What an answer repeats of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Echo {
    pub(super) request_id: String,
    pub(super) time: Timestamp,
    /// Whether the method is HEAD.
    pub(super) head: bool,
    /// Whether a read asks for the checksums of the content.
    pub(super) checksums: bool,
    /// The path, percent-encoded.
    pub(super) resource: String,
    /// The operation, once it is admitted.
    pub(super) operation: Option<S3Operation>,
    /// The bucket, and its query when a list repeats it.
    pub(super) bucket: String,
    /// The raw query of a list.
    pub(super) query: Option<String>,
    /// The canonical id of the account's root user, and the account's name, where the answer has
    /// them.
    pub(super) owner: String,
    pub(super) owner_name: String,
}

impl S3Echo {
    /// Takes what it can from a head, well-formed or not. `request_id` is a fresh id, `time` the
    /// time of the answer.
    #[must_use]
    pub fn new(head: &Parts, request_id: String, time: Timestamp) -> Self {
        Self {
            request_id,
            time,
            head: head.method == Method::HEAD,
            checksums: head
                .headers
                .get("x-amz-checksum-mode")
                .is_some_and(|mode| mode.as_bytes().eq_ignore_ascii_case(b"enabled")),
            resource: head.uri.path().to_owned(),
            operation: None,
            bucket: String::new(),
            query: None,
            owner: String::new(),
            owner_name: String::new(),
        }
    }

    /// The request's id, as header and body have it.
    #[must_use]
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// Adds the operation, and what a list repeats of the query.
    pub fn admitted(&mut self, head: &Parts, address: &Address) {
        self.operation = parse::operation(head, address).ok();
        if self.operation.is_some_and(shows_owner) {
            self.owner = OwnerIds::of(&address.account).canonical;
            address.account.as_str().clone_into(&mut self.owner_name);
        }
        if self.operation.is_some_and(is_list) {
            self.query = head.uri.query().map(str::to_owned);
            self.bucket = address.container.as_ref().map_or("", |name| name.as_str()).to_owned();
        }
    }

    /// A parameter of the query, decoded.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let query = Query::parse_exact(self.query.as_deref()).ok()?;
        query.get(name).ok().flatten().map(str::to_owned)
    }
}

const fn shows_owner(operation: S3Operation) -> bool {
    is_list(operation) || matches!(operation, S3Operation::GetBucketAcl | S3Operation::GetObjectAcl)
}

const fn is_list(operation: S3Operation) -> bool {
    matches!(
        operation,
        S3Operation::ListBuckets | S3Operation::ListObjects | S3Operation::ListObjectsV2
    )
}
