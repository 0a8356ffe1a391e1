//! Who asks: missing, malformed, forged and stale signatures.

use crate::bad_input::Case;
use crate::bad_input::case;
use crate::server::ACCOUNT;
use crate::server::KEY;
use crate::server::OTHER_ACCOUNT;
use crate::server::OTHER_KEY;
use crate::wire::Message;
use crate::wire::Sign;

fn get() -> Message {
    Message::new("GET /acct1/con1/blob")
}

fn text(authorization: &str) -> Message {
    Message { sign: Sign::Text(authorization.to_owned()), ..get() }
}

fn signed(account: &str, key: &str) -> Message {
    Message { sign: Sign::As(account.to_owned(), key.to_owned()), ..get() }
}

fn skewed(seconds: i64) -> Message {
    Message { skew: seconds, ..get() }
}

fn tampered(name: &str, value: &str) -> Message {
    Message { unsigned: vec![(name.to_owned(), value.to_owned())], ..get() }
}

const FAILED: &str = "AuthenticationFailed";
const INFO: &str = "InvalidAuthenticationInfo";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = headers();
    cases.extend(identities());
    cases.extend(dates());
    cases.extend(changed_requests());
    cases
}

/// Headers that are missing, malformed or hold no signature of this request.
fn headers() -> Vec<Case> {
    let (failed, info) = (FAILED, INFO);
    let zero = "A".repeat(43) + "=";
    vec![
        case(
            "no authorization",
            Message { sign: Sign::Not, ..get() },
            401,
            "NoAuthenticationInformation",
        ),
        case(
            "no authorization on put",
            Message { sign: Sign::Not, ..Message::new("PUT /acct1/con1/x") },
            401,
            "NoAuthenticationInformation",
        ),
        case(
            "no authorization on head",
            Message { sign: Sign::Not, ..Message::new("HEAD /acct1/con1/blob") },
            401,
            "NoAuthenticationInformation",
        ),
        case("empty authorization", text(""), 400, info),
        case("scheme alone", text("SharedKey"), 400, info),
        case("scheme and account", text("SharedKey acct1"), 400, info),
        case("no account", text(&format!("SharedKey :{zero}")), 403, failed),
        case("signature not base64", text("SharedKey acct1:!!!!"), 400, info),
        case("signature empty", text("SharedKey acct1:"), 403, failed),
        case("signature short", text("SharedKey acct1:AAAA"), 403, failed),
        case("signature long", text(&format!("SharedKey acct1:{}", "A".repeat(400))), 403, failed),
        case("signature of zeros", text(&format!("SharedKey acct1:{zero}")), 403, failed),
        case("lite signature of zeros", text(&format!("SharedKeyLite acct1:{zero}")), 403, failed),
        case("scheme in lower case", text(&format!("sharedkey acct1:{zero}")), 400, info),
        case("bearer", text("Bearer token"), 400, info),
        case("basic", text("Basic YWNjdDE6eA=="), 400, info),
    ]
}

/// Signatures of other accounts.
fn identities() -> Vec<Case> {
    let failed = FAILED;
    vec![
        case("other account's key", signed(ACCOUNT, OTHER_KEY), 403, failed),
        case("other account's name", signed(OTHER_ACCOUNT, KEY), 403, failed),
        case("other account's signature", signed(OTHER_ACCOUNT, OTHER_KEY), 403, failed),
        case(
            "no such account",
            Message { target: "/nobody/con1/blob".into(), ..signed("nobody", KEY) },
            403,
            failed,
        ),
        case(
            "other account's URL",
            Message { target: "/acct2/con1/blob".into(), ..get() },
            403,
            failed,
        ),
    ]
}

/// Dates that are not now.
fn dates() -> Vec<Case> {
    let (failed, info) = (FAILED, INFO);
    let right_key = |date: &str| get().header(date);
    vec![
        case("sixteen minutes late", skewed(-16 * 60), 403, failed),
        case("sixteen minutes early", skewed(16 * 60), 403, failed),
        case("a year late", skewed(-365 * 86_400), 403, failed),
        case("a year early", skewed(365 * 86_400), 403, failed),
        case("date not a date", right_key("x-ms-date: yesterday"), 400, info),
        case("date in ISO form", right_key("x-ms-date: 2026-11-21T05:00:00Z"), 400, info),
        case(
            "date of another year in Date",
            right_key("date: Mon, 01 Jan 1990 00:00:00 GMT"),
            403,
            failed,
        ),
    ]
}

/// Signatures of another request than the one they come with.
fn changed_requests() -> Vec<Case> {
    let (failed, info) = (FAILED, INFO);
    let mut cases = vec![
        case("metadata added", tampered("x-ms-meta-a", "b"), 403, failed),
        case("range added", tampered("range", "bytes=0-1"), 403, failed),
        case("condition added", tampered("if-match", "*"), 403, failed),
        case("type added", tampered("content-type", "a/b"), 403, failed),
        case("second authorization", tampered("authorization", "SharedKey acct1:AAAA"), 400, info),
    ];
    let write = Message::new("PUT /acct1-secondary/con1/new").header("x-ms-blob-type: BlockBlob");
    cases.push(case("write to the secondary", write, 403, "InsufficientAccountPermissions"));
    let mut moved = get();
    moved.target = "/acct1/con1/blob?comp=metadata".to_owned();
    moved.sign = text_of(&get());
    cases.push(case("another request's signature", moved, 403, failed));
    let mut deletes = get();
    deletes.method = "DELETE".to_owned();
    deletes.sign = text_of(&get());
    cases.push(case("another method's signature", deletes, 403, failed));
    cases
}

/// The `Authorization` that a message would carry.
fn text_of(message: &Message) -> Sign {
    let bytes = message.to_bytes();
    let text = String::from_utf8(bytes).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("authorization: ")).unwrap();
    Sign::Text(line.to_owned())
}
