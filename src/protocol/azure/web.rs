//! The web endpoint: which site and document a URL names, what of a request counts there, and pages
//! for errors.
//!
//! A site is at `ACCOUNT.web.DOMAIN`, at `ACCOUNT.zN.web.DOMAIN` as the service spells it, and
//! path-style at `HOST/ACCOUNT-web/` (no account has a hyphen in its name). The query says nothing
//! there.
//!
//! Source: "Static website hosting in Azure Storage".

use bytes::Bytes;
use http::HeaderMap;
use http::Method;
use http::Response;
use http::Uri;

use crate::protocol::azure::Addressing;
use crate::protocol::azure::RequestEcho;
use crate::protocol::azure::address;
use crate::protocol::azure::conditions;
use crate::protocol::azure::errors;
use crate::protocol::azure::errors::error_row;
use crate::protocol::azure::range;
use crate::protocol::azure::render_error;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::RequestEncryption;
use crate::protocol::wire::escape;
use crate::protocol::wire::percent::decode;
use crate::types::AccountName;
use crate::types::BlobName;
use crate::types::ByteRange;
use crate::types::Website;

/// The suffix that marks an account's site in a path.
const SITE: &str = "-web";
/// The suffix that marks the read-only copy of an account in a host name.
const SECONDARY: &str = "-secondary";
/// Headers of a request that count.
const HEADERS: &[&str] =
    &["if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "range"];
/// Headers of an answer that pages do not show, besides those that begin with `x-ms-`.
const KEPT: &[&str] = &["x-ms-request-id", "x-ms-version", "x-ms-error-code"];

/// A URL below the web endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebAddress {
    /// The account whose site it is; `None` when the name is none.
    pub account: Option<AccountName>,
    /// The path below the site without its first slash, decoded; `None` when it is not UTF-8.
    pub path: Option<String>,
}

/// The account and path of a site that a URL names; `None` for URLs of other endpoints.
#[must_use]
pub fn web_address(uri: &Uri, host: Option<&str>, addressing: &Addressing) -> Option<WebAddress> {
    let host = uri.authority().map_or(host, |a| Some(a.as_str())).unwrap_or("localhost");
    let path = uri.path().strip_prefix('/').unwrap_or("");
    let (account, path) = match web_label(host, &addressing.domains) {
        Some(label) => (label.strip_suffix(SECONDARY).unwrap_or(label), path),
        None => {
            let (first, rest) = path.split_once('/').unwrap_or((path, ""));
            (first.strip_suffix(SITE)?, rest)
        }
    };
    Some(WebAddress { account: AccountName::new(account).ok(), path: decode(path) })
}

/// The label before `.web.DOMAIN` or `.zN.web.DOMAIN`.
fn web_label<'a>(host: &'a str, domains: &[String]) -> Option<&'a str> {
    let name = address::without_port(host);
    if !address::may_be_below(name, domains) {
        return None;
    }
    let (label, rest) = name.split_once('.')?;
    let is_web = |rest: &str| {
        rest.split_once('.').is_some_and(|(service, domain)| {
            service.eq_ignore_ascii_case("web")
                && domains.iter().any(|known| known.eq_ignore_ascii_case(domain))
        })
    };
    let is_zone = |zone: &str| {
        zone.strip_prefix(['z', 'Z'])
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
    };
    let zoned = rest.split_once('.').is_some_and(|(zone, rest)| is_zone(zone) && is_web(rest));
    (zoned || is_web(rest)).then_some(label)
}

/// The blobs that a path may mean, in the order they are looked for.
#[must_use]
pub fn web_documents(path: &str, website: &Website) -> Vec<BlobName> {
    let index = website.index_document.as_deref().filter(|name| !name.is_empty());
    let mut names = Vec::new();
    if path.is_empty() || path.ends_with('/') {
        names.extend(index.map(|index| format!("{path}{index}")));
    } else {
        names.push(path.to_owned());
        names.extend(index.map(|index| format!("{path}/{index}")));
    }
    if path.is_empty() {
        let root = website.default_index_path.as_deref().map(|root| root.trim_start_matches('/'));
        names.extend(root.map(str::to_owned));
    }
    names.iter().filter_map(|name| BlobName::new(name).ok()).collect()
}

/// The conditions and range of a request of the web endpoint.
#[derive(Clone, Debug)]
pub struct WebConditions {
    /// Conditions; the content must not be under a customer's key.
    pub precondition: Precondition,
    /// The wanted bytes.
    pub range: Option<ByteRange>,
}

/// The conditions and range of a request. Its other headers are ignored.
///
/// # Errors
/// `UnsupportedHttpVerb` for all but GET and HEAD; the codes of Get Blob for the headers.
pub fn web_request(method: &Method, all: &HeaderMap) -> Result<WebConditions, Refusal> {
    if method != Method::GET && method != Method::HEAD {
        return Err(Reason::UnsupportedHttpVerb.into());
    }
    let mut known = HeaderMap::new();
    for name in HEADERS {
        for value in all.get_all(*name) {
            known.append(*name, value.clone());
        }
    }
    let precondition = conditions::read(&known)?;
    // Blobs under a customer's key are not served.
    let precondition = Precondition { encryption: RequestEncryption::Plain, ..precondition };
    Ok(WebConditions { precondition, range: range::range(&known)? })
}

/// Makes an answer to Get Blob one of the web endpoint.
#[must_use]
pub fn web_answer<B>(mut response: Response<B>) -> Response<B> {
    let inner = |name: &http::HeaderName| {
        name.as_str().starts_with("x-ms-") && !KEPT.contains(&name.as_str())
    };
    let hidden: Vec<_> = response.headers().keys().filter(|name| inner(name)).cloned().collect();
    for name in hidden {
        response.headers_mut().remove(name);
    }
    response
}

/// Writes an error as a page.
#[must_use]
pub fn web_error(error: &Refusal, echo: &RequestEcho) -> Response<Bytes> {
    let response = render_error(error, echo);
    if response.body().is_empty() {
        return web_answer(response);
    }
    let (mut head, _xml) = response.into_parts();
    let (row, message) = (error_row(error.reason), errors::message(error));
    let mut page = String::from("<!DOCTYPE html><html><head><title>");
    page.push_str(row.code);
    page.push_str("</title></head><body><h1>");
    escape::text(&mut page, message);
    page.push_str("</h1><p><ul>");
    let (id, time) = echo.stamp();
    for (name, value) in [
        ("HttpStatusCode", errors::status(error).to_string()),
        ("ErrorCode", row.code.to_owned()),
        ("RequestId ", id),
        ("TimeStamp ", time),
    ] {
        page.push_str(&format!("<li>{name}: {value}</li>"));
    }
    page.push_str("</ul></p></body></html>");
    head.headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("text/html"));
    head.headers.insert(http::header::CONTENT_LENGTH, page.len().into());
    web_answer(Response::from_parts(head, page.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(host: &str, path: &str) -> Option<(Option<String>, Option<String>)> {
        let addressing = Addressing { domains: vec!["store.example".to_owned()] };
        let found = web_address(&path.parse().unwrap(), Some(host), &addressing)?;
        Some((found.account.map(|account| account.as_str().to_owned()), found.path))
    }

    fn some(account: &str, path: &str) -> Option<(Option<String>, Option<String>)> {
        Some((Some(account.to_owned()), Some(path.to_owned())))
    }

    #[test]
    fn sites_are_named_by_host_or_path() {
        assert_eq!(named("acct.web.store.example:10000", "/"), some("acct", ""));
        assert_eq!(named("acct.Z13.WEB.store.example", "/a/b%20c"), some("acct", "a/b c"));
        assert_eq!(named("acct-secondary.z6.web.store.example", "/x"), some("acct", "x"));
        assert_eq!(named("127.0.0.1:10000", "/acct-web"), some("acct", ""));
        assert_eq!(named("127.0.0.1:10000", "/acct-web/dir/?comp=list"), some("acct", "dir/"));
        assert_eq!(named("127.0.0.1", "/A!-web/x"), Some((None, Some("x".to_owned()))));
        assert_eq!(named("127.0.0.1", "/acct-web/%ff"), Some((Some("acct".to_owned()), None)));
        assert_eq!(named("127.0.0.1", "/acct-web/%zz"), Some((Some("acct".to_owned()), None)));
        for (host, path) in [
            ("acct.blob.store.example", "/$web/index.html"),
            ("acct.web.other.example", "/"),
            ("acct.zx.web.store.example", "/"),
            ("acct.y6.web.store.example", "/"),
            ("127.0.0.1", "/acct/con-web/b"),
            ("127.0.0.1", "/acct"),
        ] {
            assert_eq!(named(host, path), None, "{host} {path}");
        }
    }

    #[test]
    fn paths_mean_documents() {
        let site = |index: Option<&str>, root: Option<&str>| Website {
            index_document: index.map(str::to_owned),
            default_index_path: root.map(str::to_owned),
            error_document: None,
        };
        let documents = |path: &str, site: &Website| -> Vec<String> {
            web_documents(path, site).iter().map(|name| name.as_str().to_owned()).collect()
        };
        let index = site(Some("index.html"), None);
        assert_eq!(documents("", &index), ["index.html"]);
        assert_eq!(documents("a/", &index), ["a/index.html"]);
        assert_eq!(documents("a/b", &index), ["a/b", "a/b/index.html"]);
        let root = site(None, Some("/app/start.html"));
        assert_eq!(documents("", &root), ["app/start.html"]);
        assert_eq!(documents("a/", &root), Vec::<String>::new());
        assert_eq!(documents("a", &site(None, None)), ["a"]);
    }

    #[test]
    fn only_reads_with_http_headers_count() {
        let mut all = HeaderMap::new();
        all.insert("range", http::HeaderValue::from_static("bytes=1-2"));
        all.insert("x-ms-lease-id", http::HeaderValue::from_static("nonsense"));
        let WebConditions { precondition, range } = web_request(&Method::GET, &all).unwrap();
        assert_eq!((precondition.lease, range), (None, ByteRange::new(1, Some(2))));
        assert_eq!(precondition.encryption, RequestEncryption::Plain);
        for method in [Method::PUT, Method::POST, Method::DELETE, Method::OPTIONS] {
            let refused = web_request(&method, &all).unwrap_err();
            assert_eq!(refused.reason, Reason::UnsupportedHttpVerb);
        }
    }
}
