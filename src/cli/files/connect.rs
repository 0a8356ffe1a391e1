//! The account and the endpoint of commands, from flags, variables and connection strings.

use std::path::PathBuf;

use crate::auth::AccountKeys;
use crate::node::config::AccountConfig;
use crate::node::config::AccountText;
use crate::node::config::DEVELOPMENT_NAME;

use super::endpoint::Credential;
use super::endpoint::Endpoint;
use super::error::FilesError;
use super::url::Url;

/// The endpoint when none is given.
const ENDPOINT: &str = "http://127.0.0.1:10000";

/// Arguments of commands that send requests to a blob service.
#[derive(clap::Args, Clone, Debug)]
pub struct ConnectArgs {
    /// The endpoint and the account.
    #[command(flatten)]
    pub login: LoginArgs,
    /// How often a request is sent again after 408, 429, 500, 502, 503, 504 or a broken connection
    #[arg(long, value_name = "N", default_value_t = 6)]
    pub retries: u32,
}

/// Arguments that say where a blob service is and who sends requests.
#[derive(clap::Args, Clone, Debug)]
pub struct LoginArgs {
    /// Where by:// leads: the URL of the account's Blob endpoint, which may have a shared access
    /// signature. /NAME is added if the URL has neither a path nor the name in its host
    /// [default: <http://127.0.0.1:10000>]
    #[arg(long, value_name = "URL", env = "BLOCKYARD_ENDPOINT", hide_env_values = true)]
    pub endpoint: Option<String>,
    /// The account and one of its keys; for the development account its name is enough
    /// [default: devstoreaccount1]
    #[arg(
        long,
        short = 'k',
        value_name = "NAME:KEY",
        env = "BLOCKYARD_SAS_ACCOUNT",
        hide_env_values = true
    )]
    pub account: Option<AccountText>,
    /// Endpoint and account in one text, as Azure's tools have it; used if neither --endpoint nor
    /// --account is given
    #[arg(
        long,
        value_name = "TEXT",
        env = "AZURE_STORAGE_CONNECTION_STRING",
        hide_env_values = true
    )]
    pub connection_string: Option<String>,
    /// PEM file with a certificate authority to trust in addition to those of this machine
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_CA")]
    pub ca: Option<PathBuf>,
}

/// An account that was given.
#[derive(Clone, Debug)]
struct Account {
    name: String,
    keys: AccountKeys,
}

/// The endpoint of `by://`, and the account whose key signs.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Login {
    endpoint: Endpoint,
    account: Account,
}

impl Login {
    /// Reads the arguments.
    ///
    /// # Errors
    /// [`FilesError`].
    pub(in crate::cli) fn new(args: &LoginArgs) -> Result<Self, FilesError> {
        match &args.connection_string {
            Some(text) if !text.is_empty() && args.endpoint.is_none() && args.account.is_none() => {
                Self::of_string(text)
            }
            Some(_) | None => {
                let account = match &args.account {
                    Some(text) => Account::of(&text.parse_public()?)?,
                    None => Account::of(&AccountConfig::development())?,
                };
                let url = Url::parse(args.endpoint.as_deref().unwrap_or(ENDPOINT))?;
                Ok(Self::at(&url, account, args.account.is_some()))
            }
        }
    }

    /// The account at a URL. A signature in the URL is used instead of the key.
    fn at(url: &Url, account: Account, is_given: bool) -> Self {
        let path = url.path.trim_end_matches('/');
        let in_host =
            url.host.strip_prefix(&account.name).is_some_and(|rest| rest.starts_with('.'));
        let base = match path {
            "" if in_host || url.signature.is_some() && url.account_of_host().is_some() => {
                String::new()
            }
            "" => format!("/{}", account.name),
            path => path.to_owned(),
        };
        // The name in the URL is right where only a signature says whose it is.
        let named = base.rsplit('/').next().filter(|name| !name.is_empty());
        let named = named.or_else(|| url.account_of_host());
        let name = match named {
            Some(named) if url.signature.is_some() && !is_given => named.to_owned(),
            Some(_) | None => account.name.clone(),
        };
        let credential = match &url.signature {
            Some(query) => Credential::Signature(query.clone()),
            None => Credential::Key(account.keys.clone()),
        };
        Self { endpoint: url.endpoint(base, name, credential), account }
    }

    /// Reads a connection string.
    fn of_string(text: &str) -> Result<Self, FilesError> {
        let pairs = text.split(';').filter_map(|pair| pair.trim().split_once('='));
        let pairs: Vec<(String, &str)> =
            pairs.map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim())).collect();
        let of = |name: &str| pairs.iter().find(|(n, _)| n == name).map(|(_, value)| *value);
        let development = Account::of(&AccountConfig::development())?;
        if of("usedevelopmentstorage").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(Self::at(&Url::parse(ENDPOINT)?, development, true));
        }
        let name = of("accountname");
        let account = match (name, of("accountkey")) {
            (Some(name), Some(key)) => {
                let keys = AccountKeys::of_any_length(&[key]);
                let keys = keys
                    .map_err(|_| FilesError::Connection("has an AccountKey that is no base64"))?;
                Some(Account { name: name.to_owned(), keys })
            }
            _ => None,
        };
        let signature = of("sharedaccesssignature").map(|query| query.trim_start_matches('?'));
        let place = match (of("blobendpoint"), name) {
            (Some(endpoint), _) => endpoint.to_owned(),
            (None, Some(name)) => {
                let scheme = of("defaultendpointsprotocol").unwrap_or("https");
                let suffix = of("endpointsuffix").unwrap_or("core.windows.net");
                format!("{scheme}://{name}.blob.{suffix}")
            }
            (None, None) => {
                return Err(FilesError::Connection("has neither AccountName nor BlobEndpoint"));
            }
        };
        let mut url = Url::parse(&place)?;
        url.signature = signature.map(str::to_owned).or(url.signature);
        let is_given = account.is_some();
        let account = match account {
            Some(account) => account,
            None if url.signature.is_some() => development,
            None => {
                return Err(FilesError::Connection(
                    "has neither AccountKey nor SharedAccessSignature",
                ));
            }
        };
        let base = url.path.trim_end_matches('/').to_owned();
        let mut login = Self::at(&url, account, is_given);
        // A connection string says the whole endpoint: nothing is added to it.
        login.endpoint.base = base;
        Ok(login)
    }

    /// The endpoint of `by://`.
    pub(in crate::cli) fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    /// The endpoint in a URL, and what of its path is behind the account. A key signs only requests
    /// to the host of the endpoint: another host could forward the request to the right one.
    ///
    /// # Errors
    /// [`FilesError::Url`]: no account, or a URL of another host without a signature.
    pub(in crate::cli) fn endpoint_of<'a>(
        &self,
        url: &'a Url,
    ) -> Result<(Endpoint, &'a str), FilesError> {
        let own = &self.endpoint;
        let at_own = (url.tls, &url.host, url.port) == (own.tls, &own.host, own.port);
        if at_own
            && let Some(rest) = url.path.strip_prefix(own.base.as_str())
            && (rest.is_empty() || rest.starts_with('/'))
        {
            let mut endpoint = own.clone();
            if let Some(query) = &url.signature {
                endpoint.credential = Credential::Signature(query.clone());
            }
            return Ok((endpoint, rest));
        }
        let in_host = url.account_of_host().or_else(|| {
            let name = self.account.name.as_str();
            let rest = url.host.strip_prefix(name)?;
            rest.starts_with('.').then_some(name)
        });
        let (account, base, rest) = match in_host {
            Some(name) => (name.to_owned(), String::new(), url.path.as_str()),
            None => {
                let path = url.path.strip_prefix('/').unwrap_or(&url.path);
                let name = path.split('/').next().filter(|name| !name.is_empty());
                let name = name.ok_or_else(|| url.refused("it names no account"))?;
                let rest = path.get(name.len()..).unwrap_or_default();
                (name.to_owned(), format!("/{name}"), rest)
            }
        };
        let credential = match &url.signature {
            Some(query) => Credential::Signature(query.clone()),
            None if !at_own => {
                return Err(url.refused(
                    "it has no shared access signature, and the account's key is used only at the \
                     host of --endpoint or of the connection string: give a URL with a signature, \
                     or this host as --endpoint",
                ));
            }
            None if account == self.account.name => Credential::Key(self.account.keys.clone()),
            None if account == DEVELOPMENT_NAME => {
                Credential::Key(AccountConfig::development().keys()?)
            }
            None => Credential::Nothing,
        };
        Ok((url.endpoint(base, account, credential), rest))
    }
}

impl Account {
    fn of(account: &AccountConfig) -> Result<Self, FilesError> {
        Ok(Self { name: account.name().as_str().to_owned(), keys: account.keys()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn args(endpoint: Option<&str>, account: Option<&str>, string: Option<&str>) -> LoginArgs {
        LoginArgs {
            endpoint: endpoint.map(str::to_owned),
            account: account.map(|text| text.parse().unwrap()),
            connection_string: string.map(str::to_owned),
            ca: None,
        }
    }

    /// URL, account and kind of credential.
    fn shown(endpoint: &Endpoint) -> (String, &str, String) {
        let url = endpoint.url(None, None);
        (url, &endpoint.account, format!("{:?}", endpoint.credential))
    }

    fn login(endpoint: Option<&str>, account: Option<&str>, string: Option<&str>) -> Login {
        Login::new(&args(endpoint, account, string)).unwrap()
    }

    #[test]
    fn endpoints_are_taken_from_flags_and_connection_strings() {
        let own = format!("mine:{KEY}");
        let own = Some(own.as_str());
        let key = format!("AccountName=mine;AccountKey={KEY}");
        let with_endpoint = format!("BlobEndpoint=http://127.0.0.1:1/mine;{key}");
        let custom = format!("{key};BlobEndpoint=https://files.example.org/");
        let signed = "BlobEndpoint=https://mine.blob.example.org;SharedAccessSignature=?sv=1&sig=2";
        for (given, url, account, credential) in [
            (
                (None, None, None),
                "http://127.0.0.1:10000/devstoreaccount1/",
                "devstoreaccount1",
                "Key",
            ),
            ((None, own, None), "http://127.0.0.1:10000/mine/", "mine", "Key"),
            (
                (Some("https://mine.blob.example.org/"), own, None),
                "https://mine.blob.example.org/",
                "mine",
                "Key",
            ),
            ((Some("https://example.org"), own, None), "https://example.org/mine/", "mine", "Key"),
            ((Some("http://h:1/mine/"), own, None), "http://h:1/mine/", "mine", "Key"),
            (
                (Some("http://h:1/other?sig=x"), None, None),
                "http://h:1/other/",
                "other",
                "Signature",
            ),
            (
                (None, own, Some("UseDevelopmentStorage=true")),
                "http://127.0.0.1:10000/mine/",
                "mine",
                "Key",
            ),
            (
                (None, None, Some("UseDevelopmentStorage=true")),
                "http://127.0.0.1:10000/devstoreaccount1/",
                "devstoreaccount1",
                "Key",
            ),
            ((None, None, Some(&key)), "https://mine.blob.core.windows.net/", "mine", "Key"),
            ((None, None, Some(&with_endpoint)), "http://127.0.0.1:1/mine/", "mine", "Key"),
            ((None, None, Some(&custom)), "https://files.example.org/", "mine", "Key"),
            ((None, None, Some(signed)), "https://mine.blob.example.org/", "mine", "Signature"),
        ] {
            let login = login(given.0, given.1, given.2);
            let credential = format!("{credential}(..)");
            assert_eq!(shown(&login.endpoint), (url.to_owned(), account, credential), "{given:?}");
        }
        for wrong in
            [";", "AccountName=mine", "AccountKey=AAAA", "BlobEndpoint=ftp://x;AccountKey=A"]
        {
            let refused = Login::new(&args(None, None, Some(wrong))).unwrap_err();
            assert!(refused.is_of_usage(), "{wrong}: {refused}");
        }
    }

    #[test]
    fn urls_find_account_and_key() {
        let own = format!("mine:{KEY}");
        let login = login(Some("http://h:1"), Some(&own), None);
        for (text, url, account, credential, rest) in [
            ("http://h:1/mine/c/b", "http://h:1/mine/", "mine", "Key(..)", "/c/b"),
            ("http://h:1/mine", "http://h:1/mine/", "mine", "Key(..)", ""),
            ("http://h:1/minecraft/c", "http://h:1/minecraft/", "minecraft", "Nothing", "/c"),
            ("http://h:1/mine/c?sig=1", "http://h:1/mine/", "mine", "Signature(..)", "/c"),
            ("http://H:1/mine/c", "http://h:1/mine/", "mine", "Key(..)", "/c"),
            ("http://h:2/mine/c?sig=1", "http://h:2/mine/", "mine", "Signature(..)", "/c"),
            (
                "https://mine.blob.x.org/c/b?sig=1",
                "https://mine.blob.x.org/",
                "mine",
                "Signature(..)",
                "/c/b",
            ),
            (
                "https://other.blob.x.org/c?sig=1",
                "https://other.blob.x.org/",
                "other",
                "Signature(..)",
                "/c",
            ),
            ("https://mine.x.org/c?sig=1", "https://mine.x.org/", "mine", "Signature(..)", "/c"),
            (
                "http://h:1/devstoreaccount1/c",
                "http://h:1/devstoreaccount1/",
                "devstoreaccount1",
                "Key(..)",
                "/c",
            ),
        ] {
            let parsed = Url::parse(text).unwrap();
            let (endpoint, left) = login.endpoint_of(&parsed).unwrap();
            let wanted = (url.to_owned(), account, credential.to_owned());
            assert_eq!((shown(&endpoint), left), (wanted, rest), "{text}");
        }
        for text in [
            "http://h:2/",
            "http://h:2/mine/c",
            "https://h:1/mine/c",
            "http://h/mine/c",
            "https://mine.blob.x.org/c",
            "https://mine.x.org/c",
            "http://l/devstoreaccount1/c",
            "http://h:1//mine/c",
        ] {
            let refused = login.endpoint_of(&Url::parse(text).unwrap()).unwrap_err();
            assert!(refused.is_of_usage(), "{text}: {refused}");
        }
    }
}
