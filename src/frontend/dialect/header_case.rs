//! The case of metadata names. Azure preserves it; the HTTP library's header names are in lower
//! case.
//!
//! `spelling.rs` notes the case of the names of a request. hyper notes that of the answer of
//! another server, in an extension of a private type, and uses such an extension to spell the names
//! of an answer. The private type can only be read and made by hyper itself: to read a spelling it
//! writes a head in memory, and to make one it reads a head in memory. This is needed for copies of
//! blobs with metadata from other servers, and for answers with upper-case names that a thread has
//! not kept (ADR 0043).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::ready;
use std::io;
use std::pin::Pin;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;

use bytes::Bytes;
use http::Extensions;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::Request;
use http::Response;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::rt::ReadBufCursor;
use hyper::server::conn::http1;
use hyper::service::service_fn;

use crate::protocol::azure::METADATA_PREFIX;
use crate::types::Metadata;

/// A request without headers, which ends its connection.
const BARE_HEAD: &str = "GET / HTTP/1.0\r\n";

/// Metadata with its names as the answer of another server spells them. `headers` and `extensions`
/// are those of the answer.
pub(in crate::frontend) fn respelled(
    metadata: Metadata,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Metadata {
    let names = headers.keys().filter(|name| name.as_str().starts_with(METADATA_PREFIX));
    let names: Vec<&HeaderName> = names.collect();
    if metadata.is_empty() || names.is_empty() {
        return metadata;
    }
    let spelled = spelled(&names, extensions);
    metadata.respelled(|name| {
        let is = |spelled: &&String| spelled.eq_ignore_ascii_case(name);
        spelled.iter().find(is).cloned()
    })
}

/// The rest of each name after the prefix, as it was spelled.
fn spelled(names: &[&HeaderName], extensions: &Extensions) -> Vec<String> {
    let mut response = Response::new(Empty::<Bytes>::new());
    for name in names {
        response.headers_mut().insert(*name, HeaderValue::from_static("-"));
    }
    *response.extensions_mut() = extensions.clone();
    let response = RefCell::new(Some(response));
    let written = exchange(format!("{BARE_HEAD}\r\n"), |_| response.take().unwrap_or_default());
    let head = String::from_utf8_lossy(&written).into_owned();
    let names = head.lines().filter_map(|line| line.split_once(':'));
    let own = names.filter_map(|(name, _)| {
        let (start, rest) = name.split_at_checked(METADATA_PREFIX.len())?;
        start.eq_ignore_ascii_case(METADATA_PREFIX).then(|| rest.to_owned())
    });
    own.collect()
}

/// Sets of names whose extensions a thread keeps. Most answers have one of a few sets. An extension
/// keeps the buffer of 8 KiB alive from which hyper has read the names.
const KNOWN_MAX: usize = 16;
/// Bytes of the names of a set that is kept.
const KNOWN_BYTES_MAX: usize = 512;

/// A set of names that answers had.
struct Known {
    /// The names in order, each with a line feed behind it.
    names: String,
    extensions: Extensions,
}

impl Known {
    /// Whether the set is that of this metadata. It is compared in place: an answer must not pay
    /// for a key of its own.
    fn is_of(&self, metadata: &Metadata) -> bool {
        let mut rest = self.names.as_str();
        let found = metadata.iter().all(|(name, _)| {
            let after = rest.strip_prefix(name).and_then(|after| after.strip_prefix('\n'));
            rest = after.unwrap_or_default();
            after.is_some()
        });
        found && rest.is_empty()
    }
}

thread_local! {
    /// Sets that answers had, the one that was used last first.
    static KNOWN: RefCell<VecDeque<Known>> = const { RefCell::new(VecDeque::new()) };
}

/// The extensions with which hyper keeps the case of the names of this metadata; `None` if all of
/// them are in lower case.
#[must_use]
pub fn spelling(metadata: &Metadata) -> Option<Extensions> {
    if metadata.iter().all(|(name, _)| !name.bytes().any(|byte| byte.is_ascii_uppercase())) {
        return None;
    }
    KNOWN.with_borrow_mut(|known| {
        let at = known.iter().position(|set| set.is_of(metadata));
        if let Some(set) = at.and_then(|at| known.remove(at)) {
            let extensions = set.extensions.clone();
            known.push_front(set);
            return Some(extensions);
        }
        let names: String = metadata.iter().flat_map(|(name, _)| [name, "\n"]).collect();
        let extensions = made(&names)?;
        if names.len() <= KNOWN_BYTES_MAX {
            known.truncate(KNOWN_MAX - 1);
            known.push_front(Known { names, extensions: extensions.clone() });
        }
        Some(extensions)
    })
}

/// The same for names with a line feed behind each.
fn made(names: &str) -> Option<Extensions> {
    let lines: String =
        names.lines().map(|name| format!("{METADATA_PREFIX}{name}: -\r\n")).collect();
    let found = RefCell::new(None);
    drop(exchange(format!("{BARE_HEAD}{lines}\r\n"), |request| {
        found.replace(Some(request.into_parts().0.extensions));
        Response::default()
    }));
    found.take()
}

/// Has hyper serve one request in memory. Returns the bytes that it writes.
fn exchange(head: String, answer: impl Fn(Request<Incoming>) -> Response<Empty<Bytes>>) -> Vec<u8> {
    let io = Memory { unread: head.into(), written: Vec::new() };
    let service = service_fn(|request| ready(Ok::<_, Infallible>(answer(request))));
    let mut builder = http1::Builder::new();
    builder.preserve_header_case(true).max_headers(HEADERS_MAX).half_close(true);
    let mut served = builder.serve_connection(io, service);
    // Nothing in it waits, so one poll is enough.
    let done = served.poll_without_shutdown(&mut Context::from_waker(Waker::noop()));
    debug_assert!(matches!(done, Poll::Ready(Ok(()))), "a connection in memory: {done:?}");
    served.into_parts().io.written
}

/// More headers than a request or an answer has.
const HEADERS_MAX: usize = 512;

/// A connection in memory.
struct Memory {
    unread: Bytes,
    written: Vec<u8>,
}

impl hyper::rt::Read for Memory {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let len = self.unread.len().min(buf.remaining());
        buf.put_slice(&self.unread.split_to(len));
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for Memory {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.written.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(names: &[&str]) -> Metadata {
        Metadata::new(names.iter().map(|name| ((*name).to_owned(), "v"))).unwrap()
    }

    fn names(metadata: &Metadata) -> Vec<&str> {
        metadata.iter().map(|(name, _)| name).collect()
    }

    /// The head of a request with these metadata names, as hyper reads it.
    fn head(names: &[&str]) -> http::request::Parts {
        let lines: String = names.iter().map(|name| format!("x-ms-META-{name}: v\r\n")).collect();
        let found = RefCell::new(None);
        exchange(format!("{BARE_HEAD}Host: h\r\n{lines}\r\n"), |request| {
            found.replace(Some(request.into_parts().0));
            Response::default()
        });
        found.take().unwrap()
    }

    #[test]
    fn names_come_back_as_a_head_spells_them() {
        for spelled in [&["UP", "mixed_Case", "low"][..], &["A"], &["a"], &["B", "a", "C"]] {
            let lower: Vec<String> = spelled.iter().map(|name| name.to_lowercase()).collect();
            let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
            let head = head(spelled);
            let found = respelled(metadata(&lower), &head.headers, &head.extensions);
            assert_eq!(names(&found), *spelled);
        }
    }

    #[test]
    fn a_head_without_a_spelling_has_lower_case() {
        let mut headers = HeaderMap::new();
        headers.insert("x-ms-meta-up", HeaderValue::from_static("v"));
        let found = respelled(metadata(&["up"]), &headers, &Extensions::new());
        assert_eq!(names(&found), ["up"]);
    }

    /// The answer with an extension that hyper writes, line by line.
    fn answered(names: &[&str], extensions: Extensions) -> Vec<String> {
        let mut response = Response::new(Empty::<Bytes>::new());
        for name in names {
            let name: HeaderName = name.parse().unwrap();
            response.headers_mut().insert(name, HeaderValue::from_static("v"));
        }
        response.extensions_mut().extend(extensions);
        let response = RefCell::new(Some(response));
        let written = exchange(format!("{BARE_HEAD}\r\n"), |_| response.take().unwrap());
        String::from_utf8(written).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn an_answer_spells_the_names_as_they_are() {
        assert!(spelling(&metadata(&["low", "er"])).is_none());
        let kept = metadata(&["UP", "low", "Mixed"]);
        let names = ["x-ms-meta-mixed", "x-ms-meta-up", "etag", "x-ms-meta-low"];
        // The second time, the extension is known.
        for _ in 0..2 {
            let lines = answered(&names, spelling(&kept).unwrap());
            for line in ["x-ms-meta-UP: v", "x-ms-meta-Mixed: v", "x-ms-meta-low: v", "etag: v"] {
                assert!(lines.iter().any(|found| found == line), "{line} in {lines:?}");
            }
        }
        let other = spelling(&metadata(&["uP", "LOW", "mixed"])).unwrap();
        let lines = answered(&names, other);
        assert!(lines.iter().any(|line| line == "x-ms-meta-uP: v"), "{lines:?}");
        // Neither the start of a set nor more than it is the set.
        for (other, line) in [
            (&["UP", "low"][..], "x-ms-meta-mixed: v"),
            (&["UP", "low", "Mixed", "ETag"], "x-ms-meta-Mixed: v"),
        ] {
            let lines = answered(&names, spelling(&metadata(other)).unwrap());
            assert!(lines.iter().any(|found| found == line), "{line} in {lines:?}");
        }
    }

    #[test]
    fn what_is_known_is_bounded() {
        let count = || KNOWN.with_borrow(VecDeque::len);
        for number in 0..=KNOWN_MAX * 3 {
            spelling(&metadata(&[&format!("Name{number}")])).unwrap();
            assert!((1..=KNOWN_MAX).contains(&count()));
        }
        // The set that was used last stays, the oldest one goes.
        let is_known = |number: usize| {
            let names = metadata(&[&format!("Name{number}")]);
            KNOWN.with_borrow(|known| known.iter().any(|set| set.is_of(&names)))
        };
        let oldest = KNOWN_MAX * 2 + 1;
        spelling(&metadata(&[&format!("Name{oldest}")])).unwrap();
        spelling(&metadata(&["Other"])).unwrap();
        assert!(is_known(oldest) && !is_known(oldest + 1) && is_known(oldest + 2));
        let before = count();
        let long = "N".repeat(KNOWN_BYTES_MAX + 1);
        let lines = answered(&["x-ms-meta-nn"], spelling(&metadata(&[&long])).unwrap());
        assert!(lines.iter().any(|line| line == "x-ms-meta-nn: v"), "{lines:?}");
        assert_eq!(count(), before);
    }
}
