//! The token service: recognises and parses its calls, and renders its documents. It is served on
//! the same ports as S3.
//!
//! Source: AWS Security Token Service API reference, "Actions" and "Common Error Types".

mod call;
mod render;

use http::Method;
use http::header::AUTHORIZATION;
use http::header::CONTENT_TYPE;
use http::request::Parts;

pub use call::{Call, Parameters, RoleArn, RoleCall, parse};
pub use render::{Answer, Credentials, Identity, StsEcho, error, render};

use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::s3::errors::error_row;

/// The longest body of a call, bytes. A token of an issuer has at most 16 KiB.
pub const BODY_BYTES_MAX: usize = 64 << 10;

/// The type of bodies of calls.
const FORM: &str = "application/x-www-form-urlencoded";

/// Names of calls, for metrics, logs and the fault dial. The last one stands for calls that are not
/// served.
pub const CALL_NAMES: [&str; 4] =
    ["AssumeRole", "AssumeRoleWithWebIdentity", "GetCallerIdentity", "TokenService"];

/// Why a call is refused: a code of the token service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StsError {
    /// The code.
    pub code: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// The text, for the client.
    pub message: String,
}

impl StsError {
    /// A call that is not valid.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { code: "ValidationError", status: 400, message: message.into() }
    }

    /// A call that its sender may not make.
    pub fn denied(message: impl Into<String>) -> Self {
        Self { code: "AccessDenied", status: 403, message: message.into() }
    }

    /// The code of the token service for a refusal.
    #[must_use]
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others have the code of S3")]
    pub fn of(refusal: &Refusal) -> Self {
        let row = error_row(refusal.reason);
        let (code, status, own) = match refusal.reason {
            Reason::UnknownAccessKey | Reason::InvalidSessionToken => (
                "InvalidClientTokenId",
                403,
                "The security token included in the request is invalid.",
            ),
            Reason::ExpiredSessionToken => {
                ("ExpiredToken", 403, "The security token included in the request is expired")
            }
            Reason::AuthenticationFailed => ("SignatureDoesNotMatch", 403, row.message),
            Reason::RequestTimeTooSkewed => (
                "SignatureDoesNotMatch",
                403,
                "Signature expired: the time of the request is too far from the server's.",
            ),
            Reason::InvalidAuthenticationInfo
            | Reason::MalformedQueryAuthentication
            | Reason::InvalidHeaderValue => ("IncompleteSignature", 400, row.message),
            Reason::NoAuthenticationInformation => {
                ("MissingAuthenticationToken", 403, "Request is missing Authentication Token")
            }
            Reason::RequestBodyTooLarge => ("RequestEntityTooLarge", 413, "The call is too large."),
            Reason::ServerBusy => ("ServiceUnavailable", 503, "Please reduce your request rate."),
            Reason::InternalError => ("InternalFailure", 500, row.message),
            _ => (row.code, row.status, row.message),
        };
        Self { code, status, message: refusal.message.clone().unwrap_or_else(|| own.to_owned()) }
    }
}

/// Whether a request calls the token service: the root of a host, with a form or with a query that
/// names an action. No request of Azure or S3 matches.
#[must_use]
pub fn is_call(head: &Parts) -> bool {
    if head.uri.path() != "/" {
        return false;
    }
    let names = |wanted: &str| {
        let pieces = head.uri.query().unwrap_or("").split('&');
        pieces.map(|piece| piece.split('=').next().unwrap_or("")).any(|name| name == wanted)
    };
    let is_signed = head.headers.get(AUTHORIZATION).is_none_or(|value| {
        value.as_bytes().starts_with(b"AWS4-") || value.as_bytes().starts_with(b"AWS ")
    });
    let is_azure = head.headers.contains_key("x-ms-version") || names("comp") || names("restype");
    let has_form = head.method == Method::POST
        && head.headers.get(CONTENT_TYPE).is_some_and(|value| is_form(value.as_bytes()));
    is_signed && !is_azure && (has_form || names("Action"))
}

fn is_form(value: &[u8]) -> bool {
    let value = value.split(|byte| *byte == b';').next().unwrap_or_default();
    value.trim_ascii().eq_ignore_ascii_case(FORM.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn calls_are_distinguished_from_requests_of_azure_and_s3() {
        let form = ("content-type", "application/x-www-form-urlencoded; charset=utf-8");
        let v4 = ("authorization", "AWS4-HMAC-SHA256 Credential=");
        for (method, uri, headers) in [
            ("POST", "/", &[form][..]),
            ("POST", "/", &[form, v4]),
            ("POST", "/?Action=AssumeRole", &[]),
            ("GET", "/?Version=2011-06-15&Action=GetCallerIdentity", &[v4]),
            ("GET", "/?Action=GetCallerIdentity&X-Amz-Signature=1", &[]),
        ] {
            assert!(is_call(&head(method, uri, headers)), "{method} {uri}");
        }
        for (method, uri, headers) in [
            ("GET", "/", &[v4][..]),
            ("GET", "/", &[form]),
            ("POST", "/", &[("content-type", "application/xml")]),
            ("POST", "/", &[("content-type", "multipart/form-data; boundary=x")]),
            ("POST", "/bucket", &[form, v4]),
            ("GET", "/a/b?Action=AssumeRole", &[v4]),
            ("POST", "/?comp=batch", &[form]),
            ("POST", "/?restype=service&comp=userdelegationkey", &[form]),
            ("POST", "/", &[form, ("authorization", "Bearer x")]),
            ("POST", "/", &[form, ("authorization", "SharedKey a:b")]),
            ("POST", "/", &[form, ("x-ms-version", "2021-12-02")]),
            ("GET", "/?comp=list&Action=x", &[]),
            ("GET", "/?action=x", &[]),
        ] {
            assert!(!is_call(&head(method, uri, headers)), "{method} {uri} {headers:?}");
        }
    }
}
