//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;
use clap::Subcommand;

use super::settings::Settings;

/// A durable object store that speaks Azure Blob REST.
#[derive(Debug, Parser)]
#[command(name = "blockyard", version, about, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve Blob from one or more data directories
    Serve(Box<ServeArgs>),
    /// Verify a stopped node's data directories; replays their journals as a start does. Exit code 0 sound, 1 damaged,
    /// 2 could not run
    Check(CheckArgs),
    /// Print a new random account key
    Keygen,
    /// Ask a running node whether it can serve: exit code 0 yes, 1 no
    Health(HealthArgs),
}

/// Arguments of `serve`.
#[derive(clap::Args, Debug)]
pub struct ServeArgs {
    /// TOML file with settings: the flags' names with underscores. Flags win over variables, variables over the file
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_CONFIG")]
    pub config: Option<PathBuf>,
    /// The settings.
    #[command(flatten)]
    pub settings: Settings,
}

/// Arguments of `check`.
#[derive(clap::Args, Debug)]
pub struct CheckArgs {
    /// All data directories of the node, in the order `serve` was given them
    #[arg(required = true, value_name = "DIR")]
    pub data: Vec<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `health`.
#[derive(clap::Args, Debug)]
pub struct HealthArgs {
    /// The admin address of the node
    #[arg(
        long,
        value_name = "ADDR",
        env = "BLOCKYARD_ADMIN_LISTEN",
        default_value_t = super::config::ADMIN_LISTEN
    )]
    pub admin_listen: SocketAddr,
}
