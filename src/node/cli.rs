//! The command line.

use std::path::PathBuf;

use clap::Parser;
use clap::Subcommand;

use crate::frontend::faults::FaultKind;

use super::admin_address::AdminAddress;
use super::backup_command::{BackupArgs, RestoreArgs};
use super::disk_command::DiskCommand;
use super::grant_args::AccountGrantArgs;
use super::grant_args::AccountGrantsArgs;
use super::key_command::KeyCommand;
use super::partition_args::PartitionsCommand;
use super::sas::SasArgs;
use super::settings::Settings;
use super::size::Size;
use super::switch::Switch;

/// A durable object store that speaks Azure Blob REST.
#[derive(Debug, Parser)]
#[command(name = "blockyard", version, about, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve Blob from one or more data directories
    Serve(Box<ServeArgs>),
    /// Verify the data directories of a stopped node; replays their journals as a start does. Exit
    /// code 0: no damage, 1: damage, 2: the check could not run
    Check(CheckArgs),
    /// Print a new random account key
    Keygen,
    /// Print a URL with a shared access signature for an account, container or blob; needs no
    /// running server
    Sas(Box<SasArgs>),
    /// Ask a running node whether it can serve: exit code 0 yes, 1 no
    Health(HealthArgs),
    /// Create, show, change and delete accounts of a running node
    #[command(subcommand)]
    Account(AccountCommand),
    /// Show, split, merge, move and prepare the partitions of a running node's index
    #[command(subcommand)]
    Partitions(PartitionsCommand),
    /// Show, drain and remove the disks of a running node
    #[command(subcommand)]
    Disk(DiskCommand),
    /// Copy the store of a running or stopped node to a directory, or bring the copy up to date
    Backup(Box<BackupArgs>),
    /// Make a data directory from a backup
    Restore(RestoreArgs),
    /// Show and rotate the master keys, under which secrets in the store are sealed
    #[command(subcommand)]
    Key(KeyCommand),
    /// Show the requests to a running node live, one line each
    Trace(TraceArgs),
    /// Make requests to a running node fail on purpose, to test your client
    #[command(subcommand)]
    Fault(FaultCommand),
}

/// Arguments of `serve`.
#[derive(clap::Args, Debug)]
pub struct ServeArgs {
    /// TOML file with settings, named like the flags with underscores. A flag overrides its
    /// variable, a variable overrides the file
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_CONFIG")]
    pub config: Option<PathBuf>,
    /// The settings.
    #[command(flatten)]
    pub settings: Settings,
}

/// Arguments of `check`.
#[derive(clap::Args, Debug)]
pub struct CheckArgs {
    /// All data directories of the node, in the order `serve` was given them
    #[arg(required = true, value_name = "DIR")]
    pub data: Vec<PathBuf>,
    /// Lost disk of the store: what lies on it counts as missing, and the report says what was
    /// lost. Repeat for more
    #[arg(long, value_name = "DIR")]
    pub without_disk: Vec<PathBuf>,
    /// The node's master key file [default: the first data directory with .key behind its name]
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_MASTER_KEY_FILE")]
    pub master_key_file: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `health`.
#[derive(clap::Args, Debug)]
pub struct HealthArgs {
    /// The node.
    #[command(flatten)]
    pub place: AdminPlaceArgs,
}

/// How a running node is reached.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_args = Switch::spelled)]
pub struct AdminPlaceArgs {
    /// The admin address of the node: an IP address or localhost and a port, :PORT, or unix:PATH
    #[arg(
        long,
        value_name = "ADDR",
        env = "BLOCKYARD_ADMIN_LISTEN",
        default_value_t = super::config::ADMIN_LISTEN
    )]
    pub admin_listen: AdminAddress,
    /// Connect to the node over https; needed when the node was started with --admin-tls
    // A name may follow it.
    #[arg(long, env = "BLOCKYARD_ADMIN_TLS", require_equals = true)]
    pub admin_tls: Option<Switch>,
    /// PEM file with the certificate authority of the node, trusted in addition to those of this
    /// machine [default: the node's own authority in its first data directory, if there is one]
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_ADMIN_CA")]
    pub admin_ca: Option<PathBuf>,
    /// The node's data directories; the first one holds its admin token and its own certificate
    /// authority [default: ./blockyard-data]
    #[arg(long, value_name = "DIR", env = "BLOCKYARD_DATA", value_delimiter = ',')]
    pub data: Vec<PathBuf>,
}

/// How a running node is reached, and that one may.
#[derive(clap::Args, Clone, Debug)]
pub struct AdminArgs {
    /// Where it is.
    #[command(flatten)]
    pub place: AdminPlaceArgs,
    /// The file with the admin token
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_ADMIN_TOKEN_FILE")]
    pub admin_token_file: Option<PathBuf>,
    /// The admin token itself; set the variable, since other users can see arguments
    #[arg(long, hide = true, env = "BLOCKYARD_ADMIN_TOKEN", hide_env_values = true)]
    pub admin_token: Option<String>,
}

/// Arguments of `trace`.
#[derive(clap::Args, Debug)]
pub struct TraceArgs {
    /// Only this operation, such as PutBlob
    #[arg(long, value_name = "NAME")]
    pub operation: Option<String>,
    /// Only this account
    #[arg(long, value_name = "NAME")]
    pub account: Option<String>,
    /// Only this container
    #[arg(long, value_name = "NAME")]
    pub container: Option<String>,
    /// Only this status, such as 404, or a class such as 5xx
    #[arg(long, value_name = "STATUS")]
    pub status: Option<String>,
    /// Only requests that took at least so many milliseconds
    #[arg(long, value_name = "MS")]
    pub slow_ms: Option<u32>,
    /// Print each request as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// What `fault` can do.
#[derive(Debug, Subcommand)]
pub enum FaultCommand {
    /// Add a rule: busy (503), error (500), timeout (not carried out, no answer), lost (carried
    /// out, no answer), slow (slow answer)
    Set(FaultSetArgs),
    /// Show the rules and how many requests each has struck
    List(FaultListArgs),
    /// Remove one rule, or all
    Clear(FaultClearArgs),
}

/// Arguments of `fault set`.
#[derive(clap::Args, Debug)]
pub struct FaultSetArgs {
    /// What happens to the requests that the rule strikes
    #[arg(value_name = "KIND")]
    pub kind: FaultKind,
    /// Only this operation, such as PutBlob; repeat for more [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub operation: Vec<String>,
    /// Only this account; repeat for more [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub account: Vec<String>,
    /// Only this container; repeat for more [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub container: Vec<String>,
    /// The share of the matching requests that the rule strikes
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    pub rate: f64,
    /// Selects the requests that are struck: the same seed selects the same ones by number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Remove the rule after it has struck so many requests
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// Remove the rule after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u32>,
    /// How long `timeout` and `lost` keep the client waiting before they cut the connection
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub delay_ms: u32,
    /// Bytes a second of an answer under `slow`
    #[arg(long, value_name = "SIZE", default_value_t = Size::new(1024))]
    pub bytes_per_second: Size,
    /// Print the rule as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `fault list`.
#[derive(clap::Args, Debug)]
pub struct FaultListArgs {
    /// Print the rules as one JSON array
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `fault clear`.
#[derive(clap::Args, Debug)]
pub struct FaultClearArgs {
    /// The rule's number [default: all rules]
    #[arg(value_name = "ID")]
    pub id: Option<u64>,
    /// Print the outcome as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Which of an account's two keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum KeyName {
    /// The first.
    Key1,
    /// The second.
    Key2,
}

impl KeyName {
    /// As the admin listener calls it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Key1 => "key1",
            Self::Key2 => "key2",
        }
    }
}

/// What `account` can do.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// Create an account with two new keys; it can be used at once
    Create(AccountCreateArgs),
    /// Show all accounts
    List(AccountListArgs),
    /// Show one account
    Show(AccountShowArgs),
    /// Change an account
    Set(AccountSetArgs),
    /// Replace one of the two keys; signatures made with the old one are refused at once
    Rotate(AccountRotateArgs),
    /// Revoke all user delegation keys, and the signatures made with them
    Revoke(AccountRevokeArgs),
    /// Grant a user or group of an issuer a role in an account or container; takes effect at once
    Grant(AccountGrantArgs),
    /// Show who has a role in an account
    Grants(AccountGrantsArgs),
    /// Revoke a role; user delegation keys of its holder lose it too
    Ungrant(AccountGrantArgs),
    /// Delete an account that has no containers
    Delete(AccountDeleteArgs),
}

impl AccountCommand {
    /// The node it is for.
    #[must_use]
    pub const fn admin(&self) -> &AdminArgs {
        match self {
            Self::Create(args) => &args.admin,
            Self::List(args) => &args.admin,
            Self::Show(args) => &args.admin,
            Self::Set(args) => &args.admin,
            Self::Rotate(args) => &args.admin,
            Self::Revoke(args) => &args.admin,
            Self::Grant(args) | Self::Ungrant(args) => &args.admin,
            Self::Grants(args) => &args.admin,
            Self::Delete(args) => &args.admin,
        }
    }
}

/// Arguments of `account create`.
#[derive(clap::Args, Debug)]
#[command(mut_args = Switch::spelled)]
pub struct AccountCreateArgs {
    /// 3 to 24 lower-case letters and digits
    pub name: String,
    /// The first key, base64 [default: a new one]
    #[arg(long, value_name = "KEY")]
    pub key1: Option<String>,
    /// The second key, base64 [default: a new one]
    #[arg(long, value_name = "KEY")]
    pub key2: Option<String>,
    /// Whether its containers may allow public access
    #[arg(long, default_value = "off")]
    pub anonymous: Switch,
    /// Print the account as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `account list`.
#[derive(clap::Args, Debug)]
pub struct AccountListArgs {
    /// Print the accounts as one JSON array
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `account show`.
#[derive(clap::Args, Debug)]
pub struct AccountShowArgs {
    /// The account
    pub name: String,
    /// Show its keys and a connection string too
    #[arg(long)]
    pub keys: bool,
    /// Print the account as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `account set`.
#[derive(clap::Args, Debug)]
#[command(mut_args = Switch::spelled)]
pub struct AccountSetArgs {
    /// The account
    pub name: String,
    /// Whether its containers may allow public access
    #[arg(long)]
    pub anonymous: Switch,
    /// Print the account as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `account rotate`.
#[derive(clap::Args, Debug)]
pub struct AccountRotateArgs {
    /// The account
    pub name: String,
    /// Which key
    pub key: KeyName,
    /// The new key, base64 [default: a random one]
    #[arg(long, value_name = "KEY")]
    pub value: Option<String>,
    /// Print the account as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `account revoke`.
#[derive(clap::Args, Debug)]
pub struct AccountRevokeArgs {
    /// The account
    pub name: String,
    /// Print the account as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `account delete`.
#[derive(clap::Args, Debug)]
pub struct AccountDeleteArgs {
    /// The account
    pub name: String,
    /// Delete all of its containers too
    #[arg(long)]
    pub force: bool,
    /// Print the outcome as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}
