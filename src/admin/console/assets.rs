//! The files of the console, built into the program.

use axum::extract::Path;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::http::header::CONTENT_TYPE;
use axum::http::header::HeaderName;
use axum::http::header::LOCATION;
use axum::http::header::REFERRER_POLICY;
use axum::response::IntoResponse;
use axum::response::Response;

/// Nothing is loaded from other hosts or from the text of a page, and no page may frame another.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// The files may be used by pages of this listener only.
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

const PARTITIONS: &str = include_str!("web/partitions.html");
const LOGIN: &str = include_str!("web/login.html");

/// The files below `/console/`: name, type, text.
const FILES: [(&str, &str, &str); 14] = [
    ("console.css", STYLE, include_str!("web/console.css")),
    ("login.mjs", SCRIPT, include_str!("web/login.mjs")),
    ("partitions.mjs", SCRIPT, include_str!("web/partitions.mjs")),
    ("chart.mjs", SCRIPT, include_str!("web/chart.mjs")),
    ("html.mjs", SCRIPT, include_str!("web/html.mjs")),
    ("map.mjs", SCRIPT, include_str!("web/map.mjs")),
    ("model.mjs", SCRIPT, include_str!("web/model.mjs")),
    ("tables.mjs", SCRIPT, include_str!("web/tables.mjs")),
    ("words.mjs", SCRIPT, include_str!("web/words.mjs")),
    ("vendor/preact.mjs", SCRIPT, include_str!("web/vendor/preact.mjs")),
    ("vendor/htm.mjs", SCRIPT, include_str!("web/vendor/htm.mjs")),
    ("licences.txt", TEXT, include_str!("web/vendor/README.md")),
    ("vendor/LICENSE-preact", TEXT, include_str!("web/vendor/LICENSE-preact")),
    ("vendor/LICENSE-htm", TEXT, include_str!("web/vendor/LICENSE-htm")),
];

/// `GET /`: the first page of the console.
pub(in crate::admin) async fn root() -> impl IntoResponse {
    (StatusCode::SEE_OTHER, [(LOCATION, "partitions")], "the page is at /partitions\n")
}

/// `GET /partitions`
pub(in crate::admin) async fn partitions() -> Response {
    file(HTML, PARTITIONS)
}

/// `GET /login`
pub(in crate::admin) async fn login() -> Response {
    file(HTML, LOGIN)
}

/// `GET /console/NAME`
pub(in crate::admin) async fn named(Path(name): Path<String>) -> Response {
    let found = FILES.iter().find(|(known, ..)| *known == name);
    let Some((_, kind, text)) = found else {
        return (StatusCode::NOT_FOUND, "no such file of the console\n").into_response();
    };
    file(kind, text)
}

fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
        (RESOURCE_POLICY, "same-origin"),
    ]
    .map(|(name, value)| (name, HeaderValue::from_static(value)));
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The most bytes that a page may load.
    const PAGE_MAX: usize = 150_000;

    /// The names in `import ... from "./NAME"`, relative to the folder of `of`.
    fn imports<'a>(of: &str, text: &'a str) -> Vec<&'a str> {
        assert!(!of.starts_with("vendor/") || !text.contains(" from \""), "{of} imports something");
        text.split(" from \"./").skip(1).map(|rest| rest.split_once('"').unwrap().0).collect()
    }

    fn text(name: &str) -> &'static str {
        let found = FILES.iter().find(|(known, ..)| *known == name);
        found.unwrap_or_else(|| panic!("{name} is not served")).2
    }

    /// The files that a page loads, with all their imports.
    fn loaded(page: &str) -> BTreeSet<String> {
        let parts = page.split("=\"console/").skip(1);
        let mut left: Vec<String> =
            parts.map(|rest| rest.split_once('"').unwrap().0.to_owned()).collect();
        let mut all = BTreeSet::new();
        while let Some(name) = left.pop() {
            left.extend(imports(&name, text(&name)).into_iter().map(str::to_owned));
            all.insert(name);
        }
        all
    }

    #[test]
    fn pages_are_small_and_load_only_files_that_are_served() {
        for (page, least) in [(PARTITIONS, 9), (LOGIN, 2)] {
            let all = loaded(page);
            assert!(all.len() >= least, "{all:?}");
            let bytes = page.len() + all.iter().map(|name| text(name).len()).sum::<usize>();
            assert!(bytes < PAGE_MAX, "{bytes} bytes");
        }
        let used: BTreeSet<String> = [PARTITIONS, LOGIN].into_iter().flat_map(loaded).collect();
        for (name, kind, _) in FILES {
            assert!(kind == TEXT || used.contains(name), "{name} is not used");
        }
    }

    #[test]
    fn no_page_has_a_script_or_style_of_its_own_text_or_loads_from_elsewhere() {
        for page in [PARTITIONS, LOGIN] {
            for script in page.split("<script").skip(1) {
                let (tag, rest) = script.split_once('>').unwrap();
                assert!(tag.contains(" src=\"console/") && rest.starts_with("</script>"), "{tag}");
            }
            for inline in ["<style", " style=", " onclick=", " onload=", "javascript:"] {
                assert!(!page.contains(inline), "{inline}");
            }
        }
        let pages = [("partitions.html", PARTITIONS), ("login.html", LOGIN)];
        let files = FILES.iter().filter(|(_, kind, _)| *kind != TEXT);
        for (name, text) in pages.into_iter().chain(files.map(|(name, _, text)| (*name, *text))) {
            for outside in ["src=\"http", "href=\"http", "@import", "url(", "import(", "eval("] {
                assert!(!text.contains(outside), "{name}: {outside}");
            }
        }
        assert!(!POLICY.contains("unsafe"));
    }
}
