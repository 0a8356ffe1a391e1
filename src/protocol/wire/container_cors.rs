//! Cross-origin rules of a container: which of them a browser's request meets, and what its answer
//! carries then.
//!
//! Source: S3, "Using cross-origin resource sharing (CORS)". Rules are tried in order, the first
//! that fits counts. Origins and headers of a rule may have one `*`; headers are compared without
//! case.

use http::HeaderMap;

use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::wire::cors::CorsHeaders;
use crate::protocol::wire::headers;
use crate::types::CrossOriginRule;

/// The request headers that determine an answer, for caches.
const VARY: &str = "Origin, Access-Control-Request-Headers, Access-Control-Request-Method";
/// Methods that a preflight request may ask about.
const METHODS: [&str; 5] = ["GET", "PUT", "HEAD", "POST", "DELETE"];

/// The answer to a preflight request.
///
/// # Errors
/// `IncompletePreflight` without origin or method; `CorsPreflightFailure` when no rule fits.
pub fn preflight(all: &HeaderMap, rules: &[CrossOriginRule]) -> Result<CorsHeaders, Refusal> {
    let needed = |name: &str, message: &str| {
        let missing = || Refusal::new(Reason::IncompletePreflight).message(message);
        headers::text(all, name)?.ok_or_else(missing)
    };
    let origin = needed("origin", "Insufficient information. Origin request header needed.")?;
    let method =
        needed("access-control-request-method", "Invalid Access-Control-Request-Method: null")?;
    if !METHODS.contains(&method) {
        let message = format!("Invalid Access-Control-Request-Method: {method}");
        return Err(Refusal::new(Reason::IncompletePreflight).message(message));
    }
    if rules.is_empty() {
        return Err(Refusal::new(Reason::CorsPreflightFailure)
            .message("CORSResponse: CORS is not enabled for this bucket."));
    }
    let requested = headers::text(all, "access-control-request-headers")?.unwrap_or("");
    let requested = || requested.split(',').map(str::trim).filter(|name| !name.is_empty());
    let allows_header = |rule: &CrossOriginRule, name: &str| {
        rule.headers.iter().any(|allowed| fits_header(allowed, name))
    };
    let fits = |rule: &&CrossOriginRule| {
        allows(rule, origin, method) && requested().all(|name| allows_header(rule, name))
    };
    let rule = rules.iter().find(fits).ok_or(Reason::CorsPreflightFailure)?;
    let mut out = of_rule(rule, origin);
    if requested().next().is_some() {
        let names: Vec<String> = requested().map(str::to_ascii_lowercase).collect();
        out.push(("access-control-allow-headers", names.join(", ")));
    }
    Ok(out)
}

/// The headers that the answer to an actual request gets: none without an `Origin`.
#[must_use]
pub fn actual(all: &HeaderMap, method: &str, rules: &[CrossOriginRule]) -> CorsHeaders {
    let origin = all.get("origin").and_then(|origin| origin.to_str().ok());
    let Some(origin) = origin.filter(|_| !rules.is_empty()) else { return Vec::new() };
    match rules.iter().find(|rule| allows(rule, origin, method)) {
        Some(rule) => of_rule(rule, origin),
        None => vec![("vary", VARY.to_owned())],
    }
}

fn allows(rule: &CrossOriginRule, origin: &str, method: &str) -> bool {
    rule.origins.iter().any(|allowed| fits(allowed, origin))
        && rule.methods.iter().any(|allowed| allowed == method)
}

fn of_rule(rule: &CrossOriginRule, origin: &str) -> CorsHeaders {
    let is_open = rule.origins.iter().any(|allowed| allowed == "*");
    let mut out = vec![
        ("access-control-allow-origin", if is_open { "*" } else { origin }.to_owned()),
        ("access-control-allow-methods", rule.methods.join(", ")),
        ("vary", VARY.to_owned()),
    ];
    if !is_open {
        out.push(("access-control-allow-credentials", "true".to_owned()));
    }
    if !rule.exposed.is_empty() {
        out.push(("access-control-expose-headers", rule.exposed.join(", ")));
    }
    if let Some(seconds) = rule.max_age {
        out.push(("access-control-max-age", seconds.to_string()));
    }
    out
}

/// Whether a text fits a pattern with at most one `*`.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        Some((begin, end)) => {
            let rest = text.strip_prefix(begin);
            rest.is_some_and(|rest| rest.ends_with(end))
        }
        None => pattern == text,
    }
}

fn fits_header(pattern: &str, name: &str) -> bool {
    fits(&pattern.to_ascii_lowercase(), &name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn rule(origins: &[&str], methods: &[&str], headers: &[&str]) -> CrossOriginRule {
        CrossOriginRule {
            id: None,
            origins: texts(origins),
            methods: texts(methods),
            headers: texts(headers),
            exposed: texts(&["ETag", "x-amz-meta-a"]),
            max_age: Some(60),
        }
    }

    fn request(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &'static str)| {
            (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
        };
        pairs.iter().map(header).collect()
    }

    fn get<'a>(headers: &'a CorsHeaders, name: &str) -> Option<&'a str> {
        headers.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn patterns_have_one_wildcard() {
        for (pattern, text, expected) in [
            ("*", "http://a", true),
            ("http://*.a", "http://x.a", true),
            ("http://*.a", "http://.a", true),
            ("http://*.a", "http://a", false),
            ("ab*ba", "aba", false),
            ("ab*ba", "abba", true),
            ("http://a", "http://a", true),
            ("http://a", "http://ab", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
        assert!(fits_header("X-Amz-*", "x-amz-DATE"));
    }

    #[test]
    fn preflight_meets_the_first_rule_that_fits() {
        let rules = [
            rule(&["http://*.a"], &["PUT", "POST"], &["x-amz-*", "Content-Type"]),
            rule(&["*"], &["GET"], &[]),
        ];
        let ask = |origin, method, names| {
            let all = request(&[
                ("origin", origin),
                ("access-control-request-method", method),
                ("access-control-request-headers", names),
            ]);
            preflight(&all, &rules)
        };
        let found = ask("http://x.a", "PUT", "X-Amz-Date, content-type").unwrap();
        assert_eq!(get(&found, "access-control-allow-origin"), Some("http://x.a"));
        assert_eq!(get(&found, "access-control-allow-credentials"), Some("true"));
        assert_eq!(get(&found, "access-control-allow-methods"), Some("PUT, POST"));
        assert_eq!(get(&found, "access-control-allow-headers"), Some("x-amz-date, content-type"));
        assert_eq!(get(&found, "access-control-expose-headers"), Some("ETag, x-amz-meta-a"));
        assert_eq!(get(&found, "access-control-max-age"), Some("60"));
        let open = ask("http://b", "GET", "").unwrap();
        assert_eq!(get(&open, "access-control-allow-origin"), Some("*"));
        assert_eq!(get(&open, "access-control-allow-credentials"), None);
        assert_eq!(get(&open, "access-control-allow-headers"), None);
        let refused = Reason::CorsPreflightFailure;
        assert_eq!(ask("http://b", "PUT", "").unwrap_err().reason, refused);
        assert_eq!(ask("http://x.a", "PUT", "accept").unwrap_err().reason, refused);
        assert_eq!(ask("http://b", "GET", "accept").unwrap_err().reason, refused);
        let incomplete = Reason::IncompletePreflight;
        assert_eq!(ask("http://x.a", "PATCH", "").unwrap_err().reason, incomplete);
        let without = |pairs| preflight(&request(pairs), &rules).unwrap_err().reason;
        assert_eq!(without(&[("origin", "http://b")]), incomplete);
        assert_eq!(without(&[("access-control-request-method", "GET")]), incomplete);
        let all = request(&[("origin", "a"), ("access-control-request-method", "GET")]);
        assert_eq!(preflight(&all, &[]).unwrap_err().reason, refused);
    }

    #[test]
    fn answers_to_actual_requests_say_what_they_depend_on() {
        let rules = [rule(&["http://a"], &["GET"], &[])];
        let of = |origin, method| actual(&request(&[("origin", origin)]), method, &rules);
        let found = of("http://a", "GET");
        assert_eq!(get(&found, "access-control-allow-origin"), Some("http://a"));
        assert_eq!(get(&found, "vary"), Some(VARY));
        assert_eq!(of("http://b", "GET"), [("vary", VARY.to_owned())]);
        assert_eq!(of("http://a", "PUT"), [("vary", VARY.to_owned())]);
        assert!(actual(&HeaderMap::new(), "GET", &rules).is_empty());
        assert!(actual(&request(&[("origin", "http://a")]), "GET", &[]).is_empty());
    }
}
