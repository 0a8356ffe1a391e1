//! Arguments of `blockyard sas`.

use std::path::PathBuf;

use clap::Args;

use crate::node::config::AccountText;
use crate::node::config::Switch;

/// Arguments of `sas`.
#[derive(Args, Debug)]
#[command(mut_args = Switch::spelled)]
pub struct SasArgs {
    /// CONTAINER or CONTAINER/BLOB; leave it out for the whole account
    #[arg(value_name = "PATH")]
    pub path: Option<String>,
    /// The permissions, as letters: r read, a add, c create, w write, d delete, x delete a version,
    /// y delete permanently, l list, t tags, f find by tags, i immutability [default: r; none with
    /// --policy]
    #[arg(long, short = 'p', value_name = "LETTERS")]
    pub permissions: Option<String>,
    /// When the signature expires: a time such as 2030-01-31T12:00:00Z, or a duration from now:
    /// 90s, 30m, 8h, 7d [default: 8h; none with --policy]
    #[arg(long, short = 'e', value_name = "TIME")]
    pub expiry: Option<String>,
    /// The time at which the signature becomes valid [default: immediately]
    #[arg(long, value_name = "TIME")]
    pub start: Option<String>,
    /// The only client address that may use the signature, or a range FIRST-LAST
    #[arg(long, value_name = "ADDRESS")]
    pub ip: Option<String>,
    /// Refuse plain http [default: off]
    #[arg(long, require_equals = true)]
    pub https_only: Option<Switch>,
    /// A stored access policy of the container, by its id
    #[arg(long, value_name = "ID")]
    pub policy: Option<String>,
    /// A snapshot of the blob, by its time
    #[arg(long, value_name = "TIME")]
    pub snapshot: Option<String>,
    /// The resource types of a signature for the whole account, as letters: s account, c
    /// containers, o blobs
    #[arg(long, value_name = "LETTERS", default_value = "sco")]
    pub types: String,
    /// Content-Type of answers; for a container or blob
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,
    /// Content-Disposition of answers; for a container or blob
    #[arg(long, value_name = "VALUE")]
    pub content_disposition: Option<String>,
    /// The account and one of its keys, or devstoreaccount1, whose key is public; required
    #[arg(
        long,
        short = 'k',
        value_name = "NAME:KEY",
        env = "BLOCKYARD_SAS_ACCOUNT",
        hide_env_values = true
    )]
    pub account: Option<AccountText>,
    /// Sign with the user delegation key in this file, the answer of Get User Delegation Key; for a
    /// container or blob
    #[arg(long, value_name = "FILE")]
    pub delegation_key: Option<PathBuf>,
    /// Where the account is served [default: <http://127.0.0.1:10000/NAME>]
    #[arg(long, value_name = "URL")]
    pub endpoint: Option<String>,
    /// Print a JSON object: url, query, expiry, permissions
    #[arg(long)]
    pub json: bool,
}
