//! `blockyard account`: its requests and its output.

use http::Method;
use serde_json::Value;
use serde_json::json;

use super::admin::client::AdminClient;
use super::admin::query::account_path;
use super::error::CliError;
use super::output::json_line;
use super::output::on_terminal;
use super::output::print;
use super::output::warn;
use super::table::fields;
use super::table::table;

pub(super) mod args;
mod grants;

use args::AccountCommand;
use args::AccountCreateArgs;

/// Runs `blockyard account`.
///
/// # Errors
/// [`CliError`].
pub(super) async fn account(command: &AccountCommand) -> Result<(), CliError> {
    let client = AdminClient::new(command.admin())?;
    match command {
        AccountCommand::Create(args) => create(&client, args).await,
        AccountCommand::List(args) => list(&client, args.json).await,
        AccountCommand::Show(args) => {
            let path = format!("{}?keys={}", account_path(&args.name), args.keys);
            show(&client.call(Method::GET, &path, None).await?, args.json)
        }
        AccountCommand::Set(args) => {
            let mut body = serde_json::Map::new();
            let settings = [
                ("anonymous", args.anonymous),
                ("versioning", args.versioning),
                ("object_lock", args.object_lock),
            ];
            for (name, switch) in settings {
                if let Some(switch) = switch {
                    body.insert(name.to_owned(), Value::Bool(switch.is_on()));
                }
            }
            if let Some(days) = args.container_retention {
                body.insert("container_retention_days".to_owned(), days.into());
            }
            body.extend(args.account_type.body());
            let body = Value::Object(body);
            let changed =
                client.call(Method::PATCH, &account_path(&args.name), Some(&body)).await?;
            show(&changed, args.json)
        }
        AccountCommand::Rotate(args) => {
            let body = json!({ "key": args.key.word(), "value": args.value });
            let path = format!("{}/rotate", account_path(&args.name));
            show(&client.call(Method::POST, &path, Some(&body)).await?, args.json)
        }
        AccountCommand::Revoke(args) => {
            let path = format!("{}/revoke", account_path(&args.name));
            show(&client.call(Method::POST, &path, None).await?, args.json)
        }
        AccountCommand::Grant(args) => grants::grant(&client, args).await,
        AccountCommand::Ungrant(args) => grants::revoke(&client, args).await,
        AccountCommand::Grants(args) => grants::list(&client, &args.name, args.json).await,
        AccountCommand::Delete(args) => {
            let path = format!("{}?force={}", account_path(&args.name), args.force);
            client.call(Method::DELETE, &path, None).await?;
            if args.json {
                return print(&format!("{}\n", json!({ "deleted": args.name })));
            }
            print(&format!("account {} deleted\n", args.name))
        }
    }
}

async fn create(client: &AdminClient, args: &AccountCreateArgs) -> Result<(), CliError> {
    let mut body = serde_json::Map::from_iter(args.account_type.body());
    for (name, value) in [
        ("name", json!(args.name)),
        ("key1", json!(args.key1)),
        ("key2", json!(args.key2)),
        ("anonymous", json!(args.anonymous.is_on())),
    ] {
        body.insert(name.to_owned(), value);
    }
    let body = Value::Object(body);
    let made = client.call(Method::POST, "/admin/accounts", Some(&body)).await?;
    show(&made, args.json)
}

async fn list(client: &AdminClient, json: bool) -> Result<(), CliError> {
    let list = client.call(Method::GET, "/admin/accounts", None).await?;
    let rows = |field: &str| list[field].as_array().map(Vec::as_slice).unwrap_or_default();
    let (accounts, unread) = (rows("accounts"), rows("unread"));
    if json {
        print(&json_line(&list))?;
    } else {
        let rows: Vec<[String; 6]> = accounts.iter().map(row).collect();
        print(&table(on_terminal(), HEADS, &rows))?;
        if accounts.is_empty() && unread.is_empty() {
            warn("no accounts: `blockyard account create NAME` makes one\n")?;
        }
    }
    complete(unread)
}

/// Fails if a list is incomplete.
fn complete(unread: &[Value]) -> Result<(), CliError> {
    if unread.is_empty() {
        return Ok(());
    }
    let part = |one: &Value| format!("{} (partition {})", text(one, "range"), one["partition"]);
    let parts = unread.iter().map(part).collect::<Vec<_>>().join(", ");
    Err(CliError::AccountsUnread { parts })
}

fn show(account: &Value, json: bool) -> Result<(), CliError> {
    if json { print(&json_line(&account)) } else { print(&page(account)) }
}

/// The text of one account, with a connection string if its keys are shown.
fn page(account: &Value) -> String {
    let name = text(account, "name");
    let mut page = fields(HEADS, row(account));
    for (field, title) in [("versioning", "versioning"), ("object_lock", "object lock")] {
        if account[field].as_bool() == Some(true) {
            page += &format!("  {title:18} on\n");
        }
    }
    if let Some(days) = account["container_retention_days"].as_u64().filter(|days| *days > 0) {
        page += &format!("  {:18} {days} days\n", "container retention");
    }
    let endpoints = account["endpoints"].as_array().map(Vec::as_slice).unwrap_or_default();
    for endpoint in endpoints.iter().filter_map(Value::as_str) {
        page += &format!("  endpoint           {endpoint}\n");
    }
    let keys = account["keys"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (number, key) in keys.iter().filter_map(Value::as_str).enumerate() {
        page += &format!("  key{}               {key}\n", number + 1);
    }
    let first = |values: &[Value]| values.first().and_then(Value::as_str).map(str::to_owned);
    if let (Some(key), Some(endpoint)) = (first(keys), first(endpoints)) {
        page += &format!(
            "  connection string  DefaultEndpointsProtocol=http;AccountName={name};AccountKey={key};\
             BlobEndpoint={endpoint};\n"
        );
    }
    page
}

/// The columns of `list`.
const HEADS: [&str; 6] = ["account", "keys from", "anonymous", "kind", "sku", "created"];

fn row(account: &Value) -> [String; 6] {
    let anonymous = if account["anonymous"].as_bool() == Some(true) { "on" } else { "off" };
    let text = |field| text(account, field);
    let cells =
        [text("name"), text("keys_from"), anonymous, text("kind"), text("sku"), text("created")];
    cells.map(str::to_owned)
}

fn text<'a>(account: &'a Value, field: &str) -> &'a str {
    account[field].as_str().unwrap_or("-")
}
