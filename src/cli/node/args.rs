//! Arguments of `blockyard node`.

use std::path::PathBuf;

use crate::node::cluster::NodeSettings;
use crate::node::config::Settings;

/// Arguments of `node`.
#[derive(clap::Args, Debug)]
pub struct NodeArgs {
    /// TOML file with settings, named like the flags of `serve` with underscores. A flag overrides
    /// its variable, a variable overrides the file
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_CONFIG")]
    pub config: Option<PathBuf>,
    /// What is set for a node of a cluster only.
    #[command(flatten)]
    pub node: NodeSettings,
    /// The settings of every node.
    #[command(flatten)]
    pub settings: Settings,
}
