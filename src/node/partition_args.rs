//! The command line of `blockyard partitions`.

use clap::Subcommand;

use super::cli::AdminArgs;

/// What `partitions` can do. Keys are `ACCOUNT/CONTAINER/NAME`, `ACCOUNT/CONTAINER` or `ACCOUNT`;
/// each may be a number, as in `ACCOUNT/#5/NAME`.
#[derive(Debug, Subcommand)]
pub enum PartitionsCommand {
    /// Show all partitions in key order
    List(ListArgs),
    /// Split a partition at keys, or into even parts. Requests go on
    Split(SplitArgs),
    /// Deal the names of a partition out to several by hash: for names that come in order, faster
    /// than one partition takes them
    Stripe(StripeArgs),
    /// Make one partition of all stripes of a range
    Unstripe(UnstripeArgs),
    /// Merge partitions that lie side by side
    Merge(MergeArgs),
    /// Move a partition to another host
    Move(MoveArgs),
    /// Give the names that start with a prefix partitions of their own, before a job makes them
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
    /// Where: each key is the lowest of a new partition; 1 to 15, all in one partition
    #[arg(value_name = "KEY", required_unless_present = "partition", conflicts_with = "partition")]
    pub at: Vec<String>,
    /// Split this one by its load of the last seconds or, where that is not known, by its rows
    #[arg(long, value_name = "ID", requires = "ways")]
    pub partition: Option<u64>,
    /// Into how many parts, 2 to 16
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
    /// How many, 2 to 16
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
    /// 2 to 16 that lie side by side, in any order
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
    /// Where to; they count from 0
    #[arg(long, value_name = "N")]
    pub host: u64,
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
    /// ACCOUNT/CONTAINER
    #[arg(value_name = "CONTAINER")]
    pub container: String,
    /// What the job's names start with [default: any of the container's names]
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true)]
    pub prefix: String,
    /// How many partitions, 2 to 256
    #[arg(long, value_name = "N")]
    pub ways: u32,
    /// A prefix that has names already; those to come are spread alike, such as step-0800/ for
    /// step-0900/
    #[arg(long, value_name = "PREFIX", conflicts_with = "characters")]
    pub like: Option<String>,
    /// What names go on with after the prefix, all alike often [default: digits and lower-case
    /// letters]
    #[arg(long, value_name = "CHARACTERS")]
    pub characters: Option<String>,
    /// Deal the partitions out to all hosts
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
    /// End after so many seconds [default: ctrl-C]
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u32>,
    /// Print each look as one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}
