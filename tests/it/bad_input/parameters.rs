//! Query parameters: missing, malformed, repeated, out of range, not served.

use crate::bad_input::Case;
use crate::bad_input::case;
use crate::wire::Message;

pub(super) fn cases() -> Vec<Case> {
    let (invalid, out) = ("InvalidQueryParameterValue", "OutOfRangeQueryParameterValue");
    let (missing, unserved) = ("MissingRequiredQueryParameter", "NotImplemented");
    let account = [
        ("", missing),
        ("comp=", missing),
        ("comp=nothing", invalid),
        ("comp=list&comp=list", invalid),
        ("comp=list&maxresults=0", out),
        ("comp=list&maxresults=-1", out),
        ("comp=list&maxresults=many", invalid),
        ("comp=list&maxresults=1.0", invalid),
        ("comp=list&include=all", invalid),
        ("comp=list&include=metadata,all", invalid),
        ("comp=list&prefix=%zz", invalid),
        ("comp=list&prefix=%FF", invalid),
        ("comp=list&timeout=soon", invalid),
        ("comp=list&timeout=-1", invalid),
        ("restype=account", missing),
        ("restype=account&comp=stats", invalid),
        ("restype=other&comp=list", invalid),
        ("restype=service&comp=stats", invalid),
        ("comp=blobs&where=x", invalid),
    ];
    let container = [
        ("restype=directory", invalid),
        ("restype=container&restype=container", invalid),
        ("restype=container&comp=nothing", invalid),
        ("restype=container&comp=list&maxresults=0", out),
        ("restype=container&comp=list&maxresults=-5001", out),
        ("restype=container&comp=list&maxresults=0x10", invalid),
        ("restype=container&comp=list&include=everything", invalid),
        ("restype=container&comp=list&delimiter=%C3", invalid),
        ("restype=container&comp=list&marker=%E2%28%A1", invalid),
        ("restype=container&comp=list&prefix=a&prefix=b", invalid),
        ("restype=container&comp=list&showonly=deleted", unserved),
        ("resource=filesystem", unserved),
        ("action=getAccessControl", "HierarchicalNamespaceNotEnabled"),
    ];
    let blob = [
        ("comp=nothing", invalid),
        ("comp=metadata&comp=tags", invalid),
        ("restype=container", invalid),
        ("timeout=1e3", invalid),
        ("timeout=99999999999", invalid),
        ("comp=blocklist&blocklisttype=none", invalid),
        ("snapshot=", invalid),
        ("versionid=2026-11-21T00:00:00.0000000Z", unserved),
    ];
    let block = [
        ("comp=block", missing),
        ("comp=block&blockid=", missing),
        ("comp=block&blockid=***", invalid),
        ("comp=block&blockid=YWF", invalid),
        ("comp=block&blockid=YW Fh", ""),
        ("comp=block&blockid=YWFh&blockid=YWFh", invalid),
        ("comp=immutabilityPolicies", unserved),
    ];
    let mut cases = Vec::new();
    let tables: [(&str, &[(&str, &'static str)]); 4] = [
        ("GET /acct1/", &account),
        ("GET /acct1/con1", &container),
        ("GET /acct1/con1/blob", &blob),
        ("PUT /acct1/con1/staged", &block),
    ];
    for (line, table) in tables {
        for (query, code) in table {
            let line = format!("{line}?{query}");
            let status = if *code == unserved { 501 } else { 400 };
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
