//! Paths and queries of requests to the admin listener.

use std::fmt::Display;

/// The path of an account.
pub(crate) fn account_path(name: &str) -> String {
    format!("/admin/accounts/{}", escaped(name))
}

/// The path of a user of an account, or of all of its users.
pub(crate) fn user_path(account: &str, name: Option<&str>) -> String {
    let users = format!("{}/users", account_path(account));
    name.map_or(users.clone(), |name| format!("{users}/{}", escaped(name)))
}

/// The path of an encryption scope of an account, or of all of its scopes.
pub(crate) fn scope_path(account: &str, name: Option<&str>) -> String {
    let scopes = format!("{}/scopes", account_path(account));
    name.map_or(scopes.clone(), |name| format!("{scopes}/{}", escaped(name)))
}

/// The query of the pairs that have a value.
pub(crate) fn form_urlencoded(pairs: &[(&str, Option<String>)]) -> String {
    let given = pairs
        .iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", escaped(value.as_ref()?))));
    given.collect::<Vec<_>>().join("&")
}

fn escaped(text: &str) -> impl Display {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_hold_what_is_given() {
        let pairs = [("a", Some("x y&z".to_owned())), ("b", None), ("c", Some("5xx".to_owned()))];
        assert_eq!(form_urlencoded(&pairs), "a=x%20y%26z&c=5xx");
    }
}
