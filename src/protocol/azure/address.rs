//! Which account, container and blob a URL names.

use http::Method;
use http::Uri;

use crate::protocol::azure::naming;
use crate::protocol::azure::unserved;
use crate::protocol::model::Address;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::wire::percent::decode;
use crate::types::AccountName;
use crate::types::BlobName;
use crate::types::ContainerName;

/// How host names are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addressing {
    /// Domains `D` for which `ACCOUNT.blob.D` names an account; lower case, no port.
    pub domains: Vec<String>,
}

impl Default for Addressing {
    fn default() -> Self {
        Self { domains: vec!["localhost".to_owned()] }
    }
}

impl Addressing {
    /// Whether a host, without its port, is `ACCOUNT.blob.D` for one of the domains.
    #[must_use]
    pub fn names_account(&self, host: &str) -> bool {
        let rest = host.split_once('.').map(|(_, rest)| rest);
        rest.and_then(|rest| rest.split_once('.')).is_some_and(|(service, name)| {
            service.eq_ignore_ascii_case("blob")
                && self.domains.iter().any(|domain| name.eq_ignore_ascii_case(domain))
        })
    }
}

/// The parts of a URL, before names are checked.
struct Split<'a> {
    account: &'a str,
    endpoint: String,
    /// After the account, without the slash that ends it.
    rest: &'a str,
}

/// The suffix that names the read-only copy of an account.
const SECONDARY: &str = "-secondary";

/// Reads method, URL and `Host` header. The URL's own authority, if it has one, wins over `Host`.
///
/// Names are percent-decoded once, after the path is split into container and blob: `%2F` is a
/// slash of the name, `+` is a plus, trailing dots and slashes belong to the name. A backslash of
/// a blob's name is a slash, as in recorded answers of the service (2021-12-02).
///
/// # Errors
/// `UnsupportedHttpVerb`, `InvalidHttpVerb`; `NotImplemented` for a host of Data Lake; `InvalidUri`
/// when there is no account or the escapes are broken; `InvalidResourceName`, `OutOfRangeInput` for
/// names that nothing can have, or that the request makes against the rules of Azure (`naming.rs`).
pub fn address(
    method: &Method,
    uri: &Uri,
    host: Option<&str>,
    addressing: &Addressing,
) -> Result<Address, Refusal> {
    check_method(method)?;
    let path = uri.path().strip_prefix('/').ok_or(Reason::InvalidUri)?;
    let host = uri.authority().map_or(host, |a| Some(a.as_str())).unwrap_or("localhost");
    if service_label(without_port(host), "dfs", &addressing.domains).is_some() {
        return Err(unserved::data_lake(host));
    }
    let (raw_account, split) = split_account(host, path, addressing);
    let account = AccountName::new(split.account).map_err(|_| {
        Refusal::new(Reason::InvalidUri)
            .message(format!("The URL names no account: '{raw_account}' is not an account name."))
    })?;
    let secondary = raw_account.len() > split.account.len();
    let (container, sent) = names(split.rest, uri.query().unwrap_or(""))?;
    let (blob, blob_as_sent) = match sent {
        Some(text) if text.contains('\\') => {
            (Some(blob_name(&text.replace('\\', "/"))?), Some(blob_name(&text)?))
        }
        Some(text) => (Some(blob_name(&text)?), None),
        None => (None, None),
    };
    naming::check_made(method, uri.query(), (container.as_ref(), blob.as_ref()))?;
    let endpoint = split.endpoint;
    Ok(Address { account, secondary, container, blob, blob_as_sent, endpoint })
}

fn check_method(method: &Method) -> Result<(), Refusal> {
    match *method {
        Method::GET
        | Method::HEAD
        | Method::PUT
        | Method::DELETE
        | Method::POST
        | Method::OPTIONS
        | Method::PATCH => Ok(()),
        Method::CONNECT | Method::TRACE => Err(Reason::UnsupportedHttpVerb.into()),
        _ => Err(Reason::InvalidHttpVerb.into()),
    }
}

/// The account as spelled, and the URL split behind it.
fn split_account<'a>(
    host: &'a str,
    path: &'a str,
    addressing: &Addressing,
) -> (&'a str, Split<'a>) {
    if let Some(label) = service_label(without_port(host), "blob", &addressing.domains) {
        let account = label.strip_suffix(SECONDARY).unwrap_or(label);
        return (label, Split { account, endpoint: [host, "/"].concat(), rest: path });
    }
    let (segment, rest) = path.split_once('/').unwrap_or((path, ""));
    let account = segment.strip_suffix(SECONDARY).unwrap_or(segment);
    (segment, Split { account, endpoint: [host, "/", segment, "/"].concat(), rest })
}

/// The label before `.SERVICE.DOMAIN`, when the host's name is of that form.
fn service_label<'a>(name: &'a str, wanted: &str, domains: &[String]) -> Option<&'a str> {
    if !may_be_below(name, domains) {
        return None;
    }
    let (label, rest) = name.split_once('.')?;
    let (service, domain) = rest.split_once('.')?;
    let known = domains.iter().any(|d| d.eq_ignore_ascii_case(domain));
    (service.eq_ignore_ascii_case(wanted) && known).then_some(label)
}

/// Whether a host's name ends with the text of one of the domains. Most hosts are addresses and do
/// not. The caller still compares the labels: `notlocalhost` ends with `localhost`.
pub(super) fn may_be_below(name: &str, domains: &[String]) -> bool {
    let name = name.as_bytes();
    domains.iter().any(|domain| {
        let tail = name.len().checked_sub(domain.len()).and_then(|from| name.get(from..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(domain.as_bytes()))
    })
}

pub(super) fn without_port(host: &str) -> &str {
    if host.starts_with('[') {
        return host;
    }
    host.split_once(':').map_or(host, |(name, _)| name)
}

/// Container and text of the blob's name below the account. One segment alone is a container when
/// the query has a `restype` (or is of the file-system dialect), else a blob of `$root`.
fn names(rest: &str, query: &str) -> Result<(Option<ContainerName>, Option<String>), Refusal> {
    if rest.is_empty() {
        return Ok((None, None));
    }
    match rest.split_once('/') {
        None if !names_a_container(query) => {
            Ok((Some(container_name("$root")?), Some(decoded(rest)?)))
        }
        None | Some((_, "")) => {
            let container = rest.strip_suffix('/').unwrap_or(rest);
            Ok((Some(container_name(container)?), None))
        }
        Some((container, blob)) => Ok((Some(container_name(container)?), Some(decoded(blob)?))),
    }
}

fn names_a_container(query: &str) -> bool {
    query.split('&').any(|piece| {
        let name = piece.split_once('=').map_or(piece, |(name, _)| name);
        ["restype", "resource", "action"].iter().any(|n| name.eq_ignore_ascii_case(n))
    })
}

fn container_name(raw: &str) -> Result<ContainerName, Refusal> {
    let text = decode(raw).ok_or(Reason::InvalidUri)?;
    if text.is_empty() {
        return Err(Reason::InvalidUri.into());
    }
    ContainerName::new(&text).map_err(|error| naming::refused_container(&text, error))
}

fn decoded(raw: &str) -> Result<String, Refusal> {
    decode(raw).ok_or(Reason::InvalidUri.into())
}

fn blob_name(text: &str) -> Result<BlobName, Refusal> {
    BlobName::new(text).map_err(|error| naming::refused_blob(text, error))
}
