//! Why a configuration is refused.

use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use crate::telemetry::log;

use super::accounts::AccountError;
use super::admin_address::AdminAddress;
use super::oidc::OidcError;
use super::users::UserError;

/// Why a configuration is refused. The text says what to do.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// A setting is out of its range.
    #[error("{setting} must be {min} to {max}, not {value}")]
    Range {
        /// Its name in the file.
        setting: &'static str,
        /// As given.
        value: String,
        /// Smallest.
        min: String,
        /// Largest.
        max: String,
    },
    /// The development account cannot be served there.
    #[error(
        "account {account} is for development, its key is no secret, and {listen} can be reached from outside: give it another \
         key with --account NAME:KEY (`blockyard keygen` prints one), listen on 127.0.0.1, or say \
         --development-account anywhere if whoever reaches the port may read and change everything"
    )]
    PublicAccount {
        /// The account.
        account: String,
        /// The address.
        listen: SocketAddr,
    },
    /// The collector cannot be reached at the given address.
    #[error(
        "--otlp-endpoint is not the URL of a collector: write http://HOST:4318 or https://HOST, without a \
         user name and a query; OTEL_EXPORTER_OTLP_HEADERS has what it demands of senders"
    )]
    OtlpEndpoint,
    /// A ratio of spans without a collector.
    #[error("--otlp-sample without --otlp-endpoint: no spans are sent")]
    OtlpSample,
    /// An account is malformed.
    #[error("{0}")]
    Account(#[from] AccountError),
    /// An account of the variable is malformed.
    #[error("AZURITE_ACCOUNTS: {0}")]
    AzuriteAccounts(AccountError),
    /// A user is malformed, or there twice.
    #[error("{0}")]
    User(#[from] UserError),
    /// The account file cannot be read.
    #[error("cannot read the account file {path}: {error}; give another one with --account-file")]
    AccountFile {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Other users may read the account file.
    #[error(
        "the account file {path} is open to other users (mode {mode:o}): `chmod 600 {path}`, and \
         replace its keys if somebody may have read them"
    )]
    AccountFileOpen {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A line of the account file is malformed.
    #[error("account file {path}, line {line}: {error}")]
    AccountLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        error: AccountError,
    },
    /// A line of the account file that is a user is malformed.
    #[error("account file {path}, line {line}: {error}")]
    UserLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        error: UserError,
    },
    /// Two accounts have the same name.
    #[error(
        "account {0} is configured twice, AZURITE_ACCOUNTS included; a second key goes behind the first: NAME:KEY1:KEY2"
    )]
    AccountTwice(String),
    /// An issuer of bearer tokens is not written as it should be.
    #[error("{0}")]
    Oidc(#[from] OidcError),
    /// Two disks have the same directory.
    #[error("data directory {0} is given twice; each disk needs its own")]
    DataTwice(PathBuf),
    /// A data directory has an empty path, or none is given.
    #[error("a data directory has no name; give --data DIR")]
    DataEmpty,
    /// The master key file lies in a data directory: every backup of the data would hold the keys.
    #[error(
        "the master key file {path} is inside the data directory {folder}: give it a place of \
         its own with --master-key-file"
    )]
    MasterKeyInside {
        /// The file.
        path: PathBuf,
        /// The directory.
        folder: PathBuf,
    },
    /// The first data directory has no name to which `.key` could be appended.
    #[error("data directory {0} has no name to put .key behind: give --master-key-file FILE")]
    MasterKeyPlace(PathBuf),
    /// Both listeners have the same address.
    #[error("blob_listen and admin_listen are both {0}; give one of them another port")]
    SameAddress(SocketAddr),
    /// The S3 listener has the address of another one.
    #[error("s3_listen and another listener are both {0}; give one of them another port")]
    SameS3Address(SocketAddr),
    /// The account of unsigned S3 requests has no valid name.
    #[error("s3_account `{0}` is not an account name: 3 to 24 lower-case letters and digits")]
    S3Account(String),
    /// The region is not one.
    #[error("s3_region `{0}` is not a region: 1 to 64 lower-case letters, digits and hyphens")]
    S3Region(String),
    /// A certificate without its key, or the reverse.
    #[error("tls_cert and tls_key go together: give both, or --tls auto")]
    TlsHalf,
    /// Two certificates are configured.
    #[error(
        "--tls auto makes a certificate of its own: leave tls_cert and tls_key out, or leave out --tls"
    )]
    TlsTwice,
    /// The admin listener is to serve https, and there is no certificate.
    #[error("--admin-tls needs a certificate: give --tls auto, or --tls-cert and --tls-key")]
    AdminTls,
    /// The admin token would cross the network unencrypted.
    #[error(
        "the admin listener at {0} can be reached from other machines, and without TLS its token can be read on the way: give \
         it --admin-tls, listen on 127.0.0.1 or unix:PATH, or give --admin-plain when something else protects it"
    )]
    AdminPlain(AdminAddress),
    /// Requests are to be logged, and there is no audit log.
    #[error("--audit-requests needs --audit-log FILE, or - for standard output")]
    AuditRequests,
    /// Only https is to be served, and there is no certificate.
    #[error("--https-only needs a certificate: give --tls auto, or --tls-cert and --tls-key")]
    HttpsOnly,
    /// The log filter does not parse.
    #[error("log: {0}; write for example `info` or `warn,blockyard::index=debug`")]
    Log(#[from] log::LogError),
    /// The file cannot be read.
    #[error("cannot read the configuration file {path}: {error}; give another one with --config")]
    FileUnreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file does not parse, or names an unknown setting.
    #[error("configuration file {path}: {error}")]
    FileInvalid {
        /// The file.
        path: PathBuf,
        /// Where and why; names the field.
        error: Box<toml::de::Error>,
    },
}
