//! Queries of requests to the admin listener.

/// The query of the pairs that have a value.
pub(crate) fn form_urlencoded(pairs: &[(&str, Option<String>)]) -> String {
    let given = pairs.iter().filter_map(|(name, value)| {
        let value = value.as_ref()?;
        let escaped =
            percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
        Some(format!("{name}={escaped}"))
    });
    given.collect::<Vec<_>>().join("&")
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
