//! The place of an issuer's keys.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;
use thiserror::Error;

use crate::auth::Issuer;

/// The path of an issuer's configuration document below its name (OpenID Connect Discovery 1.0,
/// section 4).
const CONFIGURATION: &str = "/.well-known/openid-configuration";

/// The place of an issuer's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeysAt {
    /// In a file with its key set.
    File(PathBuf),
    /// The key set is at this URL.
    Url(KeysUrl),
    /// The configuration document at this URL has the URL of the key set.
    Configuration(KeysUrl),
}

impl KeysAt {
    /// The place that the issuer's own configuration document names.
    ///
    /// # Errors
    /// [`KeysUrlError`] when the issuer's name is not a URL that can be requested.
    pub fn said_by(issuer: &str) -> Result<Self, KeysUrlError> {
        let url = format!("{}{CONFIGURATION}", issuer.trim_end_matches('/'));
        Ok(Self::Configuration(url.parse()?))
    }
}

impl fmt::Display for KeysAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Url(url) | Self::Configuration(url) => url.0.fmt(f),
        }
    }
}

/// An issuer and the place of its keys.
#[derive(Clone, Debug)]
pub struct TokenSource {
    /// The issuer, with the keys just read if they are in a file.
    pub issuer: Issuer,
    /// The place of its keys.
    pub keys_at: KeysAt,
}

/// Why keys are not fetched from a URL.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeysUrlError {
    /// Not a URL of http or https with a host and without a user.
    #[error("`{0}` is no https URL")]
    Shape(String),
    /// An attacker on the network could replace the keys.
    #[error(
        "`{0}` is http, which is for issuers on a loopback address (127.0.0.1, [::1], localhost) only; use https"
    )]
    Insecure(String),
}

/// A URL that keys may be fetched from: https, or http on a loopback address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysUrl(Uri);

impl FromStr for KeysUrl {
    type Err = KeysUrlError;

    fn from_str(text: &str) -> Result<Self, KeysUrlError> {
        let refused = || KeysUrlError::Shape(text.to_owned());
        let url: Uri = text.parse().map_err(|_| refused())?;
        let authority = url.authority().ok_or_else(refused)?;
        if authority.host().is_empty() || authority.as_str().contains('@') {
            return Err(refused());
        }
        match url.scheme_str() {
            Some("https") => Ok(Self(url)),
            Some("http") if loops_back(authority.host()) => Ok(Self(url)),
            Some("http") => Err(KeysUrlError::Insecure(text.to_owned())),
            Some(_) | None => Err(refused()),
        }
    }
}

impl KeysUrl {
    /// The URL.
    pub(super) const fn uri(&self) -> &Uri {
        &self.0
    }

    /// Whether the server proves its name.
    pub(super) fn is_secure(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }
}

/// Whether a host is this machine.
fn loops_back(host: &str) -> bool {
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_and_loopback_are_taken() {
        for text in [
            "https://a.example/keys?v=1",
            "http://127.0.0.1:8080/keys",
            "http://[::1]/keys",
            "http://LOCALHOST/keys",
        ] {
            assert!(text.parse::<KeysUrl>().is_ok(), "{text}");
        }
    }

    #[test]
    fn what_others_could_forge_is_refused() {
        for text in ["http://a.example/keys", "http://10.0.0.1/keys", "http://localhost.example/"] {
            let error = text.parse::<KeysUrl>().unwrap_err();
            assert_eq!(error, KeysUrlError::Insecure(text.to_owned()));
            assert!(error.to_string().contains("loopback"));
        }
        for text in ["", "keys.json", "/keys", "ftp://a.example/", "https://u:p@a.example/", "a b"]
        {
            assert_eq!(text.parse::<KeysUrl>(), Err(KeysUrlError::Shape(text.to_owned())));
        }
    }

    #[test]
    fn configuration_stands_below_the_issuer() {
        for issuer in ["https://a.example/t/v2.0", "https://a.example/t/v2.0/"] {
            let place = KeysAt::said_by(issuer).unwrap().to_string();
            assert_eq!(place, "https://a.example/t/v2.0/.well-known/openid-configuration");
        }
        assert!(KeysAt::said_by("an-issuer").is_err());
    }
}
