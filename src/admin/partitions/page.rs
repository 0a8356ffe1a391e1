//! The page that draws the partition map. It holds no data: it asks the user for the token and
//! requests the data with it.

use axum::http::header::CACHE_CONTROL;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::http::header::CONTENT_TYPE;
use axum::http::header::REFERRER_POLICY;
use axum::response::IntoResponse;

const PAGE: &str = include_str!("page.html");
/// The page loads nothing from other hosts, and no other page may frame it.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// `GET /partitions`
pub(crate) async fn show() -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_needs_nothing_else() {
        assert!(PAGE.len() < 30_000, "{} bytes", PAGE.len());
        for outside in ["http://", "https://", "src=\"/", "@import", "url("] {
            assert!(!PAGE.contains(outside), "{outside}");
        }
    }
}
