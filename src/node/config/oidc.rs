//! Issuers of bearer tokens in the configuration.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

use crate::auth::Issuer;
use crate::auth::KeySet;
use crate::auth::KeySetError;
use crate::auth::RoleMap;
use crate::auth::TrustedIssuer;
use crate::frontend::KeysAt;
use crate::frontend::KeysUrlError;
use crate::frontend::TokenSource;
use crate::types::AccountName;
use crate::types::Role;

/// The audience of tokens for Azure Storage.
const AUDIENCE: &str = "https://storage.azure.com";
/// The claim that issuers write groups into.
const GROUPS: &str = "groups";

/// Why an issuer is refused.
#[derive(Debug, Error)]
pub enum OidcError {
    /// It does not consist of names and values.
    #[error(
        "--oidc is written issuer=URL[;jwks=FILE or https URL][;audience=A][;account=NAME][;claim=C][;reader=V][;contributor=V][;owner=V][;groups=C]; `{0}` is not"
    )]
    Shape(String),
    /// An invalid account name.
    #[error(
        "account=`{0}` of --oidc is not an account name: 3 to 24 lower-case letters and digits"
    )]
    Account(String),
    /// The issuer is missing.
    #[error("--oidc lacks issuer=; it is written issuer=URL;jwks=FILE or https URL")]
    Missing,
    /// An issuer is configured twice.
    #[error("--oidc names the issuer {0} twice: write everything about it in one --oidc")]
    Twice(String),
    /// A field is given twice.
    #[error("--oidc has {0}= twice, in `{1}`; there is one for each issuer")]
    FieldTwice(&'static str, String),
    /// The URL of the key set is not accepted.
    #[error("the URL of the key set of --oidc: {0}")]
    Url(KeysUrlError),
    /// The issuer's URL is not accepted as the source of its configuration.
    #[error("--oidc names no jwks=, and the issuer cannot be asked for it: {0}")]
    Issuer(KeysUrlError),
    /// The key set cannot be read.
    #[error("the key set {path} of --oidc: {error}; give another file with jwks=FILE")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The key set is refused.
    #[error("the key set {path} of --oidc: {error}")]
    Keys {
        /// The file.
        path: PathBuf,
        /// Why.
        error: KeySetError,
    },
}

/// A configured issuer. Its keys are not loaded yet.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct OidcConfig {
    issuer: String,
    keys_at: KeysAt,
    audiences: Vec<String>,
    accounts: Vec<String>,
    roles: RoleMap,
    groups: String,
}

impl TryFrom<String> for OidcConfig {
    type Error = OidcError;

    fn try_from(text: String) -> Result<Self, OidcError> {
        text.parse()
    }
}

impl FromStr for OidcConfig {
    type Err = OidcError;

    fn from_str(text: &str) -> Result<Self, OidcError> {
        let (mut issuer, mut keys_at) = (None, None);
        let (mut audiences, mut claim, mut values) = (Vec::new(), None, Vec::new());
        let (mut accounts, mut groups) = (Vec::new(), None);
        let twice = |name| OidcError::FieldTwice(name, text.to_owned());
        for piece in text.split(';').map(str::trim).filter(|piece| !piece.is_empty()) {
            let refused = || OidcError::Shape(piece.to_owned());
            let (name, value) = piece.split_once('=').ok_or_else(refused)?;
            let value = value.trim().to_owned();
            if value.is_empty() {
                return Err(refused());
            }
            match name.trim() {
                "issuer" if issuer.is_some() => return Err(twice("issuer")),
                "jwks" if keys_at.is_some() => return Err(twice("jwks")),
                "claim" if claim.is_some() => return Err(twice("claim")),
                "groups" if groups.is_some() => return Err(twice("groups")),
                "issuer" => issuer = Some(value),
                "jwks" if value.contains("://") => {
                    keys_at = Some(KeysAt::Url(value.parse().map_err(OidcError::Url)?));
                }
                "jwks" => keys_at = Some(KeysAt::File(PathBuf::from(value))),
                "audience" => audiences.push(value),
                "account" => {
                    let name = AccountName::new(&value).map_err(|_| OidcError::Account(value))?;
                    accounts.push(name.as_str().to_owned());
                }
                "claim" => claim = Some(value),
                "groups" => groups = Some(value),
                "reader" => values.push((value, Role::Reader)),
                "contributor" => values.push((value, Role::Contributor)),
                "owner" => values.push((value, Role::Owner)),
                _ => return Err(refused()),
            }
        }
        if audiences.is_empty() {
            audiences.push(AUDIENCE.to_owned());
        }
        let mut roles = RoleMap::default();
        if !values.is_empty() {
            roles.values = values;
        }
        if let Some(claim) = claim {
            roles.claim = claim;
        }
        let issuer = issuer.ok_or(OidcError::Missing)?;
        let keys_at = match keys_at {
            Some(keys_at) => keys_at,
            None => KeysAt::said_by(&issuer).map_err(OidcError::Issuer)?,
        };
        let groups = groups.unwrap_or_else(|| GROUPS.to_owned());
        Ok(Self { issuer, keys_at, audiences, accounts, roles, groups })
    }
}

/// Checks that no issuer is configured twice: the settings of both would apply to the same tokens.
///
/// # Errors
/// [`OidcError::Twice`].
pub(super) fn check_distinct(all: &[OidcConfig]) -> Result<(), OidcError> {
    let mut seen = BTreeSet::new();
    match all.iter().find(|one| !seen.insert(one.issuer.as_str())) {
        Some(again) => Err(OidcError::Twice(again.issuer.clone())),
        None => Ok(()),
    }
}

impl OidcConfig {
    /// Its name, and the accounts in which roles that its tokens claim count.
    #[must_use]
    pub fn trusted(&self) -> TrustedIssuer {
        TrustedIssuer { name: self.issuer.clone(), accounts: self.accounts.clone() }
    }

    /// Reads the key set if it is in a file.
    ///
    /// # Errors
    /// [`OidcError::Unreadable`], [`OidcError::Keys`].
    pub fn open(&self) -> Result<TokenSource, OidcError> {
        let keys = match &self.keys_at {
            KeysAt::File(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|error| OidcError::Unreadable { path: path.clone(), error })?;
                KeySet::parse(&text)
                    .map_err(|error| OidcError::Keys { path: path.clone(), error })?
            }
            KeysAt::Url(_) | KeysAt::Configuration(_) => KeySet::default(),
        };
        let issuer = Issuer {
            trusted: self.trusted(),
            audiences: self.audiences.clone(),
            keys,
            roles: self.roles.clone(),
            groups: self.groups.clone(),
        };
        Ok(TokenSource { issuer, keys_at: self.keys_at.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuer_and_key_set_are_enough() {
        let config: OidcConfig =
            "issuer=https://a.example/t/v2.0;jwks=/etc/keys.json".parse().unwrap();
        assert_eq!(config.issuer, "https://a.example/t/v2.0");
        assert_eq!(config.audiences, ["https://storage.azure.com"]);
        assert_eq!(config.roles, RoleMap::default());
        assert!(config.accounts.is_empty() && config.groups == "groups");
    }

    #[test]
    fn everything_can_be_said() {
        let text = "issuer=i; jwks=k; audience=a; audience=b; account=one; account=two; \
                    claim=groups; reader=r1; reader=r2; owner=o; groups=teams";
        let config: OidcConfig = text.parse().unwrap();
        assert_eq!(config.accounts, ["one", "two"]);
        assert_eq!(config.groups, "teams");
        assert_eq!(config.audiences, ["a", "b"]);
        assert_eq!(config.roles.claim, "groups");
        assert_eq!(config.roles.values.len(), 3);
    }

    #[test]
    fn key_sets_stand_in_files_at_urls_or_where_the_issuer_says() {
        let at = |text: &str| text.parse::<OidcConfig>().unwrap().keys_at;
        let issuer = "issuer=https://a.example/t";
        assert_eq!(at(&format!("{issuer};jwks=k/s.json")), KeysAt::File("k/s.json".into()));
        let url = "https://a.example/keys";
        let expected = KeysAt::Url(url.parse().unwrap());
        assert_eq!(at(&format!("{issuer};jwks={url}")), expected);
        let address = "https://a.example/t/.well-known/openid-configuration";
        assert_eq!(at(issuer), KeysAt::Configuration(address.parse().unwrap()));
        for (text, part) in [
            ("issuer=i;jwks=http://a.example/keys", "loopback"),
            ("issuer=i;jwks=file:///keys", "no https URL"),
            ("issuer=http://a.example", "loopback"),
        ] {
            let error = text.parse::<OidcConfig>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "",
            "issuer=i",
            "jwks=k",
            "issuer=i;jwks=",
            "issuer",
            "issuer=i;jwks=k;admin=x",
            "issuer=i;jwks=k;account=A",
            "issuer=i;jwks=k;issuer=j",
            "issuer=i;jwks=k;jwks=l",
            "issuer=i;jwks=k;claim=c;claim=d",
            "issuer=i;jwks=k;groups=c;groups=d",
        ] {
            assert!(text.parse::<OidcConfig>().is_err(), "{text}");
        }
        let config: OidcConfig = "issuer=i;jwks=/nonexistent/keys.json".parse().unwrap();
        assert!(matches!(config.open(), Err(OidcError::Unreadable { .. })));
    }
}
