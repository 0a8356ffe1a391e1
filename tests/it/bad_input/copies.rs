//! Sources of copies: the URL, its authorization, conditions, range and checksums; and what cannot
//! be taken.

use crate::bad_input::Case;
use crate::bad_input::case;
use crate::wire::Message;

const PUT: &str = "PUT /acct1/con1/copied";
const BLOCK: &str = "PUT /acct1/con1/copied?comp=block&blockid=YWFh";
const APPEND: &str = "PUT /acct1/con1/copied?comp=appendblock";
const PAGE: &str = "PUT /acct1/con1/copied?comp=page";
const UPDATE: &str = "x-ms-page-write: update";
const SOURCE: &str = "x-ms-copy-source: http://127.0.0.1:1/acct1/con1/blob";
const KIND: &str = "x-ms-blob-type: BlockBlob";

/// Sources that are no URLs to copy from; for every operation that takes one.
const URLS: &[&str] = &[
    "x-ms-copy-source: blob",
    "x-ms-copy-source: /acct1/con1/blob",
    "x-ms-copy-source: ftp://127.0.0.1/acct1/con1/blob",
    "x-ms-copy-source: file:///etc/passwd",
    "x-ms-copy-source: http://",
    "x-ms-copy-source: http:///acct1/con1/blob",
    "x-ms-copy-source: http://user:word@127.0.0.1/acct1/con1/blob",
    "x-ms-copy-source: http://127.0.0.1:99999/acct1/con1/blob",
    "x-ms-copy-source: http://[::1/acct1/con1/blob",
];

/// Headers beside a good source: header, status, code.
const BESIDE: &[(&str, u16, &str)] = &[
    ("x-ms-copy-source-authorization: Basic YTpi", 400, "InvalidHeaderValue"),
    ("x-ms-copy-source-authorization: Bearer", 400, "InvalidHeaderValue"),
    ("x-ms-source-content-md5: YWFh", 400, "InvalidMd5"),
    ("x-ms-source-content-md5: ***", 400, "InvalidMd5"),
    ("x-ms-source-content-crc64: YWFh", 400, "InvalidHeaderValue"),
    ("x-ms-source-if-modified-since: yesterday", 400, "InvalidHeaderValue"),
    ("x-ms-source-if-unmodified-since: 2026-11-21", 400, "InvalidHeaderValue"),
    ("x-ms-source-if-none-match: *", 400, "UnsatisfiableCondition"),
    ("x-ms-source-if-tags: a b", 400, "InvalidHeaderValue"),
    ("x-ms-source-lease-id: mine", 400, "InvalidHeaderValue"),
];

/// Headers of whole copies: header, status, code.
const WHOLE: &[(&str, u16, &str)] = &[
    ("x-ms-copy-source-tag-option: MERGE", 400, "InvalidHeaderValue"),
    ("x-ms-source-range: bytes=0-1", 400, "UnsupportedHeader"),
    ("x-ms-tags: a", 400, "InvalidHeaderValue"),
    ("x-ms-encryption-scope: a b", 400, "InvalidHeaderValue"),
];

/// Headers of keys: header, and the code of those that take keys. Copy Blob takes none.
const KEYS: &[(&str, &str)] = &[
    ("x-ms-encryption-key: a2V5", "InvalidHeaderValue"),
    ("x-ms-encryption-algorithm: AES256", "MissingRequiredHeader"),
    ("x-ms-source-encryption-key: a2V5", "InvalidHeaderValue"),
    ("x-ms-source-encryption-key-sha256: a2V5", "MissingRequiredHeader"),
];

/// Headers of pages from a source: those beside it, status, code.
const PAGES: &[(&[&str], u16, &str)] = &[
    (&[], 400, "MissingRequiredHeader"),
    (&["x-ms-page-write: clear", "x-ms-range: bytes=0-511"], 400, "InvalidHeaderValue"),
    (&["x-ms-page-write: some", "x-ms-range: bytes=0-511"], 400, "InvalidHeaderValue"),
    (&[UPDATE], 400, "MissingRequiredHeader"),
    (&[UPDATE, "x-ms-range: bytes=0-511"], 400, "MissingRequiredHeader"),
    (&[UPDATE, "x-ms-range: bytes=1-512"], 416, "InvalidPageRange"),
    (&[UPDATE, "x-ms-range: bytes=0-4194815"], 413, "RequestBodyTooLarge"),
    (
        &[UPDATE, "x-ms-range: bytes=0-511", "x-ms-source-range: bytes=0-510"],
        400,
        "InvalidHeaderValue",
    ),
    (
        &[UPDATE, "x-ms-range: bytes=0-511", "x-ms-source-range: bytes=0-"],
        400,
        "InvalidHeaderValue",
    ),
    (
        &[
            UPDATE,
            "x-ms-range: bytes=0-511",
            "x-ms-source-range: bytes=0-511",
            "x-ms-if-sequence-number-le: x",
        ],
        400,
        "InvalidHeaderValue",
    ),
];

fn message(line: &str, headers: &[&str]) -> Message {
    headers.iter().fold(Message::new(line), |message, header| message.header(header))
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |line: &str, headers: &[&str], status: u16, code: &'static str| {
        cases.push(case(&format!("{line} {headers:?}"), message(line, headers), status, code));
    };
    // What cannot stand in XML is left out of the message.
    add("PUT /acct1/con1/copied?comp=%01%02", &[SOURCE], 501, "NotImplemented");
    for url in URLS {
        add(PUT, &[url], 400, "InvalidHeaderValue");
        add(PUT, &[KIND, url], 400, "InvalidHeaderValue");
        add(BLOCK, &[url], 400, "InvalidHeaderValue");
        add(APPEND, &[url], 400, "InvalidHeaderValue");
        add(PAGE, &[UPDATE, "x-ms-range: bytes=0-511", url], 400, "InvalidHeaderValue");
    }
    for (header, status, code) in BESIDE {
        add(PUT, &[SOURCE, header], *status, code);
        add(BLOCK, &[SOURCE, header], *status, code);
        add(APPEND, &[SOURCE, header], *status, code);
        let page = [UPDATE, "x-ms-range: bytes=0-511", "x-ms-source-range: bytes=0-511"];
        add(PAGE, &[page.as_slice(), &[SOURCE, header]].concat(), *status, code);
    }
    for (header, status, code) in WHOLE {
        add(PUT, &[SOURCE, header], *status, code);
        add(PUT, &[SOURCE, KIND, header], *status, code);
    }
    for (header, code) in KEYS {
        add(PUT, &[SOURCE, header], 400, "UnsupportedHeader");
        add(PUT, &[SOURCE, KIND, header], 400, code);
        add(BLOCK, &[SOURCE, header], 400, code);
        add(APPEND, &[SOURCE, header], 400, code);
        let page = [UPDATE, "x-ms-range: bytes=0-511", "x-ms-source-range: bytes=0-511"];
        add(PAGE, &[page.as_slice(), &[SOURCE, header]].concat(), 400, code);
    }
    add(BLOCK, &["x-ms-source-encryption-key: a2V5"], 400, "UnsupportedHeader");
    add(BLOCK, &[SOURCE, "x-ms-source-range: bytes=9-1"], 400, "InvalidHeaderValue");
    add(BLOCK, &[SOURCE, "x-ms-source-range: chars=0-1"], 400, "InvalidHeaderValue");
    add(PUT, &[SOURCE, "x-ms-requires-sync: maybe"], 400, "InvalidHeaderValue");
    add(PUT, &[SOURCE, "x-ms-blob-type: PageBlob"], 400, "InvalidHeaderValue");
    let seal = "x-ms-seal-blob: true";
    add(PUT, &[SOURCE, "x-ms-seal-blob: maybe"], 400, "InvalidHeaderValue");
    add(PUT, &[SOURCE, "x-ms-requires-sync: true", seal], 400, "UnsupportedHeader");
    add(PUT, &[SOURCE, KIND, seal], 400, "UnsupportedHeader");
    add(BLOCK, &[SOURCE, seal], 400, "UnsupportedHeader");
    add("PUT /acct1/con1/copied?comp=metadata", &[seal], 400, "UnsupportedHeader");
    let properties = "x-ms-copy-source-blob-properties: some";
    add(PUT, &[SOURCE, KIND, properties], 400, "InvalidHeaderValue");
    for (headers, status, code) in PAGES {
        add(PAGE, &[headers, &[SOURCE][..]].concat(), *status, code);
    }
    let list = "PUT /acct1/con1/copied?comp=blocklist";
    add(list, &[SOURCE], 501, "NotImplemented");
    let abort = "PUT /acct1/con1/blob?comp=copy";
    let id = "copyid=5f6b2f9a-7c1d-4f6e-8a90-0123456789ab";
    let action = "x-ms-copy-action: abort";
    add(&format!("{abort}&{id}"), &[], 400, "MissingRequiredHeader");
    add(&format!("{abort}&{id}"), &["x-ms-copy-action: go"], 400, "InvalidHeaderValue");
    add(abort, &[action], 400, "MissingRequiredQueryParameter");
    add(&format!("{abort}&copyid=x"), &[action], 400, "InvalidQueryParameterValue");
    add(&format!("{abort}&{id}"), &[action], 409, "NoPendingCopyOperation");
    let none = format!("PUT /acct1/con1/none?comp=copy&{id}");
    add(&none, &[action], 404, "BlobNotFound");
    cases
}
