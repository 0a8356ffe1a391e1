//! Query parameters: missing, malformed, repeated, out of range, not served.

use crate::bad_input::Case;
use crate::bad_input::case;
use crate::wire::Message;

const INVALID: &str = "InvalidQueryParameterValue";
const OUT_OF_RANGE: &str = "OutOfRangeQueryParameterValue";
const MISSING: &str = "MissingRequiredQueryParameter";
const UNSERVED: &str = "NotImplemented";

/// A query, and the code of its refusal.
type Row = (&'static str, &'static str);

const ACCOUNT: [Row; 19] = [
    ("", MISSING),
    ("comp=", MISSING),
    ("comp=nothing", INVALID),
    ("comp=list&comp=list", INVALID),
    ("comp=list&maxresults=0", OUT_OF_RANGE),
    ("comp=list&maxresults=-1", OUT_OF_RANGE),
    ("comp=list&maxresults=many", INVALID),
    ("comp=list&maxresults=1.0", INVALID),
    ("comp=list&include=all", INVALID),
    ("comp=list&include=metadata,all", INVALID),
    ("comp=list&prefix=%zz", INVALID),
    ("comp=list&prefix=%FF", INVALID),
    ("comp=list&timeout=soon", INVALID),
    ("comp=list&timeout=-1", INVALID),
    ("restype=account", MISSING),
    ("restype=account&comp=stats", INVALID),
    ("restype=other&comp=list", INVALID),
    ("restype=service&comp=stats", INVALID),
    ("comp=blobs&where=x", INVALID),
];

const CONTAINER: [Row; 13] = [
    ("restype=directory", INVALID),
    ("restype=container&restype=container", INVALID),
    ("restype=container&comp=nothing", INVALID),
    ("restype=container&comp=list&maxresults=0", OUT_OF_RANGE),
    ("restype=container&comp=list&maxresults=-5001", OUT_OF_RANGE),
    ("restype=container&comp=list&maxresults=0x10", INVALID),
    ("restype=container&comp=list&include=everything", INVALID),
    ("restype=container&comp=list&delimiter=%C3", INVALID),
    ("restype=container&comp=list&marker=%E2%28%A1", INVALID),
    ("restype=container&comp=list&prefix=a&prefix=b", INVALID),
    ("restype=container&comp=list&showonly=deleted", UNSERVED),
    ("resource=filesystem", UNSERVED),
    ("action=getAccessControl", "HierarchicalNamespaceNotEnabled"),
];

const BLOB: [Row; 8] = [
    ("comp=nothing", INVALID),
    ("comp=metadata&comp=tags", INVALID),
    ("restype=container", INVALID),
    ("timeout=1e3", INVALID),
    ("timeout=99999999999", INVALID),
    ("comp=blocklist&blocklisttype=none", INVALID),
    ("snapshot=", INVALID),
    ("versionid=yesterday", INVALID),
];

const BLOCK: [Row; 7] = [
    ("comp=block", MISSING),
    ("comp=block&blockid=", MISSING),
    ("comp=block&blockid=***", INVALID),
    ("comp=block&blockid=YWF", INVALID),
    ("comp=block&blockid=YW Fh", ""),
    ("comp=block&blockid=YWFh&blockid=YWFh", INVALID),
    ("comp=expiry", UNSERVED),
];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let tables: [(&str, &[Row]); 4] = [
        ("GET /acct1/", &ACCOUNT),
        ("GET /acct1/con1", &CONTAINER),
        ("GET /acct1/con1/blob", &BLOB),
        ("PUT /acct1/con1/staged", &BLOCK),
    ];
    for (line, table) in tables {
        for (query, code) in table {
            let line = format!("{line}?{query}");
            let status = if *code == UNSERVED { 501 } else { 400 };
            cases.push(case(&line, Message::new(&line).body(body_of(&line)), status, code));
        }
    }
    let long_id = format!("PUT /acct1/con1/staged?comp=block&blockid={}", "YWFh".repeat(22));
    cases.push(case(
        "block id of 66 bytes",
        Message::new(&long_id).body("x"),
        400,
        "InvalidBlockId",
    ));
    let other_len = "PUT /acct1/con1/staged?comp=block&blockid=YWFh";
    let other_len = Message::new(other_len).body("x");
    cases.push(case("block id of another length", other_len, 400, "InvalidBlobOrBlock"));
    cases
}

/// A body where one is expected.
fn body_of(line: &str) -> &'static str {
    if line.starts_with("PUT") { "x" } else { "" }
}
