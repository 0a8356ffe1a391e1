//! A request, as the parsers of operations see it.

use std::borrow::Cow;

use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::request::Parts;
use percent_encoding::percent_decode_str;

use crate::protocol::model::Address;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::model::operation::Parsed;
use crate::protocol::s3::checksums;
use crate::protocol::s3::form::PostForm;
use crate::protocol::s3::versions;
use crate::protocol::wire::query::Query;
use crate::types::ContainerName;
use crate::types::PartNumber;

/// The prefix of signing parameters, and, in lower case, of all headers of S3.
const OWN: &str = "x-amz-";

/// The parameter that a presigned URL of version 4 has, and no other.
const ALGORITHM: &str = "X-Amz-Algorithm";

/// The headers of a request. A URL that is presigned with version 4 may have headers of S3 in its
/// query: some clients put them there, because only the query is part of a URL. In other requests
/// they are only parameters: only version 4 signs the whole query. Checksums of a body are ignored
/// in a query: the signer of a URL has no body yet, and SDKs sign the checksum of an empty one.
/// Source: S3, "Authenticating Requests: Using Query Parameters".
pub(super) fn headers(head: &Parts) -> Cow<'_, HeaderMap> {
    let query = head.uri.query().unwrap_or("");
    // As in `auth::claim`: a request with this parameter uses signature version 4 or is refused.
    let is_v4 = || form_urlencoded(query).any(|(name, _)| name == ALGORITHM);
    if query.is_empty() || !is_v4() {
        return Cow::Borrowed(&head.headers);
    }
    let mut headers = head.headers.clone();
    let is_header = |name: &str| name.starts_with(OWN) && !checksums::is_of_body(name);
    for (name, value) in form_urlencoded(query).filter(|(name, _)| is_header(name)) {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(&value)) {
            headers.append(name, value);
        }
    }
    Cow::Owned(headers)
}

/// The decoded parameters of a query. Values are bytes, like those of headers.
fn form_urlencoded(query: &str) -> impl Iterator<Item = (String, Vec<u8>)> {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let decode = |text: &str| percent_decode_str(&text.replace('+', " ")).collect::<Vec<u8>>();
    pairs.map(move |(name, value)| {
        (String::from_utf8_lossy(&decode(name)).into_owned(), decode(value))
    })
}

/// Reads one operation.
pub(super) type Parser = fn(&Request<'_>) -> Result<Parsed, Refusal>;

/// A request, as the parsers of operations see it.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    /// The query; names are case-sensitive.
    pub(super) query: &'a Query,
    /// All headers.
    pub(super) headers: &'a HeaderMap,
    /// The account, bucket and key of the URL.
    pub(super) address: &'a Address,
    /// The form that the headers come from.
    pub(super) form: Option<&'a PostForm>,
}

impl Request<'_> {
    /// The bucket that the URL names.
    ///
    /// # Errors
    /// `InvalidUri`: the table of operations takes only requests that name one.
    pub(super) fn bucket(&self) -> Result<ContainerName, Refusal> {
        self.address.container.clone().ok_or_else(|| Reason::InvalidUri.into())
    }

    /// The object that the URL names, and its version if the query names one.
    ///
    /// # Errors
    /// As [`Self::bucket`]; `InvalidQueryParameterValue` for a value that is not a version id.
    pub(super) fn object(&self) -> Result<BlobPath, Refusal> {
        let blob = self.address.blob.clone().ok_or(Reason::InvalidUri)?;
        Ok(BlobPath { container: self.bucket()?, blob, revision: versions::revision(self.query)? })
    }

    /// `partNumber`.
    ///
    /// # Errors
    /// `InvalidQueryParameterValue` for a value that is not a part number.
    pub(super) fn part_number(&self) -> Result<PartNumber, Refusal> {
        let text = self.query.get("partNumber")?.unwrap_or_default();
        let number = text.parse().ok().and_then(PartNumber::new);
        number.ok_or_else(|| {
            Refusal::new(Reason::InvalidQueryParameterValue)
                .message("Part number must be an integer between 1 and 10000, inclusive")
                .detail(Detail::ParameterName, "partNumber")
                .detail(Detail::ParameterValue, text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promoted(query: &str) -> Option<String> {
        let (head, ()) = http::Request::put(format!("/b/k?{query}")).body(()).unwrap().into_parts();
        let headers = headers(&head);
        headers.get("x-amz-acl").map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn checksums_of_a_body_do_not_count_in_the_query() {
        let query = "X-Amz-Algorithm=AWS4-HMAC-SHA256&x-amz-checksum-crc32=AAAAAA%3D%3D\
                     &x-amz-sdk-checksum-algorithm=CRC32&x-amz-checksum-mode=ENABLED";
        let request = http::Request::put(format!("/b/k?{query}")).body(()).unwrap();
        let (head, ()) = request.into_parts();
        let headers = headers(&head);
        let names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-amz-checksum-mode"]);
    }

    #[test]
    fn headers_in_the_query_count_only_where_the_query_is_signed() {
        let v4 = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=1";
        assert_eq!(promoted(&format!("{v4}&x-amz-acl=a%20b")).as_deref(), Some("a b"));
        for unsigned in [
            "x-amz-acl=public-read",
            "X-Amz-Signature=&x-amz-acl=public-read",
            "AWSAccessKeyId=a&Expires=9&Signature=s&X-Amz-Signature=&x-amz-acl=public-read",
            "x-amz-algorithm=AWS4-HMAC-SHA256&x-amz-acl=public-read",
        ] {
            assert_eq!(promoted(unsigned), None, "{unsigned}");
        }
    }
}
