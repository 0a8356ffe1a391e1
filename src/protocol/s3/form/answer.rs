//! The options of a form for its answer.

use std::fmt::Write as _;

use bytes::Bytes;
use http::Response;
use http::header::HOST;
use http::request::Parts;
use http::uri::Uri;
use percent_encoding::AsciiSet;
use percent_encoding::NON_ALPHANUMERIC;
use percent_encoding::utf8_percent_encode;

use crate::protocol::model::Address;
use crate::protocol::s3::form::fields;
use crate::protocol::s3::form::fields::PostForm;
use crate::protocol::wire::escape;
use crate::protocol::wire::head::Head;

/// The complement of the unreserved characters of a URL (RFC 3986, 2.3).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// The longest URL of a redirect, bytes.
const REDIRECT_BYTES_MAX: usize = 8 * 1024;

/// The options of a form for its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::protocol::s3) struct FormAnswer {
    /// 200, 201, 204, or 303 if the form names a URL for a redirect.
    pub(in crate::protocol::s3) status: u16,
    redirect: Option<String>,
    location: String,
    bucket: String,
    key: String,
}

impl FormAnswer {
    /// Reads the options from the form of a request; `None` for other requests.
    pub(in crate::protocol::s3) fn of(head: &Parts, address: &Address) -> Option<Self> {
        let form = fields::of(head)?;
        let bucket = address.container.as_ref().map_or("", |name| name.as_str()).to_owned();
        let asked = form.get("success_action_redirect").or_else(|| form.get("redirect"));
        let redirect = asked.filter(|url| is_url(url)).map(str::to_owned);
        let status = match (&redirect, form.get("success_action_status")) {
            (Some(_), _) => 303,
            (None, Some("200")) => 200,
            (None, Some("201")) => 201,
            (None, _) => 204,
        };
        let (location, key) = (location(head, form), form.key().to_owned());
        Some(Self { status, redirect, location, bucket, key })
    }

    /// The URL of the redirect, with bucket, key and ETag of the object in its query.
    fn onward(&self, redirect: &str, etag: &str) -> String {
        let (url, fragment) = redirect.split_once('#').unwrap_or((redirect, ""));
        let joint = if url.contains('?') { '&' } else { '?' };
        let (bucket, key) = (form_encoded(&self.bucket), form_encoded(&self.key));
        let mut onward = format!("{url}{joint}bucket={bucket}&key={key}&etag=%22{etag}%22");
        if !fragment.is_empty() {
            onward.push('#');
            onward.push_str(fragment);
        }
        onward
    }
}

/// The URL of the object: that of the request, with the key. Slashes of the key are escaped too, as
/// S3 does.
fn location(head: &Parts, form: &PostForm) -> String {
    let named = head.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("");
    let host = head.uri.authority().map_or(named, |authority| authority.as_str());
    let path = head.uri.path().trim_matches('/');
    let scheme = form.scheme();
    let mut location = format!("{scheme}://{host}/{path}");
    if !path.is_empty() {
        location.push('/');
    }
    let key = utf8_percent_encode(form.key(), ESCAPED);
    write!(location, "{key}").expect("writing to a string does not fail");
    location
}

fn form_encoded(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string().replace("%20", "+")
}

/// Whether a text is a URL of HTTP that a header can hold. Other texts are ignored, as S3 does.
fn is_url(text: &str) -> bool {
    let has_host = |uri: &Uri| {
        let scheme = uri.scheme_str().unwrap_or("");
        ["http", "https"].contains(&scheme) && uri.host().is_some_and(|host| !host.is_empty())
    };
    text.len() <= REDIRECT_BYTES_MAX && text.parse().is_ok_and(|uri| has_host(&uri))
}

/// Ends the head of the answer to a form; it has status, ETag and checksum already.
pub(in crate::protocol::s3) fn posted(
    head: Head,
    asked: &FormAnswer,
    etag: impl std::fmt::Display,
) -> Response<Bytes> {
    let etag = etag.to_string();
    if let Some(redirect) = &asked.redirect {
        return head.set("location", &asked.onward(redirect, &etag)).empty();
    }
    let head = head.set("location", &asked.location);
    match asked.status {
        201 => head.xml(document(asked, &etag)),
        204 => head.bodiless(),
        _ => head.empty(),
    }
}

fn document(asked: &FormAnswer, etag: &str) -> String {
    let mut body = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<PostResponse>");
    escape::element(&mut body, "Location", &asked.location);
    escape::element(&mut body, "Bucket", &asked.bucket);
    escape::referenced(&mut body, "Key", &asked.key);
    escape::element(&mut body, "ETag", &format!("\"{etag}\""));
    body.push_str("</PostResponse>");
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(redirect: &str) -> FormAnswer {
        FormAnswer {
            status: 303,
            redirect: Some(redirect.to_owned()),
            location: String::new(),
            bucket: "b".to_owned(),
            key: "a/b c&d".to_owned(),
        }
    }

    #[test]
    fn the_url_to_go_on_to_keeps_what_it_has() {
        let added = "bucket=b&key=a%2Fb+c%26d&etag=%22e%22";
        for (redirect, begin, end) in [
            ("http://h/p", "http://h/p?", ""),
            ("http://h/p?x=1", "http://h/p?x=1&", ""),
            ("http://h/#f", "http://h/?", "#f"),
        ] {
            assert_eq!(asked(redirect).onward(redirect, "e"), format!("{begin}{added}{end}"));
        }
    }

    #[test]
    fn only_urls_of_http_are_gone_on_to() {
        for url in ["http://h/", "https://h:1/p?q#f", "HTTP://h"] {
            assert!(is_url(url), "{url}");
        }
        for text in ["", "/p", "//h/p", "ftp://h/", "javascript:alert(1)", "http://h/\r\nx: y", "h"]
        {
            assert!(!is_url(text), "{text}");
        }
    }
}
