//! Which requests a session may make, and how a session is named in a cookie.
//!
//! A browser sends a cookie with every request to this host, whichever page asks, and with requests
//! to other ports of it too. So a session only reads, and only for pages of this listener:
//! `Sec-Fetch-Site`, `Origin` and a header of ours say which page asks, and a page cannot change
//! them
//! (<https://www.w3.org/TR/fetch-metadata/>, <https://fetch.spec.whatwg.org/#origin-header>).

use std::time::Duration;

use axum::extract::Request;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::Method;
use axum::http::header::AUTHORIZATION;
use axum::http::header::COOKIE;
use axum::http::header::HOST;
use axum::http::header::ORIGIN;
use axum::middleware::Next;
use axum::response::Response;

use crate::admin::answer::Failure;
use crate::admin::token;
use crate::admin::token::Token;
use crate::audit_log::Principal;

use super::Console;

/// A header of the console's own scripts. Another site would have to be allowed to send it, and
/// none is. Browsers leave `Sec-Fetch-Site` out of plain http to other machines.
const OWN_SCRIPT: &str = "x-blockyard-console";
/// Which page asks.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// The state that the routes for sessions need.
#[derive(Clone, Debug)]
pub(in crate::admin) struct Readers {
    pub(in crate::admin) token: Token,
    pub(in crate::admin) console: Console,
}

/// Refuses requests without the token or a session.
pub(in crate::admin) async fn required(
    State(Readers { token, console }): State<Readers>,
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let headers = request.headers();
    // A token always takes precedence over a cookie, so that a wrong token is refused.
    let by_cookie = reads
        && !headers.contains_key(AUTHORIZATION)
        && headers.contains_key(OWN_SCRIPT)
        && is_own_page(headers);
    let session = session(headers).filter(|_| by_cookie);
    if session.is_some_and(|session| console.sessions.is_open(session, console.now())) {
        let mut response = next.run(request).await;
        response.extensions_mut().insert(Principal::Console);
        return Ok(response);
    }
    token::required(State(token), request, next).await
}

/// Whether no other page than one of this listener asks. A client that is not a browser sends
/// neither header.
pub(super) fn is_own_page(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(HOST.as_str()).unwrap_or_default();
    let site = text(SEC_FETCH_SITE).is_none_or(|site| matches!(site, "same-origin" | "none"));
    let origin = text(ORIGIN.as_str()).is_none_or(|origin| {
        let at = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        at.is_some_and(|at| at.eq_ignore_ascii_case(host))
    });
    site && origin
}

/// The session that a request's cookie names.
pub(super) fn session(headers: &HeaderMap) -> Option<&str> {
    let name = cookie_name(headers);
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut cookies = lines.flat_map(|line| line.split(';')).filter_map(|one| one.split_once('='));
    cookies.find(|(shown, _)| shown.trim() == name).map(|(_, value)| value.trim())
}

/// The header that gives a browser a session, or takes it away again if `life` is zero.
pub(super) fn cookie(headers: &HeaderMap, session: &str, life: Duration, secure: bool) -> String {
    let (name, life) = (cookie_name(headers), life.as_secs());
    let secure = if secure { "; Secure" } else { "" };
    format!("{name}={session}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict{secure}")
}

/// Cookies are not kept apart by port, so nodes on one machine have different names for theirs.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    format!("blockyard_console_{}", port.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let parsed = lines
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        parsed.collect()
    }

    #[test]
    fn only_own_pages_and_other_programs_ask() {
        let host = ("host", "127.0.0.1:10080");
        for (lines, own) in [
            (vec![], true),
            (vec![("sec-fetch-site", "same-origin")], true),
            (vec![("sec-fetch-site", "none")], true),
            // A page of another port of this machine.
            (vec![("sec-fetch-site", "same-site")], false),
            (vec![("sec-fetch-site", "cross-site")], false),
            (vec![("origin", "http://127.0.0.1:10080")], true),
            (vec![("origin", "https://127.0.0.1:10080")], true),
            (vec![("origin", "http://127.0.0.1:9000")], false),
            (vec![("origin", "http://page.test")], false),
            (vec![("origin", "null")], false),
            (vec![("sec-fetch-site", "same-origin"), ("origin", "http://page.test")], false),
        ] {
            let all = [&[host], lines.as_slice()].concat();
            assert_eq!(is_own_page(&headers(&all)), own, "{lines:?}");
        }
    }

    #[test]
    fn a_cookie_is_read_back_under_its_port() {
        let asked = headers(&[("host", "127.0.0.1:10080")]);
        let set = cookie(&asked, "secret", Duration::from_secs(60), true);
        let expected =
            "blockyard_console_10080=secret; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure";
        assert_eq!(set, expected);
        assert!(!cookie(&asked, "", Duration::ZERO, false).contains("Secure"));
        let sent = "a=b; blockyard_console_10081=other;blockyard_console_10080=secret";
        for (host, found) in [
            ("127.0.0.1:10080", Some("secret")),
            ("[::1]:10081", Some("other")),
            ("localhost", None),
            ("[::1]", None),
        ] {
            let headers = headers(&[("host", host), ("cookie", sent)]);
            assert_eq!(session(&headers), found, "{host}");
        }
    }
}
