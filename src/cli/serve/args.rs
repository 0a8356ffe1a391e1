//! Arguments of `blockyard serve`.

use std::path::PathBuf;

use crate::node::config::Settings;

/// Arguments of `serve`.
#[derive(clap::Args, Debug)]
pub struct ServeArgs {
    /// TOML file with settings, named like the flags with underscores. A flag overrides its
    /// variable, a variable overrides the file
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_CONFIG")]
    pub config: Option<PathBuf>,
    /// The settings.
    #[command(flatten)]
    pub settings: Settings,
}
