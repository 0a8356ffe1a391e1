//! Blob Batch: a multipart body of heads in, a multipart body of answers out.
//!
//! Source: "Blob Batch". Parts carry no bodies: deletions and changes of tier have none.

use bytes::Bytes;
use http::HeaderMap;
use http::Request;
use http::Response;

use crate::protocol::azure::errors;
use crate::protocol::azure::headers;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BatchPart;

/// Bytes of a batch.
pub(super) const BATCH_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Parts of a batch.
const PARTS_MAX: usize = 256;
/// Header lines of one part.
const HEADERS_MAX: usize = 128;
/// Characters of a boundary.
const BOUNDARY_CHARS_MAX: usize = 200;

/// The boundary that `Content-Type: multipart/mixed` names.
pub(super) fn boundary(all: &HeaderMap) -> Result<String, Refusal> {
    let Some(text) = headers::text(all, "content-type")? else {
        return Err(
            Refusal::new(Reason::MissingRequiredHeader).detail(Detail::HeaderName, "Content-Type")
        );
    };
    let refused = || headers::invalid("Content-Type", text);
    let mut pieces = text.split(';').map(str::trim);
    if !pieces.next().is_some_and(|kind| kind.eq_ignore_ascii_case("multipart/mixed")) {
        return Err(refused());
    }
    let mut named = pieces.filter_map(|piece| {
        let (name, value) = piece.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"'))
    });
    let first = named.next();
    if named.next().is_some() {
        return Err(Refusal::new(Reason::InvalidInput).detail(Detail::HeaderName, "Content-Type"));
    }
    let found = first.filter(|b| !b.is_empty() && b.len() <= BOUNDARY_CHARS_MAX);
    found.map(str::to_owned).ok_or_else(refused)
}

/// Reads the body of a batch.
///
/// # Errors
/// `InvalidInput` when it is not a multipart body of heads, or of none;
/// `ExceedsMaxBatchRequestCount` above 256 of them.
pub(super) fn read_batch(body: &[u8], boundary: &str) -> Result<Vec<BatchPart>, Refusal> {
    let text = std::str::from_utf8(body).map_err(|_| broken("it is not UTF-8"))?;
    let open = format!("--{boundary}");
    let close = format!("--{boundary}--");
    let mut parts = Vec::new();
    let mut lines: Option<Vec<&str>> = None;
    for line in text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)) {
        if line == open || line == close {
            if let Some(lines) = lines.take() {
                if parts.len() == PARTS_MAX {
                    return Err(Reason::ExceedsMaxBatchRequestCount.into());
                }
                parts.push(part(&lines)?);
            }
            if line == close {
                return if parts.is_empty() { Err(broken("it is empty")) } else { Ok(parts) };
            }
            lines = Some(Vec::new());
        } else if let Some(lines) = &mut lines {
            lines.push(line);
        }
    }
    Err(broken("its end is missing"))
}

fn broken(why: &str) -> Refusal {
    let text = format!("The batch cannot be read: {why}.");
    Refusal::new(Reason::InvalidInput).detail(Detail::Explanation, text)
}

/// Header lines up to an empty one.
fn head_lines<'a>(
    lines: &mut impl Iterator<Item = &'a str>,
) -> Result<Vec<(&'a str, &'a str)>, Refusal> {
    let mut found = Vec::new();
    for line in lines {
        if line.is_empty() {
            break;
        }
        if found.len() == HEADERS_MAX {
            return Err(broken("a part has too many headers"));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| broken("a header has no colon"))?;
        found.push((name.trim(), value.trim()));
    }
    Ok(found)
}

fn part(lines: &[&str]) -> Result<BatchPart, Refusal> {
    let mut lines = lines.iter().copied();
    let outer = head_lines(&mut lines)?;
    let of = |wanted: &str| {
        outer.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| *value)
    };
    let kind = of("content-type").and_then(|kind| kind.split(';').next()).unwrap_or_default();
    if !kind.trim().eq_ignore_ascii_case("application/http") {
        return Err(broken("a part is not application/http"));
    }
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(broken("a part has no request line"));
    };
    if !target.starts_with('/') {
        return Err(broken("a part's path does not start with a slash"));
    }
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in head_lines(&mut lines)? {
        request = request.header(name, value);
    }
    if lines.any(|line| !line.is_empty()) {
        return Err(broken("a part has a body"));
    }
    let request = request.body(()).map_err(|_| broken("a part is no HTTP request"))?;
    let id = of("content-id").map(str::to_owned);
    Ok(BatchPart { id, request })
}

/// Writes the answers in the order of their requests.
#[must_use]
pub fn write_batch(answers: &[(Option<String>, Response<Bytes>)], boundary: &str) -> Bytes {
    let mut out = Vec::with_capacity(answers.len() * 512);
    for (id, response) in answers {
        let id = id.as_ref().map(|id| format!("Content-ID: {id}\r\n")).unwrap_or_default();
        let reason = response.status().canonical_reason().unwrap_or_default();
        write_part(&mut out, boundary, &PartAnswer { id: &id, reason, response });
    }
    out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    out.into()
}

/// Writes the answer to a batch of which no part can be carried out: `response`, which `refusal`
/// was rendered to, as the only part. The message of the refusal is its reason phrase. Source:
/// recorded answers of the service (2024-08-04).
#[must_use]
pub fn write_refused_batch(refusal: &Refusal, response: &Response<Bytes>, boundary: &str) -> Bytes {
    let mut out = Vec::with_capacity(1_024);
    let reason = errors::message(refusal);
    write_part(&mut out, boundary, &PartAnswer { id: "", reason, response });
    out.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    out.into()
}

/// The answer to one part of a batch.
struct PartAnswer<'a> {
    /// The line of its `Content-ID`, or empty.
    id: &'a str,
    /// The words after the status code.
    reason: &'a str,
    response: &'a Response<Bytes>,
}

/// Writes one answer. An answer without a body ends with the empty line after its headers: clients
/// take what follows that line for a body, and a body for a failure. Source: recorded answers of
/// the service (2020-10-02).
fn write_part(out: &mut Vec<u8>, boundary: &str, part: &PartAnswer<'_>) {
    let PartAnswer { id, reason, response } = *part;
    let status = response.status().as_u16();
    let head = format!(
        "--{boundary}\r\nContent-Type: application/http\r\n{id}\r\nHTTP/1.1 {status} {reason}\r\n"
    );
    out.extend_from_slice(head.as_bytes());
    for (name, value) in response.headers() {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    if !response.body().is_empty() {
        out.extend_from_slice(response.body());
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: &str = "Content-Type: application/http\r\nContent-ID: 7\r\n\r\nDELETE /c/b?snapshot=x HTTP/1.1\r\n\
        x-ms-date: now\r\nContent-Length: 0\r\n\r\n";

    fn read(parts: &[&str]) -> Result<Vec<BatchPart>, Refusal> {
        let mut body: String = parts.iter().map(|part| format!("--b\r\n{part}")).collect();
        body.push_str("--b--\r\n");
        read_batch(body.as_bytes(), "b")
    }

    #[test]
    fn parts_are_heads_with_their_ids() {
        let parts =
            read(&[PART, &PART.replace("Content-ID: 7\r\n", "").replace("\r\n", "\n")]).unwrap();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].id.as_deref(), Some("7"));
        assert_eq!(parts[1].id, None);
        assert_eq!(parts[0].request.method(), http::Method::DELETE);
        assert_eq!(parts[0].request.uri().path_and_query().unwrap(), "/c/b?snapshot=x");
        assert_eq!(parts[0].request.headers()["x-ms-date"], "now");
    }

    #[test]
    fn what_is_no_batch_is_refused() {
        let many = vec![PART; 257];
        assert_eq!(read(&many).unwrap_err().reason, Reason::ExceedsMaxBatchRequestCount);
        assert!(read(&many[..256]).is_ok());
        for bad in [
            PART.replace("application/http", "text/plain"),
            PART.replace("HTTP/1.1", "HTTP/1.1 x"),
            PART.replace("DELETE /c", "DELETE c"),
            PART.replace("x-ms-date:", "x-ms-date"),
            PART.replace("x-ms-date:", "x ms date:"),
            format!("{PART}body"),
        ] {
            assert_eq!(read(&[&bad]).unwrap_err().reason, Reason::InvalidInput, "{bad}");
        }
        assert!(read(&[]).is_err());
        assert!(read_batch(format!("--b\r\n{PART}").as_bytes(), "b").is_err());
        assert!(read_batch(b"--b\r\n\xff--b--", "b").is_err());
    }

    #[test]
    fn boundary_is_named_by_the_content_type() {
        let read = |value: &str| {
            let value = http::HeaderValue::from_str(value).unwrap();
            boundary(&HeaderMap::from_iter([(http::header::CONTENT_TYPE, value)]))
        };
        assert_eq!(read("multipart/mixed; boundary=\"x y\"").unwrap(), "x y");
        assert_eq!(read("Multipart/Mixed;charset=utf-8; Boundary=b").unwrap(), "b");
        assert!(read("multipart/mixed").is_err() && read("text/plain; boundary=b").is_err());
        assert_eq!(
            read("multipart/mixed; boundary================530==").unwrap(),
            "===============530=="
        );
        assert_eq!(read("multipart/mixed;  BOUNDARY=b").unwrap(), "b");
        for (bad, reason) in [
            ("multipart/mixed; boundary=", Reason::InvalidHeaderValue),
            ("multipart/mixed; boundary=a; boundary=b", Reason::InvalidInput),
        ] {
            assert_eq!(read(bad).unwrap_err().reason, reason, "{bad}");
        }
        assert!(boundary(&HeaderMap::new()).is_err());
    }
}
