//! The settings as given: one list for flags, variables and the file.

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;

use crate::frontend::source::Pattern;
use crate::frontend::spans::Ratio;
use crate::telemetry::LogFormat;

use super::accounts::AccountText;
use super::admin_address::AdminAddress;
use super::development::DevelopmentAccount;
use super::listen_address::ListenAddress;
use super::oidc::OidcConfig;
use super::pfx_file::PfxFile;
use super::size::Size;
use super::switch::Switch;
use super::unserved::UnservedPort;
use super::users::UserText;

/// The values of `--tls`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum TlsMode {
    /// No https, even if --tls-cert and --tls-key are given.
    Off,
    /// A certificate of the node's own certificate authority.
    Auto,
}

/// Settings of `serve`, each as a flag, as a variable `BLOCKYARD_...`, and as a field of the
/// configuration file under the flag's name with underscores. A setting that is not given is
/// `None`; [`super::checked::Config`] has defaults and limits.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[command(mut_args = Switch::spelled)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Data directory, created if missing; repeat for each disk [default: ./blockyard-data]
    #[arg(long, value_name = "DIR", env = "BLOCKYARD_DATA", value_delimiter = ',')]
    pub data: Option<Vec<PathBuf>>,
    /// Empty directory that becomes a new disk of the store, in addition to those of --data; from
    /// the next start on name it with --data. Repeat for more
    #[arg(long, value_name = "DIR", env = "BLOCKYARD_ADD_DISK", value_delimiter = ',')]
    pub add_disk: Option<Vec<PathBuf>>,
    /// Missing disk of the store: the node starts without it, and answers requests that need it
    /// with 503 or 500. Repeat for more
    #[arg(long, value_name = "DIR", env = "BLOCKYARD_WITHOUT_DISK", value_delimiter = ',')]
    pub without_disk: Option<Vec<PathBuf>>,
    /// Address on which Blob is served: an IP address or localhost and a port, or :PORT for all
    /// IPv4 addresses of the machine [default: 127.0.0.1:10000]
    #[arg(long, value_name = "ADDR", env = "BLOCKYARD_BLOB_LISTEN")]
    pub blob_listen: Option<ListenAddress>,
    /// Address on which S3 alone is served, for clients whose requests do not say that they are S3:
    /// unsigned, path-style ones. Other S3 requests are served on --blob-listen too [default: off]
    #[arg(long, value_name = "ADDR", env = "BLOCKYARD_S3_LISTEN")]
    pub s3_listen: Option<ListenAddress>,
    /// Account whose buckets an unsigned S3 request means, when its host names none [default: the
    /// first --account]
    #[arg(long, value_name = "NAME", env = "BLOCKYARD_S3_ACCOUNT")]
    pub s3_account: Option<String>,
    /// Region of S3 buckets that are created without one; any region is accepted in signatures
    /// [default: us-east-1]
    #[arg(long, value_name = "REGION", env = "BLOCKYARD_S3_REGION")]
    pub s3_region: Option<String>,
    /// Address on which /healthz, /readyz, /metrics and admin commands are served, or unix:PATH for
    /// a socket that only the node's user can open; port 0 picks a free port [default:
    /// 127.0.0.1:10080]
    #[arg(long, value_name = "ADDR", env = "BLOCKYARD_ADMIN_LISTEN")]
    pub admin_listen: Option<AdminAddress>,
    /// Serves the admin listener over https only, with the certificate of --tls or --tls-cert
    /// [default: off]
    #[arg(long, env = "BLOCKYARD_ADMIN_TLS")]
    pub admin_tls: Option<Switch>,
    /// Permits an --admin-listen without TLS that other machines can reach, for when something else
    /// protects it [default: off]
    #[arg(long, env = "BLOCKYARD_ADMIN_PLAIN")]
    pub admin_plain: Option<Switch>,
    /// File with the token that admin commands must present; made at the first start [default:
    /// admin-token in the first data directory]
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_ADMIN_TOKEN_FILE")]
    pub admin_token_file: Option<PathBuf>,
    /// File with the master keys, under which secrets in the store are sealed; made at the first
    /// start. Keep a copy of it, apart from backups of the data [default: the first data directory
    /// with .key behind its name, such as /data/one.key]
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_MASTER_KEY_FILE")]
    pub master_key_file: Option<PathBuf>,
    /// Account as NAME:BASE64KEY or NAME:BASE64KEY:BASE64KEY2; repeat for more [default: the
    /// development account, see --development-account]
    #[arg(
        long,
        value_name = "ACCOUNT",
        env = "BLOCKYARD_ACCOUNT",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub account: Option<Vec<AccountText>>,
    /// User of an account as ACCOUNT/NAME:KEYID:SECRET or ACCOUNT/NAME:KEYID:SECRET:KEYID2:SECRET2,
    /// with one or two access keys of S3; repeat for more. `blockyard user create` makes users of a
    /// running node
    #[arg(
        long,
        value_name = "USER",
        env = "BLOCKYARD_USER",
        hide_env_values = true,
        value_delimiter = ' '
    )]
    pub user: Option<Vec<UserText>>,
    /// File with accounts and users, one on each line, written as for --account and --user; nobody
    /// else on the machine may be able to read it. Others can read keys on the command line or in
    /// variables
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_ACCOUNT_FILE")]
    pub account_file: Option<PathBuf>,
    /// Where accounts with the well-known development key are served: on loopback addresses, or
    /// anywhere, which gives everyone who reaches the port full access to them [default: loopback]
    #[arg(long, value_name = "WHERE", env = "BLOCKYARD_DEVELOPMENT_ACCOUNT")]
    pub development_account: Option<DevelopmentAccount>,
    /// Takes bearer tokens in accounts for development (those with the well-known development key
    /// or of AZURITE_ACCOUNTS) without verifying their signature: audience and time must be right.
    /// Anyone who reaches the port can make such a token, and is an owner there [default: off]
    #[arg(long, env = "BLOCKYARD_DEVELOPMENT_TOKENS")]
    pub development_tokens: Option<Switch>,
    /// Accounts for development, of the variable `AZURITE_ACCOUNTS`.
    #[arg(skip)]
    #[serde(skip)]
    pub azurite_accounts: Option<Vec<AccountText>>,
    /// Ports of services that are not served, of `blockyard azurite`.
    #[arg(skip)]
    #[serde(skip)]
    pub unserved: Option<Vec<UnservedPort>>,
    /// A certificate and its key, of `blockyard azurite`.
    #[arg(skip)]
    #[serde(skip)]
    pub pfx: Option<PfxFile>,
    /// Whether containers of the configured accounts may allow public access; off refuses unsigned
    /// requests, in public containers too [default: unchanged; in a new account off, on with the
    /// development key or of AZURITE_ACCOUNTS]
    #[arg(long, env = "BLOCKYARD_PUBLIC_ACCESS")]
    pub public_access: Option<Switch>,
    /// Issuer whose bearer tokens are accepted: issuer=URL, optionally jwks=FILE or https URL
    /// (default: the URL in the issuer's /.well-known/openid-configuration) and audience=A (default
    /// <https://storage.azure.com>). Roles that a token claims count only in the accounts named by
    /// account=NAME; without account= they grant nothing, and roles are granted with `blockyard
    /// account grant`. claim=C (default roles) names the claim with roles; its values are reader=V,
    /// contributor=V, owner=V (default: Azure's names). groups=C (default groups) names the claim
    /// with groups. Repeat for more issuers
    #[arg(long, value_name = "ISSUER", env = "BLOCKYARD_OIDC", value_delimiter = ',')]
    pub oidc: Option<Vec<OidcConfig>>,
    /// Domain under which a host name can name an account, as NAME.blob.DOMAIN; repeat for more
    /// [default: localhost]
    #[arg(long, value_name = "DOMAIN", env = "BLOCKYARD_BLOB_DOMAIN", value_delimiter = ',')]
    pub blob_domain: Option<Vec<String>>,
    /// Host name under which accounts with the well-known development key and the admin listener
    /// are served, in addition to localhost, IP addresses and --blob-domain; other accounts are
    /// served under every name; * means every name; repeat for more
    #[arg(long, value_name = "NAME", env = "BLOCKYARD_ALLOW_HOST", value_delimiter = ',')]
    pub allow_host: Option<Vec<String>>,
    /// Refuses requests over plain http with 400 AccountRequiresHttps; needs a certificate
    /// [default: off]
    #[arg(long, env = "BLOCKYARD_HTTPS_ONLY")]
    pub https_only: Option<Switch>,
    /// Serves https and http on the same port: `auto` makes a certificate authority in the first
    /// data directory and prints the command that trusts it [default: off]
    #[arg(long, value_name = "MODE", env = "BLOCKYARD_TLS")]
    pub tls: Option<TlsMode>,
    /// Serves https and http on the same port, with this certificate chain, a PEM file, which is
    /// read again when it changes; needs --tls-key
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, a PEM file
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
    /// Partitions of a new store, 1 to 128; an existing store keeps its partitions [default: 1]
    #[arg(long, value_name = "N", env = "BLOCKYARD_INITIAL_PARTITIONS")]
    pub initial_partitions: Option<u32>,
    /// Threads that serve the partitions of the index, 1 to 64; partitions move between them. With
    /// 1 the partitions share the threads of all other work [default: 1]
    #[arg(long, value_name = "N", env = "BLOCKYARD_INDEX_HOSTS")]
    pub index_hosts: Option<u32>,
    /// Requests per second above which a partition of the index splits automatically; with 0
    /// partitions are changed only by commands [default: 5000]
    #[arg(long, value_name = "N", env = "BLOCKYARD_SPLIT_REQUESTS")]
    pub split_requests: Option<u32>,
    /// Size of a new journal for each disk [default: 64MiB]
    #[arg(long, value_name = "SIZE", env = "BLOCKYARD_JOURNAL_BYTES")]
    pub journal_bytes: Option<Size>,
    /// Memory for cached blocks of the index [default: 64MiB]
    #[arg(long, value_name = "SIZE", env = "BLOCKYARD_BLOCK_CACHE_BYTES")]
    pub block_cache_bytes: Option<Size>,
    /// Memory for index rows not yet in runs [default: 64MiB]
    #[arg(long, value_name = "SIZE", env = "BLOCKYARD_MEMTABLE_BYTES")]
    pub memtable_bytes: Option<Size>,
    /// Space on each disk that new data does not use [default: 2 % of the disk, at least 64 MiB, at
    /// most 10 %]
    #[arg(long, value_name = "SIZE", env = "BLOCKYARD_RESERVE_BYTES")]
    pub reserve_bytes: Option<Size>,
    /// Bytes per second that the background verification reads; 0 turns it off [default: 4MiB]
    #[arg(long, value_name = "SIZE", env = "BLOCKYARD_SCRUB_BYTES_PER_SECOND")]
    pub scrub_bytes_per_second: Option<Size>,
    /// Client connections that may be open at a time. Beyond that, a new connection replaces the
    /// one that has been idle for longest; if none is idle, the new one is answered 503 and closed
    /// [default: 4096]
    #[arg(long, value_name = "N", env = "BLOCKYARD_CONNECTIONS_MAX")]
    pub connections_max: Option<u32>,
    /// Connections that one client address (IPv6: one /64 network) may have open at a time; further
    /// ones are answered 503. Raise it for clients behind one proxy or NAT [default: a quarter of
    /// --connections-max, and no limit for addresses of this machine]
    #[arg(long, value_name = "N", env = "BLOCKYARD_PEER_CONNECTIONS_MAX")]
    pub peer_connections_max: Option<u32>,
    /// Seconds within which the first byte of a new connection must arrive [default: 5]
    #[arg(long, value_name = "SECONDS", env = "BLOCKYARD_FIRST_BYTE_SECONDS")]
    pub first_byte_seconds: Option<u32>,
    /// Requests that are answered at a time, shared by the accounts; as many again may wait
    /// briefly, further ones get 503 [default: 4096]
    #[arg(long, value_name = "N", env = "BLOCKYARD_REQUESTS_MAX")]
    pub requests_max: Option<u32>,
    /// Requests per second that one account may send; further ones get 503; 0 is no limit [default:
    /// 0]
    #[arg(long, value_name = "N", env = "BLOCKYARD_ACCOUNT_REQUESTS_PER_SECOND")]
    pub account_requests_per_second: Option<u32>,
    /// Server that blobs may be copied from although its address is not public: host.example,
    /// *.example, 10.0.0.0/8 or *; repeat for more
    #[arg(
        long,
        value_name = "PATTERN",
        env = "BLOCKYARD_COPY_SOURCE_ALLOW",
        value_delimiter = ','
    )]
    pub copy_source_allow: Option<Vec<Pattern>>,
    /// Server that blobs are never copied from; * denies all servers that are not allowed by name;
    /// repeat for more
    #[arg(long, value_name = "PATTERN", env = "BLOCKYARD_COPY_SOURCE_DENY", value_delimiter = ',')]
    pub copy_source_deny: Option<Vec<Pattern>>,
    /// Bytes per second that a copy from another server must reach; a slower copy is given up after
    /// a minute; 0 is no limit [default: 1KiB]
    #[arg(long, value_name = "SIZE", env = "BLOCKYARD_COPY_SOURCE_BYTES_PER_SECOND_MIN")]
    pub copy_source_bytes_per_second_min: Option<Size>,
    /// Seconds for which a client may pause while it sends a body [default: 60]
    #[arg(long, value_name = "SECONDS", env = "BLOCKYARD_BODY_IDLE_SECONDS")]
    pub body_idle_seconds: Option<u32>,
    /// Bytes per second at which a client must send a body, over each time of --body-idle-seconds
    /// in which the server waits for it; a slower client is disconnected; 0 is no limit [default:
    /// 1KiB]
    #[arg(long, value_name = "SIZE", env = "BLOCKYARD_REQUEST_MIN_RATE")]
    pub request_min_rate: Option<Size>,
    /// Seconds for which a client may pause while it reads an answer [default: 60]
    #[arg(long, value_name = "SECONDS", env = "BLOCKYARD_RESPONSE_STALL_TIMEOUT")]
    pub response_stall_timeout: Option<u32>,
    /// Bytes per second at which a client must read an answer; a slower client is disconnected; 0
    /// is no limit [default: 1KiB]
    #[arg(long, value_name = "SIZE", env = "BLOCKYARD_RESPONSE_MIN_RATE")]
    pub response_min_rate: Option<Size>,
    /// Seconds that rehydration from the archive tier takes. It only imitates the service, since
    /// archived bytes can be read as fast as others [default: 1]
    #[arg(long, value_name = "SECONDS", env = "BLOCKYARD_REHYDRATION_SECONDS")]
    pub rehydration_seconds: Option<u32>,
    /// Seconds of a day of retention, the period for which soft-deleted data can be restored. Only
    /// tests need another length [default: 86400]
    #[arg(long, value_name = "SECONDS", env = "BLOCKYARD_RETENTION_DAY")]
    pub retention_day: Option<u32>,
    /// Whether the last access time of each block blob is kept, to the day, and shown [default:
    /// off]
    #[arg(long, env = "BLOCKYARD_LAST_ACCESS_TIME")]
    pub last_access_time: Option<Switch>,
    /// Seconds that running requests may take to end when the node is stopped [default: 30]
    #[arg(long, value_name = "SECONDS", env = "BLOCKYARD_DRAIN_SECONDS")]
    pub drain_seconds: Option<u32>,
    /// File of the audit log, or - for standard output: a JSON line for each change of a container,
    /// account, policy, key, role, fault rule, disk or partition map [default: no audit log]
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_AUDIT_LOG")]
    pub audit_log: Option<PathBuf>,
    /// Writes a line to the audit log for every request too; needs --audit-log [default: off]
    #[arg(long, env = "BLOCKYARD_AUDIT_REQUESTS")]
    pub audit_requests: Option<Switch>,
    /// Size at which the file of the audit log is renamed and a new one begun [default: 64MiB]
    #[arg(long, value_name = "SIZE", env = "BLOCKYARD_AUDIT_LOG_BYTES")]
    pub audit_log_bytes: Option<Size>,
    /// Files of the audit log that are kept, the one being written included; the oldest is removed
    /// for a new one [default: 8]
    #[arg(long, value_name = "N", env = "BLOCKYARD_AUDIT_LOG_FILES")]
    pub audit_log_files: Option<u32>,
    /// Where a collector takes spans of requests as OTLP over HTTP, such as
    /// <http://127.0.0.1:4318>; /v1/traces is added [default: none are sent]
    #[arg(long, value_name = "URL", env = "BLOCKYARD_OTLP_ENDPOINT")]
    pub otlp_endpoint: Option<String>,
    /// The part of requests that have a span, from 0 to 1. For a request with a traceparent, its
    /// flag decides [default: 1]
    #[arg(long, value_name = "RATIO", env = "BLOCKYARD_OTLP_SAMPLE")]
    pub otlp_sample: Option<Ratio>,
    /// Which log lines are written, such as `info` or `warn,blockyard::index=debug` [default: info]
    #[arg(long, value_name = "FILTER", env = "BLOCKYARD_LOG")]
    pub log: Option<String>,
    /// Format of the log lines [default: text]
    #[arg(long, value_name = "FORMAT", env = "BLOCKYARD_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,
}

impl Settings {
    /// These settings, with those of `below` where these are `None`.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            data: self.data.or(below.data),
            add_disk: self.add_disk.or(below.add_disk),
            without_disk: self.without_disk.or(below.without_disk),
            blob_listen: self.blob_listen.or(below.blob_listen),
            s3_listen: self.s3_listen.or(below.s3_listen),
            s3_account: self.s3_account.or(below.s3_account),
            s3_region: self.s3_region.or(below.s3_region),
            admin_listen: self.admin_listen.or(below.admin_listen),
            admin_tls: self.admin_tls.or(below.admin_tls),
            admin_plain: self.admin_plain.or(below.admin_plain),
            admin_token_file: self.admin_token_file.or(below.admin_token_file),
            master_key_file: self.master_key_file.or(below.master_key_file),
            account: self.account.or(below.account),
            user: self.user.or(below.user),
            account_file: self.account_file.or(below.account_file),
            development_account: self.development_account.or(below.development_account),
            development_tokens: self.development_tokens.or(below.development_tokens),
            azurite_accounts: self.azurite_accounts.or(below.azurite_accounts),
            unserved: self.unserved.or(below.unserved),
            pfx: self.pfx.or(below.pfx),
            public_access: self.public_access.or(below.public_access),
            oidc: self.oidc.or(below.oidc),
            blob_domain: self.blob_domain.or(below.blob_domain),
            allow_host: self.allow_host.or(below.allow_host),
            https_only: self.https_only.or(below.https_only),
            tls: self.tls.or(below.tls),
            tls_cert: self.tls_cert.or(below.tls_cert),
            tls_key: self.tls_key.or(below.tls_key),
            initial_partitions: self.initial_partitions.or(below.initial_partitions),
            index_hosts: self.index_hosts.or(below.index_hosts),
            split_requests: self.split_requests.or(below.split_requests),
            journal_bytes: self.journal_bytes.or(below.journal_bytes),
            block_cache_bytes: self.block_cache_bytes.or(below.block_cache_bytes),
            memtable_bytes: self.memtable_bytes.or(below.memtable_bytes),
            reserve_bytes: self.reserve_bytes.or(below.reserve_bytes),
            scrub_bytes_per_second: self.scrub_bytes_per_second.or(below.scrub_bytes_per_second),
            connections_max: self.connections_max.or(below.connections_max),
            peer_connections_max: self.peer_connections_max.or(below.peer_connections_max),
            first_byte_seconds: self.first_byte_seconds.or(below.first_byte_seconds),
            requests_max: self.requests_max.or(below.requests_max),
            account_requests_per_second: self
                .account_requests_per_second
                .or(below.account_requests_per_second),
            copy_source_allow: self.copy_source_allow.or(below.copy_source_allow),
            copy_source_deny: self.copy_source_deny.or(below.copy_source_deny),
            copy_source_bytes_per_second_min: self
                .copy_source_bytes_per_second_min
                .or(below.copy_source_bytes_per_second_min),
            body_idle_seconds: self.body_idle_seconds.or(below.body_idle_seconds),
            request_min_rate: self.request_min_rate.or(below.request_min_rate),
            response_stall_timeout: self.response_stall_timeout.or(below.response_stall_timeout),
            response_min_rate: self.response_min_rate.or(below.response_min_rate),
            rehydration_seconds: self.rehydration_seconds.or(below.rehydration_seconds),
            retention_day: self.retention_day.or(below.retention_day),
            last_access_time: self.last_access_time.or(below.last_access_time),
            drain_seconds: self.drain_seconds.or(below.drain_seconds),
            audit_log: self.audit_log.or(below.audit_log),
            audit_requests: self.audit_requests.or(below.audit_requests),
            audit_log_bytes: self.audit_log_bytes.or(below.audit_log_bytes),
            audit_log_files: self.audit_log_files.or(below.audit_log_files),
            otlp_endpoint: self.otlp_endpoint.or(below.otlp_endpoint),
            otlp_sample: self.otlp_sample.or(below.otlp_sample),
            log: self.log.or(below.log),
            log_format: self.log_format.or(below.log_format),
        }
    }
}
