//! Names of headers that most requests are searched for. A search for a text parses the text first,
//! which takes longer than the search.

use http::HeaderName;

// Names that refusals and routing need as texts too.
pub(super) const RETENTION_UNTIL_NAME: &str = "x-ms-immutability-policy-until-date";
pub(super) const RETENTION_MODE_NAME: &str = "x-ms-immutability-policy-mode";
pub(super) const LEGAL_HOLD_NAME: &str = "x-ms-legal-hold";
pub(super) const ACCESS_TIER_NAME: &str = "x-ms-access-tier";
pub(super) const COPY_SOURCE_NAME: &str = "x-ms-copy-source";

pub(super) static VERSION: HeaderName = HeaderName::from_static("x-ms-version");
pub(super) static CLIENT_REQUEST_ID: HeaderName = HeaderName::from_static("x-ms-client-request-id");
pub(super) static LEASE_ID: HeaderName = HeaderName::from_static("x-ms-lease-id");
pub(super) static IF_TAGS: HeaderName = HeaderName::from_static("x-ms-if-tags");
pub(super) static BLOB_IF_MATCH: HeaderName = HeaderName::from_static("x-ms-blob-if-match");
pub(super) static BLOB_IF_NONE_MATCH: HeaderName =
    HeaderName::from_static("x-ms-blob-if-none-match");
pub(super) static BLOB_IF_MODIFIED_SINCE: HeaderName =
    HeaderName::from_static("x-ms-blob-if-modified-since");
pub(super) static BLOB_IF_UNMODIFIED_SINCE: HeaderName =
    HeaderName::from_static("x-ms-blob-if-unmodified-since");
pub(super) static TIER_IF_MODIFIED_SINCE: HeaderName =
    HeaderName::from_static("x-ms-access-tier-if-modified-since");
pub(super) static TIER_IF_UNMODIFIED_SINCE: HeaderName =
    HeaderName::from_static("x-ms-access-tier-if-unmodified-since");
pub(super) static RANGE: HeaderName = HeaderName::from_static("x-ms-range");
pub(super) static RANGE_MD5: HeaderName = HeaderName::from_static("x-ms-range-get-content-md5");
pub(super) static RANGE_CRC64: HeaderName = HeaderName::from_static("x-ms-range-get-content-crc64");
pub(super) static COPY_SOURCE: HeaderName = HeaderName::from_static(COPY_SOURCE_NAME);
pub(super) static CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
pub(super) static CONTENT_CRC64: HeaderName = HeaderName::from_static("x-ms-content-crc64");
pub(super) static ENCRYPTION_KEY: HeaderName = HeaderName::from_static("x-ms-encryption-key");
pub(super) static ENCRYPTION_KEY_SHA256: HeaderName =
    HeaderName::from_static("x-ms-encryption-key-sha256");
pub(super) static ENCRYPTION_ALGORITHM: HeaderName =
    HeaderName::from_static("x-ms-encryption-algorithm");
pub(super) static SOURCE_ENCRYPTION_KEY: HeaderName =
    HeaderName::from_static("x-ms-source-encryption-key");
pub(super) static SOURCE_ENCRYPTION_KEY_SHA256: HeaderName =
    HeaderName::from_static("x-ms-source-encryption-key-sha256");
pub(super) static SOURCE_ENCRYPTION_ALGORITHM: HeaderName =
    HeaderName::from_static("x-ms-source-encryption-algorithm");
pub(super) static ENCRYPTION_SCOPE: HeaderName = HeaderName::from_static("x-ms-encryption-scope");
pub(super) static BLOB_TYPE: HeaderName = HeaderName::from_static("x-ms-blob-type");
pub(super) static BLOB_CONTENT_TYPE: HeaderName = HeaderName::from_static("x-ms-blob-content-type");
pub(super) static BLOB_CONTENT_ENCODING: HeaderName =
    HeaderName::from_static("x-ms-blob-content-encoding");
pub(super) static BLOB_CONTENT_LANGUAGE: HeaderName =
    HeaderName::from_static("x-ms-blob-content-language");
pub(super) static BLOB_CONTENT_DISPOSITION: HeaderName =
    HeaderName::from_static("x-ms-blob-content-disposition");
pub(super) static BLOB_CACHE_CONTROL: HeaderName =
    HeaderName::from_static("x-ms-blob-cache-control");
pub(super) static BLOB_CONTENT_MD5: HeaderName = HeaderName::from_static("x-ms-blob-content-md5");
pub(super) static TAGS: HeaderName = HeaderName::from_static("x-ms-tags");
pub(super) static ACCESS_TIER: HeaderName = HeaderName::from_static(ACCESS_TIER_NAME);
pub(super) static RETENTION_UNTIL: HeaderName = HeaderName::from_static(RETENTION_UNTIL_NAME);
pub(super) static RETENTION_MODE: HeaderName = HeaderName::from_static(RETENTION_MODE_NAME);
pub(super) static LEGAL_HOLD: HeaderName = HeaderName::from_static(LEGAL_HOLD_NAME);
/// The header that asks for or announces a structured body.
pub static STRUCTURED_BODY: HeaderName = HeaderName::from_static("x-ms-structured-body");
/// The header that gives the length of its content.
pub(super) static STRUCTURED_LENGTH: HeaderName =
    HeaderName::from_static("x-ms-structured-content-length");
