//! Requests that do not say which host they are for.

use crate::bad_input::Case;
use crate::bad_input::Input;

fn host(name: &str, lines: &[&str], code: &'static str) -> Case {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let bytes = format!("GET /acct1/con1/blob HTTP/1.1\r\n{lines}\r\n").into_bytes();
    Case { name: format!("host {name}"), input: Input::Raw(bytes), status: 400, code }
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = vec![
        host("missing", &[], "MissingRequiredHeader"),
        host("twice the same", &["host: h", "host: h"], "InvalidHeaderValue"),
        host("twice", &["host: h", "Host: other"], "InvalidHeaderValue"),
    ];
    for value in [
        "", ":80", "h:", "h:port", "h:65536", "h:1:2", "a b", "a/b", "u@h", "h,h", "[::1", "::1",
        "h?q",
    ] {
        cases.push(host(&format!("{value:?}"), &[&format!("host: {value}")], "InvalidHeaderValue"));
    }
    let old = b"GET /acct1/con1/blob HTTP/1.0\r\n\r\n".to_vec();
    let name = "host missing in HTTP/1.0".to_owned();
    cases.push(Case { name, input: Input::Raw(old), status: 400, code: "MissingRequiredHeader" });
    cases
}
