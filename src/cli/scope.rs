//! `blockyard scope`: its arguments, requests and output.

use clap::Subcommand;
use http::Method;
use serde_json::Value;
use serde_json::json;

use crate::cli::admin::args::AdminArgs;
use crate::cli::admin::client::AdminClient;
use crate::cli::admin::query::scope_path;
use crate::cli::error::CliError;
use crate::cli::escaped::shown;
use crate::cli::output::json_line;
use crate::cli::output::on_terminal;
use crate::cli::output::print;
use crate::cli::output::warn;
use crate::cli::table::table;

/// The subcommands of `scope`.
#[derive(Debug, Subcommand)]
pub enum ScopeCommand {
    /// Create a scope with a new random key, under which all is encrypted that is written under its
    /// name from now on
    Create(ScopeArgs),
    /// Show the scopes of an account that have keys
    List(ScopeListArgs),
    /// Refuse reads and writes of content under a scope with 403
    Disable(ScopeArgs),
    /// Permit them again
    Enable(ScopeArgs),
}

/// Arguments of the commands about one scope.
#[derive(clap::Args, Debug)]
pub struct ScopeArgs {
    /// The account, and 3 to 63 letters, digits and hyphens
    #[arg(value_name = "ACCOUNT/NAME")]
    pub scope: ScopePlace,
    /// Print the scope as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `scope list`.
#[derive(clap::Args, Debug)]
pub struct ScopeListArgs {
    /// The account
    pub account: String,
    /// Print the scopes as one JSON array
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// A scope, as `ACCOUNT/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopePlace {
    account: String,
    name: String,
}

impl std::str::FromStr for ScopePlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').filter(|(account, name)| {
            !account.is_empty() && !name.is_empty() && !name.contains('/')
        });
        let (account, name) = parts.ok_or("a scope is written ACCOUNT/NAME")?;
        Ok(Self { account: account.to_owned(), name: name.to_owned() })
    }
}

/// Runs `blockyard scope`.
///
/// # Errors
/// [`CliError`].
pub(super) async fn scope(command: &ScopeCommand) -> Result<(), CliError> {
    match command {
        ScopeCommand::Create(args) => {
            let client = AdminClient::new(&args.admin)?;
            let ScopePlace { account, name } = &args.scope;
            let body = json!({ "name": name });
            let path = scope_path(account, None);
            show(&client.call(Method::POST, &path, Some(&body)).await?, args.json)
        }
        ScopeCommand::List(args) => list(args).await,
        ScopeCommand::Disable(args) => switch(args, false).await,
        ScopeCommand::Enable(args) => switch(args, true).await,
    }
}

async fn switch(args: &ScopeArgs, enabled: bool) -> Result<(), CliError> {
    let client = AdminClient::new(&args.admin)?;
    let ScopePlace { account, name } = &args.scope;
    let body = json!({ "enabled": enabled });
    let path = scope_path(account, Some(name));
    show(&client.call(Method::PATCH, &path, Some(&body)).await?, args.json)
}

async fn list(args: &ScopeListArgs) -> Result<(), CliError> {
    let client = AdminClient::new(&args.admin)?;
    let list = client.call(Method::GET, &scope_path(&args.account, None), None).await?;
    if args.json {
        return print(&json_line(&list));
    }
    let scopes = list.as_array().map(Vec::as_slice).unwrap_or_default();
    if scopes.is_empty() {
        warn("no scopes with keys: `blockyard scope create ACCOUNT/NAME` makes one\n")?;
    }
    let rows: Vec<[String; 3]> = scopes.iter().map(row).collect();
    print(&table(on_terminal(), ["scope", "state", "created"], &rows))
}

fn show(scope: &Value, json: bool) -> Result<(), CliError> {
    if json {
        return print(&json_line(&scope));
    }
    let [name, state, created] = row(scope).map(|cell| shown(&cell));
    print(&format!("{name}: {state}, created {created}\n"))
}

fn row(scope: &Value) -> [String; 3] {
    let text = |field: &str| scope[field].as_str().unwrap_or("-").to_owned();
    let name = format!("{}/{}", text("account"), text("name"));
    let state = if scope["enabled"] == true { "enabled" } else { "disabled" };
    [name, state.to_owned(), text("created")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_an_account_and_a_name() {
        let place: ScopePlace = "acct/customer-1".parse().unwrap();
        assert_eq!(
            scope_path(&place.account, Some(&place.name)),
            "/admin/accounts/acct/scopes/customer%2D1"
        );
        for bad in ["acct", "acct/", "/one", "a/b/c", ""] {
            assert!(bad.parse::<ScopePlace>().is_err(), "{bad}");
        }
    }
}
