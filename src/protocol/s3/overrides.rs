//! Headers of the answer that the query of a read overrides.

use http::Method;
use http::request::Parts;

use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::wire::query::Query;

/// Headers of the answer that the query of a read overrides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseOverrides {
    /// `response-cache-control`.
    pub cache_control: Option<String>,
    /// `response-content-disposition`.
    pub content_disposition: Option<String>,
    /// `response-content-encoding`.
    pub content_encoding: Option<String>,
    /// `response-content-language`.
    pub content_language: Option<String>,
    /// `response-content-type`.
    pub content_type: Option<String>,
    /// `response-expires`.
    pub expires: Option<String>,
}

/// Reads the headers that the query overrides.
///
/// # Errors
/// `InvalidInput` for an anonymous caller: only signed requests may change headers.
pub fn overrides(head: &Parts, is_anonymous: bool) -> Result<ResponseOverrides, Refusal> {
    let is_read = matches!(head.method, Method::GET | Method::HEAD);
    let raw = head.uri.query().filter(|query| is_read && query.contains("response-"));
    let Some(raw) = raw else { return Ok(ResponseOverrides::default()) };
    let query = Query::parse_exact(Some(raw))?;
    let read = |name: &str| Ok::<_, Refusal>(query.get(name)?.map(str::to_owned));
    let found = ResponseOverrides {
        cache_control: read("response-cache-control")?,
        content_disposition: read("response-content-disposition")?,
        content_encoding: read("response-content-encoding")?,
        content_language: read("response-content-language")?,
        content_type: read("response-content-type")?,
        expires: read("response-expires")?,
    };
    if is_anonymous && found != ResponseOverrides::default() {
        return Err(Refusal::new(Reason::InvalidInput).message(
            "Request specific response headers cannot be used for anonymous GET requests.",
        ));
    }
    Ok(found)
}
