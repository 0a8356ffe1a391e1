//! The command line of `blockyard partitions`.

use clap::Subcommand;

use crate::cli::admin::args::AdminArgs;

/// The subcommands of `partitions`. Keys are `ACCOUNT/CONTAINER/NAME`, `ACCOUNT/CONTAINER` or
/// `ACCOUNT`; each may be a number, as in `ACCOUNT/#5/NAME`.
#[derive(Debug, Subcommand)]
pub enum PartitionsCommand {
    /// Show all partitions in key order
    List(ListArgs),
    /// Split a partition at keys, or into even parts. Requests continue
    Split(SplitArgs),
    /// Distribute the names of a partition over several by hash: for names that are created in
    /// ascending order, faster than one partition can take
    Stripe(StripeArgs),
    /// Merge all stripes of a range into one partition
    Unstripe(UnstripeArgs),
    /// Merge neighbouring partitions
    Merge(MergeArgs),
    /// Move a partition to another host
    Move(MoveArgs),
    /// Make partitions for the names with a prefix before a job creates these names
    Prepare(PrepareArgs),
    /// Show load and changes live: a heat map on a terminal, lines elsewhere
    Watch(WatchArgs),
}

/// Arguments of `partitions list`.
#[derive(clap::Args, Debug)]
pub struct ListArgs {
    /// Print partitions and latest changes as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `partitions split`.
#[derive(clap::Args, Debug)]
pub struct SplitArgs {
    /// The lowest key of each new partition; 1 to 15 keys, all in one partition
    #[arg(value_name = "KEY", required_unless_present = "partition", conflicts_with = "partition")]
    pub at: Vec<String>,
    /// The partition to split evenly, by its load of the last seconds or, where the load is not
    /// known, by its rows
    #[arg(long, value_name = "ID", requires = "ways")]
    pub partition: Option<u64>,
    /// The number of parts, 2 to 16
    #[arg(long, value_name = "N", requires = "partition")]
    pub ways: Option<u32>,
    /// Print the outcome as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `partitions stripe`.
#[derive(clap::Args, Debug)]
pub struct StripeArgs {
    /// The partition; all its keys are names of one container
    #[arg(value_name = "ID")]
    pub partition: u64,
    /// The number of stripes, 2 to 16
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub stripes: u8,
    /// Print the outcome as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `partitions unstripe`.
#[derive(clap::Args, Debug)]
pub struct UnstripeArgs {
    /// Any of the stripes
    #[arg(value_name = "ID")]
    pub partition: u64,
    /// Print the outcome as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `partitions merge`.
#[derive(clap::Args, Debug)]
pub struct MergeArgs {
    /// 2 to 16 neighbouring partitions, in any order
    #[arg(value_name = "ID", required = true, num_args = 2..)]
    pub partitions: Vec<u64>,
    /// Print the outcome as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `partitions move`.
#[derive(clap::Args, Debug)]
pub struct MoveArgs {
    /// The partition
    #[arg(value_name = "ID")]
    pub partition: u64,
    /// The number of the new host on its node; the first is 0 [default: 0 with --node]
    #[arg(long, value_name = "N", required_unless_present = "node")]
    pub host: Option<u64>,
    /// In a cluster, the name of the new host's node [default: the node that the partition is on]
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Print the outcome as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `partitions prepare`.
#[derive(clap::Args, Debug)]
pub struct PrepareArgs {
    /// The container, as ACCOUNT/CONTAINER
    #[arg(value_name = "CONTAINER")]
    pub container: String,
    /// The prefix of the job's names [default: all names of the container]
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true)]
    pub prefix: String,
    /// The number of partitions, 2 to 256
    #[arg(long, value_name = "N")]
    pub ways: u32,
    /// A prefix that has names already, among which the new names will be distributed alike, such
    /// as step-0800/ for step-0900/
    #[arg(long, value_name = "PREFIX", conflicts_with = "characters")]
    pub like: Option<String>,
    /// The characters that follow the prefix in names, each equally often [default: digits and
    /// lower-case letters]
    #[arg(long, value_name = "CHARACTERS")]
    pub characters: Option<String>,
    /// Distribute the partitions over all hosts
    #[arg(long)]
    pub spread: bool,
    /// Print the outcome as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `partitions watch`.
#[derive(clap::Args, Debug)]
pub struct WatchArgs {
    /// End after this many seconds [default: run until ctrl-C]
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u32>,
    /// Print each observation as one JSON object on a line
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}
