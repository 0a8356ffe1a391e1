//! Cross-origin rules: which of an account's rules a browser's request meets, and what its answer
//! carries then.
//!
//! Source: "Cross-Origin Resource Sharing (CORS) support for Azure Storage". Rules are tried in
//! order, the first that fits counts; origins are compared exactly, unless that of a rule names all
//! subdomains (`http://*.contoso.com`); headers are compared without case, a header of a rule may
//! end in `*`.

use http::HeaderMap;

use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::wire::headers;
use crate::types::CorsRule;

/// Headers of an answer, by name.
pub type CorsHeaders = Vec<(&'static str, String)>;

/// The answer to a preflight request.
///
/// # Errors
/// `InvalidHeaderValue` without origin or method; `CorsPreflightFailure` when no rule fits.
pub fn preflight(all: &HeaderMap, rules: &[CorsRule]) -> Result<CorsHeaders, Refusal> {
    let needed = |name: &'static str| {
        let text = "A required CORS header is not present.";
        let missing = || Refusal::new(Reason::InvalidHeaderValue).message(text);
        headers::text(all, name)?.ok_or_else(missing)
    };
    let (origin, method) = (needed("origin")?, needed("access-control-request-method")?);
    let requested = headers::text(all, "access-control-request-headers")?.unwrap_or("");
    let fits = |rule: &&CorsRule| {
        allows_origin(rule, origin)
            && list(&rule.allowed_methods).any(|allowed| allowed == method)
            && list(requested).all(|name| allows_header(rule, name))
    };
    let rule = rules.iter().find(fits).ok_or(Reason::CorsPreflightFailure)?;
    let mut out = origin_headers(rule, origin);
    out.push(("access-control-allow-methods", method.to_owned()));
    if !requested.is_empty() {
        out.push(("access-control-allow-headers", requested.to_owned()));
    }
    out.push(("access-control-max-age", rule.max_age.to_string()));
    Ok(out)
}

/// The headers that the answer to an actual request gets: none without an `Origin`.
#[must_use]
pub fn actual(all: &HeaderMap, method: &str, rules: &[CorsRule]) -> CorsHeaders {
    let Some(origin) = all.get("origin").and_then(|origin| origin.to_str().ok()) else {
        return Vec::new();
    };
    let fits = |rule: &&CorsRule| {
        allows_origin(rule, origin) && list(&rule.allowed_methods).any(|allowed| allowed == method)
    };
    match rules.iter().find(fits) {
        Some(rule) => {
            let mut out = origin_headers(rule, origin);
            if !rule.exposed_headers.is_empty() {
                out.push(("access-control-expose-headers", rule.exposed_headers.clone()));
            }
            out
        }
        // Another origin may be answered otherwise, which a cache has to know.
        None if rules.iter().any(|rule| !is_open(rule)) => vec![("vary", "Origin".to_owned())],
        None => Vec::new(),
    }
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn is_open(rule: &CorsRule) -> bool {
    list(&rule.allowed_origins).any(|origin| origin == "*")
}

fn allows_origin(rule: &CorsRule, origin: &str) -> bool {
    is_open(rule) || list(&rule.allowed_origins).any(|allowed| fits_origin(allowed, origin))
}

/// Whether an origin is the one of a rule, or one of its subdomains if its host starts with `*.`:
/// one or more labels then stand for the `*`. An origin of a rule that has no scheme is compared
/// with the whole origin.
fn fits_origin(allowed: &str, origin: &str) -> bool {
    let (scheme, host) = match allowed.split_once("://") {
        Some((scheme, host)) => (Some(scheme), host),
        None => (None, allowed),
    };
    let Some(domain) = host.strip_prefix('*').filter(|domain| domain.starts_with('.')) else {
        return allowed == origin;
    };
    let of_scheme = match (scheme, origin.split_once("://")) {
        (None, _) => Some(origin),
        (Some(scheme), Some((other, host))) if scheme.eq_ignore_ascii_case(other) => Some(host),
        (Some(_), _) => None,
    };
    let labels = of_scheme.and_then(|host| host.len().checked_sub(domain.len()).zip(Some(host)));
    labels.and_then(|(len, host)| host.split_at_checked(len)).is_some_and(|(labels, end)| {
        let is_whole = !labels.is_empty() && !labels.starts_with('.') && !labels.ends_with('.');
        is_whole && end.eq_ignore_ascii_case(domain)
    })
}

fn allows_header(rule: &CorsRule, name: &str) -> bool {
    list(&rule.allowed_headers).any(|allowed| match allowed.strip_suffix('*') {
        Some(prefix) => {
            name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        }
        None => allowed.eq_ignore_ascii_case(name),
    })
}

fn origin_headers(rule: &CorsRule, origin: &str) -> CorsHeaders {
    if is_open(rule) {
        return vec![("access-control-allow-origin", "*".to_owned())];
    }
    vec![
        ("access-control-allow-origin", origin.to_owned()),
        ("access-control-allow-credentials", "true".to_owned()),
        ("vary", "Origin".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(origins: &str, methods: &str, headers: &str) -> CorsRule {
        CorsRule {
            allowed_origins: origins.to_owned(),
            allowed_methods: methods.to_owned(),
            allowed_headers: headers.to_owned(),
            exposed_headers: "x-ms-meta-*".to_owned(),
            max_age: 60,
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
    fn an_origin_may_name_all_subdomains() {
        let fits = |allowed: &str, origin: &str| allows_origin(&rule(allowed, "GET", ""), origin);
        for (origin, is_subdomain) in [
            ("http://a.contoso.com", true),
            ("http://a.b.contoso.com", true),
            ("http://A.Contoso.com", true),
            ("http://contoso.com", false),
            ("http://.contoso.com", false),
            ("http://notcontoso.com", false),
            ("https://a.contoso.com", false),
            ("http://a.contoso.com:81", false),
            ("http://a.contoso.com.evil", false),
        ] {
            assert_eq!(fits("http://x, http://*.contoso.com", origin), is_subdomain, "{origin}");
        }
        assert!(fits("*.contoso.com", "https://a.contoso.com"));
        assert!(!fits("*.contoso.com", "https://contoso.com"));
        assert!(fits("http://*.contoso.com:81", "http://a.contoso.com:81"));
        for elsewhere in ["http://a.*.com", "http://*", "http://*contoso.com"] {
            assert!(!fits(elsewhere, "http://a.contoso.com"), "{elsewhere}");
        }
        let rules = [rule("http://*.contoso.com", "GET", "")];
        let found = actual(&request(&[("origin", "http://a.contoso.com")]), "GET", &rules);
        assert_eq!(get(&found, "access-control-allow-origin"), Some("http://a.contoso.com"));
        assert_eq!(get(&found, "access-control-allow-credentials"), Some("true"));
        assert_eq!(get(&found, "vary"), Some("Origin"));
    }

    #[test]
    fn preflight_meets_the_first_rule_that_fits() {
        let rules = [rule("http://a", "PUT", "x-ms-meta-*, Accept"), rule("*", "GET", "")];
        let put = |origin, headers| {
            preflight(
                &request(&[
                    ("origin", origin),
                    ("access-control-request-method", "PUT"),
                    ("access-control-request-headers", headers),
                ]),
                &rules,
            )
        };
        let found = put("http://a", "X-MS-META-one, accept").unwrap();
        assert_eq!(get(&found, "access-control-allow-origin"), Some("http://a"));
        assert_eq!(get(&found, "access-control-allow-credentials"), Some("true"));
        assert_eq!(get(&found, "access-control-allow-methods"), Some("PUT"));
        assert_eq!(get(&found, "access-control-allow-headers"), Some("X-MS-META-one, accept"));
        assert_eq!(get(&found, "access-control-max-age"), Some("60"));
        let refused = Reason::CorsPreflightFailure;
        assert_eq!(put("http://A", "").unwrap_err().reason, refused);
        assert_eq!(put("http://a", "x-ms-date").unwrap_err().reason, refused);
        assert_eq!(put("http://b", "accept").unwrap_err().reason, refused);
        let open = preflight(
            &request(&[("origin", "http://b"), ("access-control-request-method", "GET")]),
            &rules,
        );
        let open = open.unwrap();
        assert_eq!(get(&open, "access-control-allow-origin"), Some("*"));
        assert_eq!(get(&open, "access-control-allow-credentials"), None);
        let bare = preflight(&request(&[("origin", "http://a")]), &rules);
        assert_eq!(bare.unwrap_err().reason, Reason::InvalidHeaderValue);
    }

    #[test]
    fn answers_to_actual_requests_name_the_origin_and_what_it_may_read() {
        let rules = [rule("http://a", "GET", "")];
        let of = |origin, method| actual(&request(&[("origin", origin)]), method, &rules);
        let found = of("http://a", "GET");
        assert_eq!(get(&found, "access-control-allow-origin"), Some("http://a"));
        assert_eq!(get(&found, "access-control-expose-headers"), Some("x-ms-meta-*"));
        assert_eq!(get(&found, "vary"), Some("Origin"));
        assert_eq!(of("http://b", "GET"), [("vary", "Origin".to_owned())]);
        assert_eq!(of("http://a", "PUT"), [("vary", "Origin".to_owned())]);
        assert!(actual(&HeaderMap::new(), "GET", &rules).is_empty());
        assert!(actual(&request(&[("origin", "http://a")]), "GET", &[]).is_empty());
    }
}
