//! The Azure dialect and its signature: the cost of every request before and after its work.

use std::time::Duration;

use blockyard::auth;
use blockyard::auth::AccountKeys;
use blockyard::auth::SignedRequest;
use blockyard::protocol::azure;
use blockyard::protocol::azure::Addressing;
use blockyard::protocol::azure::Context;
use blockyard::protocol::azure::RequestEcho;
use blockyard::protocol::model::Operation;
use blockyard::protocol::model::Reply;
use blockyard::protocol::model::list_reply::BlobItem;
use blockyard::protocol::model::list_reply::BlobListing;
use blockyard::protocol::model::reply::BlobFacts;
use blockyard::protocol::model::reply::Change;
use blockyard::types::Etag;
use blockyard::types::Revision;
use blockyard::types::Timestamp;
use divan::Bencher;
use divan::black_box;
use divan::counter::ItemsCount;
use http::Method;
use http::Request;
use http::request::Parts;

/// Names of one page.
const PAGE: usize = 1_000;
const DATE: &str = "Sat, 21 Nov 2026 06:00:00 GMT";
const ACCOUNT: &str = "devstoreaccount1";

fn now() -> Timestamp {
    Timestamp::from_unix(Duration::from_secs(1_795_240_800))
}

fn keys() -> AccountKeys {
    AccountKeys::new(&["bm90IGEgc2VjcmV0LCBhIGJlbmNo"]).expect("a key")
}

/// The head of a request with a valid signature, as clients send it.
fn signed(method: Method, uri: &str, lines: &[(&'static str, &str)], to_sign: &str) -> Parts {
    let authorization = format!("SharedKey {ACCOUNT}:{}", keys().sign(to_sign.as_bytes()));
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header("host", "127.0.0.1:10000")
        .header("x-ms-date", DATE)
        .header("x-ms-version", "2023-11-03")
        .header("authorization", authorization);
    for (name, value) in lines {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a request").into_parts().0
}

/// The work of the front end for a head before the operation.
fn admit(head: &Parts, keys: &AccountKeys) -> Operation {
    let context = Context::from_head(head).expect("a context");
    let host = Some("127.0.0.1:10000");
    let address = azure::address(&head.method, &head.uri, host, &Addressing::default());
    let address = address.expect("an address");
    let request = SignedRequest {
        method: &head.method,
        path: head.uri.path(),
        query: head.uri.query(),
        headers: &head.headers,
        account: address.account.as_str(),
        secondary: address.secondary,
    };
    auth::authenticate(&request, keys, now()).expect("a right signature");
    *azure::parse(head, &address, &context).expect("an operation").into_parts().0
}

/// Address, signature and parse of a small Put Blob.
#[divan::bench]
fn admit_put_blob(bencher: Bencher<'_, '_>) {
    let path = format!("/{ACCOUNT}/bench/put4k/00000001");
    let to_sign = format!(
        "PUT\n\n\n4096\n\n\n\n\n\n\n\n\nx-ms-blob-type:BlockBlob\nx-ms-date:{DATE}\n\
         x-ms-version:2023-11-03\n/{ACCOUNT}{path}"
    );
    let lines = [("content-length", "4096"), ("x-ms-blob-type", "BlockBlob")];
    let head = signed(Method::PUT, &path, &lines, &to_sign);
    let keys = keys();
    bencher.bench(|| admit(black_box(&head), &keys));
}

/// The XML of a page of names.
#[divan::bench]
fn render_list(bencher: Bencher<'_, '_>) {
    let path = format!("/{ACCOUNT}/bench");
    let to_sign = format!(
        "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{DATE}\nx-ms-version:2023-11-03\n\
         /{ACCOUNT}{path}\ncomp:list\nrestype:container"
    );
    let uri = format!("{path}?restype=container&comp=list");
    let head = signed(Method::GET, &uri, &[], &to_sign);
    let operation = admit(&head, &keys());
    let host = Some("127.0.0.1:10000");
    let address = azure::address(&head.method, &head.uri, host, &Addressing::default());
    let mut echo = RequestEcho::new(&head, "f0e1d2c3-0000-4000-8000-000000000000".into(), now());
    echo.operation(&operation, &address.expect("an address"), "http");
    let change = Change { etag: Etag::from_commit(now()), last_modified: now(), version: None };
    let item = |number| BlobItem::Blob {
        name: format!("names/{number:08}"),
        revision: Revision::Current,
        facts: Box::new(BlobFacts::new(change, now(), 64)),
    };
    let items = (0..PAGE).map(item).collect();
    let listing = BlobListing { items, ..BlobListing::default() };
    let reply = Reply::Blobs(listing);
    bencher.counter(ItemsCount::new(PAGE)).bench(|| azure::render(black_box(&reply), &echo));
}
