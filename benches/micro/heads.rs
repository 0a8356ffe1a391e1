//! What it costs to note how the metadata names of a head are spelled, and to spell those of an
//! answer (ADR 0043), beside what reading and answering a head costs.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Context;
use std::task::Poll;
use std::task::Waker;

use blockyard::frontend::dialect::header_case;
use blockyard::frontend::dialect::spelling::Spelling;
use blockyard::types::Metadata;
use bytes::Bytes;
use divan::Bencher;
use http::Extensions;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::Response;
use http_body_util::Empty;
use hyper::rt::ReadBufCursor;
use hyper::server::conn::http1;
use hyper::service::service_fn;

/// A HEAD as the Python client sends it.
const HEAD: &[u8] = b"HEAD /devstoreaccount1/container/blob HTTP/1.1\r\n\
    Host: 127.0.0.1:10000\r\nx-ms-version: 2026-10-06\r\nAccept: application/xml\r\n\
    User-Agent: azsdk-python-storage-blob/12.28.0 Python/3.11.7\r\n\
    x-ms-date: Fri, 27 Nov 2026 14:00:00 GMT\r\n\
    x-ms-client-request-id: 5a3c2c2e-0000-11f0-9c2e-0242ac120002\r\n\
    Authorization: SharedKey devstoreaccount1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\
    Connection: close\r\nAccept-Encoding: gzip, deflate\r\n\r\n";

/// A connection in memory.
struct Memory(Bytes);

impl hyper::rt::Read for Memory {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let len = self.0.len().min(buf.remaining());
        buf.put_slice(&self.0.split_to(len));
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for Memory {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// One request without a service, from its bytes to those of its answer.
#[divan::bench]
fn head(bencher: Bencher<'_, '_>) {
    answered(bencher, Response::default);
}

/// The same with an answer that has so many metadata names, all in lower case or all with an
/// upper-case letter. The difference is what the spelling of an answer costs once a thread knows
/// its names.
#[divan::bench(args = ["1 name", "1 Name", "2 name", "2 Name", "4 name", "4 Name"])]
fn answer(bencher: Bencher<'_, '_>, names: &str) {
    let (count, name) = names.split_once(' ').expect("a number and a name");
    let count: usize = count.parse().expect("a number");
    let names = (0..count).map(|number| (format!("{name}{number}"), "value"));
    let metadata = Metadata::new(names).expect("they are names");
    let names = metadata.iter().map(|(name, _)| format!("x-ms-meta-{name}"));
    let value = HeaderValue::from_static("value");
    let headers: HeaderMap = names
        .map(|name| (HeaderName::try_from(name).expect("it is a name"), value.clone()))
        .collect();
    answered(bencher, || {
        let mut answer = Response::new(Empty::new());
        answer.headers_mut().clone_from(&headers);
        if let Some(extensions) = header_case::spelling(&metadata) {
            answer.extensions_mut().extend(extensions);
        }
        answer
    });
}

/// What the spelling of an answer costs when the thread has not seen its names.
#[divan::bench]
fn spelling_of_new_names(bencher: Bencher<'_, '_>) {
    let number = AtomicU64::new(0);
    let metadata = || {
        let first = number.fetch_add(4, Relaxed);
        let names = (first..first + 4).map(|number| (format!("Name{number}"), "value"));
        Metadata::new(names).expect("they are names")
    };
    bencher.with_inputs(metadata).bench_refs(|metadata| header_case::spelling(metadata));
}

fn answered(bencher: Bencher<'_, '_>, answer: impl Fn() -> Response<Empty<Bytes>> + Sync) {
    bencher.bench(|| {
        let answer = &answer;
        let service = service_fn(|request| async move {
            divan::black_box(request);
            Ok::<_, Infallible>(answer())
        });
        // The end of the input must not end the request that is being answered.
        let mut served = Box::pin(
            http1::Builder::new()
                .half_close(true)
                .serve_connection(Memory(Bytes::from_static(HEAD)), service),
        );
        let done = served.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(done, Poll::Ready(Ok(()))), "a connection in memory: {done:?}");
    });
}

/// What noting the spelling adds to a request: to a read, to a write without metadata, and to one
/// with four names.
#[divan::bench(args = ["read", "write", "write of 4 names"])]
fn spelling(bencher: Bencher<'_, '_>, request: &str) {
    let rest = HEAD.strip_prefix(b"HEAD").expect("it is a HEAD");
    let rest = rest.strip_suffix(b"\r\n").expect("it has an end");
    let method = if request == "read" { "HEAD" } else { "PUT" };
    let count = if request.contains('4') { 4 } else { 0 };
    let names: String = (0..count).map(|n| format!("x-ms-meta-Name{n}: value\r\n")).collect();
    let head = [method.as_bytes(), rest, names.as_bytes(), b"\r\n"].concat();
    let spelling = Spelling::default();
    bencher.bench(|| {
        let mut extensions = Extensions::new();
        spelling.read(divan::black_box(&head));
        spelling.give(&mut extensions);
        spelling.next();
        extensions
    });
}
