//! Azure Shared Key: the `Authorization` header of one Blob request.

use http::HeaderMap;
use http::Method;

use crate::auth::AccountKeys;

/// An account and its keys, the first of which signs.
#[derive(Debug)]
pub struct SharedKey {
    account: String,
    keys: AccountKeys,
}

/// Standard headers in their order in the string to sign; `content-length` is the third.
const ORDER: [&str; 11] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

impl SharedKey {
    /// Takes the account name and its keys.
    #[must_use]
    pub const fn new(account: String, keys: AccountKeys) -> Self {
        Self { account, keys }
    }

    /// The value of `Authorization` for a request whose other headers are complete.
    ///
    /// `path` is the path as sent, `query` the decoded pairs in any order.
    pub fn authorization(
        &self,
        method: &Method,
        path: &str,
        query: &[(&str, String)],
        headers: &HeaderMap,
    ) -> String {
        let text = self.string_to_sign(method, path, query, headers);
        let signature = self.keys.sign(text.as_bytes());
        format!("SharedKey {}:{signature}", self.account)
    }

    fn string_to_sign(
        &self,
        method: &Method,
        path: &str,
        query: &[(&str, String)],
        headers: &HeaderMap,
    ) -> String {
        let mut text = format!("{method}\n");
        for name in ORDER {
            let value = headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("");
            // Since version 2015-02-21 a length of zero is signed as an empty string.
            if !(name == "content-length" && value == "0") {
                text.push_str(value);
            }
            text.push('\n');
        }
        let mut ours: Vec<(&str, &str)> = headers
            .iter()
            .filter(|(name, _)| name.as_str().starts_with("x-ms-"))
            .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?.trim())))
            .collect();
        ours.sort_unstable();
        for (name, value) in ours {
            text.push_str(&format!("{name}:{value}\n"));
        }
        text.push_str(&format!("/{}{path}", self.account));
        let mut pairs: Vec<_> = query.iter().collect();
        pairs.sort_unstable();
        for (name, value) in pairs {
            text.push_str(&format!("\n{name}:{value}"));
        }
        text
    }
}
