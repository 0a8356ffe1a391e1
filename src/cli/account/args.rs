//! Arguments of `blockyard account`.

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use serde_json::Value;

use crate::cli::admin::args::AdminArgs;
use crate::node::config::Switch;
use crate::types::AccountKind;
use crate::types::Sku;

use super::grants::AccountGrantArgs;
use super::grants::AccountGrantsArgs;

/// Which of an account's two keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum KeyName {
    /// The first.
    Key1,
    /// The second.
    Key2,
}

impl KeyName {
    /// Its name in requests to the admin listener.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Key1 => "key1",
            Self::Key2 => "key2",
        }
    }
}

/// The subcommands of `account`.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// Create an account with two new keys; it can be used immediately
    Create(AccountCreateArgs),
    /// Show all accounts
    List(AccountListArgs),
    /// Show one account
    Show(AccountShowArgs),
    /// Change an account
    Set(AccountSetArgs),
    /// Replace one of the two keys; signatures made with the old one are refused immediately
    Rotate(AccountRotateArgs),
    /// Revoke all user delegation keys, and the signatures made with them
    Revoke(AccountRevokeArgs),
    /// Grant a user or group of an issuer a role in an account or container; takes effect
    /// immediately
    Grant(AccountGrantArgs),
    /// Show who has a role in an account
    Grants(AccountGrantsArgs),
    /// Revoke a role; user delegation keys of its holder lose it too
    Ungrant(AccountGrantArgs),
    /// Delete an account that has no containers
    Delete(AccountDeleteArgs),
}

impl AccountCommand {
    /// The node that the command is for.
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
    /// Its kind and SKU
    #[command(flatten)]
    pub account_type: TypeArgs,
    /// Print the account as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Kind and SKU of an account.
#[derive(clap::Args, Debug)]
pub struct TypeArgs {
    /// The SKU that clients see: performance and redundancy. Premium ones give page blobs the
    /// tiers P4 to P80, except with the kind BlockBlobStorage [default: Standard_LRS]
    #[arg(long, value_parser = PossibleValuesParser::new(Sku::ALL.map(Sku::as_str)), ignore_case = true)]
    pub sku: Option<String>,
    /// The kind of account that clients see; BlockBlobStorage needs a premium SKU [default:
    /// StorageV2]
    #[arg(
        long,
        value_parser = PossibleValuesParser::new(AccountKind::ALL.map(AccountKind::as_str)),
        ignore_case = true
    )]
    pub kind: Option<String>,
}

impl TypeArgs {
    /// As the body of a request has them.
    pub(super) fn body(&self) -> impl Iterator<Item = (String, Value)> {
        let given = [("sku", &self.sku), ("kind", &self.kind)].into_iter();
        given.filter_map(|(name, text)| Some((name.to_owned(), text.clone()?.into())))
    }
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
    #[arg(
        long,
        required_unless_present_any = ["versioning", "object_lock", "container_retention", "sku", "kind"]
    )]
    pub anonymous: Option<Switch>,
    /// Whether its containers keep versions of blobs, unless they say so themselves
    #[arg(long)]
    pub versioning: Option<Switch>,
    /// Whether new containers have object lock: their blobs may have a retention or a legal hold.
    /// It needs versions
    #[arg(long)]
    pub object_lock: Option<Switch>,
    /// Days for which deleted containers can be restored, up to 365; 0 turns it off
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(0..=365))]
    pub container_retention: Option<u32>,
    /// Its kind and SKU. Where they decide other tiers of blobs, only without containers
    #[command(flatten)]
    pub account_type: TypeArgs,
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
