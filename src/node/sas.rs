//! `blockyard sas`: makes a shared access signature of any kind, offline, as a URL to paste.

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use percent_encoding::AsciiSet;
use percent_encoding::NON_ALPHANUMERIC;
use percent_encoding::utf8_percent_encode;
use serde::Serialize;
use thiserror::Error;

use crate::auth::AccountKeys;
use crate::auth::DelegationKey;
use crate::auth::Letters;
use crate::auth::Overrides;
use crate::auth::Target;
use crate::auth::Terms;
use crate::auth::mint_account;
use crate::auth::mint_delegation;
use crate::auth::mint_service;
use crate::protocol::azure;
use crate::types::BlobName;
use crate::types::ContainerName;
use crate::types::Timestamp;

use super::accounts::AccountConfig;
use super::accounts::AccountError;
use super::accounts::AccountText;

/// What stays readable in a path.
const PATH: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b'$');

/// How long a signature holds when nothing is said.
const DEFAULT_LIFE: &str = "8h";

/// Arguments of `sas`.
#[derive(Args, Debug)]
pub struct SasArgs {
    /// CONTAINER or CONTAINER/BLOB; none for the whole account
    #[arg(value_name = "PATH")]
    pub path: Option<String>,
    /// What may be done: letters of r read, a add, c create, w write, d delete, x delete a version, y delete for good,
    /// l list, t tags, f find by tags, i immutability. Default: all that the path can use; none with --policy
    #[arg(long, short = 'p', value_name = "LETTERS")]
    pub permissions: Option<String>,
    /// Until when: a time such as 2030-01-31T12:00:00Z, or from now on: 90s, 30m, 8h, 7d. Default 8h; none with --policy
    #[arg(long, short = 'e', value_name = "TIME")]
    pub expiry: Option<String>,
    /// From when on, a time; default at once
    #[arg(long, value_name = "TIME")]
    pub start: Option<String>,
    /// The only client address, or FIRST-LAST
    #[arg(long, value_name = "ADDRESS")]
    pub ip: Option<String>,
    /// Refuse plain http
    #[arg(long)]
    pub https_only: bool,
    /// A stored access policy of the container, by its id
    #[arg(long, value_name = "ID")]
    pub policy: Option<String>,
    /// A snapshot of the blob, by its time
    #[arg(long, value_name = "TIME")]
    pub snapshot: Option<String>,
    /// For the whole account: letters of s account, c containers, o blobs
    #[arg(long, value_name = "LETTERS", default_value = "sco")]
    pub types: String,
    /// Content-Type of answers; for a container or blob
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,
    /// Content-Disposition of answers; for a container or blob
    #[arg(long, value_name = "VALUE")]
    pub content_disposition: Option<String>,
    /// The account and a key of its; default the well-known development account
    #[arg(
        long,
        short = 'k',
        value_name = "NAME:KEY",
        env = "BLOCKYARD_SAS_ACCOUNT",
        hide_env_values = true
    )]
    pub account: Option<AccountText>,
    /// Sign with the user delegation key in this file, the answer of Get User Delegation Key; for a container or blob
    #[arg(long, value_name = "FILE")]
    pub delegation_key: Option<PathBuf>,
    /// Where the account is served; default <http://127.0.0.1:10000/NAME>
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// Print a JSON object: url, query, expiry, permissions
    #[arg(long)]
    pub json: bool,
}

/// Why no signature is made; the text says what to give instead.
#[derive(Debug, Error)]
pub enum SasError {
    /// The account cannot be read.
    #[error("{0}")]
    Account(#[from] AccountError),
    /// No container or blob.
    #[error("`{0}` is no CONTAINER or CONTAINER/BLOB")]
    Path(String),
    /// A letter that is no permission.
    #[error("--permissions {0} has a letter that is no permission; see `blockyard sas --help`")]
    Permissions(String),
    /// A letter that is no resource type.
    #[error("--types {0}: give letters of sco")]
    Types(String),
    /// Neither a time nor a duration.
    #[error(
        "--{flag} {text} is no time; give 2030-01-31T12:00:00Z or, for --expiry, 30m, 8h or 7d"
    )]
    Time {
        /// The flag.
        flag: &'static str,
        /// As given.
        text: String,
    },
    /// A user delegation key that cannot be read.
    #[error(
        "--delegation-key {file}: {reason}; give the XML that Get User Delegation Key answered"
    )]
    DelegationKey {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// A flag that needs a path.
    #[error("--{0} needs a container or blob")]
    NeedsPath(&'static str),
    /// A flag that needs a blob.
    #[error("--snapshot needs a blob: CONTAINER/BLOB")]
    NeedsBlob,
    /// The URL of the account.
    #[error("--endpoint {0} is no http or https URL")]
    Endpoint(String),
}

/// A signature, ready to use.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Minted {
    /// The URL of what it is for, with the signature.
    pub url: String,
    /// The signature alone.
    pub query: String,
    /// Until when it holds, unless a policy says so.
    pub expiry: Option<String>,
    /// Its letters, unless a policy has them.
    pub permissions: Option<String>,
}

/// Makes the signature.
///
/// # Errors
/// [`SasError`].
pub fn mint(args: &SasArgs, now: Timestamp) -> Result<Minted, SasError> {
    let account = match &args.account {
        Some(text) => text.parse()?,
        None => AccountConfig::development(),
    };
    let name = account.name().as_str();
    let (container, blob) = names(args)?;
    let terms = terms(args, container.as_ref().map(|_| blob.is_some()), now)?;
    let keys = account.keys()?;
    let query = match &container {
        None => mint_account(&keys, name, types(&args.types)?, &terms),
        Some(container) => {
            let blob = blob.as_ref().map(BlobName::as_str);
            let snapshot = args.snapshot.as_deref();
            let target = Target { account: name, container: container.as_str(), blob, snapshot };
            match &args.delegation_key {
                None => mint_service(&keys, &target, &terms),
                Some(file) => delegated(file, &target, &terms)?,
            }
        }
    };
    let path = args.path.as_deref().unwrap_or("");
    let mut url = endpoint(args.endpoint.as_deref(), name)?;
    url.extend(utf8_percent_encode(path, &PATH));
    let permissions = (!terms.permissions.is_empty()).then_some(terms.permissions);
    Ok(Minted { url: format!("{url}?{query}"), query, expiry: terms.expiry, permissions })
}

/// A URL to read and list `path`, a container or CONTAINER/BLOB.
///
/// # Errors
/// [`SasError::Account`].
pub fn link(
    account: &AccountConfig,
    endpoint: &str,
    path: &str,
    until: Timestamp,
) -> Result<String, SasError> {
    let (container, blob) = path.split_once('/').map_or((path, None), |(c, b)| (c, Some(b)));
    let permissions = if blob.is_some() { "r" } else { "rl" };
    let terms = Terms {
        permissions: permissions.to_owned(),
        expiry: Some(until.to_iso_seconds()),
        ..Terms::default()
    };
    let target = Target { account: account.name().as_str(), container, blob, snapshot: None };
    let query = mint_service(&account.keys()?, &target, &terms);
    Ok(format!("{endpoint}/{}?{query}", utf8_percent_encode(path, &PATH)))
}

/// Signs with the key in a file.
fn delegated(file: &Path, target: &Target<'_>, terms: &Terms) -> Result<String, SasError> {
    let unreadable = |reason: String| SasError::DelegationKey { file: file.to_owned(), reason };
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(error.to_string()))?;
    let given = azure::delegation_key(text.as_bytes())
        .map_err(|error| unreadable(error.code.message().to_owned()))?;
    let value = AccountKeys::new(&[&given.value]).map_err(|error| unreadable(error.to_string()))?;
    let key = DelegationKey {
        object: given.object,
        tenant: given.tenant,
        start: given.start,
        expiry: given.expiry,
        version: given.version,
        delegated_tenant: given.delegated_tenant,
    };
    Ok(mint_delegation(&key, &value, target, terms))
}

fn names(args: &SasArgs) -> Result<(Option<ContainerName>, Option<BlobName>), SasError> {
    let Some(path) = args.path.as_deref().filter(|path| !path.is_empty()) else {
        let flags = [
            ("policy", args.policy.is_some()),
            ("delegation-key", args.delegation_key.is_some()),
            ("snapshot", args.snapshot.is_some()),
            ("content-type", args.content_type.is_some()),
            ("content-disposition", args.content_disposition.is_some()),
        ];
        return match flags.into_iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(SasError::NeedsPath(flag)),
            None => Ok((None, None)),
        };
    };
    let refused = || SasError::Path(path.to_owned());
    let (container, blob) = match path.split_once('/') {
        Some((container, "")) => (container, None),
        Some((container, blob)) => (container, Some(BlobName::new(blob).map_err(|_| refused())?)),
        None => (path, None),
    };
    if args.snapshot.is_some() && blob.is_none() {
        return Err(SasError::NeedsBlob);
    }
    Ok((Some(ContainerName::new(container).map_err(|_| refused())?), blob))
}

/// `of_blob` is `None` for an account.
fn terms(args: &SasArgs, of_blob: Option<bool>, now: Timestamp) -> Result<Terms, SasError> {
    let all = match of_blob {
        _ if args.snapshot.is_some() => "r",
        Some(true) => "racwdt",
        Some(false) | None => "racwdltf",
    };
    // What the policy says may not be said again.
    let open = |own: Option<&str>, default: &str| match own {
        Some(own) => own.to_owned(),
        None if args.policy.is_some() => String::new(),
        None => default.to_owned(),
    };
    let permissions = open(args.permissions.as_deref(), all);
    // The service wants them in its own order.
    let letters = Letters::parse(&permissions).ok_or(SasError::Permissions(permissions))?;
    let expiry = open(args.expiry.as_deref(), DEFAULT_LIFE);
    Ok(Terms {
        permissions: letters.to_string(),
        start: args.start.as_deref().map(start).transpose()?,
        expiry: (!expiry.is_empty()).then(|| self::expiry(&expiry, now)).transpose()?,
        addresses: args.ip.clone(),
        https_only: args.https_only,
        policy: args.policy.clone(),
        overrides: Overrides {
            content_type: args.content_type.clone(),
            content_disposition: args.content_disposition.clone(),
            ..Overrides::default()
        },
    })
}

fn start(text: &str) -> Result<String, SasError> {
    let time = Timestamp::from_iso(text);
    let time = time.ok_or_else(|| SasError::Time { flag: "start", text: text.to_owned() })?;
    Ok(time.to_iso_seconds())
}

fn expiry(text: &str, now: Timestamp) -> Result<String, SasError> {
    let time = duration(text).map(|d| now.plus(d)).or_else(|| Timestamp::from_iso(text));
    let time = time.ok_or_else(|| SasError::Time { flag: "expiry", text: text.to_owned() })?;
    Ok(time.to_iso_seconds())
}

fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(seconds).map(Duration::from_secs)
}

fn types(text: &str) -> Result<&str, SasError> {
    let known = !text.is_empty() && text.chars().all(|c| "sco".contains(c));
    known.then_some(text).ok_or_else(|| SasError::Types(text.to_owned()))
}

/// The account's URL, with a slash at its end.
fn endpoint(given: Option<&str>, account: &str) -> Result<String, SasError> {
    let Some(text) = given else { return Ok(format!("http://127.0.0.1:10000/{account}/")) };
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match host {
        Some(host) if !host.trim_matches('/').is_empty() && !host.contains('?') => {
            Ok(format!("{}/", text.trim_end_matches('/')))
        }
        Some(_) | None => Err(SasError::Endpoint(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        sas: SasArgs,
    }

    fn now() -> Timestamp {
        Timestamp::from_iso("2026-11-21T05:00:00Z").unwrap()
    }

    fn line(words: &[&str]) -> Result<Minted, SasError> {
        let words = std::iter::once("sas").chain(words.iter().copied());
        mint(&Line::parse_from(words).sas, now())
    }

    #[test]
    fn account_container_blob_and_snapshot_have_their_urls() {
        let account = line(&[]).unwrap();
        assert!(
            account.url.starts_with("http://127.0.0.1:10000/devstoreaccount1/?sv="),
            "{}",
            account.url
        );
        assert!(account.query.contains("&ss=b&srt=sco&sp=racwdltf&se=2026-11-21T13%3A00%3A00Z&"));
        let container = line(&["c-1"]).unwrap();
        assert!(container.url.starts_with("http://127.0.0.1:10000/devstoreaccount1/c-1?sv="));
        assert!(container.query.contains("&sr=c&sp=racwdltf&"));
        let blob = line(&["c-1/dir/ä +%.txt", "--endpoint", "https://a.example/"]).unwrap();
        assert!(
            blob.url.starts_with("https://a.example/c-1/dir/%C3%A4%20%2B%25.txt?sv="),
            "{}",
            blob.url
        );
        let snapshot = line(&["c-1/b", "--snapshot", "2026-11-21T04:00:00.0000000Z"]).unwrap();
        assert!(snapshot.query.starts_with("snapshot=2026%2D11%2D21T04%3A00%3A00%2E0000000Z&"));
        assert!(snapshot.query.contains("&sr=bs&sp=r&"), "{}", snapshot.query);
    }

    #[test]
    fn delegation_key_of_a_file_signs() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let xml = "<UserDelegationKey><SignedOid>o-1</SignedOid><SignedTid>t-1</SignedTid>\
            <SignedStart>2026-11-21T05:00:00Z</SignedStart><SignedExpiry>2026-11-22T05:00:00Z</SignedExpiry>\
            <SignedService>b</SignedService><SignedVersion>2022-11-02</SignedVersion>\
            <Value>AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=</Value></UserDelegationKey>";
        file.as_file_mut().write_all(xml.as_bytes()).unwrap();
        let path = file.path().to_str().unwrap();
        let minted = line(&["c-1/b", "--delegation-key", path]).unwrap();
        assert!(
            minted.query.contains("&skoid=o-1&sktid=t-1&skt=2026-11-21T05%3A00%3A00Z&"),
            "{}",
            minted.query
        );
        assert!(line(&["--delegation-key", path]).is_err(), "not for an account");
        assert!(line(&["c-1", "--delegation-key", "/nonexistent"]).is_err());
    }

    #[test]
    fn policy_says_the_rest() {
        let minted = line(&["c-1", "--policy", "p 1"]).unwrap();
        assert!(
            minted.query.contains("&si=p%201&") && !minted.query.contains("&sp="),
            "{}",
            minted.query
        );
        assert_eq!((minted.expiry, minted.permissions), (None, None));
    }

    #[test]
    fn times_are_absolute_or_from_now_on() {
        let of = |text: &str| line(&["c-1", "--expiry", text]).map(|m| m.expiry.unwrap());
        assert_eq!(of("90s").unwrap(), "2026-11-21T05:01:30Z");
        assert_eq!(of("7d").unwrap(), "2026-11-28T05:00:00Z");
        assert_eq!(of("2030-01-31").unwrap(), "2030-01-31T00:00:00Z");
        for text in ["", "soon", "5", "h", "-5m", "99999999999999999999d", "2030-02-31"] {
            assert!(
                line(&["c-1", &format!("--expiry={text}")]).is_err() || text.is_empty(),
                "{text}"
            );
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for words in [
            &["Upper"][..],
            &["c-1", "-p", "rz"],
            &["--types", "x"],
            &["--policy", "p"],
            &["c-1", "--snapshot", "2026-11-21T04:00:00.0000000Z"],
            &["c-1", "--endpoint", "ftp://x"],
            &["c-1", "--start", "8h"],
            &["c-1", "-k", "name"],
            &["c-1", "-k", "name:notbase64!"],
        ] {
            assert!(line(words).is_err(), "{words:?}");
        }
    }
}
