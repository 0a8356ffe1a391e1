//! `account grant`, `account grants` and `account ungrant`: their arguments, requests and output.

use http::Method;
use serde_json::Value;
use serde_json::json;

use crate::cli::admin::args::AdminArgs;
use crate::cli::admin::client::AdminClient;
use crate::cli::admin::query::account_path;
use crate::cli::error::CliError;
use crate::cli::escaped::shown;
use crate::cli::output::json_line;
use crate::cli::output::on_terminal;
use crate::cli::output::print;
use crate::cli::output::warn;
use crate::cli::table::table;
use crate::types::Role;

/// Arguments of `account grant` and `account ungrant`.
#[derive(clap::Args, Debug)]
pub struct AccountGrantArgs {
    /// The account
    pub name: String,
    /// reader, contributor or owner; Azure's names, such as 'Storage Blob Data Reader', are
    /// accepted too
    #[arg(value_parser = role)]
    pub role: Role,
    /// The value of the claim `oid` in the user's tokens, or of `sub` where there is no `oid`; with
    /// --group a value of the claim with groups, with --user the name of a user of the account
    pub principal: String,
    /// The principal is a group
    #[arg(long)]
    pub group: bool,
    /// The principal is a user of the account; user:NAME says the same
    #[arg(long, conflicts_with_all = ["group", "issuer"])]
    pub user: bool,
    /// Only in this container [default: in the whole account]
    #[arg(long, value_name = "NAME")]
    pub container: Option<String>,
    /// The principal's issuer, as in --oidc [default: the only one the node has]
    #[arg(long, value_name = "URL")]
    pub issuer: Option<String>,
    /// Print the role assignment as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

impl AccountGrantArgs {
    /// The body of the request to the admin listener.
    #[must_use]
    pub fn body(&self) -> Value {
        // No subject of an issuer begins so: subjects are ids or addresses.
        let named = self.principal.strip_prefix("user:").filter(|_| !self.group && !self.user);
        let kind = match (self.group, self.user || named.is_some()) {
            (true, _) => "group",
            (false, true) => "user",
            (false, false) => "subject",
        };
        json!({
            "role": self.role.name(),
            "kind": kind,
            "principal": named.unwrap_or(&self.principal),
            "container": self.container,
            "issuer": self.issuer,
        })
    }
}

/// Arguments of `account grants`.
#[derive(clap::Args, Debug)]
pub struct AccountGrantsArgs {
    /// The account
    pub name: String,
    /// Print the role assignments as one JSON array
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

fn role(text: &str) -> Result<Role, String> {
    Role::named(text).ok_or_else(|| "write reader, contributor or owner".to_owned())
}

/// Runs `account grant`.
///
/// # Errors
/// [`CliError`].
pub(super) async fn grant(client: &AdminClient, args: &AccountGrantArgs) -> Result<(), CliError> {
    let path = format!("{}/grants", account_path(&args.name));
    let granted = client.call(Method::POST, &path, Some(&args.body())).await?;
    if args.json {
        return print(&json_line(&granted));
    }
    print(&format!("granted {}", words(&granted, "to")))
}

/// Runs `account ungrant`.
///
/// # Errors
/// [`CliError`].
pub(super) async fn revoke(client: &AdminClient, args: &AccountGrantArgs) -> Result<(), CliError> {
    let path = format!("{}/grants/revoke", account_path(&args.name));
    let revoked = client.call(Method::POST, &path, Some(&args.body())).await?;
    if args.json {
        return print(&json_line(&revoked));
    }
    print(&format!("revoked {}", words(&revoked, "from")))
}

/// Runs `account grants`.
///
/// # Errors
/// [`CliError`].
pub(super) async fn list(client: &AdminClient, name: &str, json: bool) -> Result<(), CliError> {
    let list = client.call(Method::GET, &format!("{}/grants", account_path(name)), None).await?;
    if json {
        return print(&json_line(&list));
    }
    let rows = list.as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        warn("no roles: `blockyard account grant NAME ROLE PRINCIPAL` gives one\n")?;
    }
    let rows: Vec<[String; 5]> = rows.iter().map(row).collect();
    print(&table(on_terminal(), ["role", "kind", "principal", "container", "issuer"], &rows))
}

/// The cells of one role assignment.
fn row(assignment: &Value) -> [String; 5] {
    let text = |name: &str| assignment[name].as_str().unwrap_or("-").to_owned();
    ["role", "kind", "principal", "container", "issuer"].map(text)
}

/// A role assignment in words.
fn words(assignment: &Value, preposition: &str) -> String {
    let [role, kind, principal, container, issuer] = row(assignment).map(|cell| shown(&cell));
    let behind = |word: &str, text: String| match text.as_str() {
        "-" => String::new(),
        text => format!(" {word} {text}"),
    };
    let (issuer, place) = (behind("of", issuer), behind("in container", container));
    format!("{role} {preposition} {kind} {principal}{issuer}{place}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_described_in_words() {
        let mut assignment = json!({ "role": "reader", "kind": "user", "principal": "a\u{1b}" });
        assert_eq!(words(&assignment, "to"), "reader to user a\\u{1b}\n");
        assignment["container"] = json!("photos");
        assignment["issuer"] = json!("https://i");
        let wanted = "reader from user a\\u{1b} of https://i in container photos\n";
        assert_eq!(words(&assignment, "from"), wanted);
    }
}
