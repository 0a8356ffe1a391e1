//! The flags of all commands that send requests to a running node.

use std::path::PathBuf;

use crate::node::config::ADMIN_LISTEN;
use crate::node::config::AdminAddress;
use crate::node::config::Switch;

/// The address of a running node.
#[derive(clap::Args, Clone, Debug)]
#[command(mut_args = Switch::spelled)]
pub struct AdminPlaceArgs {
    /// The admin address of the node: an IP address or localhost and a port, :PORT, or unix:PATH
    #[arg(
        long,
        value_name = "ADDR",
        env = "BLOCKYARD_ADMIN_LISTEN",
        default_value_t = ADMIN_LISTEN
    )]
    pub admin_listen: AdminAddress,
    /// Connect to the node over https; needed when the node was started with --admin-tls
    // A name may follow it.
    #[arg(long, env = "BLOCKYARD_ADMIN_TLS", require_equals = true)]
    pub admin_tls: Option<Switch>,
    /// PEM file with the certificate authority of the node, trusted in addition to those of this
    /// machine [default: the node's own authority in its first data directory, if there is one]
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_ADMIN_CA")]
    pub admin_ca: Option<PathBuf>,
    /// The node's data directories; the first one holds its admin token and its own certificate
    /// authority [default: ./blockyard-data]
    #[arg(long, value_name = "DIR", env = "BLOCKYARD_DATA", value_delimiter = ',')]
    pub data: Vec<PathBuf>,
}

/// The address of a running node, and the admin token.
#[derive(clap::Args, Clone, Debug)]
pub struct AdminArgs {
    /// The address.
    #[command(flatten)]
    pub place: AdminPlaceArgs,
    /// The file with the admin token
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_ADMIN_TOKEN_FILE")]
    pub admin_token_file: Option<PathBuf>,
    /// The admin token itself; set the variable, since other users can see arguments
    #[arg(long, hide = true, env = "BLOCKYARD_ADMIN_TOKEN", hide_env_values = true)]
    pub admin_token: Option<String>,
}
