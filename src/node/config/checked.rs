//! What a node is told to be: settings merged from flags, variables and a file, checked once.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use crate::audit_log;
use crate::frontend::source::Rules;
use crate::node::paths::absolute;
use crate::node::paths::same;
use crate::protocol::KnownHosts;
use crate::telemetry::LogFormat;
use crate::telemetry::log;

use super::account_file;
use super::accounts::AccountConfig;
use super::accounts::AccountText;
use super::admin_address::AdminAddress;
use super::defaults::ADMIN_LISTEN;
use super::defaults::ADMIN_TOKEN;
use super::defaults::BLOB_LISTEN;
use super::defaults::DATA;
use super::defaults::master_key_beside;
use super::error::ConfigError;
use super::listen_address::ListenAddress;
use super::oidc;
use super::oidc::OidcConfig;
use super::settings::Settings;
use super::settings::TlsMode;
use super::size::Size;
use super::switch::Switch;
use super::tls_source::TlsSource;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// A number with its limits.
struct Limit<T> {
    default: T,
    range: RangeInclusive<T>,
}

const fn sizes(default: u64, least: u64, most: u64) -> Limit<Size> {
    Limit { default: Size::new(default), range: Size::new(least)..=Size::new(most) }
}

const INITIAL_PARTITIONS: Limit<u32> = Limit { default: 1, range: 1..=128 };
const INDEX_HOSTS: Limit<u32> = Limit { default: 1, range: 1..=64 };
const SPLIT_REQUESTS: Limit<u32> = Limit { default: 5_000, range: 0..=10_000_000 };
const JOURNAL_BYTES: Limit<Size> = sizes(64 * MIB, 256 * KIB, 16 * GIB);
const BLOCK_CACHE_BYTES: Limit<Size> = sizes(64 * MIB, MIB, 1024 * GIB);
const MEMTABLE_BYTES: Limit<Size> = sizes(64 * MIB, MIB, 64 * GIB);
const SCRUB_BYTES_PER_SECOND: Limit<Size> = sizes(4 * MIB, 0, 16 * GIB);
const RESERVE_BYTES: RangeInclusive<Size> = Size::new(0)..=Size::new(1024 * 1024 * GIB);
const CONNECTIONS_MAX: Limit<u32> = Limit { default: 4096, range: 1..=1_000_000 };
const FIRST_BYTE_SECONDS: Limit<u32> = Limit { default: 5, range: 1..=3600 };
const REQUESTS_MAX: Limit<u32> = Limit { default: 4096, range: 1..=1_000_000 };
const ACCOUNT_REQUESTS_PER_SECOND: Limit<u32> = Limit { default: 0, range: 0..=10_000_000 };
const COPY_SOURCE_BYTES_PER_SECOND_MIN: Limit<Size> = sizes(KIB, 0, GIB);
const BODY_IDLE_SECONDS: Limit<u32> = Limit { default: 60, range: 1..=3600 };
const REQUEST_MIN_RATE: Limit<Size> = sizes(KIB, 0, GIB);
const RESPONSE_STALL_TIMEOUT: Limit<u32> = Limit { default: 60, range: 1..=3600 };
const RESPONSE_MIN_RATE: Limit<Size> = sizes(KIB, 0, GIB);
const REHYDRATION_SECONDS: Limit<u32> = Limit { default: 1, range: 0..=1_000_000 };
const AUDIT_LOG_BYTES: Limit<Size> = sizes(64 * MIB, 64 * KIB, 16 * GIB);
const AUDIT_LOG_FILES: Limit<u32> = Limit { default: 8, range: 2..=10_000 };
const DRAIN_SECONDS: Limit<u32> = Limit { default: 30, range: 0..=3600 };

/// Everything `blockyard serve` needs to know, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Data directories, one for each disk; the first also holds the coordinator's file. Default
    /// `./blockyard-data`.
    pub data: Vec<PathBuf>,
    /// Those of them that may be new to the store. Default none.
    pub add_disk: Vec<PathBuf>,
    /// Disks of the store that the node starts without. Default none.
    pub without_disk: Vec<PathBuf>,
    /// Where Blob is served. Default 127.0.0.1:10000; port 0 takes a free one.
    pub blob_listen: SocketAddr,
    /// Where health and metrics are served, to anyone who can reach it. Default 127.0.0.1:10080;
    /// port 0 takes a free one.
    pub admin_listen: AdminAddress,
    /// Whether that is over https only. Default no.
    pub admin_tls: bool,
    /// Whether that may be plain where other machines reach it. Default no.
    pub admin_plain: bool,
    /// The file with the token that admin commands must show. Default: `admin-token` in the first
    /// data directory.
    pub admin_token_file: PathBuf,
    /// The file with the master keys, absolute. Default: beside the first data directory, with
    /// `.key` behind its name.
    pub master_key_file: PathBuf,
    /// Accounts, beside those made while a node ran. Default: the well-known development account,
    /// on loopback addresses only.
    pub accounts: Vec<AccountConfig>,
    /// Domains under which hosts name accounts (`NAME.blob.DOMAIN`), lower case. Default
    /// `localhost`. A path names its account on any other host.
    pub blob_domains: Vec<String>,
    /// Host names, lower case, under which the well-known development key and the admin listener
    /// are served too; `*` is every name. Default none: those of this machine, addresses and
    /// `blob_domains` always are.
    pub allow_hosts: Vec<String>,
    /// Whether what comes by plain http is refused. Default no.
    pub https_only: bool,
    /// Whose bearer tokens are taken.
    pub oidc: Vec<OidcConfig>,
    /// Whether containers may be opened to everybody; `None` leaves each account as it is.
    pub public_access: Option<bool>,
    /// Whether https is served beside http, and with which certificate. Default off.
    pub tls: TlsSource,
    /// Partitions of a new store; an existing one keeps its own. Default 1, 1 to 1,024.
    pub initial_partitions: u32,
    /// Threads that serve partitions of the index; 1, the default, means that they share those of
    /// everything else. 1 to 64.
    pub index_hosts: u32,
    /// Requests a second above which a partition splits by itself; 0 has the partition map change
    /// by command only. Default 5,000.
    pub split_requests: u32,
    /// Size of a new journal ring, for each disk. Default 64 MiB, 256 KiB to 16 GiB.
    pub journal_bytes: u64,
    /// Cached blocks of index runs, in memory. Default 64 MiB, 1 MiB to 1 TiB.
    pub block_cache_bytes: u64,
    /// Index rows not yet in runs, in memory, all partitions together. Default 64 MiB, 1 MiB to 64
    /// GiB.
    pub memtable_bytes: u64,
    /// What new data leaves free on each disk, so that deletes still work on a full one. Default: 2
    /// % of the disk, at least 64 MiB, at most 10 %.
    pub reserve_bytes: Option<u64>,
    /// Pace of the background verification of stored bytes. Default 4 MiB/s, 0 turns it off, up to
    /// 16 GiB/s.
    pub scrub_bytes_per_second: u64,
    /// Open client connections; the one that has been idle for longest leaves for a new one, and
    /// when none is idle new ones are answered 503. Default 4,096, 1 to 1,000,000.
    pub connections_max: u32,
    /// Of these, those of one address or IPv6 network. Default: a quarter, and no limit for this
    /// machine. 1 to 1,000,000.
    pub peer_connections_max: Option<u32>,
    /// How long a new connection may send nothing. Default 5 s, 1 s to 1 h.
    pub first_byte: Duration,
    /// Requests answered at a time; as many wait for 50 ms, and more get 503. While several
    /// accounts send requests, each has an equal share, and takes what others leave but the last
    /// quarter. Default 4,096, as many as connections, 1 to 1,000,000.
    pub requests_max: u32,
    /// Requests a second of one account, beyond which it gets 503; a second of them may come at
    /// once. Default 0, no limit, up to 10,000,000.
    pub account_requests_per_second: u32,
    /// A client that sends nothing of its body for so long is cut off. Default 60 s, 1 s to 1 h.
    pub body_idle: Duration,
    /// Bytes a second of its body that a client must send, over each such time that the server
    /// waits for it; a slower one is cut off. Default 1 KiB, 0 asks for none, up to 1 GiB.
    pub request_rate_min: u64,
    /// A client that takes nothing of an answer for so long is cut off. Default 60 s, 1 s to 1 h.
    pub response_stall: Duration,
    /// Bytes a second of an answer that a client must take, over each such time; a slower one is
    /// cut off. Default 1 KiB, 0 asks for none, up to 1 GiB.
    pub response_rate_min: u64,
    /// Which other servers blobs may be copied from. Default: those at public addresses.
    pub copy_source: Rules,
    /// A source on another server that sends fewer bytes a second for a minute is given up. Default
    /// 1 KiB/s, 0 turns it off, up to 1 GiB/s.
    pub copy_source_bytes_per_second_min: u64,
    /// How long a blob takes out of the archive. Default 1 s.
    pub rehydration: Duration,
    /// Whether reads of block blobs are remembered. Default no.
    pub last_access: bool,
    /// How long running requests may take to end at a stop. Default 30 s, 0 s to 1 h.
    pub drain: Duration,
    /// Where changes, and requests when asked for, are recorded. Default nowhere.
    pub audit_log: audit_log::Settings,
    /// Which log lines are written. Default `info`.
    pub log: String,
    /// How they look. Default text.
    pub log_format: LogFormat,
}

impl Config {
    /// Merges flags and variables (`given`) over the file and the defaults, and checks the outcome.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn load(given: Settings, file: Option<&Path>) -> Result<Self, ConfigError> {
        let merged = match file {
            Some(path) => given.over(read(path)?),
            None => given,
        };
        Self::from_settings(merged)
    }

    /// Fills in defaults and checks.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn from_settings(s: Settings) -> Result<Self, ConfigError> {
        let seconds = |n: u32| Duration::from_secs(u64::from(n));
        let blob_listen = s.blob_listen.map_or(BLOB_LISTEN, |ListenAddress(address)| address);
        let is_on = |switch: Option<Switch>| switch.is_some_and(Switch::is_on);
        let mut data = s.data.unwrap_or_else(|| vec![PathBuf::from(DATA)]);
        let add_disk = s.add_disk.unwrap_or_default();
        for added in &add_disk {
            // Named by both it is meant once.
            if !data.iter().any(|given| same(given, added)) {
                data.push(added.clone());
            }
        }
        let token_file = s.admin_token_file.or_else(|| Some(data.first()?.join(ADMIN_TOKEN)));
        let master_key_file = match s.master_key_file {
            Some(path) => path,
            None => master_key_beside(data.first().ok_or(ConfigError::DataEmpty)?)?,
        };
        let config = Self {
            master_key_file: absolute(&master_key_file),
            data,
            add_disk,
            without_disk: s.without_disk.unwrap_or_default(),
            blob_listen,
            admin_listen: s.admin_listen.unwrap_or(ADMIN_LISTEN),
            admin_tls: is_on(s.admin_tls),
            admin_plain: is_on(s.admin_plain),
            admin_token_file: token_file.unwrap_or_else(|| PathBuf::from(ADMIN_TOKEN)),
            accounts: accounts(s.account, s.account_file.as_deref(), blob_listen)?,
            public_access: s.public_access.map(Switch::is_on),
            oidc: s.oidc.unwrap_or_default(),
            blob_domains: domains(s.blob_domain),
            allow_hosts: s
                .allow_host
                .unwrap_or_default()
                .into_iter()
                .map(|name| lower(&name))
                .collect(),
            https_only: is_on(s.https_only),
            tls: tls(s.tls, s.tls_cert, s.tls_key)?,
            initial_partitions: INITIAL_PARTITIONS
                .of("initial_partitions", s.initial_partitions)?,
            index_hosts: INDEX_HOSTS.of("index_hosts", s.index_hosts)?,
            split_requests: SPLIT_REQUESTS.of("split_requests", s.split_requests)?,
            journal_bytes: JOURNAL_BYTES.of("journal_bytes", s.journal_bytes)?.bytes(),
            block_cache_bytes: BLOCK_CACHE_BYTES
                .of("block_cache_bytes", s.block_cache_bytes)?
                .bytes(),
            memtable_bytes: MEMTABLE_BYTES.of("memtable_bytes", s.memtable_bytes)?.bytes(),
            reserve_bytes: s
                .reserve_bytes
                .map(|size| within("reserve_bytes", size, &RESERVE_BYTES))
                .transpose()?
                .map(Size::bytes),
            scrub_bytes_per_second: SCRUB_BYTES_PER_SECOND
                .of("scrub_bytes_per_second", s.scrub_bytes_per_second)?
                .bytes(),
            connections_max: CONNECTIONS_MAX.of("connections_max", s.connections_max)?,
            peer_connections_max: s
                .peer_connections_max
                .map(|count| within("peer_connections_max", count, &CONNECTIONS_MAX.range))
                .transpose()?,
            first_byte: seconds(FIRST_BYTE_SECONDS.of("first_byte_seconds", s.first_byte_seconds)?),
            requests_max: REQUESTS_MAX.of("requests_max", s.requests_max)?,
            account_requests_per_second: ACCOUNT_REQUESTS_PER_SECOND
                .of("account_requests_per_second", s.account_requests_per_second)?,
            body_idle: seconds(BODY_IDLE_SECONDS.of("body_idle_seconds", s.body_idle_seconds)?),
            request_rate_min: REQUEST_MIN_RATE.of("request_min_rate", s.request_min_rate)?.bytes(),
            response_stall: seconds(
                RESPONSE_STALL_TIMEOUT.of("response_stall_timeout", s.response_stall_timeout)?,
            ),
            response_rate_min: RESPONSE_MIN_RATE
                .of("response_min_rate", s.response_min_rate)?
                .bytes(),
            copy_source: Rules {
                allow: s.copy_source_allow.unwrap_or_default(),
                deny: s.copy_source_deny.unwrap_or_default(),
            },
            copy_source_bytes_per_second_min: COPY_SOURCE_BYTES_PER_SECOND_MIN
                .of("copy_source_bytes_per_second_min", s.copy_source_bytes_per_second_min)?
                .bytes(),
            rehydration: seconds(
                REHYDRATION_SECONDS.of("rehydration_seconds", s.rehydration_seconds)?,
            ),
            last_access: is_on(s.last_access_time),
            drain: seconds(DRAIN_SECONDS.of("drain_seconds", s.drain_seconds)?),
            audit_log: audit_log::Settings {
                to: s.audit_log.map(|path| match path.to_str() {
                    Some("-") => audit_log::Destination::Stdout,
                    _ => audit_log::Destination::File(path),
                }),
                requests: is_on(s.audit_requests),
                bytes_max: AUDIT_LOG_BYTES.of("audit_log_bytes", s.audit_log_bytes)?.bytes(),
                files: AUDIT_LOG_FILES.of("audit_log_files", s.audit_log_files)?,
            },
            log: s.log.unwrap_or_else(|| "info".to_owned()),
            log_format: s.log_format.unwrap_or_default(),
        };
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        oidc::check_distinct(&self.oidc)?;
        let mut folders = BTreeSet::new();
        for folder in &self.data {
            if folder.as_os_str().is_empty() {
                return Err(ConfigError::DataEmpty);
            }
            let plain = std::path::absolute(folder).unwrap_or_else(|_| folder.clone());
            if !folders.insert(plain.components().collect::<PathBuf>()) {
                return Err(ConfigError::DataTwice(folder.clone()));
            }
        }
        if let Some(folder) = self.data.iter().find(|folder| {
            let key = absolute(&self.master_key_file);
            key.starts_with(absolute(folder))
        }) {
            let (path, folder) = (self.master_key_file.clone(), folder.clone());
            return Err(ConfigError::MasterKeyInside { path, folder });
        }
        let same = self.admin_listen == AdminAddress::Tcp(self.blob_listen);
        if same && self.blob_listen.port() != 0 {
            return Err(ConfigError::SameAddress(self.blob_listen));
        }
        if self.admin_tls && self.tls == TlsSource::Off {
            return Err(ConfigError::AdminTls);
        }
        if !self.admin_listen.is_local() && !self.admin_tls && !self.admin_plain {
            return Err(ConfigError::AdminPlain(self.admin_listen.clone()));
        }
        if self.audit_log.requests && self.audit_log.to.is_none() {
            return Err(ConfigError::AuditRequests);
        }
        if self.https_only && self.tls == TlsSource::Off {
            return Err(ConfigError::HttpsOnly);
        }
        Ok(log::check_filter(&self.log)?)
    }

    /// The host names under which what any web page could use is served.
    #[must_use]
    pub fn known_hosts(&self) -> KnownHosts {
        KnownHosts {
            any: self.allow_hosts.iter().any(|name| name == "*"),
            domains: self.blob_domains.clone(),
            names: self.allow_hosts.clone(),
        }
    }
}

fn domains(given: Option<Vec<String>>) -> Vec<String> {
    let given = given.unwrap_or_else(|| vec!["localhost".to_owned()]);
    given.into_iter().map(|domain| lower(&domain)).collect()
}

/// A host name as it is compared.
fn lower(name: &str) -> String {
    name.trim_matches('.').to_ascii_lowercase()
}

fn tls(
    mode: Option<TlsMode>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
) -> Result<TlsSource, ConfigError> {
    match (mode, cert, key) {
        (Some(TlsMode::Off), _, _) | (None, None, None) => Ok(TlsSource::Off),
        (Some(TlsMode::Auto), None, None) => Ok(TlsSource::Auto),
        (Some(TlsMode::Auto), _, _) => Err(ConfigError::TlsTwice),
        (None, Some(cert), Some(key)) => Ok(TlsSource::Files { cert, key }),
        (None, _, _) => Err(ConfigError::TlsHalf),
    }
}

fn accounts(
    given: Option<Vec<AccountText>>,
    file: Option<&Path>,
    listen: SocketAddr,
) -> Result<Vec<AccountConfig>, ConfigError> {
    let loopback = listen.ip().to_canonical().is_loopback();
    let mut accounts = Vec::new();
    for text in given.unwrap_or_default() {
        accounts.push(text.parse()?);
    }
    if let Some(path) = file {
        accounts.extend(account_file::read(path)?);
    } else if accounts.is_empty() && loopback {
        // Elsewhere those made while a node ran may be enough: the start knows.
        accounts.push(AccountConfig::development());
    }
    let mut names = BTreeSet::new();
    for account in &accounts {
        let name = account.name().as_str().to_owned();
        if account.is_public() && !loopback {
            return Err(ConfigError::PublicAccount { account: name, listen });
        }
        if !names.insert(name.clone()) {
            return Err(ConfigError::AccountTwice(name));
        }
    }
    Ok(accounts)
}

fn read(path: &Path) -> Result<Settings, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError::FileUnreadable { path: path.to_owned(), error })?;
    toml::from_str(&text)
        .map_err(|error| ConfigError::FileInvalid { path: path.to_owned(), error: Box::new(error) })
}

impl<T: PartialOrd + Copy + fmt::Display> Limit<T> {
    fn of(&self, setting: &'static str, given: Option<T>) -> Result<T, ConfigError> {
        within(setting, given.unwrap_or(self.default), &self.range)
    }
}

fn within<T: PartialOrd + Copy + fmt::Display>(
    setting: &'static str,
    value: T,
    range: &RangeInclusive<T>,
) -> Result<T, ConfigError> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(ConfigError::Range {
        setting,
        value: value.to_string(),
        min: range.start().to_string(),
        max: range.end().to_string(),
    })
}

#[cfg(test)]
mod tests;
