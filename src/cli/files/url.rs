//! URLs of blob services.

use http::uri::Authority;

use super::endpoint::Credential;
use super::endpoint::Endpoint;
use super::error::FilesError;

/// A URL, taken apart. Its path is still percent-encoded.
#[derive(Clone)]
pub(in crate::cli) struct Url {
    pub(in crate::cli) tls: bool,
    pub(in crate::cli) host: String,
    pub(in crate::cli) port: u16,
    pub(in crate::cli) authority: String,
    pub(in crate::cli) path: String,
    /// The query, which is a shared access signature.
    pub(in crate::cli) signature: Option<String>,
}

impl Url {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// [`FilesError::Url`].
    pub(in crate::cli) fn parse(text: &str) -> Result<Self, FilesError> {
        // A signature in an error message would be in logs.
        let refused = |why| FilesError::Url { text: plain(text).to_owned(), why };
        let (tls, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err(refused("it begins with neither http:// nor https://")),
        };
        if rest.contains('#') {
            return Err(refused("it has a #; write %23 in a name"));
        }
        let (place, query) =
            rest.split_once('?').map_or((rest, ""), |(place, query)| (place, query));
        let (authority, path) = match place.find('/') {
            Some(at) => place.split_at(at),
            None => (place, ""),
        };
        if authority.contains('@') {
            return Err(refused("it has a user name; give --account"));
        }
        let parsed: Authority = authority.parse().map_err(|_| refused("it has no host"))?;
        let signed = query.split('&').any(|pair| pair.starts_with("sig="));
        if !query.is_empty() && !signed {
            return Err(refused("its query is no shared access signature"));
        }
        Ok(Self {
            tls,
            host: parsed.host().trim_matches(['[', ']']).to_ascii_lowercase(),
            port: parsed.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            authority: authority.to_owned(),
            path: path.to_owned(),
            signature: signed.then(|| query.to_owned()),
        })
    }

    /// A refusal of this URL.
    pub(in crate::cli) fn refused(&self, why: &'static str) -> FilesError {
        let scheme = if self.tls { "https" } else { "http" };
        FilesError::Url { text: format!("{scheme}://{}{}", self.authority, self.path), why }
    }

    /// The account of a host such as `ACCOUNT.blob.DOMAIN`.
    pub(in crate::cli) fn account_of_host(&self) -> Option<&str> {
        let (account, rest) = self.host.split_once('.')?;
        let domain = rest.strip_prefix("blob.")?;
        (!account.is_empty() && !domain.is_empty()).then_some(account)
    }

    /// An endpoint at this URL's host.
    pub(in crate::cli) fn endpoint(
        &self,
        base: String,
        account: String,
        credential: Credential,
    ) -> Endpoint {
        Endpoint {
            tls: self.tls,
            host: self.host.clone(),
            port: self.port,
            authority: self.authority.clone(),
            base,
            account,
            credential,
        }
    }
}

/// A URL without its query.
pub(in crate::cli) fn plain(text: &str) -> &str {
    text.split('?').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let url = Url::parse("https://[::1]:8443/a/b%20c/?sv=1&sig=x%2F").unwrap();
        assert_eq!((url.tls, url.host.as_str(), url.port), (true, "::1", 8443));
        assert_eq!(
            (url.path.as_str(), url.signature.as_deref()),
            ("/a/b%20c/", Some("sv=1&sig=x%2F"))
        );
        let url = Url::parse("http://Acct.Blob.localhost").unwrap();
        assert_eq!((url.port, url.path.as_str(), url.account_of_host()), (80, "", Some("acct")));
        assert_eq!(Url::parse("http://blob.example.org").unwrap().account_of_host(), None);
    }

    #[test]
    fn wrong_urls_are_refused_without_their_query() {
        for text in [
            "",
            "ftp://x/y",
            "http://",
            "http:///x",
            "http://u:p@h/",
            "http://h/a#b",
            "http://h/a?b=s3cret",
        ] {
            let refused = Url::parse(text).err().unwrap_or_else(|| panic!("{text}"));
            assert!(refused.is_of_usage() && !refused.to_string().contains("s3cret"), "{refused}");
        }
    }
}
