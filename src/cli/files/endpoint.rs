//! Where an account is served, and how requests to it are signed.

use std::fmt;
use std::time::Duration;

use percent_encoding::AsciiSet;
use percent_encoding::NON_ALPHANUMERIC;
use percent_encoding::utf8_percent_encode;

use crate::auth::AccountKeys;
use crate::auth::Target;
use crate::auth::Terms;
use crate::auth::mint_service;
use crate::types::Timestamp;

/// Characters of a path that are escaped.
const PATH: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b'$');
/// How long a signature lasts that is given to the server of a copy, so that it can read the
/// source.
const SOURCE_LIFE: Duration = Duration::from_secs(24 * 3_600);

/// The credential of requests.
#[derive(Clone)]
pub(in crate::cli) enum Credential {
    /// A key of the account.
    Key(AccountKeys),
    /// A shared access signature: a query.
    Signature(String),
    /// Nothing: what everyone may do.
    Nothing,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key(_) => "Key(..)",
            Self::Signature(_) => "Signature(..)",
            Self::Nothing => "Nothing",
        })
    }
}

/// The Blob endpoint of an account.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Endpoint {
    /// Whether it is https.
    pub(in crate::cli) tls: bool,
    /// The host, without brackets.
    pub(in crate::cli) host: String,
    /// The port.
    pub(in crate::cli) port: u16,
    /// Host and port as the URL has them.
    pub(in crate::cli) authority: String,
    /// The prefix of paths: empty, or `/ACCOUNT` with other segments before it.
    pub(in crate::cli) base: String,
    /// The account.
    pub(in crate::cli) account: String,
    /// The credential of requests.
    pub(in crate::cli) credential: Credential,
}

impl Endpoint {
    /// The path of the account, of a container, or of a blob.
    pub(in crate::cli) fn path(&self, container: Option<&str>, blob: Option<&str>) -> String {
        let mut path = self.base.clone();
        path.push('/');
        if let Some(container) = container {
            path.extend(utf8_percent_encode(container, &PATH));
        }
        if let Some(blob) = blob {
            path.push('/');
            path.extend(utf8_percent_encode(blob, &PATH));
        }
        path
    }

    /// A URL without a signature, to show.
    pub(in crate::cli) fn url(&self, container: Option<&str>, blob: Option<&str>) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path(container, blob))
    }

    /// A URL that a server can read a blob with.
    pub(in crate::cli) fn source_url(&self, container: &str, blob: &str, now: Timestamp) -> String {
        let url = self.url(Some(container), Some(blob));
        match &self.credential {
            Credential::Nothing => url,
            Credential::Signature(query) => format!("{url}?{query}"),
            Credential::Key(keys) => {
                let terms = Terms {
                    permissions: "r".to_owned(),
                    expiry: Some(now.plus(SOURCE_LIFE).to_iso_seconds()),
                    ..Terms::default()
                };
                let account = &self.account;
                let target = Target { account, container, blob: Some(blob), snapshot: None };
                format!("{url}?{}", mint_service(keys, &target, &terms))
            }
        }
    }

    /// Whether both are the same account at the same place.
    pub(in crate::cli) fn is_same_place(&self, other: &Self) -> bool {
        (self.tls, &self.authority, &self.base) == (other.tls, &other.authority, &other.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint() -> Endpoint {
        Endpoint {
            tls: false,
            host: "127.0.0.1".to_owned(),
            port: 10_000,
            authority: "127.0.0.1:10000".to_owned(),
            base: "/acct".to_owned(),
            account: "acct".to_owned(),
            credential: Credential::Nothing,
        }
    }

    #[test]
    fn names_are_escaped_in_paths_and_slashes_are_not() {
        let path = endpoint().path(Some("$root"), Some("a b/ü#?%41+"));
        assert_eq!(path, "/acct/$root/a%20b/%C3%BC%23%3F%2541%2B");
        assert_eq!(endpoint().url(None, None), "http://127.0.0.1:10000/acct/");
    }

    #[test]
    fn source_of_a_copy_is_signed_with_the_key_and_nothing_is_shown() {
        let now = Timestamp::from_iso("2026-11-21T05:00:00Z").unwrap();
        let mut endpoint = endpoint();
        assert!(!endpoint.source_url("c", "b", now).contains('?'));
        endpoint.credential = Credential::Signature("sig=s3cret".to_owned());
        assert!(endpoint.source_url("c", "b", now).ends_with("/acct/c/b?sig=s3cret"));
        assert!(!format!("{endpoint:?}").contains("s3cret"));
        let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        endpoint.credential = Credential::Key(AccountKeys::new(&[key]).unwrap());
        let url = endpoint.source_url("c", "b", now);
        assert!(url.contains("sp=r&") && url.contains("se=2026-11-22T05"), "{url}");
    }
}
