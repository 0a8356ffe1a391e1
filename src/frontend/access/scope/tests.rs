use http::Request;

use super::*;
use crate::protocol::azure;
use crate::protocol::azure::Addressing;
use crate::protocol::azure::Context;

const KEY: &[&str] = &[
    "x-ms-encryption-key: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    "x-ms-encryption-key-sha256: Yw3NKWbEM2aRElRIu7JbT/QSpJxzLbLIq8G4WBvXEN0=",
    "x-ms-encryption-algorithm: AES256",
];

/// The operation of `METHOD URL` with `Name: value` lines.
fn operation(line: &str, headers: &[&str]) -> Operation {
    let (method, url) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(url);
    for header in ["x-ms-version: 2024-11-04"].iter().chain(headers) {
        let (name, value) = header.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    let head = request.body(()).unwrap().into_parts().0;
    let addressing = Addressing::default();
    let address = azure::address(&head.method, &head.uri, Some("127.0.0.1:1"), &addressing);
    let context = Context::from_head(&head).unwrap();
    *azure::parse(&head, &address.unwrap(), &context).unwrap().into_parts().0
}

/// What is written with it under the scope `ours` in the signature.
fn applied(line: &str, headers: &[&str]) -> Result<Option<RequestEncryption>, Refusal> {
    let mut operation = operation(line, headers);
    apply(&mut operation, "ours")?;
    Ok(of_write(&mut operation).map(|precondition| precondition.encryption.clone()))
}

const FROM: &str = "x-ms-copy-source: http://127.0.0.1:1/acct/con/s";
const EMPTY: &str = "content-length: 0";
const PAGE: &str = "x-ms-range: bytes=0-511";

/// Requests that write, each with the headers it needs.
const WRITES: &[(&str, &[&str])] = &[
    ("PUT /acct/con/b", &["x-ms-blob-type: BlockBlob", "content-length: 1"]),
    ("PUT /acct/con/b", &["x-ms-blob-type: AppendBlob", "content-length: 0"]),
    ("PUT /acct/con/b?comp=block&blockid=MQ==", &["content-length: 1"]),
    ("PUT /acct/con/b?comp=blocklist", &["content-length: 0"]),
    ("PUT /acct/con/b?comp=metadata", &[]),
    ("PUT /acct/con/b?comp=properties", &["x-ms-blob-content-length: 512"]),
    ("PUT /acct/con/b?comp=snapshot", &[]),
    ("PUT /acct/con/b", &["x-ms-blob-type: PageBlob", "x-ms-blob-content-length: 512", EMPTY]),
    ("PUT /acct/con/b?comp=appendblock", &["content-length: 1"]),
    ("PUT /acct/con/b?comp=page", &["x-ms-page-write: update", PAGE, "content-length: 512"]),
    ("PUT /acct/con/b?comp=page", &["x-ms-page-write: clear", PAGE, EMPTY]),
    ("PUT /acct/con/b", &[FROM, "x-ms-requires-sync: true"]),
    ("PUT /acct/con/b", &["x-ms-blob-type: BlockBlob", EMPTY, FROM]),
    ("PUT /acct/con/b", &[FROM]),
    ("PUT /acct/con/b?comp=block&blockid=MQ==", &[EMPTY, FROM]),
    ("PUT /acct/con/b?comp=appendblock", &[EMPTY, FROM]),
    (
        "PUT /acct/con/b?comp=page",
        &["x-ms-page-write: update", PAGE, EMPTY, FROM, "x-ms-source-range: bytes=0-511"],
    ),
];

#[test]
fn what_is_written_is_under_the_scope_of_the_signature() {
    for (line, headers) in WRITES {
        let scope = RequestEncryption::Scope("ours".to_owned());
        assert_eq!(applied(line, headers).unwrap(), Some(scope.clone()), "{line}");
        let named = [*headers, &["x-ms-encryption-scope: ours"]].concat();
        assert_eq!(applied(line, &named).unwrap(), Some(scope), "{line}");
    }
}

#[test]
fn request_that_names_another_scope_or_a_key_is_refused() {
    for (line, headers) in WRITES {
        let other = [*headers, &["x-ms-encryption-scope: theirs"]].concat();
        let refused = applied(line, &other).unwrap_err();
        assert_eq!(refused.reason, Reason::InvalidHeaderValue, "{line}");
        assert_eq!(refused.hint, Some(Hint::OtherScope), "{line}");
    }
    let (line, headers) = WRITES[0];
    let refused = applied(line, &[headers, KEY].concat()).unwrap_err();
    assert_eq!(refused.reason, Reason::InvalidHeaderValue);
}

#[test]
fn reads_lists_and_deletes_are_not_held_against_it() {
    for line in [
        "GET /acct/con/b",
        "HEAD /acct/con/b",
        "GET /acct/con?restype=container&comp=list",
        "DELETE /acct/con/b",
        "PUT /acct/con/b?comp=tier",
    ] {
        let headers: &[&str] =
            if line.ends_with("tier") { &["x-ms-access-tier: Cool"] } else { &[] };
        assert_eq!(applied(line, headers).unwrap(), None, "{line}");
    }
}
