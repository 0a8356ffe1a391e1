//! Where accounts for development are served: those whose keys are public, or given with
//! `AZURITE_ACCOUNTS`.

use serde::Deserialize;

/// The values of `--development-account`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum DevelopmentAccount {
    /// On loopback addresses, under known host names.
    #[default]
    Loopback,
    /// On every address of --blob-listen and under every host name: everyone who reaches the port
    /// can read, change and delete everything in the account.
    Anywhere,
}
