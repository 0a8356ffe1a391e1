//! Why a node does not start. Each text says what to do.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::admin::DiskRefusal;
use crate::audit_log;
use crate::auth::UnsealError;
use crate::capacity::OpenError;
use crate::coordinator;
use crate::coordinator::cluster::ClusterError;
use crate::coordinator::nodes::JoinError;
use crate::env::DiskError;
use crate::frontend::spans::ExportError;
use crate::index;

use super::cluster::AdoptError;
use super::cluster::AuthorityError;
use super::cluster::CoordinatorFault;
use super::cluster::SettingsError;
use super::cluster::TokenError;
use super::config::AccountError;
use super::config::ConfigError;
use super::config::OidcError;
use super::disks::DiskListError;
use super::keys::MasterKeyError;
use super::tls::CertificateError;

/// Why a node does not start, or a store cannot be used.
#[derive(Debug, Error)]
pub enum NodeError {
    /// The settings are refused.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// An issuer of bearer tokens is refused.
    #[error("{0}")]
    Oidc(#[from] OidcError),
    /// A key is refused.
    #[error("{0}")]
    Account(#[from] AccountError),
    /// A port cannot be bound.
    #[error("cannot listen on {address}: {}; {}", error.kind(), advice(error, flag, by.as_deref()))]
    Listen {
        /// The address.
        address: String,
        /// The flag that sets it.
        flag: &'static str,
        /// The process that has it, if the system says.
        by: Option<String>,
        /// Why.
        error: io::Error,
    },
    /// Spans of requests cannot be sent.
    #[error("--otlp-endpoint: {0}")]
    Spans(#[from] ExportError),
    /// There is no certificate to serve.
    #[error("tls: {0}")]
    Certificate(#[from] CertificateError),
    /// The file of the admin token cannot be read or created.
    #[error("admin token file {path}: {error}; give another one with --admin-token-file")]
    AdminToken {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is no key ring for the store's secrets.
    #[error("{0}")]
    MasterKey(#[from] MasterKeyError),
    /// A secret of the store does not open.
    #[error("{of}: {error}; give the newest master key file of this store with --master-key-file")]
    Secret {
        /// Whose.
        of: String,
        /// Why.
        error: UnsealError,
    },
    /// A data directory cannot be used.
    #[error("data directory {path}: {error}; {}", data_advice(error))]
    Data {
        /// The directory.
        path: PathBuf,
        /// Why.
        error: DiskError,
    },
    /// The audit log cannot be written.
    #[error("audit log {path}: {error}")]
    AuditLog {
        /// The file.
        path: PathBuf,
        /// Why.
        error: audit_log::OpenError,
    },
    /// The directory is a backup, which serving would change.
    #[error(
        "{path} is a backup, or a backup that was not completed: `blockyard restore {path} DIR` \
         makes a data directory of it"
    )]
    IsBackup {
        /// The directory.
        path: PathBuf,
    },
    /// A restore is incomplete.
    #[error("{path} is half restored: run `blockyard restore` with this directory again")]
    HalfRestored {
        /// The directory.
        path: PathBuf,
    },
    /// There is no data directory to verify.
    #[error("{path} is not a directory; give the data directories that `serve` was given")]
    NoData {
        /// The path.
        path: PathBuf,
    },
    /// The list of data directories is not that of a store.
    #[error("{0}")]
    DiskList(#[from] DiskListError),
    /// The extents cannot be opened.
    #[error("the data directories cannot be opened: {path}: {error}")]
    Capacity {
        /// The directory it is about, or all of them.
        path: String,
        /// Why.
        error: OpenError,
    },
    /// The first disk fails, without which the store cannot be opened.
    #[error(
        "{path}: {error}; this is the first disk, which holds the coordinator's file, and the node \
         does not start without it: repair it, or restore a backup"
    )]
    FirstDisk {
        /// The directory.
        path: PathBuf,
        /// How.
        error: OpenError,
    },
    /// The coordinator's file cannot be opened.
    #[error("{path}: {error}; {}", coordinator_advice(error))]
    Coordinator {
        /// The file.
        path: PathBuf,
        /// Why.
        error: coordinator::Error,
    },
    /// There are extents but no coordinator's file.
    #[error(
        "{path} is missing although the data directories hold extents: restore it from a backup, or give the \
         directories in the order they were first given"
    )]
    CoordinatorMissing {
        /// The file.
        path: PathBuf,
    },
    /// A directory of the last start is missing.
    #[error(
        "{given} data directories are given and this store has {known}: give {missing}, too (as \
         last given), or start without them with --without-disk; nothing was changed"
    )]
    DiskMissing {
        /// Directories given.
        given: usize,
        /// Directories of the last start.
        known: usize,
        /// Those of the last start that are not given.
        missing: String,
    },
    /// A directory is not a disk of the store and would become one.
    #[error(
        "{path} holds no part of this store: is the disk mounted, or the path right? To make it a new disk of the store \
         give --add-disk {path}; nothing was changed"
    )]
    DiskUnknown {
        /// The directory.
        path: PathBuf,
    },
    /// A directory of a disk that was removed from the store.
    #[error(
        "{path} was removed from this store: leave it out, or empty the directory and give --add-disk {path}"
    )]
    DiskRemoved {
        /// The directory.
        path: PathBuf,
    },
    /// A directory of `--without-disk` is not a disk of the store.
    #[error("--without-disk {path} names no disk of this store; it has {known}")]
    DiskNotKnown {
        /// The directory.
        path: PathBuf,
        /// The store's.
        known: String,
    },
    /// The disks of a running node cannot be managed.
    #[error("cannot start: {0}")]
    Disks(#[from] DiskRefusal),
    /// A directory of the last start is empty now.
    #[error(
        "{path} holds no part of the store, and of the {known} data directories it has one is missing: is the disk \
         mounted? Nothing was changed"
    )]
    DiskEmpty {
        /// The directory.
        path: PathBuf,
        /// Directories of the last start.
        known: usize,
    },
    /// The settings of a node of a cluster are refused.
    #[error("{0}")]
    NodeSettings(#[from] SettingsError),
    /// The coordinator of the cluster cannot be used.
    #[error("{0}")]
    ClusterCoordinator(#[from] CoordinatorFault),
    /// There is no cluster to join, or none can be made.
    #[error("{0}")]
    Cluster(#[from] ClusterError),
    /// The node gets no certificate.
    #[error("{0}")]
    Authority(#[from] AuthorityError),
    /// A node alone cannot become the first node of a cluster.
    #[error("{0}")]
    Adopt(#[from] AdoptError),
    /// The node gets no master key with its token.
    #[error("{0}")]
    Token(#[from] TokenError),
    /// The node cannot join its cluster.
    #[error("cannot join the cluster: {0}")]
    Join(#[from] JoinError),
    /// The node has another name in its cluster.
    #[error("this node is `{name}` in its cluster, for ever: give --name {name} and not {given}")]
    Renamed {
        /// Its name.
        name: String,
        /// The name that was given.
        given: String,
    },
    /// An operator removed the node.
    #[error(
        "this node was removed from its cluster; to add it again, start it with an empty data \
         directory and another --name"
    )]
    Removed,
    /// A node that has copies was started without the role.
    #[error(
        "node `{name}` has copies of extents: start it with the role capacity, or drain it first \
         (`blockyard cluster drain {name}`)"
    )]
    NeedsCapacity {
        /// Its name.
        name: String,
    },
    /// No node of the cluster has this name.
    #[error("no node of this cluster has the name `{name}`: `blockyard cluster status` shows all")]
    NoSuchName {
        /// The name.
        name: String,
    },
    /// A node that is to be removed has copies.
    #[error(
        "node `{name}` has copies of {groups} groups of extents: drain it first, or give --lost if \
         it does not come back"
    )]
    HasCopies {
        /// The node.
        name: String,
        /// In how many groups.
        groups: usize,
    },
    /// Other nodes serve its partitions now.
    #[error(
        "this node could not renew its claim to serve partitions, and others may have them: start \
         it again, and it gets some"
    )]
    ClaimLost,
    /// The data directory of a node of a cluster.
    #[error(
        "{path} belongs to a node of a cluster: `blockyard node` starts it, and no other command \
         opens it; `blockyard cluster adopt`, if it was interrupted, must be finished or undone \
         first; nothing was changed"
    )]
    OfCluster {
        /// The directory.
        path: PathBuf,
    },
    /// The data directory of a node alone.
    #[error(
        "{path} holds the whole store of a single node: `blockyard serve` starts it, and \
         `blockyard cluster adopt` makes it the first node of a new cluster; nothing was changed"
    )]
    OfSingleNode {
        /// The directory.
        path: PathBuf,
    },
    /// The data directory of a node of another cluster.
    #[error(
        "{path} belongs to a node of another cluster: give the --coordinator and the \
         --coordinator-prefix of that one, or another directory; nothing was changed"
    )]
    OfOtherCluster {
        /// The directory.
        path: PathBuf,
    },
    /// The coordinator failed while the node started.
    #[error("cannot start: {0}")]
    CoordinatorFailed(#[from] coordinator::Error),
    /// The index cannot be recovered.
    #[error("cannot start: {0}; `blockyard check` on the data directories tells more")]
    Index(#[from] index::Error),
    /// The operating system refuses something that every program needs.
    #[error("the operating system refuses {what}: {reason}")]
    System {
        /// What.
        what: &'static str,
        /// Why.
        reason: String,
    },
}

/// Advice about the coordinator's file.
fn coordinator_advice(error: &coordinator::Error) -> &'static str {
    if error.is_full() {
        "make room on its disk"
    } else {
        "let this user read and write it, mount its file system for writing if it is read-only, or \
         restore it from a backup"
    }
}

/// Advice about a data directory.
fn data_advice(error: &DiskError) -> &'static str {
    match error {
        DiskError::Locked { .. } => "stop it first, or give another directory with --data",
        DiskError::Full => "free some space, or give another directory with --data",
        DiskError::Io { kind: io::ErrorKind::ReadOnlyFilesystem, .. } => {
            "its file system is read-only: repair it and mount it for writing"
        }
        DiskError::TooManyFiles { .. } => {
            "too many files are open on this machine: raise its limit (`ulimit -n`, `fs.file-max`)"
        }
        error if error.is_of_device() => "repair the disk, or restore a backup",
        DiskError::NotFound { .. } | DiskError::Io { .. } => {
            "make it a directory that this user may write to, or give another one with --data"
        }
    }
}

/// Advice about a port.
fn advice(error: &io::Error, flag: &str, by: Option<&str>) -> String {
    if error.kind() == io::ErrorKind::AddrInUse {
        let by = by.unwrap_or("another program");
        format!("{by} has this port: stop it, or give another one with {flag}")
    } else {
        format!("give another address with {flag}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_of_open_files_is_raised_for_too_many_files_alone() {
        let message =
            |error: DiskError| NodeError::Data { path: "/data".into(), error }.to_string();
        let (action, path) = ("open", "lock".to_owned());
        let many = message(DiskError::TooManyFiles { action, path: path.clone() });
        assert!(many.contains("ulimit -n"), "{many}");
        let busy = message(DiskError::Io { action, path, kind: io::ErrorKind::ResourceBusy });
        assert!(!busy.contains("ulimit") && !busy.contains("too many"), "{busy}");
    }

    #[test]
    fn full_disk_of_the_coordinator_is_no_reason_to_restore_its_file() {
        let message = |reason: coordinator::Reason| {
            let error = coordinator::Error::Unavailable { reason };
            NodeError::Coordinator { path: "/data/coordinator.redb".into(), error }.to_string()
        };
        let full = message(coordinator::Reason::full("its disk is full".into()));
        assert!(full.starts_with("/data/coordinator.redb: "), "{full}");
        assert!(full.contains("make room") && !full.contains("backup"), "{full}");
        let other = message("Read-only file system".into());
        assert!(other.contains("restore it from a backup"), "{other}");
        assert!(other.contains("mount its file system for writing"), "{other}");
    }
}
