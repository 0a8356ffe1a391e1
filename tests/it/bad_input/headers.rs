//! Headers: versions, types, ranges, conditions, metadata, checksums, and what is not served.

use crate::bad_input::Case;
use crate::bad_input::case;
use crate::wire::Message;

const PUT: &str = "PUT /acct1/con1/new";
const GET: &str = "GET /acct1/con1/blob";
const SET: &str = "PUT /acct1/con1/blob?comp=metadata";
const PROPERTIES: &str = "PUT /acct1/con1/blob?comp=properties";
const SNAPSHOT: &str = "PUT /acct1/con1/blob?comp=snapshot";
const RANGES: &str = "GET /acct1/con1/blob?comp=pagelist";
const DELETE: &str = "DELETE /acct1/con1/blob";
const DATE: &str = "Sat, 21 Nov 2026 05:00:00 GMT";

/// A request line, a header, status and code.
type Row = (&'static str, &'static str, u16, &'static str);

const ROWS: &[Row] = &[
    (GET, "x-ms-version: latest", 400, "InvalidHeaderValue"),
    (GET, "x-ms-version: 2026-13-01", 400, "InvalidHeaderValue"),
    (GET, "x-ms-version: 20261006", 400, "InvalidHeaderValue"),
    (PUT, "x-ms-blob-type: Blob", 400, "InvalidHeaderValue"),
    (PUT, "x-ms-blob-type: PageBlob", 400, "MissingRequiredHeader"),
    (PUT, "x-ms-meta-a: b", 400, "MissingRequiredHeader"),
    (GET, "x-ms-lease-id: mine", 400, "InvalidHeaderValue"),
    (
        GET,
        "x-ms-lease-id: 5f6b2f9a-7c1d-4f6e-8a90-0123456789ab",
        412,
        "LeaseNotPresentWithBlobOperation",
    ),
    (GET, "x-ms-range: bytes=9-5", 400, "InvalidHeaderValue"),
    (GET, "x-ms-range: bytes=-5", 400, "InvalidHeaderValue"),
    (GET, "x-ms-range: bytes=a-b", 400, "InvalidHeaderValue"),
    (GET, "x-ms-range: bytes=0-1,3-4", 400, "InvalidHeaderValue"),
    (GET, "x-ms-range: lines=0-1", 400, "InvalidHeaderValue"),
    (GET, "x-ms-range: bytes=10-", 416, "InvalidRange"),
    (GET, "range: bytes=10-11", 416, "InvalidRange"),
    (GET, "range: bytes=99999999999999999999-", 416, "InvalidRange"),
    (GET, "x-ms-range-get-content-md5: true", 400, "InvalidHeaderValue"),
    (GET, "x-ms-range-get-content-md5: maybe", 400, "InvalidHeaderValue"),
    (GET, "x-ms-range-get-content-crc64: 1", 400, "InvalidHeaderValue"),
    (GET, "if-none-match: *", 400, "UnsatisfiableCondition"),
    (GET, "if-match: \"0x1\"", 412, "ConditionNotMet"),
    (GET, "if-match: nonsense", 412, "ConditionNotMet"),
    (GET, "if-modified-since: today", 400, "InvalidHeaderValue"),
    (GET, "if-unmodified-since: Mon, 01 Jan 1990 00:00:00 GMT", 412, "ConditionNotMet"),
    (GET, "if-modified-since: Fri, 01 Jan 2100 00:00:00 GMT", 304, "ConditionNotMet"),
    (DELETE, "x-ms-encryption-scope: abc", 400, "UnsupportedHeader"),
    (PROPERTIES, "x-ms-encryption-scope: abc", 409, "BlobDoesNotUseCustomerSpecifiedEncryption"),
    (PROPERTIES, "x-ms-encryption-key: a2V5", 400, "InvalidHeaderValue"),
    (SNAPSHOT, "x-ms-encryption-scope: abc", 409, "BlobDoesNotUseCustomerSpecifiedEncryption"),
    (SNAPSHOT, "x-ms-encryption-algorithm: AES256", 400, "MissingRequiredHeader"),
    (RANGES, "x-ms-encryption-scope: abc", 400, "UnsupportedHeader"),
    (DELETE, "x-ms-structured-body: XSM/1.0; properties=crc64", 400, "UnsupportedHeader"),
    (GET, "x-ms-structured-body: crc64", 400, "InvalidHeaderValue"),
    (GET, "x-ms-encryption-key: a2V5", 400, "InvalidHeaderValue"),
    (GET, "x-ms-encryption-scope: abc", 409, "BlobDoesNotUseCustomerSpecifiedEncryption"),
    (SET, "x-ms-encryption-scope: abc", 409, "BlobDoesNotUseCustomerSpecifiedEncryption"),
    (SET, "x-ms-structured-content-length: 1", 400, "UnsupportedHeader"),
    (DELETE, "if-match: \"0x1\"", 412, "ConditionNotMet"),
    (DELETE, "if-match: \"0x1\", \"0x2\"", 400, "MultipleConditionHeadersNotSupported"),
    (DELETE, "x-ms-delete-snapshots: some", 400, "InvalidHeaderValue"),
    (DELETE, "x-ms-if-tags: \"a\" = b", 400, "InvalidHeaderValue"),
    ("DELETE /acct1/con1?restype=container", "if-match: *", 400, "ConditionHeadersNotSupported"),
    ("PUT /acct1/con2?restype=container", "if-none-match: *", 400, "ConditionHeadersNotSupported"),
    (
        "PUT /acct1/con2?restype=container",
        "x-ms-blob-public-access: all",
        400,
        "InvalidHeaderValue",
    ),
    (
        "PUT /acct1/con2?restype=container",
        "x-ms-default-encryption-scope: s",
        400,
        "InvalidHeaderValue",
    ),
    ("PUT /acct1/con1?restype=container", "x-ms-meta-a: b", 409, "ContainerAlreadyExists"),
    (SET, "x-ms-meta-: b", 400, "EmptyMetadataKey"),
    (SET, "x-ms-meta-a-b: c", 400, "InvalidMetadata"),
    (SET, "x-ms-meta-1a: c", 400, "InvalidMetadata"),
    (SET, "x-ms-meta-a: \u{e9}", 400, "InvalidMetadata"),
    (SET, "if-match: \"0x1\"", 412, "ConditionNotMet"),
    ("PUT /acct1/con1/blob?comp=properties", "x-ms-blob-content-md5: YWF", 400, "InvalidMd5"),
    (
        "PUT /acct1/con1/blob?comp=properties",
        "x-ms-blob-content-length: 512",
        409,
        "InvalidBlobType",
    ),
];

/// Headers of Put Blob beside `x-ms-blob-type`.
const PUT_ROWS: &[Row] = &[
    (PUT, "content-md5: YWFh", 400, "InvalidMd5"),
    (PUT, "content-md5: ***", 400, "InvalidMd5"),
    (PUT, "x-ms-blob-content-md5: YWFh", 400, "InvalidMd5"),
    (PUT, "x-ms-content-crc64: YWFh", 400, "InvalidHeaderValue"),
    (PUT, "x-ms-access-tier: P10", 409, "BlobAccessTierNotSupportedForAccountType"),
    (PUT, "x-ms-access-tier: Tepid", 400, "InvalidHeaderValue"),
    (PUT, "x-ms-encryption-key: a2V5", 400, "InvalidHeaderValue"),
    (PUT, "x-ms-encryption-scope: s", 400, "InvalidHeaderValue"),
    (PUT, "x-ms-encryption-scope: a_b", 400, "InvalidHeaderValue"),
    (PUT, "x-ms-encryption-key-sha256: a2V5", 400, "MissingRequiredHeader"),
    (PUT, "x-ms-encryption-algorithm: AES256", 400, "MissingRequiredHeader"),
    (PUT, "x-ms-structured-body: XSM/2.0; properties=crc64", 400, "InvalidHeaderValue"),
    (PUT, "x-ms-structured-body: XSM/1.0", 400, "InvalidHeaderValue"),
    (PUT, "x-ms-structured-content-length: 3", 400, "InvalidHeaderValue"),
    (PUT, "x-ms-tags: a", 400, "InvalidHeaderValue"),
    (PUT, "x-ms-immutability-policy-until-date: 2030", 400, "InvalidHeaderValue"),
    (PUT, "x-ms-immutability-policy-mode: locked", 400, "MissingRequiredHeader"),
    (PUT, "x-ms-legal-hold: on", 400, "InvalidHeaderValue"),
    (PUT, "x-ms-legal-hold: true", 409, "FeatureNotSupportedForAccount"),
    (PUT, "x-ms-structured-body: XSM/1.0; properties=crc64", 400, "MissingRequiredHeader"),
    (PUT, "if-match: *", 412, "ConditionNotMet"),
    ("PUT /acct1/con1/blob", "if-none-match: *", 409, "BlobAlreadyExists"),
    (
        "PUT /acct1/con1/blob",
        "if-unmodified-since: Mon, 01 Jan 1990 00:00:00 GMT",
        412,
        "ConditionNotMet",
    ),
    ("PUT /acct1/con2/blob", "x-ms-meta-a: b", 404, "ContainerNotFound"),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (line, header, status, code) in ROWS {
        let message = Message::new(line).header(header);
        cases.push(case(&format!("{line} with {header}"), message, *status, code));
    }
    for (line, header, status, code) in PUT_ROWS {
        let message =
            Message::new(line).header("x-ms-blob-type: BlockBlob").header(header).body("new");
        cases.push(case(&format!("{line} with type and {header}"), message, *status, code));
    }
    let id = format!("x-ms-client-request-id: {}", "i".repeat(1025));
    cases.push(case(
        "client request id of 1025 bytes",
        Message::new(GET).header(&id),
        400,
        "InvalidHeaderValue",
    ));
    let large = format!("x-ms-meta-a: {}", "v".repeat(8 * 1024));
    cases.push(case(
        "metadata above 8 KiB",
        Message::new(SET).header(&large),
        400,
        "MetadataTooLarge",
    ));
    let twice = Message::new(SET).header("x-ms-meta-a: 1").header("x-ms-meta-A: 2");
    cases.push(case("metadata name twice", twice, 400, "InvalidMetadata"));
    let twice = Message::new(GET).header("x-ms-lease-id: a").header("x-ms-lease-id: b");
    cases.push(case("lease id twice", twice, 400, "InvalidHeaderValue"));
    let both = Message::new(DELETE).header("if-match: *").header("if-none-match: \"0x1\"");
    cases.push(case("both tags on a write", both, 400, "MultipleConditionHeadersNotSupported"));
    let both = Message::new(DELETE)
        .header(&format!("if-modified-since: {DATE}"))
        .header(&format!("if-unmodified-since: {DATE}"));
    cases.push(case("both dates on a write", both, 400, "MultipleConditionHeadersNotSupported"));
    let flags = Message::new(GET)
        .header("x-ms-range: bytes=0-1")
        .header("x-ms-range-get-content-md5: true")
        .header("x-ms-range-get-content-crc64: true");
    cases.push(case("both range checksums", flags, 400, "BothCrc64AndMd5HeaderPresent"));
    let long = Message::new(GET)
        .header("x-ms-range: bytes=0-4194304")
        .header("x-ms-range-get-content-md5: true");
    cases.push(case("checksum of a range above 4 MiB", long, 400, "OutOfRangeInput"));
    cases
}
