//! Why a command fails, and its exit code. Each text says what to do.

use std::fmt::Display;
use std::path::PathBuf;

use thiserror::Error;

use crate::frontend::faults::FaultError;
use crate::frontend::filter::FilterError;
use crate::node::backup::BackupError;
use crate::node::config::ConfigError;
use crate::node::error::NodeError;
use crate::node::keys::MasterKeyError;
use crate::telemetry::LogError;

use super::admin::client::ClientError;
use super::azurite::error::AzuriteError;
use super::files::error::FilesError;
use super::sas::mint::SasError;

/// Why a command fails.
#[derive(Debug, Error)]
pub enum CliError {
    /// The node or its store failed.
    #[error("{0}")]
    Node(#[from] NodeError),
    /// An environment variable looks like a setting and is none.
    #[error(
        "{name} is not a setting of Blockyard and would be ignored; do you mean {nearest}? (or unset it)"
    )]
    UnknownVariable {
        /// The variable.
        name: String,
        /// The most similar variable.
        nearest: String,
    },
    /// A signature cannot be made.
    #[error("{0}")]
    Sas(#[from] SasError),
    /// Files or blobs cannot be listed, copied or deleted.
    #[error("{0}")]
    Files(#[from] FilesError),
    /// No request can pass the filter of a command.
    #[error("{0}")]
    Filter(#[from] FilterError),
    /// A rule of the fault dial is refused before it is sent.
    #[error("{0}")]
    Fault(#[from] FaultError),
    /// A flag of Azurite cannot be followed.
    #[error("{0}")]
    Azurite(#[from] AzuriteError),
    /// Logging cannot start.
    #[error("log: {0}")]
    Log(#[from] LogError),
    /// A running node refuses an admin command, or does not answer.
    #[error("{0}")]
    Admin(#[from] ClientError),
    /// A backup or restore failed.
    #[error("{0}")]
    Backup(#[from] BackupError),
    /// A list of accounts is incomplete.
    #[error(
        "not all accounts are listed; these could not be read: {parts}; `blockyard partitions list` \
         shows why, and the log of the node says more"
    )]
    AccountsUnread {
        /// The ranges of names, and the partitions that have them.
        parts: String,
    },
    /// The master key file of a running node must not be changed.
    #[error("{path} is in use by {by}: rotate its keys without --stopped, or stop it first")]
    Running {
        /// The first data directory.
        path: PathBuf,
        /// The process.
        by: String,
    },
    /// The operating system refuses something that every program needs.
    #[error("the operating system refuses {what}: {reason}")]
    System {
        /// What.
        what: &'static str,
        /// Why.
        reason: String,
    },
}

impl CliError {
    /// The operating system refuses this, for this reason.
    pub fn system(what: &'static str, reason: &dyn Display) -> Self {
        Self::System { what, reason: reason.to_string() }
    }

    /// The program's exit code: 2 when the command was wrong, 1 otherwise.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        if matches!(self, Self::Files(error) if error.is_of_usage()) {
            return 2;
        }
        if matches!(
            self,
            Self::Node(NodeError::Config(_) | NodeError::Account(_) | NodeError::Oidc(_))
                | Self::UnknownVariable { .. }
                | Self::Sas(_)
                | Self::Log(_)
                | Self::Filter(_)
                | Self::Fault(_)
        ) {
            2
        } else {
            1
        }
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self::Node(error.into())
    }
}

impl From<MasterKeyError> for CliError {
    fn from(error: MasterKeyError) -> Self {
        Self::Node(error.into())
    }
}
