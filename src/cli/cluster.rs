//! `blockyard cluster`: makes a cluster, and shows its nodes.

mod shown;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use serde_json::json;

use crate::env::Env;
use crate::env::OsClock;
use crate::env::OsRand;
use crate::env::Tasks;
use crate::node::cluster::Adopt;
use crate::node::cluster::AdoptedStore;
use crate::node::cluster::CoordinatorSettings;
use crate::node::cluster::Init;
use crate::node::cluster::NodeStatus;
use crate::node::cluster::Wanted;
use crate::node::cluster::adopt;
use crate::node::cluster::change;
use crate::node::cluster::init;
use crate::node::cluster::new_token;
use crate::node::cluster::status;
use crate::node::cluster::undo;
use crate::types::ClusterNumber;

use super::error::CliError;
use super::output::json_line;
use super::output::print;
use shown::as_json;
use shown::as_text;

/// The subcommands of `cluster`.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Make a cluster in an etcd, and its master key file, which every node needs
    Init(InitArgs),
    /// Make the store of a stopped single node the first node of a new cluster, in place
    Adopt(AdoptArgs),
    /// Make a token with which one new node gets the master key file
    Token(TokenArgs),
    /// Show the nodes of a cluster, their partitions, and which one manages the index
    Status(ClusterStatusArgs),
    /// Show the same each second: on the whole screen of a terminal, elsewhere when it has changed
    Watch(ClusterWatchArgs),
    /// Move all partitions and copies of a node to other nodes; it gets no new ones
    Drain(NodeNameArgs),
    /// Let a node that was drained take copies again
    Activate(NodeNameArgs),
    /// Remove a drained or lost node from the cluster, for ever; its process ends
    Remove(RemoveArgs),
}

/// Arguments of `cluster drain` and `cluster activate`.
#[derive(clap::Args, Debug)]
pub struct NodeNameArgs {
    /// The name of the node
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Where the cluster is.
    #[command(flatten)]
    pub coordinator: CoordinatorSettings,
    /// Print the node as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `cluster remove`.
#[derive(clap::Args, Debug)]
pub struct RemoveArgs {
    /// The node.
    #[command(flatten)]
    pub node: NodeNameArgs,
    /// Remove it although it has copies: it does not come back, and they are made again elsewhere
    #[arg(long)]
    pub lost: bool,
}

/// Arguments of `cluster init`.
#[derive(clap::Args, Debug)]
pub struct InitArgs {
    /// Where the cluster is made.
    #[command(flatten)]
    pub coordinator: CoordinatorSettings,
    /// Copies of each byte, on as many machines
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    pub copies: u8,
    /// The number of the cluster, 1 to 65535, which no other cluster of one account may have
    /// [default: a random one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub number: Option<u16>,
    /// The file of the master keys, which is made if it does not exist
    #[arg(long, value_name = "FILE", default_value = "blockyard-cluster.key")]
    pub master_key_file: PathBuf,
    /// Print the cluster as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `cluster adopt`.
#[derive(clap::Args, Debug)]
pub struct AdoptArgs {
    /// All data directories of the node, in the order `serve` was given them
    #[arg(
        long,
        value_name = "DIR",
        env = "BLOCKYARD_DATA",
        value_delimiter = ',',
        default_value = "./blockyard-data"
    )]
    pub data: Vec<PathBuf>,
    /// The node's master key file, which every node of the cluster needs [default: the first data
    /// directory with .key behind its name]
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_MASTER_KEY_FILE")]
    pub master_key_file: Option<PathBuf>,
    /// Where the cluster is made.
    #[command(flatten)]
    pub coordinator: CoordinatorSettings,
    /// Copies of each byte, on as many machines
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=5))]
    pub copies: u8,
    /// The number of the cluster, 1 to 65535, which no other cluster of one account may have
    /// [default: a random one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub number: Option<u16>,
    /// Give up an adoption that was interrupted: the store is that of a single node again
    #[arg(long, conflicts_with_all = ["copies", "number"])]
    pub undo: bool,
    /// Print the cluster as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `cluster token`.
#[derive(clap::Args, Debug)]
pub struct TokenArgs {
    /// Where the cluster is.
    #[command(flatten)]
    pub coordinator: CoordinatorSettings,
    /// The file of the master keys
    #[arg(long, value_name = "FILE", default_value = "blockyard-cluster.key")]
    pub master_key_file: PathBuf,
    /// Hours for which the token is good, if it is not used
    #[arg(long, value_name = "HOURS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=168))]
    pub hours: u64,
    /// Print the token as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `cluster status`.
#[derive(clap::Args, Debug)]
pub struct ClusterStatusArgs {
    /// Where the cluster is.
    #[command(flatten)]
    pub coordinator: CoordinatorSettings,
    /// Print cluster and nodes as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `cluster watch`.
#[derive(clap::Args, Debug)]
pub struct ClusterWatchArgs {
    /// Where the cluster is.
    #[command(flatten)]
    pub coordinator: CoordinatorSettings,
    /// End after this many seconds [default: run until ctrl-C]
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u32>,
    /// Print each observation as one JSON object on a line
    #[arg(long)]
    pub json: bool,
}

/// Runs `blockyard cluster`.
///
/// # Errors
/// [`CliError`].
pub(super) async fn cluster(command: &ClusterCommand) -> Result<(), CliError> {
    let env = Env { clock: Arc::new(OsClock::new()), rand: Arc::new(OsRand), tasks: Tasks::new() };
    match command {
        ClusterCommand::Init(args) => {
            let number = args.number.map(ClusterNumber::new);
            let (copies, master_key_file) = (args.copies, args.master_key_file.clone());
            let made = Init { number, copies, master_key_file };
            let record = init(&args.coordinator, &made, &env).await?;
            let (number, file) = (record.number.get(), args.master_key_file.display());
            if args.json {
                let made = json!({ "number": number, "copies": record.copies });
                return print(&json_line(&made));
            }
            print(&format!(
                "cluster {number} is made, with {copies} copies of each byte\n\
                 Keep a copy of {file}: every node needs it, and gets it with a token of \
                 `blockyard cluster token` or as a copy\n\
                 Then start the nodes: `blockyard node --help`, and the guide docs/cluster.md\n"
            ))
        }
        ClusterCommand::Adopt(args) => adopt_store(args, &env).await,
        ClusterCommand::Token(args) => {
            let valid = Duration::from_secs(args.hours * 3600);
            let token = new_token(&args.coordinator, &args.master_key_file, valid, &env).await?;
            if args.json {
                return print(&json_line(&json!({ "token": *token, "hours": args.hours })));
            }
            print(&format!("{}\n", *token))
        }
        ClusterCommand::Status(args) => {
            let status = status(&args.coordinator, &env).await?;
            let is_json = args.json;
            print(&if is_json { json_line(&as_json(&status)) } else { as_text(&status) })
        }
        ClusterCommand::Watch(args) => watch::watch(args, &env).await,
        ClusterCommand::Drain(args) => set(args, Wanted::Drain, &env).await,
        ClusterCommand::Activate(args) => set(args, Wanted::Activate, &env).await,
        ClusterCommand::Remove(RemoveArgs { node, lost }) => {
            set(node, Wanted::Remove { lost: *lost }, &env).await
        }
    }
}

/// Makes a cluster of a single node, or gives that up.
async fn adopt_store(args: &AdoptArgs, env: &Env) -> Result<(), CliError> {
    let AdoptArgs { data, copies, .. } = args;
    if args.undo {
        let is_here = undo(&args.coordinator, data, env).await?;
        if args.json {
            return print(&json_line(&json!({ "undone": true, "found": is_here })));
        }
        let elsewhere = "There was nothing of it in this etcd, under this prefix\n";
        let elsewhere = if is_here { "" } else { elsewhere };
        return print(&format!(
            "the store is that of a single node again: `blockyard serve` starts it\n{elsewhere}"
        ));
    }
    let wanted = Adopt {
        data: data.clone(),
        master_key_file: args.master_key_file.clone(),
        number: args.number.map(ClusterNumber::new),
        copies: *copies,
    };
    let AdoptedStore { cluster, partitions, extents } =
        adopt(&args.coordinator, &wanted, env).await?;
    let (number, copies) = (cluster.number.get(), cluster.copies);
    let needed = copies.saturating_sub(1).max(1);
    if args.json {
        return print(&json_line(&json!({
            "number": number, "copies": copies, "partitions": partitions, "extents": extents,
        })));
    }
    print(&format!(
        "cluster {number} is made of this node, with {partitions} partitions and {extents} extents\n\
         Start it with `blockyard node`, and others: the guide docs/cluster.md. The cluster serves \
         when nodes on {needed} machines are there, and has {copies} copies of everything with \
         {copies}\n"
    ))
}

/// Sets what is wanted of a node, and says what follows.
async fn set(args: &NodeNameArgs, wanted: Wanted, env: &Env) -> Result<(), CliError> {
    let at = change(&args.coordinator, &args.name, wanted, env).await?;
    let node = NodeStatus { at, is_managing: false, is_serving: false, partitions: 0, groups: 0 };
    if args.json {
        let set = json!({ "name": args.name, "state": node.state() });
        return print(&json_line(&set));
    }
    let name = &args.name;
    print(&match wanted {
        Wanted::Drain => format!(
            "{name} is being drained, if another machine has room for its copies: `blockyard cluster \
             status` shows the groups that it still has\n"
        ),
        Wanted::Activate => format!("{name} takes copies\n"),
        Wanted::Remove { .. } => format!("{name} is removed, for ever\n"),
    })
}
