//! Parts of a request, beside the operation, that determine the answer: headers that change what is
//! shown.

use http::header::IF_MATCH;
use http::request::Parts;

use crate::protocol::s3::attributes;
use crate::protocol::s3::attributes::Attributes;
use crate::protocol::s3::encryption;
use crate::protocol::s3::objects;
use crate::protocol::s3::request;
use crate::protocol::s3::routes::S3Operation;
use crate::types::ByteRange;

/// Parts of a request, beside the operation, that determine the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Whether a read asks for the checksums of the content.
    pub(super) checksums: bool,
    /// Whether a deletion demands that the object exists.
    pub(super) existing: bool,
    /// The range of a HEAD: it changes the length that is shown.
    pub(super) range: Option<ByteRange>,
    /// The MD5 of the customer-provided key, base64.
    pub(super) key_md5: Option<String>,
    /// The attributes that GetObjectAttributes shows.
    pub(super) attributes: Attributes,
}

impl Asked {
    /// Reads as much as possible from a head, well-formed or not.
    pub(super) fn of(head: &Parts, operation: Option<S3Operation>) -> Self {
        let headers = request::headers(head);
        let mode = headers.get("x-amz-checksum-mode");
        let is_head = operation == Some(S3Operation::HeadObject);
        let attributes = operation == Some(S3Operation::GetObjectAttributes);
        Self {
            checksums: mode.is_some_and(|mode| mode.as_bytes().eq_ignore_ascii_case(b"enabled")),
            existing: headers.contains_key(IF_MATCH),
            range: if is_head { objects::range(&headers) } else { None },
            key_md5: encryption::key_md5(&headers, &encryption::OF_OBJECT),
            attributes: match attributes {
                true => attributes::wanted(&headers).unwrap_or_default(),
                false => Attributes::default(),
            },
        }
    }
}
