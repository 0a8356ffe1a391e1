//! Makes a shared access signature of any form, offline, as a URL.

use std::net::IpAddr;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::AsciiSet;
use percent_encoding::NON_ALPHANUMERIC;
use percent_encoding::utf8_percent_encode;
use serde::Serialize;
use thiserror::Error;

use crate::auth::AccountKeys;
use crate::auth::DelegationKey;
use crate::auth::Overrides;
use crate::auth::SasPermissions;
use crate::auth::Target;
use crate::auth::Terms;
use crate::auth::mint_account;
use crate::auth::mint_delegation;
use crate::auth::mint_service;
use crate::node::config::AccountConfig;
use crate::node::config::AccountError;
use crate::node::config::DEVELOPMENT_NAME;
use crate::node::config::Switch;
use crate::protocol::azure;
use crate::types::BlobName;
use crate::types::ContainerName;
use crate::types::Timestamp;

use super::args::SasArgs;

/// Characters of a path that are escaped.
const PATH: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b'$');

/// The default lifetime of a signature.
const DEFAULT_LIFE: &str = "8h";
/// The default permissions.
const DEFAULT_PERMISSIONS: &str = "r";

/// Why no signature is made. The text says what to give instead.
#[derive(Debug, Error)]
pub enum SasError {
    /// The account cannot be read.
    #[error("{0}")]
    Account(#[from] AccountError),
    /// No account.
    #[error(
        "whose signature is it? Give --account NAME:KEY, or set BLOCKYARD_SAS_ACCOUNT; for the \
         development account --account {DEVELOPMENT_NAME} is enough"
    )]
    NoAccount,
    /// Not a client address.
    #[error("--ip {0} is not an address; give an IP address, or FIRST-LAST")]
    Address(String),
    /// No container or blob.
    #[error("`{0}` is not CONTAINER or CONTAINER/BLOB")]
    Path(String),
    /// A letter that is not a permission.
    #[error("--permissions {0} has a letter that is not a permission; see `blockyard sas --help`")]
    Permissions(String),
    /// A letter that is not a resource type.
    #[error("--types {0}: give letters of sco")]
    Types(String),
    /// Neither a time nor a duration.
    #[error(
        "--{flag} {text} is not a time; give 2030-01-31T12:00:00Z or, for --expiry, 30m, 8h or 7d"
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
    #[error("--endpoint {0} is not an http or https URL")]
    Endpoint(String),
}

/// A signature, ready to use.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Minted {
    /// The URL of the resource, with the signature.
    pub url: String,
    /// The signature alone.
    pub query: String,
    /// When it expires, unless a policy has the expiry.
    pub expiry: Option<String>,
    /// Its permissions, unless a policy has them.
    pub permissions: Option<String>,
    /// Why it permits nothing, if so.
    #[serde(skip)]
    pub warning: Option<String>,
}

/// Makes the signature.
///
/// # Errors
/// [`SasError`].
pub(crate) fn mint(args: &SasArgs, now: Timestamp) -> Result<Minted, SasError> {
    let account = args.account.as_ref().ok_or(SasError::NoAccount)?.parse_public()?;
    let name = account.name().as_str();
    let Resource { container, blob } = resource(args)?;
    let terms = terms(args, now)?;
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
    let (warning, url) = (warning(&terms, now), format!("{url}?{query}"));
    let permissions = (!terms.permissions.is_empty()).then_some(terms.permissions);
    Ok(Minted { url, query, expiry: terms.expiry, permissions, warning })
}

/// A warning about the times of a signature, which is made nevertheless.
fn warning(terms: &Terms, now: Timestamp) -> Option<String> {
    let expiry = terms.expiry.as_deref()?;
    let until = Timestamp::from_iso(expiry)?;
    if until <= now {
        return Some(format!("the signature expired at {expiry}: give a later --expiry"));
    }
    let start = terms.start.as_deref()?;
    (until <= Timestamp::from_iso(start)?).then(|| {
        format!(
            "the signature expires at {expiry}, before it begins at {start}: give a later --expiry"
        )
    })
}

/// A URL to read and list `path`, a container or CONTAINER/BLOB.
///
/// # Errors
/// [`SasError::Account`].
pub(crate) fn link(
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
        .map_err(|error| unreadable(azure::errors::message(&error).to_owned()))?;
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

/// The resource of a signature; without a container, the whole account.
#[derive(Default)]
struct Resource {
    container: Option<ContainerName>,
    blob: Option<BlobName>,
}

fn resource(args: &SasArgs) -> Result<Resource, SasError> {
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
            None => Ok(Resource::default()),
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
    let container = Some(ContainerName::new(container).map_err(|_| refused())?);
    Ok(Resource { container, blob })
}

fn terms(args: &SasArgs, now: Timestamp) -> Result<Terms, SasError> {
    // Fields of the policy must not be in the signature too.
    let open = |own: Option<&str>, default: &str| match own {
        Some(own) => own.to_owned(),
        None if args.policy.is_some() => String::new(),
        None => default.to_owned(),
    };
    let permissions = open(args.permissions.as_deref(), DEFAULT_PERMISSIONS);
    // The service requires its own order.
    let parsed = SasPermissions::parse(&permissions).ok_or(SasError::Permissions(permissions))?;
    let expiry = open(args.expiry.as_deref(), DEFAULT_LIFE);
    Ok(Terms {
        permissions: parsed.to_string(),
        start: args.start.as_deref().map(start).transpose()?,
        expiry: (!expiry.is_empty()).then(|| self::expiry(&expiry, now)).transpose()?,
        addresses: args.ip.clone().map(addresses).transpose()?,
        https_only: args.https_only.is_some_and(Switch::is_on),
        policy: args.policy.clone(),
        overrides: Overrides {
            content_type: args.content_type.clone(),
            content_disposition: args.content_disposition.clone(),
            ..Overrides::default()
        },
    })
}

/// Checks an address, or two with a hyphen between them.
fn addresses(text: String) -> Result<String, SasError> {
    let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
    let fits = match text.split_once('-') {
        Some((first, last)) => is_address(first) && is_address(last),
        None => is_address(&text),
    };
    if fits { Ok(text) } else { Err(SasError::Address(text)) }
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
mod tests;
