//! The configuration of a node: settings merged from flags, variables and a file, checked once.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use crate::audit_log;
use crate::frontend::source::Pattern;
use crate::frontend::source::Rules;
use crate::node::paths::absolute;
use crate::node::paths::same;
use crate::protocol::KnownHosts;
use crate::telemetry::LogFormat;
use crate::telemetry::log;

use super::accounts::AccountConfig;
use super::admin_address::AdminAddress;
use super::defaults::ADMIN_LISTEN;
use super::defaults::ADMIN_TOKEN;
use super::defaults::BLOB_LISTEN;
use super::defaults::DATA;
use super::defaults::master_key_beside;
use super::development::DevelopmentAccount;
use super::error::ConfigError;
use super::identities::GivenIdentities;
use super::identities::Identities;
use super::listen_address::ListenAddress;
use super::oidc;
use super::oidc::OidcConfig;
use super::otlp::OtlpConfig;
use super::s3::S3Config;
use super::settings::Settings;
use super::size::Size;
use super::switch::Switch;
use super::tls_source::GivenFiles;
use super::tls_source::TlsSource;
use super::unserved::UnservedPort;
use super::users::UserConfig;

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
const REHYDRATION: Limit<u32> = Limit { default: 1, range: 0..=1_000_000 };
const RETENTION_DAY: Limit<u32> = Limit { default: 86_400, range: 1..=86_400 };
const AUDIT_LOG_BYTES: Limit<Size> = sizes(64 * MIB, 64 * KIB, 16 * GIB);
const AUDIT_LOG_FILES: Limit<u32> = Limit { default: 8, range: 2..=10_000 };
const DRAIN_SECONDS: Limit<u32> = Limit { default: 30, range: 0..=3600 };

/// The checked configuration of `blockyard serve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Data directories, one for each disk; the first also holds the coordinator's file. Default
    /// `./blockyard-data`.
    pub data: Vec<PathBuf>,
    /// Directories among `data` that may be new to the store. Default none.
    pub add_disk: Vec<PathBuf>,
    /// Disks of the store that the node starts without. Default none.
    pub without_disk: Vec<PathBuf>,
    /// The address of the blob listener. Default 127.0.0.1:10000; port 0 picks a free port.
    pub blob_listen: SocketAddr,
    /// The settings of S3.
    pub s3: S3Config,
    /// The address of the admin listener; health and metrics need no authentication. Default
    /// 127.0.0.1:10080; port 0 picks a free port.
    pub admin_listen: AdminAddress,
    /// Whether the admin listener serves https only. Default no.
    pub admin_tls: bool,
    /// Whether the admin listener may serve plain http where other machines can reach it. Default
    /// no.
    pub admin_plain: bool,
    /// The file with the admin token. Default: `admin-token` in the first data directory.
    pub admin_token_file: PathBuf,
    /// The absolute path of the file with the master keys. Default: the path of the first data
    /// directory with `.key` appended.
    pub master_key_file: PathBuf,
    /// Accounts, in addition to those created while a node ran. Default: the well-known development
    /// account, on loopback addresses only.
    pub accounts: Vec<AccountConfig>,
    /// Users of accounts. Default none.
    pub users: Vec<UserConfig>,
    /// Where accounts with the well-known development key are served; `None` if that was not said.
    pub development_account: Option<DevelopmentAccount>,
    /// Whether signatures of bearer tokens are not verified in accounts for development. Default
    /// no.
    pub development_tokens: bool,
    /// Ports of services that are not served. Default none.
    pub unserved: Vec<UnservedPort>,
    /// Domains of host names that name an account (`NAME.blob.DOMAIN`), lower case. Default
    /// `localhost`. On other hosts the path names the account.
    pub blob_domains: Vec<String>,
    /// Further host names, lower case, for accounts with the well-known development key and for the
    /// admin listener; `*` is every name. Default none. The names of this machine, IP addresses and
    /// `blob_domains` are always served.
    pub allow_hosts: Vec<String>,
    /// Whether requests over plain http are refused. Default no.
    pub https_only: bool,
    /// The issuers whose bearer tokens are accepted.
    pub oidc: Vec<OidcConfig>,
    /// Whether containers may allow public access; `None` leaves each account as it is.
    pub public_access: Option<bool>,
    /// The certificate for https, which is served in addition to http. Default off.
    pub tls: TlsSource,
    /// Partitions of a new store; an existing one keeps its own. Default 1, 1 to 1,024.
    pub initial_partitions: u32,
    /// Threads that serve partitions of the index. With 1, the default, they share the threads of
    /// all other work. 1 to 64.
    pub index_hosts: u32,
    /// Requests per second above which a partition splits automatically; with 0 the partition map
    /// changes by command only. Default 5,000.
    pub split_requests: u32,
    /// Size of a new journal ring, for each disk. Default 64 MiB, 256 KiB to 16 GiB.
    pub journal_bytes: u64,
    /// Memory for cached blocks of index runs. Default 64 MiB, 1 MiB to 1 TiB.
    pub block_cache_bytes: u64,
    /// Memory of all partitions for index rows that are not yet in runs. Default 64 MiB, 1 MiB to
    /// 64 GiB.
    pub memtable_bytes: u64,
    /// Space on each disk that new data does not use, so that deletes work on a full disk. Default:
    /// 2 % of the disk, at least 64 MiB, at most 10 %.
    pub reserve_bytes: Option<u64>,
    /// Bytes per second of the background verification. Default 4 MiB/s, 0 turns it off, up to 16
    /// GiB/s.
    pub scrub_bytes_per_second: u64,
    /// Open client connections. Beyond that, a new connection replaces the one that has been idle
    /// for longest; when none is idle it is answered 503. Default 4,096, 1 to 1,000,000.
    pub connections_max: u32,
    /// Open connections of one address or IPv6 network. Default: a quarter of `connections_max`,
    /// and no limit for this machine. 1 to 1,000,000.
    pub peer_connections_max: Option<u32>,
    /// The time until the first byte of a new connection. Default 5 s, 1 s to 1 h.
    pub first_byte: Duration,
    /// Concurrent requests. As many again wait for up to 50 ms; more get 503. While several
    /// accounts send requests, each has an equal share, and may use the unused shares of others
    /// except for the last quarter. Default 4,096, 1 to 1,000,000.
    pub requests_max: u32,
    /// Requests per second of one account. More get 503; bursts of one second's requests are
    /// allowed. Default 0, no limit, up to 10,000,000.
    pub account_requests_per_second: u32,
    /// A client that sends nothing of its body for this time is disconnected. Default 60 s, 1 s to
    /// 1 h.
    pub body_idle: Duration,
    /// The lowest rate in bytes per second at which a client must send its body, over each
    /// `body_idle` in which the server waits for it. A slower client is disconnected. Default 1
    /// KiB, 0 is no limit, up to 1 GiB.
    pub request_rate_min: u64,
    /// A client that reads nothing of an answer for this time is disconnected. Default 60 s, 1 s to
    /// 1 h.
    pub response_stall: Duration,
    /// The lowest rate in bytes per second at which a client must read an answer, over each
    /// `response_stall`. A slower client is disconnected. Default 1 KiB, 0 is no limit, up to 1
    /// GiB.
    pub response_rate_min: u64,
    /// The other servers that blobs may be copied from. Default: those at public addresses.
    pub copy_source: Rules,
    /// A copy from another server fails if it is slower than this for a minute. Default 1 KiB/s, 0
    /// is no limit, up to 1 GiB/s.
    pub copy_source_bytes_per_second_min: u64,
    /// How long rehydration from the archive tier takes. Default 1 s.
    pub rehydration: Duration,
    /// How long a day of retention is. Default 24 hours, 1 s to 24 hours.
    pub retention_day: Duration,
    /// Whether the last access time of block blobs is recorded. Default no.
    pub last_access: bool,
    /// How long running requests may continue when the node is stopped. Default 30 s, 0 s to 1 h.
    pub drain: Duration,
    /// The audit log of changes and, if configured, of requests. Default none.
    pub audit_log: audit_log::Settings,
    /// Where spans of requests are sent. Default nowhere.
    pub otlp: Option<OtlpConfig>,
    /// Which log lines are written. Default `info`.
    pub log: String,
    /// The format of log lines. Default text.
    pub log_format: LogFormat,
}

impl Config {
    /// Merges flags and variables (`given`) over the file and the defaults, and checks the result.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn load(given: Settings, file: Option<&Path>) -> Result<Self, ConfigError> {
        Self::load_over(given, file, Settings::default())
    }

    /// As [`Self::load`], with other defaults where `defaults` has some.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn load_over(
        given: Settings,
        file: Option<&Path>,
        defaults: Settings,
    ) -> Result<Self, ConfigError> {
        let merged = match file {
            Some(path) => given.over(read(path)?),
            None => given,
        };
        Self::from_settings(merged.over(defaults))
    }

    /// Fills in defaults and checks.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn from_settings(mut s: Settings) -> Result<Self, ConfigError> {
        let audit_log = audit_log_settings(&mut s)?;
        let blob_listen = s.blob_listen.map_or(BLOB_LISTEN, |ListenAddress(address)| address);
        let s3 = S3Config::new(s.s3_listen, s.s3_account.take(), s.s3_region.take())?;
        let serving: Vec<SocketAddr> = [blob_listen].into_iter().chain(s3.listen).collect();
        let Identities { accounts, users } =
            Identities::read(GivenIdentities::take(&mut s), &serving, s.development_account)?;
        let add_disk = s.add_disk.unwrap_or_default();
        let data = data_directories(s.data, &add_disk);
        let first = data.first().ok_or(ConfigError::DataEmpty)?;
        let master_key_file = s.master_key_file.map_or_else(|| master_key_beside(first), Ok)?;
        let config = Self {
            admin_token_file: s.admin_token_file.unwrap_or_else(|| first.join(ADMIN_TOKEN)),
            master_key_file: absolute(&master_key_file),
            data,
            add_disk,
            without_disk: s.without_disk.unwrap_or_default(),
            blob_listen,
            s3,
            admin_listen: s.admin_listen.unwrap_or(ADMIN_LISTEN),
            admin_tls: is_on(s.admin_tls),
            admin_plain: is_on(s.admin_plain),
            accounts,
            users,
            development_account: s.development_account,
            development_tokens: is_on(s.development_tokens),
            unserved: s.unserved.unwrap_or_default(),
            public_access: s.public_access.map(Switch::is_on),
            oidc: s.oidc.unwrap_or_default(),
            blob_domains: lower_all(s.blob_domain.unwrap_or_else(|| vec!["localhost".to_owned()])),
            allow_hosts: lower_all(s.allow_host.unwrap_or_default()),
            https_only: is_on(s.https_only),
            tls: TlsSource::of(s.tls, GivenFiles { cert: s.tls_cert, key: s.tls_key, pfx: s.pfx })?,
            otlp: OtlpConfig::new(s.otlp_endpoint, s.otlp_sample)?,
            initial_partitions: INITIAL_PARTITIONS
                .of("initial_partitions", s.initial_partitions)?,
            index_hosts: INDEX_HOSTS.of("index_hosts", s.index_hosts)?,
            split_requests: SPLIT_REQUESTS.of("split_requests", s.split_requests)?,
            journal_bytes: JOURNAL_BYTES.bytes("journal_bytes", s.journal_bytes)?,
            block_cache_bytes: BLOCK_CACHE_BYTES.bytes("block_cache_bytes", s.block_cache_bytes)?,
            memtable_bytes: MEMTABLE_BYTES.bytes("memtable_bytes", s.memtable_bytes)?,
            reserve_bytes: within_if_set("reserve_bytes", s.reserve_bytes, &RESERVE_BYTES)?
                .map(Size::bytes),
            scrub_bytes_per_second: SCRUB_BYTES_PER_SECOND
                .bytes("scrub_bytes_per_second", s.scrub_bytes_per_second)?,
            connections_max: CONNECTIONS_MAX.of("connections_max", s.connections_max)?,
            peer_connections_max: CONNECTIONS_MAX
                .if_set("peer_connections_max", s.peer_connections_max)?,
            first_byte: FIRST_BYTE_SECONDS.seconds("first_byte_seconds", s.first_byte_seconds)?,
            requests_max: REQUESTS_MAX.of("requests_max", s.requests_max)?,
            account_requests_per_second: ACCOUNT_REQUESTS_PER_SECOND
                .of("account_requests_per_second", s.account_requests_per_second)?,
            body_idle: BODY_IDLE_SECONDS.seconds("body_idle_seconds", s.body_idle_seconds)?,
            request_rate_min: REQUEST_MIN_RATE.bytes("request_min_rate", s.request_min_rate)?,
            response_stall: RESPONSE_STALL_TIMEOUT
                .seconds("response_stall_timeout", s.response_stall_timeout)?,
            response_rate_min: RESPONSE_MIN_RATE.bytes("response_min_rate", s.response_min_rate)?,
            copy_source: rules(s.copy_source_allow, s.copy_source_deny),
            copy_source_bytes_per_second_min: COPY_SOURCE_BYTES_PER_SECOND_MIN
                .bytes("copy_source_bytes_per_second_min", s.copy_source_bytes_per_second_min)?,
            rehydration: REHYDRATION.seconds("rehydration_seconds", s.rehydration_seconds)?,
            retention_day: RETENTION_DAY.seconds("retention_day", s.retention_day)?,
            last_access: is_on(s.last_access_time),
            drain: DRAIN_SECONDS.seconds("drain_seconds", s.drain_seconds)?,
            audit_log,
            log: s.log.unwrap_or_else(|| "info".to_owned()),
            log_format: s.log_format.unwrap_or_default(),
        };
        config.check().map(|()| config)
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
        let port_is_taken = |address: SocketAddr| {
            let others = [AdminAddress::Tcp(self.blob_listen), self.admin_listen.clone()];
            address.port() != 0 && others.contains(&AdminAddress::Tcp(address))
        };
        if let Some(address) = self.s3.listen.filter(|address| port_is_taken(*address)) {
            return Err(ConfigError::SameS3Address(address));
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

    /// Whether accounts for development are served under every host name: that was said, or there
    /// are some of `AZURITE_ACCOUNTS` at an address that other machines reach.
    #[must_use]
    pub fn serves_development_anywhere(&self) -> bool {
        match self.development_account {
            Some(DevelopmentAccount::Anywhere) => true,
            Some(DevelopmentAccount::Loopback) => false,
            None => {
                let mut addresses = [self.blob_listen].into_iter().chain(self.s3.listen);
                addresses.any(|address| !address.ip().to_canonical().is_loopback())
                    && self.accounts.iter().any(AccountConfig::is_for_development)
            }
        }
    }

    /// The accounts whose keys are public or given for development.
    pub fn development_accounts(&self) -> impl Iterator<Item = &AccountConfig> {
        self.accounts.iter().filter(|one| one.is_public() || one.is_for_development())
    }

    /// As [`Self::known_hosts`], for the accounts: every name, where one for development is served
    /// anywhere.
    #[must_use]
    pub fn account_hosts(&self) -> KnownHosts {
        let known = self.known_hosts();
        KnownHosts { any: known.any || self.serves_development_anywhere(), ..known }
    }

    /// The host names that are served although a web page could use them (DNS rebinding).
    #[must_use]
    pub fn known_hosts(&self) -> KnownHosts {
        KnownHosts {
            any: self.allow_hosts.iter().any(|name| name == "*"),
            domains: self.blob_domains.clone(),
            names: self.allow_hosts.clone(),
        }
    }
}

fn is_on(switch: Option<Switch>) -> bool {
    switch.is_some_and(Switch::is_on)
}

/// The directories given, and those of `add_disk` that are not among them.
fn data_directories(given: Option<Vec<PathBuf>>, add_disk: &[PathBuf]) -> Vec<PathBuf> {
    let mut data = given.unwrap_or_else(|| vec![PathBuf::from(DATA)]);
    for added in add_disk {
        // A directory that both flags name counts once.
        if !data.iter().any(|given| same(given, added)) {
            data.push(added.clone());
        }
    }
    data
}

/// Host names in the form in which they are compared.
fn lower_all(names: Vec<String>) -> Vec<String> {
    names.into_iter().map(|name| name.trim_matches('.').to_ascii_lowercase()).collect()
}

fn audit_log_settings(s: &mut Settings) -> Result<audit_log::Settings, ConfigError> {
    Ok(audit_log::Settings {
        to: s.audit_log.take().map(audit_log_destination),
        requests: is_on(s.audit_requests),
        bytes_max: AUDIT_LOG_BYTES.bytes("audit_log_bytes", s.audit_log_bytes)?,
        files: AUDIT_LOG_FILES.of("audit_log_files", s.audit_log_files)?,
    })
}

fn audit_log_destination(path: PathBuf) -> audit_log::Destination {
    match path.to_str() {
        Some("-") => audit_log::Destination::Stdout,
        _ => audit_log::Destination::File(path),
    }
}

fn rules(allow: Option<Vec<Pattern>>, deny: Option<Vec<Pattern>>) -> Rules {
    Rules { allow: allow.unwrap_or_default(), deny: deny.unwrap_or_default() }
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

    /// The same for a setting whose default is none.
    fn if_set(&self, setting: &'static str, given: Option<T>) -> Result<Option<T>, ConfigError> {
        within_if_set(setting, given, &self.range)
    }
}

impl Limit<Size> {
    fn bytes(&self, setting: &'static str, given: Option<Size>) -> Result<u64, ConfigError> {
        self.of(setting, given).map(Size::bytes)
    }
}

impl Limit<u32> {
    fn seconds(&self, setting: &'static str, given: Option<u32>) -> Result<Duration, ConfigError> {
        self.of(setting, given).map(|seconds| Duration::from_secs(u64::from(seconds)))
    }
}

/// Checks a setting without a default.
fn within_if_set<T: PartialOrd + Copy + fmt::Display>(
    setting: &'static str,
    given: Option<T>,
    range: &RangeInclusive<T>,
) -> Result<Option<T>, ConfigError> {
    given.map(|value| within(setting, value, range)).transpose()
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
mod development_tests;
#[cfg(test)]
mod tests;
