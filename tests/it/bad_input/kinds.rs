//! Append and page blobs: positions, ranges, lengths, sequence numbers, and operations of another
//! kind.

use crate::bad_input::Case;
use crate::bad_input::case;
use crate::wire::Length;
use crate::wire::Message;

const APPEND: &str = "PUT /acct1/con1/log?comp=appendblock";
const SEAL: &str = "PUT /acct1/con1/log?comp=seal";
const PAGE: &str = "PUT /acct1/con1/disk?comp=page";
const SET: &str = "PUT /acct1/con1/disk?comp=properties";
const NEW: &str = "PUT /acct1/con1/new";
const UPDATE: &str = "x-ms-page-write: update";
const CLEAR: &str = "x-ms-page-write: clear";
const MAKE_PAGES: &str = "x-ms-blob-type: PageBlob";
const OLD: &str = "if-unmodified-since: Mon, 01 Jan 1990 00:00:00 GMT";

/// What the cases need: an append blob of 5 bytes, a sealed one, a page blob of 4 pages with number
/// 7.
pub(super) fn make() -> Vec<Message> {
    let new = |name: &str, kind: &str| {
        Message::new(&format!("PUT /acct1/con1/{name}")).header(&format!("x-ms-blob-type: {kind}"))
    };
    vec![
        new("log", "AppendBlob"),
        Message::new(APPEND).body("12345"),
        new("sealed", "AppendBlob"),
        Message::new("PUT /acct1/con1/sealed?comp=seal"),
        new("disk", "PageBlob")
            .header("x-ms-blob-content-length: 2048")
            .header("x-ms-blob-sequence-number: 7"),
    ]
}

/// A request line, headers, body bytes, status and code.
type Row = (&'static str, &'static [&'static str], usize, u16, &'static str);

const APPENDS: &[Row] = &[
    (APPEND, &["x-ms-blob-condition-appendpos: 4"], 1, 412, "AppendPositionConditionNotMet"),
    (APPEND, &["x-ms-blob-condition-appendpos: 6"], 1, 412, "AppendPositionConditionNotMet"),
    (APPEND, &["x-ms-blob-condition-appendpos: end"], 1, 400, "InvalidHeaderValue"),
    (APPEND, &["x-ms-blob-condition-appendpos: -1"], 1, 400, "InvalidHeaderValue"),
    (
        APPEND,
        &["x-ms-blob-condition-appendpos: 99999999999999999999"],
        1,
        400,
        "InvalidHeaderValue",
    ),
    (APPEND, &["x-ms-blob-condition-maxsize: 5"], 1, 412, "MaxBlobSizeConditionNotMet"),
    (APPEND, &["x-ms-blob-condition-maxsize: 4"], 1, 412, "MaxBlobSizeConditionNotMet"),
    (APPEND, &["x-ms-blob-condition-maxsize: +9"], 1, 400, "InvalidHeaderValue"),
    (APPEND, &["if-match: \"0x1\""], 1, 412, "ConditionNotMet"),
    (APPEND, &[OLD], 1, 412, "ConditionNotMet"),
    (APPEND, &["if-none-match: *"], 1, 412, "ConditionNotMet"),
    (APPEND, &["content-md5: YWFh"], 1, 400, "InvalidMd5"),
    (APPEND, &["content-md5: AAAAAAAAAAAAAAAAAAAAAA=="], 1, 400, "Md5Mismatch"),
    (APPEND, &["x-ms-content-crc64: AAAAAAAAAAE="], 1, 400, "Crc64Mismatch"),
    (APPEND, &[], 0, 400, "InvalidHeaderValue"),
    (
        APPEND,
        &["x-ms-version: 2022-11-01", "content-length: 4194305"],
        0,
        413,
        "RequestBodyTooLarge",
    ),
    (
        APPEND,
        &["x-ms-version: 2022-11-02", "content-length: 104857601"],
        0,
        413,
        "RequestBodyTooLarge",
    ),
    ("PUT /acct1/con1/sealed?comp=appendblock", &[], 1, 409, "BlobIsSealed"),
    ("PUT /acct1/con1/blob?comp=appendblock", &[], 1, 409, "InvalidBlobType"),
    ("PUT /acct1/con1/disk?comp=appendblock", &[], 1, 409, "InvalidBlobType"),
    ("PUT /acct1/con1/none?comp=appendblock", &[], 1, 404, "BlobNotFound"),
    ("PUT /acct1/con1/staged?comp=appendblock", &[], 1, 404, "BlobNotFound"),
    ("PUT /acct1/con2/log?comp=appendblock", &[], 1, 404, "ContainerNotFound"),
    ("GET /acct1/con1/log?comp=appendblock", &[], 0, 405, "UnsupportedHttpVerb"),
    (SEAL, &["x-ms-blob-condition-appendpos: 4"], 0, 412, "AppendPositionConditionNotMet"),
    (SEAL, &["x-ms-blob-condition-appendpos: x"], 0, 400, "InvalidHeaderValue"),
    (SEAL, &["if-match: \"0x1\""], 0, 412, "ConditionNotMet"),
    ("PUT /acct1/con1/blob?comp=seal", &[], 0, 409, "InvalidBlobType"),
    ("PUT /acct1/con1/none?comp=seal", &[], 0, 404, "BlobNotFound"),
    ("DELETE /acct1/con1/log?comp=seal", &[], 0, 405, "UnsupportedHttpVerb"),
    (NEW, &["x-ms-blob-type: AppendBlob"], 3, 400, "InvalidHeaderValue"),
    (
        "PUT /acct1/con1/log",
        &["x-ms-blob-type: AppendBlob", "if-none-match: *"],
        0,
        409,
        "BlobAlreadyExists",
    ),
    ("PUT /acct1/con1/log?comp=block&blockid=YQ==", &[], 1, 409, "InvalidBlobType"),
    ("GET /acct1/con1/log?comp=blocklist", &[], 0, 409, "InvalidBlobType"),
    ("GET /acct1/con1/log", &["x-ms-range: bytes=5-"], 0, 416, "InvalidRange"),
];

const PAGES: &[Row] = &[
    (PAGE, &["x-ms-range: bytes=0-511"], 512, 400, "MissingRequiredHeader"),
    (PAGE, &["x-ms-page-write: write", "x-ms-range: bytes=0-511"], 512, 400, "InvalidHeaderValue"),
    (PAGE, &[UPDATE], 512, 400, "MissingRequiredHeader"),
    (PAGE, &[UPDATE, "x-ms-range: bytes=0-"], 512, 416, "InvalidPageRange"),
    (PAGE, &[UPDATE, "x-ms-range: bytes=1-512"], 512, 416, "InvalidPageRange"),
    (PAGE, &[UPDATE, "x-ms-range: bytes=0-510"], 511, 416, "InvalidPageRange"),
    (PAGE, &[UPDATE, "x-ms-range: bytes=0-512"], 513, 416, "InvalidPageRange"),
    (PAGE, &[UPDATE, "range: bytes=0-510"], 511, 416, "InvalidPageRange"),
    (PAGE, &[UPDATE, "x-ms-range: bytes=511-0"], 512, 400, "InvalidHeaderValue"),
    (PAGE, &[UPDATE, "x-ms-range: pages=0-1"], 512, 400, "InvalidHeaderValue"),
    (PAGE, &[UPDATE, "x-ms-range: bytes=0-1023"], 512, 416, "InvalidPageRange"),
    (PAGE, &[UPDATE, "x-ms-range: bytes=0-511"], 1024, 416, "InvalidPageRange"),
    (PAGE, &[UPDATE, "x-ms-range: bytes=0-511"], 0, 416, "InvalidPageRange"),
    (PAGE, &[UPDATE, "x-ms-range: bytes=2048-2559"], 512, 416, "InvalidPageRange"),
    (PAGE, &[UPDATE, "x-ms-range: bytes=1536-2559"], 1024, 416, "InvalidPageRange"),
    (
        PAGE,
        &[UPDATE, "x-ms-range: bytes=0-4194815", "content-length: 4194816"],
        0,
        413,
        "RequestBodyTooLarge",
    ),
    (
        PAGE,
        &[UPDATE, "x-ms-range: bytes=8796093022208-8796093022719"],
        512,
        416,
        "InvalidPageRange",
    ),
    (PAGE, &[CLEAR, "x-ms-range: bytes=0-511"], 512, 400, "InvalidHeaderValue"),
    (PAGE, &[CLEAR, "x-ms-range: bytes=0-2559"], 0, 416, "InvalidPageRange"),
    (PAGE, &[CLEAR, "x-ms-range: bytes=100-611"], 0, 416, "InvalidPageRange"),
    (PAGE, &[CLEAR], 0, 400, "MissingRequiredHeader"),
    (
        PAGE,
        &[CLEAR, "x-ms-range: bytes=0-511", "x-ms-if-sequence-number-lt: 7"],
        0,
        412,
        "SequenceNumberConditionNotMet",
    ),
    (
        PAGE,
        &[CLEAR, "x-ms-range: bytes=0-511", "x-ms-if-sequence-number-le: 6"],
        0,
        412,
        "SequenceNumberConditionNotMet",
    ),
    (
        PAGE,
        &[CLEAR, "x-ms-range: bytes=0-511", "x-ms-if-sequence-number-eq: 8"],
        0,
        412,
        "SequenceNumberConditionNotMet",
    ),
    (
        PAGE,
        &[CLEAR, "x-ms-range: bytes=0-511", "x-ms-if-sequence-number-eq: seven"],
        0,
        400,
        "InvalidHeaderValue",
    ),
    (PAGE, &[CLEAR, "x-ms-range: bytes=0-511", "if-match: \"0x1\""], 0, 412, "ConditionNotMet"),
    (
        PAGE,
        &[UPDATE, "x-ms-range: bytes=0-511", "content-md5: AAAAAAAAAAAAAAAAAAAAAA=="],
        512,
        400,
        "Md5Mismatch",
    ),
    (
        PAGE,
        &[UPDATE, "x-ms-range: bytes=0-511", "x-ms-content-crc64: AAAAAAAAAAE="],
        512,
        400,
        "Crc64Mismatch",
    ),
    (
        "PUT /acct1/con1/blob?comp=page",
        &[UPDATE, "x-ms-range: bytes=0-511"],
        512,
        409,
        "InvalidBlobType",
    ),
    (
        "PUT /acct1/con1/log?comp=page",
        &[CLEAR, "x-ms-range: bytes=0-511"],
        0,
        409,
        "InvalidBlobType",
    ),
    ("PUT /acct1/con1/none?comp=page", &[CLEAR, "x-ms-range: bytes=0-511"], 0, 404, "BlobNotFound"),
    ("DELETE /acct1/con1/disk?comp=page", &[], 0, 405, "UnsupportedHttpVerb"),
    ("PUT /acct1/con1/disk?comp=pagelist", &[], 0, 405, "UnsupportedHttpVerb"),
    ("GET /acct1/con1/blob?comp=pagelist", &[], 0, 409, "InvalidBlobType"),
    ("GET /acct1/con1/disk?comp=pagelist&prevsnapshot=", &[], 0, 400, "InvalidQueryParameterValue"),
    (
        "GET /acct1/con1/disk?comp=pagelist&prevsnapshot=yesterday",
        &[],
        0,
        400,
        "InvalidQueryParameterValue",
    ),
    (
        "GET /acct1/con1/disk?comp=pagelist&prevsnapshot=2026-11-21T02:13:18.1310000Z",
        &[],
        0,
        409,
        "PreviousSnapshotNotFound",
    ),
    (
        "GET /acct1/con1/disk?comp=pagelist&snapshot=2026-11-21T02:13:18.1310000Z",
        &[],
        0,
        404,
        "BlobNotFound",
    ),
    (
        "GET /acct1/con1/disk?comp=pagelist",
        &["x-ms-previous-snapshot-url: http://127.0.0.1/acct1/con1/disk?snapshot=x"],
        0,
        409,
        "PreviousSnapshotOperationNotSupported",
    ),
    ("GET /acct1/con1/none?comp=pagelist", &[], 0, 404, "BlobNotFound"),
    (
        "GET /acct1/con1/disk?comp=pagelist",
        &["x-ms-range: bytes=2048-4095"],
        0,
        416,
        "InvalidRange",
    ),
    (
        "GET /acct1/con1/disk?comp=pagelist&maxresults=0",
        &[],
        0,
        400,
        "OutOfRangeQueryParameterValue",
    ),
    (
        "GET /acct1/con1/disk?comp=pagelist&maxresults=few",
        &[],
        0,
        400,
        "OutOfRangeQueryParameterValue",
    ),
    ("GET /acct1/con1/disk?comp=pagelist&marker=there", &[], 0, 400, "InvalidQueryParameterValue"),
    ("PUT /acct1/con1/disk?comp=block&blockid=YQ==", &[], 1, 409, "InvalidBlobType"),
    (NEW, &[MAKE_PAGES, "x-ms-blob-content-length: 513"], 0, 400, "InvalidHeaderValue"),
    (NEW, &[MAKE_PAGES, "x-ms-blob-content-length: 8796093022720"], 0, 400, "InvalidHeaderValue"),
    (NEW, &[MAKE_PAGES, "x-ms-blob-content-length: big"], 0, 400, "InvalidHeaderValue"),
    (NEW, &[MAKE_PAGES, "x-ms-blob-content-length: 512"], 512, 400, "InvalidHeaderValue"),
    (
        NEW,
        &[MAKE_PAGES, "x-ms-blob-content-length: 512", "x-ms-blob-sequence-number: -1"],
        0,
        400,
        "InvalidHeaderValue",
    ),
    (
        NEW,
        &[
            MAKE_PAGES,
            "x-ms-blob-content-length: 512",
            "x-ms-blob-sequence-number: 9223372036854775808",
        ],
        0,
        400,
        "InvalidHeaderValue",
    ),
    (SET, &["x-ms-blob-content-length: 1000"], 0, 400, "InvalidHeaderValue"),
    (SET, &["x-ms-blob-content-length: 8796093022720"], 0, 400, "InvalidHeaderValue"),
    (SET, &["x-ms-sequence-number-action: max"], 0, 400, "MissingRequiredHeader"),
    (SET, &["x-ms-sequence-number-action: lower"], 0, 400, "InvalidHeaderValue"),
    (SET, &["x-ms-blob-sequence-number: 9"], 0, 400, "MissingRequiredHeader"),
    (
        SET,
        &["x-ms-sequence-number-action: increment", "x-ms-blob-sequence-number: 9"],
        0,
        400,
        "InvalidHeaderValue",
    ),
    (
        "PUT /acct1/con1/log?comp=properties",
        &["x-ms-blob-content-length: 512"],
        0,
        409,
        "InvalidBlobType",
    ),
    (
        "PUT /acct1/con1/blob?comp=properties",
        &["x-ms-sequence-number-action: increment"],
        0,
        409,
        "InvalidBlobType",
    ),
];

pub(super) fn cases() -> Vec<Case> {
    let made = |(line, headers, body, status, code): &Row| {
        let mut message = Message::new(line);
        for header in *headers {
            match header.strip_prefix("content-length: ") {
                Some(length) => message.length = Length::Text(length.to_owned()),
                None => message = message.header(header),
            }
        }
        let name = format!("{line} with {headers:?} and {body} bytes");
        case(&name, message.body(vec![b'x'; *body]), *status, code)
    };
    APPENDS.iter().chain(PAGES).map(made).collect()
}
