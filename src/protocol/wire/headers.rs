//! Reading single request headers.

use http::HeaderMap;
use http::header::AsHeaderName;
use uuid::Uuid;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::wire::guid;
use crate::types::Md5;

/// A refused header value, named in the body.
pub(in crate::protocol) fn invalid(name: &str, value: &str) -> Refusal {
    Refusal::new(Reason::InvalidHeaderValue)
        .detail(Detail::HeaderName, name)
        .detail(Detail::HeaderValue, value)
}

/// A header's name: a text, or a parsed name, which is found faster.
pub(in crate::protocol) trait Name: AsHeaderName + AsRef<str> + Copy {}

impl<T: AsHeaderName + AsRef<str> + Copy> Name for T {}

/// A header's text; empty counts as absent. Given twice or beyond ASCII is `InvalidHeaderValue`.
pub(in crate::protocol) fn text(
    headers: &HeaderMap,
    name: impl Name,
) -> Result<Option<&str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value
        .to_str()
        .map_err(|_| invalid(name.as_ref(), &String::from_utf8_lossy(value.as_bytes())))?;
    if values.next().is_some() {
        return Err(invalid(name.as_ref(), text));
    }
    let text = text.trim();
    Ok(if text.is_empty() { None } else { Some(text) })
}

/// `true` or `false`; absent is false.
pub(in crate::protocol) fn flag(headers: &HeaderMap, name: impl Name) -> Result<bool, Refusal> {
    match text(headers, name)? {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case("true") => Ok(true),
        Some(value) if value.eq_ignore_ascii_case("false") => Ok(false),
        Some(value) => Err(invalid(name.as_ref(), value)),
    }
}

/// A whole number, 0 or more.
pub(in crate::protocol) fn number(headers: &HeaderMap, name: &str) -> Result<Option<u64>, Refusal> {
    let Some(value) = text(headers, name)? else { return Ok(None) };
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| value.parse().ok()).flatten();
    number.map(Some).ok_or_else(|| invalid(name, value))
}

/// A GUID, in any spelling of .NET.
pub(in crate::protocol) fn guid(
    headers: &HeaderMap,
    name: impl Name,
) -> Result<Option<Uuid>, Refusal> {
    let Some(value) = text(headers, name)? else { return Ok(None) };
    guid::parse(value).map(Some).ok_or_else(|| invalid(name.as_ref(), value))
}

/// A header that holds an MD5.
pub(in crate::protocol) fn md5(
    headers: &HeaderMap,
    name: impl Name,
) -> Result<Option<Md5>, Refusal> {
    let Some(value) = text(headers, name)? else { return Ok(None) };
    let refused = || {
        Refusal::new(Reason::InvalidMd5)
            .detail(Detail::HeaderName, name.as_ref())
            .detail(Detail::HeaderValue, value)
    };
    Md5::from_base64(value).map(Some).ok_or_else(refused)
}
