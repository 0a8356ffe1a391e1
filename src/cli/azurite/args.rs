//! The flags of `blockyard azurite`: those of Azurite, and all settings of `serve`.

use std::fmt;
use std::path::PathBuf;

use zeroize::Zeroizing;

use crate::cli::serve::args::ServeArgs;

/// The ports of the development account in Azure's SDKs.
const QUEUE_PORT: u16 = 10_001;
const TABLE_PORT: u16 = 10_002;

/// How bearer tokens are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OauthLevel {
    /// Its audience and its time.
    Basic,
}

/// A password. It is not shown.
#[derive(Clone)]
pub struct Password(pub Zeroizing<String>);

impl From<String> for Password {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// Flags of Azurite.
///
/// Source: the options of Azurite 3.35.
#[derive(clap::Args, Debug)]
pub struct AzuriteArgs {
    /// Address on which Blob is served, an IP address or localhost. If other machines reach it,
    /// they have full access to the development account [default: 127.0.0.1]
    #[arg(long = "blobHost", value_name = "HOST")]
    pub blob_host: Option<String>,
    /// Port on which Blob is served [default: 10000]
    #[arg(long = "blobPort", value_name = "PORT")]
    pub blob_port: Option<u16>,
    /// Address on which requests for Queue Storage, which is not served, get 501 [default:
    /// 127.0.0.1]
    #[arg(long = "queueHost", value_name = "HOST")]
    pub queue_host: Option<String>,
    /// Port on which requests for Queue Storage get 501
    #[arg(long = "queuePort", value_name = "PORT", default_value_t = QUEUE_PORT)]
    pub queue_port: u16,
    /// Address on which requests for Table Storage, which is not served, get 501 [default:
    /// 127.0.0.1]
    #[arg(long = "tableHost", value_name = "HOST")]
    pub table_host: Option<String>,
    /// Port on which requests for Table Storage get 501
    #[arg(long = "tablePort", value_name = "PORT", default_value_t = TABLE_PORT)]
    pub table_port: u16,
    /// Folder in which the folder `blockyard-data` and the master key file `blockyard-data.key` are
    /// made; --data and --master-key-file do not count then [default: --data]
    #[arg(short = 'l', long, value_name = "DIR", conflicts_with = "in_memory")]
    pub location: Option<PathBuf>,
    /// Removes all data when the server ends. It is kept in a temporary folder until then
    #[arg(long = "inMemoryPersistence")]
    pub in_memory: bool,
    /// Prints no banner, and logs warnings and errors only
    #[arg(short, long)]
    pub silent: bool,
    /// Logs more. The log goes to standard error, not to the file
    #[arg(short, long, value_name = "FILE")]
    pub debug: Option<PathBuf>,
    /// Certificate for https: a PEM file with its chain, or with --pwd a PFX file
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,
    /// Private key of --cert, a PEM file
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Password of --cert, which is a PFX file then. It does not count with --key. Other users of
    /// the machine may see it in the list of processes
    #[arg(long, value_name = "PASSWORD", requires = "cert")]
    pub pwd: Option<Password>,
    /// Takes bearer tokens in accounts for development: audience and time must be right, the
    /// signature is not verified. Over https, or from the same machine
    #[arg(long, value_name = "LEVEL")]
    pub oauth: Option<OauthLevel>,
    /// Account names are read from the path only, not from the host name
    #[arg(long = "disableProductStyleUrl")]
    pub disable_product_style_url: bool,
    /// Ignored: every version is served
    #[arg(long = "skipApiVersionCheck")]
    pub skip_api_version_check: bool,
    /// Ignored: unknown headers are not refused
    #[arg(short = 'L', long)]
    pub loose: bool,
    /// Ignored: nothing is reported to anybody
    #[arg(long = "disableTelemetry")]
    pub disable_telemetry: bool,
    /// Ignored: data is on disk
    #[arg(long = "extentMemoryLimit", value_name = "MEGABYTES")]
    pub extent_memory_limit: Option<String>,
    /// Ignored: --response-stall-timeout and others limit idle connections
    #[arg(long = "blobKeepAliveTimeout", value_name = "SECONDS")]
    pub blob_keep_alive: Option<String>,
    /// Ignored
    #[arg(long = "queueKeepAliveTimeout", value_name = "SECONDS")]
    pub queue_keep_alive: Option<String>,
    /// Ignored
    #[arg(long = "tableKeepAliveTimeout", value_name = "SECONDS")]
    pub table_keep_alive: Option<String>,
    /// A flag that is not known, for its warning.
    #[arg(long, hide = true)]
    pub unknown_flag: Vec<String>,
    /// All settings of `blockyard serve`.
    #[command(flatten, next_help_heading = "Settings of `blockyard serve`")]
    pub serve: ServeArgs,
}
