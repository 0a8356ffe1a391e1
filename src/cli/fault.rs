//! `blockyard fault`: its requests and its output.

use clap::Subcommand;
use http::Method;
use serde_json::json;

use crate::frontend::faults::FaultError;
use crate::frontend::faults::FaultKind;
use crate::frontend::faults::FaultRule;
use crate::frontend::faults::FaultState;
use crate::node::config::Size;

use super::admin::args::AdminArgs;
use super::admin::client::AdminClient;
use super::admin::client::ClientError;
use super::error::CliError;
use super::output::json_line;
use super::output::on_terminal;
use super::output::print;
use super::output::warn;
use super::table::table;

/// The subcommands of `fault`.
#[derive(Debug, Subcommand)]
pub enum FaultCommand {
    /// Add a rule: busy (503), error (500), timeout (not carried out, no answer), lost (carried
    /// out, no answer), slow (slow answer)
    Set(FaultSetArgs),
    /// Show the rules and how many requests each was applied to
    List(FaultListArgs),
    /// Remove one rule, or all
    Clear(FaultClearArgs),
}

/// Arguments of `fault set`.
#[derive(clap::Args, Debug)]
pub struct FaultSetArgs {
    /// What happens to the requests that the rule applies to
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
    /// The share of the matching requests that the rule applies to
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    pub rate: f64,
    /// Selects the requests of that share: the same seed selects the same ones by number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Remove the rule after it was applied to this many requests
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// Remove the rule after this many seconds
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u32>,
    /// How long `timeout` and `lost` keep the client waiting before they close the connection
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub delay_ms: u32,
    /// Bytes per second of an answer under `slow`
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

/// Runs `blockyard fault`.
///
/// # Errors
/// [`CliError`].
pub(super) async fn fault(command: &FaultCommand) -> Result<(), CliError> {
    match command {
        FaultCommand::Set(args) => {
            let rule = json!(rule(args)?);
            let client = AdminClient::new(&args.admin)?;
            let set = client.call(Method::POST, "/admin/faults", Some(&rule)).await?;
            if args.json {
                return print(&json_line(&set));
            }
            print(&format!(
                "fault rule {} is on; `blockyard fault clear` ends it\n",
                set["id"].as_u64().unwrap_or_default()
            ))
        }
        FaultCommand::List(args) => {
            let client = AdminClient::new(&args.admin)?;
            let list = client.call(Method::GET, "/admin/faults", None).await?;
            if args.json {
                return print(&json_line(&list));
            }
            let rules: Vec<FaultState> =
                serde_json::from_value(list).map_err(|error| ClientError::Refused {
                    code: "Version".to_owned(),
                    message: format!("this node's answer is of another version: {error}"),
                })?;
            if rules.is_empty() {
                warn("no fault rules: the dial is off\n")?;
            }
            let rows: Vec<[String; 9]> = rules.iter().map(row).collect();
            print(&table(on_terminal(), HEADS, &rows))
        }
        FaultCommand::Clear(args) => {
            let client = AdminClient::new(&args.admin)?;
            let path = match args.id {
                Some(id) => format!("/admin/faults/{id}"),
                None => "/admin/faults".to_owned(),
            };
            let cleared = client.call(Method::DELETE, &path, None).await?;
            if args.json {
                return print(&json_line(&cleared));
            }
            let count = cleared["cleared"].as_u64().unwrap_or_default();
            print(&format!("{count} fault rules cleared\n"))
        }
    }
}

/// The rule, checked before it is sent.
fn rule(args: &FaultSetArgs) -> Result<FaultRule, FaultError> {
    let pace = args.bytes_per_second.bytes();
    let rule = FaultRule {
        kind: args.kind,
        operations: args.operation.clone(),
        accounts: args.account.clone(),
        containers: args.container.clone(),
        rate: args.rate,
        seed: args.seed,
        count: args.count,
        seconds: args.seconds,
        delay_ms: args.delay_ms,
        bytes_per_second: u32::try_from(pace).map_err(|_| FaultError::Pace(pace))?,
    };
    rule.check()?;
    Ok(rule)
}

/// The columns of `list`.
const HEADS: [&str; 9] =
    ["id", "kind", "rate", "seed", "struck", "matched", "operations", "accounts", "containers"];

fn row(state: &FaultState) -> [String; 9] {
    let all = |names: &[String]| match names {
        [] => "*".to_owned(),
        names => names.join(","),
    };
    let rule = &state.rule;
    [
        state.id.to_string(),
        rule.kind.word().to_owned(),
        rule.rate.to_string(),
        rule.seed.to_string(),
        state.struck.to_string(),
        state.matched.to_string(),
        all(&rule.operations),
        all(&rule.accounts),
        all(&rule.containers),
    ]
}
