//! URLs: every awkward byte, names that break the rules, verbs that do not exist.

use crate::bad_input::Case;
use crate::bad_input::case;
use crate::bad_input::raw;
use crate::wire::Message;

fn get(target: &str, status: u16, code: &'static str) -> Case {
    case(
        &format!("GET {target:.60} ({})", target.len()),
        Message::new(&format!("GET {target}")),
        status,
        code,
    )
}

fn verb(line: &str, status: u16, code: &'static str) -> Case {
    case(line, Message::new(line), status, code)
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![
        get("/", 400, "InvalidUri"),
        get("//con1/blob", 400, "InvalidUri"),
        get("/ab/con1/blob", 400, "InvalidUri"),
        get("/Acct1/con1/blob", 400, "InvalidUri"),
        get("/acct1.x/con1/blob", 400, "InvalidUri"),
        get(&format!("/{}/con1/blob", "a".repeat(25)), 400, "InvalidUri"),
        get("/acct1//blob", 400, "InvalidUri"),
        get("/acct1/CON1/blob", 400, "InvalidResourceName"),
        get("/acct1/c--1/blob", 400, "InvalidResourceName"),
        get("/acct1/-con1/blob", 400, "InvalidResourceName"),
        get("/acct1/con1-/blob", 400, "InvalidResourceName"),
        get("/acct1/c_1/blob", 400, "InvalidResourceName"),
        get("/acct1/c.1/blob", 400, "InvalidResourceName"),
        get("/acct1/$other/blob", 400, "InvalidResourceName"),
        get("/acct1/con%201/blob", 400, "InvalidResourceName"),
        get("/acct1/con1%2Fblob/x", 400, "InvalidResourceName"),
        get("/acct1/con%C3%A9/blob", 400, "InvalidResourceName"),
        get("/acct1/co/blob", 400, "OutOfRangeInput"),
        get(&format!("/acct1/{}/blob", "c".repeat(64)), 400, "OutOfRangeInput"),
        get(&format!("/acct1/con1/{}", "b".repeat(1025)), 400, "OutOfRangeInput"),
        get(&format!("/acct1/con1/{}", "%C3%A9".repeat(1025)), 400, "OutOfRangeInput"),
        get("/acct1/con1/a%00b", 400, "InvalidResourceName"),
        get("/acct1/con1/%", 400, "InvalidUri"),
        get("/acct1/con1/%4", 400, "InvalidUri"),
        get("/acct1/con1/%zz", 400, "InvalidUri"),
        get("/acct1/con1/%u0041", 400, "InvalidUri"),
        get("/acct1/con1/%C3", 400, "InvalidUri"),
        get("/acct1/con1/%C3%28", 400, "InvalidUri"),
        get("/acct1/con1/%ED%A0%80", 400, "InvalidUri"),
        get("/acct1/con1/%F4%90%80%80", 400, "InvalidUri"),
        get("/acct1/con1/%C0%AF", 400, "InvalidUri"),
        get("/acct1/con1/..", 404, "BlobNotFound"),
        get("/acct1/con1/..%2F..%2Fetc%2Fpasswd", 404, "BlobNotFound"),
        get("/acct1/con1/blob/", 404, "BlobNotFound"),
        get("/acct1/con1//blob", 404, "BlobNotFound"),
        get("/acct1/con1/blob%20", 404, "BlobNotFound"),
        get("/acct1/con1/blob.", 404, "BlobNotFound"),
        get("/acct1/con1/BLOB", 404, "BlobNotFound"),
        get("/acct1/con1/%2562lob", 404, "BlobNotFound"),
        get("/acct1/con1/staged", 404, "BlobNotFound"),
        get("/acct1/con2/blob", 404, "ContainerNotFound"),
        get("/acct1/blob", 404, "ContainerNotFound"),
        verb("BREW /acct1/con1/blob", 400, "InvalidHttpVerb"),
        verb("get /acct1/con1/blob", 400, "InvalidHttpVerb"),
        verb("TRACE /acct1/con1/blob", 405, "UnsupportedHttpVerb"),
        verb("POST /acct1/con1/blob", 405, "UnsupportedHttpVerb"),
        verb("DELETE /acct1/con1/blob?comp=block", 405, "UnsupportedHttpVerb"),
        verb("PUT /acct1/?comp=list", 405, "UnsupportedHttpVerb"),
        verb("PATCH /acct1/con1/blob", 501, "NotImplemented"),
        verb("OPTIONS /acct1/con1/blob", 400, "InvalidHeaderValue"),
        verb("HEAD /acct1/con1/missing", 404, "BlobNotFound"),
        verb("HEAD /acct1/con2?restype=container", 404, "ContainerNotFound"),
    ];
    // Bytes that may not stand in a URL as they are: refused before there is a request.
    for byte in (0..=0x20u8).chain([b'<', b'>', 0x7f, 0xff]) {
        if matches!(byte, b'\n' | b'\r') {
            continue;
        }
        let mut bytes = b"GET /acct1/con1/a".to_vec();
        bytes.push(byte);
        bytes.extend_from_slice(b"b HTTP/1.1\r\nhost: h\r\n\r\n");
        let status = if matches!(byte, b'<' | b'>' | 0x7f) { continue } else { 400 };
        cases.push(raw(&format!("byte {byte:#04x} in a URL"), bytes, status));
    }
    cases
}
