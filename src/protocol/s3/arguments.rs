//! Query parameters of lists.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::wire::query;
use crate::protocol::wire::query::Query;

/// Entries of one page at most, and by default.
const KEYS_MAX: u32 = 1_000;

/// A wrong value of a parameter.
pub(super) fn wrong(name: &str, value: &str, message: impl Into<String>) -> Refusal {
    query::invalid(name, value).message(message)
}

/// A number of the query; `None` when it is missing.
///
/// # Errors
/// `InvalidQueryParameterValue`: not a number, negative, or beyond 31 bits.
pub(super) fn number(query: &Query, name: &str) -> Result<Option<u32>, Refusal> {
    let Some(text) = query.get(name)? else { return Ok(None) };
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.trim_start_matches('0');
    let number: Option<i64> = if number.is_empty() { Some(0) } else { number.parse().ok() };
    let number = number.filter(|number| is_number && *number <= i64::from(i32::MAX));
    let number = number.and_then(|number| u32::try_from(number).ok()).ok_or_else(|| {
        wrong(name, text, format!("Provided {name} not an integer or within integer range"))
    })?;
    if number > 0 && text.starts_with('-') {
        let message = format!("Argument {name} must be an integer between 0 and {}", i32::MAX);
        return Err(wrong(name, text, message));
    }
    Ok(Some(number))
}

/// The number of entries of a page, as it was sent. An answer repeats it, but never has more than
/// 1,000 entries.
///
/// # Errors
/// Those of [`number`].
pub(super) fn page_size(query: &Query, name: &str) -> Result<u32, Refusal> {
    Ok(number(query, name)?.unwrap_or(KEYS_MAX))
}

/// The most entries of a page for which this size was requested.
pub(super) fn served(page_size: u32) -> u32 {
    page_size.min(KEYS_MAX)
}

/// The number of buckets of a page.
///
/// # Errors
/// `InvalidQueryParameterValue`: not a number between 1 and `max`.
pub(super) fn buckets_max(query: &Query, max: u32) -> Result<Option<u32>, Refusal> {
    let Some(text) = query.get("max-buckets")? else { return Ok(None) };
    let number = text.parse().ok().filter(|number| (1..=max).contains(number));
    let message = || format!("max-buckets must be an integer between 1 and {max}.");
    number.map(Some).ok_or_else(|| wrong("max-buckets", text, message()))
}

/// The token of the next page.
///
/// # Errors
/// `InvalidQueryParameterValue`: no answer has such a token.
pub(super) fn token(query: &Query, name: &str) -> Result<Option<String>, Refusal> {
    let text = query.get(name)?;
    let is_token =
        text.is_some_and(|text| URL_SAFE_NO_PAD.decode(text).is_ok_and(|at| !at.is_empty()));
    if query.has(name) && !is_token {
        return Err(Refusal::new(Reason::InvalidQueryParameterValue)
            .message("The continuation token provided is incorrect")
            .detail(Detail::ParameterName, name));
    }
    Ok(text.map(str::to_owned))
}

/// Whether names are percent-encoded in the answer.
///
/// # Errors
/// `InvalidQueryParameterValue`: another encoding than `url`.
pub(super) fn is_encoded(query: &Query) -> Result<bool, Refusal> {
    match query.get("encoding-type")? {
        None if query.has("encoding-type") => {
            Err(wrong("encoding-type", "", "Invalid Encoding Method specified in Request"))
        }
        None => Ok(false),
        Some(text) if text.eq_ignore_ascii_case("url") => Ok(true),
        Some(text) => {
            Err(wrong("encoding-type", text, "Invalid Encoding Method specified in Request"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::parse_exact(Some(text)).unwrap()
    }

    #[test]
    fn page_sizes_are_integers_of_31_bits() {
        for (text, size) in [
            ("", 1_000),
            ("max-keys=", 1_000),
            ("max-keys=0", 0),
            ("max-keys=-0", 0),
            ("max-keys=05", 5),
            ("max-keys=000000000000000000005", 5),
            ("max-keys=1001", 1_001),
            ("max-keys=2147483647", 2_147_483_647),
        ] {
            assert_eq!(page_size(&query(text), "max-keys"), Ok(size), "{text}");
        }
        assert_eq!((served(7), served(5_000)), (7, 1_000));
        for text in ["x", "-1", "+5", " 5", "2147483648", "99999999999999999999", "-", "1.0"] {
            let refused = page_size(&query(&format!("max-keys={text}")), "max-keys").unwrap_err();
            assert_eq!(refused.reason, Reason::InvalidQueryParameterValue, "{text}");
        }
    }

    #[test]
    fn tokens_are_those_of_answers() {
        assert_eq!(token(&query(""), "t"), Ok(None));
        assert_eq!(token(&query("t=AAAA"), "t"), Ok(Some("AAAA".to_owned())));
        for text in ["t=", "t", "t=a%20b", "t=A", "t=AA%3D%3D"] {
            let refused = token(&query(text), "t").unwrap_err();
            assert_eq!(refused.reason, Reason::InvalidQueryParameterValue, "{text}");
        }
    }

    #[test]
    fn buckets_are_counted_from_one() {
        assert_eq!(buckets_max(&query("max-buckets=10000"), 10_000), Ok(Some(10_000)));
        for text in ["0", "10001", "-1", "x"] {
            assert!(buckets_max(&query(&format!("max-buckets={text}")), 10_000).is_err(), "{text}");
        }
    }
}
