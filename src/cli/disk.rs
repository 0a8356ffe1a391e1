//! `blockyard disk`: its requests and its output.

use clap::Subcommand;
use http::Method;
use serde_json::Value;
use serde_json::json;

use crate::admin::DiskView;
use crate::node::config::Size;

use super::admin::args::AdminArgs;
use super::admin::client::AdminClient;
use super::error::CliError;
use super::output::json_line;
use super::output::on_terminal;
use super::output::print;
use super::table::table;

const PATH: &str = "/admin/disks";

/// The subcommands of `disk`.
#[derive(Debug, Subcommand)]
pub enum DiskCommand {
    /// Show all disks of the store
    List(DiskListArgs),
    /// Move everything off a disk while the node serves; `disk list` shows when it is drained
    Drain(DiskArgs),
    /// Remove a drained disk from the store; its directory is no longer part of the store
    Remove(DiskArgs),
}

/// Arguments of `disk list`.
#[derive(clap::Args, Debug)]
pub struct DiskListArgs {
    /// Print the disks as one JSON array
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `disk drain` and `disk remove`.
#[derive(clap::Args, Debug)]
pub struct DiskArgs {
    /// The disk, by its directory or its number
    #[arg(value_name = "DIR")]
    pub disk: String,
    /// Print the outcome as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Runs `blockyard disk`.
///
/// # Errors
/// [`CliError`].
pub(super) async fn disk(command: &DiskCommand) -> Result<(), CliError> {
    match command {
        DiskCommand::List(args) => {
            let answer = AdminClient::new(&args.admin)?.call(Method::GET, PATH, None).await?;
            if args.json {
                return print(&json_line(&answer));
            }
            let disks: Vec<DiskView> = read(answer)?;
            let on_terminal = on_terminal();
            let rows: Vec<[String; 7]> = disks.iter().map(|disk| row(disk, on_terminal)).collect();
            print(&table(on_terminal, HEADS, &rows))
        }
        DiskCommand::Drain(args) => {
            let answer = send(args, "drain").await?;
            if args.json {
                return print(&json_line(&answer));
            }
            let disk: DiskView = read(answer)?;
            print(&format!("{}: {}, {} extents left\n", disk.path, disk.state, disk.extents))
        }
        DiskCommand::Remove(args) => {
            send(args, "remove").await?;
            if args.json {
                return print(&format!("{}\n", json!({ "removed": args.disk })));
            }
            print(&format!(
                "{} is removed: unmount it, and leave it out of --data from the next start on\n",
                args.disk
            ))
        }
    }
}

async fn send(args: &DiskArgs, what: &str) -> Result<Value, CliError> {
    let body = json!({ "disk": args.disk });
    let client = AdminClient::new(&args.admin)?;
    Ok(client.call(Method::POST, &format!("{PATH}/{what}"), Some(&body)).await?)
}

/// The columns of `list`.
const HEADS: [&str; 7] = ["number", "path", "state", "extents", "live", "available", "total"];

/// The cells of a disk, with rounded sizes for people.
fn row(disk: &DiskView, rounded: bool) -> [String; 7] {
    let size = |bytes| if rounded { Size::new(bytes).rounded() } else { bytes.to_string() };
    [
        disk.number.map_or_else(|| "?".to_owned(), |number| number.to_string()),
        disk.path.clone(),
        disk.state.to_string(),
        disk.extents.to_string(),
        size(disk.live_bytes),
        size(disk.available_bytes),
        size(disk.total_bytes),
    ]
}

fn read<T: serde::de::DeserializeOwned>(answer: Value) -> Result<T, CliError> {
    serde_json::from_value(answer)
        .map_err(|error| CliError::System { what: "the node's answer", reason: error.to_string() })
}
