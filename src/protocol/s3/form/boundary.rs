//! Recognises forms, and finds the boundary between the parts of their bodies.

use bytes::Bytes;
use http::Method;
use http::header::CONTENT_TYPE;
use http::request::Parts;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;

/// The longest boundary, bytes. RFC 2046 allows 70; some clients make longer ones.
const BOUNDARY_BYTES_MAX: usize = 256;
const FORM: &str = "multipart/form-data";

/// The delimiter between the parts of a form: CRLF, two hyphens, the boundary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary(Bytes);

/// Whether a request announces a form: a POST of `multipart/form-data`, without a query that asks
/// for another operation.
#[must_use]
pub fn announces(head: &Parts) -> bool {
    head.method == Method::POST && is_form(head) && head.uri.query().is_none_or(str::is_empty)
}

fn is_form(head: &Parts) -> bool {
    let text = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = text.split(';').next().unwrap_or("").trim();
    kind.eq_ignore_ascii_case(FORM)
}

/// The refusal of a POST to a bucket that is not a form.
pub(in crate::protocol::s3) fn no_form() -> Refusal {
    Refusal::new(Reason::ConditionNotMet)
        .message("At least one of the pre-conditions you specified did not hold")
        .detail(Detail::Condition, "Bucket POST must be of the enclosure-type multipart/form-data")
}

/// The refusal of a body that is not a well-formed form.
pub(super) fn malformed() -> Refusal {
    Reason::MalformedForm.into()
}

impl Boundary {
    /// The boundary of a form.
    ///
    /// # Errors
    /// `ConditionNotMet` when the request is not a form, `MalformedForm` when it names no boundary.
    pub fn of(head: &Parts) -> Result<Self, Refusal> {
        if !is_form(head) {
            return Err(no_form());
        }
        let text = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let mut parameters = text.unwrap_or("").split(';').skip(1);
        let boundary = parameters.find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("boundary").then_some(value.trim())
        });
        let quoted = boundary.and_then(|text| text.strip_prefix('"')?.strip_suffix('"'));
        Self::new(quoted.or(boundary).unwrap_or("")).ok_or_else(malformed)
    }

    /// A boundary; `None` when it is empty, too long, or not of printable characters.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let is_fit = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        if text.is_empty() || text.len() > BOUNDARY_BYTES_MAX || !text.bytes().all(is_fit) {
            return None;
        }
        Some(Self(format!("\r\n--{text}").into()))
    }

    /// The delimiter before and behind each part.
    pub(super) const fn delimiter(&self) -> &Bytes {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &str) -> Result<Boundary, Reason> {
        let request = http::Request::post("/b").header("content-type", kind).body(()).unwrap();
        Boundary::of(&request.into_parts().0).map_err(|refusal| refusal.reason)
    }

    #[test]
    fn boundaries_are_read() {
        for (kind, boundary) in [
            ("multipart/form-data; boundary=abc", "abc"),
            ("Multipart/Form-Data;Boundary=\"a b\"; charset=utf-8", "a b"),
            ("multipart/form-data; charset=utf-8; boundary=--x==", "--x=="),
        ] {
            assert_eq!(of(kind), Ok(Boundary::new(boundary).unwrap()), "{kind}");
        }
        let long = format!("multipart/form-data; boundary={}", "x".repeat(257));
        for kind in ["multipart/form-data", "multipart/form-data; boundary=", &long] {
            assert_eq!(of(kind), Err(Reason::MalformedForm), "{kind}");
        }
        for kind in ["", "text/html", "multipart/mixed; boundary=a", "multipart/form-datax"] {
            assert_eq!(of(kind), Err(Reason::ConditionNotMet), "{kind}");
        }
    }

    #[test]
    fn only_posts_without_a_query_announce_forms() {
        let kind = "multipart/form-data; boundary=abc";
        for (method, path, is) in [
            ("POST", "/b", true),
            ("POST", "/b/?", true),
            ("POST", "/b?delete", false),
            ("POST", "/?comp=batch", false),
            ("PUT", "/b/k", false),
        ] {
            let request = http::Request::builder().method(method).uri(path);
            let head = request.header("content-type", kind).body(()).unwrap().into_parts().0;
            assert_eq!(announces(&head), is, "{method} {path}");
        }
    }
}
