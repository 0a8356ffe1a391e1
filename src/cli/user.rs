//! `blockyard user`: its arguments, requests and output.

use clap::Subcommand;
use http::Method;
use serde_json::Value;
use serde_json::json;

use crate::cli::account::args::KeyName;
use crate::cli::admin::args::AdminArgs;
use crate::cli::admin::client::AdminClient;
use crate::cli::admin::query::user_path;
use crate::cli::error::CliError;
use crate::cli::output::json_line;
use crate::cli::output::on_terminal;
use crate::cli::output::print;
use crate::cli::output::warn;
use crate::cli::table::fields;
use crate::cli::table::table;

/// The subcommands of `user`.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Create a user with a new access key; it can be used immediately
    Create(UserCreateArgs),
    /// Show the users of an account
    List(UserListArgs),
    /// Show one user
    Show(UserShowArgs),
    /// Replace one of the two access keys; signatures made with the old one are refused immediately
    Rotate(UserRotateArgs),
    /// Delete a user and its roles; its buckets stay
    Delete(UserDeleteArgs),
}

impl UserCommand {
    const fn admin(&self) -> &AdminArgs {
        match self {
            Self::Create(args) => &args.admin,
            Self::List(args) => &args.admin,
            Self::Show(args) => &args.admin,
            Self::Rotate(args) => &args.admin,
            Self::Delete(args) => &args.admin,
        }
    }
}

/// A user, as `ACCOUNT/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserPlace {
    account: String,
    name: String,
}

impl std::str::FromStr for UserPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').filter(|(account, name)| {
            !account.is_empty() && !name.is_empty() && !name.contains('/')
        });
        let (account, name) = parts.ok_or("a user is written ACCOUNT/NAME")?;
        Ok(Self { account: account.to_owned(), name: name.to_owned() })
    }
}

impl UserPlace {
    fn path(&self) -> String {
        user_path(&self.account, Some(&self.name))
    }
}

/// An access key that replaces a random one.
#[derive(clap::Args, Debug)]
pub struct GivenKey {
    /// The id of the access key: 3 to 128 letters, digits and ._-, and not an account name
    /// [default: a new one]
    #[arg(long, value_name = "ID")]
    pub access_key_id: Option<String>,
    /// The secret of the access key, 16 to 128 characters. Other users of the machine may see it
    /// [default: a new one]
    #[arg(long, value_name = "SECRET")]
    pub secret_key: Option<String>,
}

/// Arguments of `user create`.
#[derive(clap::Args, Debug)]
pub struct UserCreateArgs {
    /// The account, and 1 to 64 letters, digits and +=,.@_-
    #[arg(value_name = "ACCOUNT/NAME")]
    pub user: UserPlace,
    /// The name that lists of owners show [default: NAME]
    #[arg(long, value_name = "TEXT")]
    pub display_name: Option<String>,
    /// The access key.
    #[command(flatten)]
    pub key: GivenKey,
    /// Print the user as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `user list`.
#[derive(clap::Args, Debug)]
pub struct UserListArgs {
    /// The account
    pub account: String,
    /// Print the users as one JSON array
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `user show`.
#[derive(clap::Args, Debug)]
pub struct UserShowArgs {
    /// The account and the user
    #[arg(value_name = "ACCOUNT/NAME")]
    pub user: UserPlace,
    /// Show the secrets of its access keys too
    #[arg(long)]
    pub keys: bool,
    /// Print the user as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `user rotate`.
#[derive(clap::Args, Debug)]
pub struct UserRotateArgs {
    /// The account and the user
    #[arg(value_name = "ACCOUNT/NAME")]
    pub user: UserPlace,
    /// Which access key; key2 may not exist yet
    pub key: KeyName,
    /// The access key.
    #[command(flatten)]
    pub new: GivenKey,
    /// Print the user as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `user delete`.
#[derive(clap::Args, Debug)]
pub struct UserDeleteArgs {
    /// The account and the user
    #[arg(value_name = "ACCOUNT/NAME")]
    pub user: UserPlace,
    /// Print the outcome as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Runs `blockyard user`.
///
/// # Errors
/// [`CliError`].
pub(super) async fn user(command: &UserCommand) -> Result<(), CliError> {
    let client = AdminClient::new(command.admin())?;
    match command {
        UserCommand::Create(args) => {
            let body = json!({
                "name": args.user.name,
                "display_name": args.display_name,
                "access_key_id": args.key.access_key_id,
                "secret_key": args.key.secret_key,
            });
            let path = user_path(&args.user.account, None);
            show(&client.call(Method::POST, &path, Some(&body)).await?, args.json)
        }
        UserCommand::List(args) => list(&client, args).await,
        UserCommand::Show(args) => {
            let path = format!("{}?keys={}", args.user.path(), args.keys);
            show(&client.call(Method::GET, &path, None).await?, args.json)
        }
        UserCommand::Rotate(args) => {
            let body = json!({
                "key": args.key.word(),
                "access_key_id": args.new.access_key_id,
                "secret_key": args.new.secret_key,
            });
            let path = format!("{}/rotate", args.user.path());
            show(&client.call(Method::POST, &path, Some(&body)).await?, args.json)
        }
        UserCommand::Delete(args) => {
            client.call(Method::DELETE, &args.user.path(), None).await?;
            let UserPlace { account, name } = &args.user;
            if args.json {
                return print(&format!("{}\n", json!({ "deleted": format!("{account}/{name}") })));
            }
            print(&format!("user {account}/{name} deleted\n"))
        }
    }
}

async fn list(client: &AdminClient, args: &UserListArgs) -> Result<(), CliError> {
    let list = client.call(Method::GET, &user_path(&args.account, None), None).await?;
    if args.json {
        return print(&json_line(&list));
    }
    let users = list.as_array().map(Vec::as_slice).unwrap_or_default();
    if users.is_empty() {
        warn("no users: `blockyard user create ACCOUNT/NAME` makes one\n")?;
    }
    let rows: Vec<[String; 4]> = users.iter().map(row).collect();
    print(&table(on_terminal(), HEADS, &rows))
}

fn show(user: &Value, json: bool) -> Result<(), CliError> {
    if json { print(&json_line(&user)) } else { print(&page(user)) }
}

/// The text of one user, with the secrets of its keys if they are shown.
fn page(user: &Value) -> String {
    let mut page = fields(HEADS, row(user));
    page += &format!("  canonical id       {}\n", text(user, "canonical_id"));
    page += &format!("  arn                {}\n", text(user, "arn"));
    let keys = user["access_keys"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (number, key) in (1..).zip(keys) {
        page += &format!("  access key id {number}    {}\n", text(key, "access_key_id"));
        if let Some(secret) = key["secret_key"].as_str() {
            page += &format!("  secret key {number}       {secret}\n");
        }
    }
    page
}

/// The columns of `list`.
const HEADS: [&str; 4] = ["user", "keys from", "shown as", "created"];

fn row(user: &Value) -> [String; 4] {
    let name = format!("{}/{}", text(user, "account"), text(user, "name"));
    let text = |field| text(user, field).to_owned();
    [name, text("keys_from"), text("display_name"), text("created")]
}

fn text<'a>(user: &'a Value, field: &str) -> &'a str {
    user[field].as_str().unwrap_or("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_an_account_and_a_name() {
        let place: UserPlace = "acct/alice@x".parse().unwrap();
        assert_eq!(place.path(), "/admin/accounts/acct/users/alice%40x");
        for bad in ["acct", "acct/", "/alice", "a/b/c", ""] {
            assert!(bad.parse::<UserPlace>().is_err(), "{bad}");
        }
    }
}
