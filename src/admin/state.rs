//! The state that the commands and pages of the admin listener read and change.

use std::sync::Arc;
use std::sync::OnceLock;

use rand::rngs::SysError;

use crate::audit_log::AuditLog;
use crate::env::Clock;
use crate::frontend::faults::Faults;
use crate::frontend::trace::Trace;
use crate::protocol::KnownHosts;
use crate::telemetry::Registry;

use super::account_store::AccountStore;
use super::answer::Failure;
use super::console::Sessions;
use super::console::login::link;
use super::controls::BackupControl;
use super::controls::DiskControl;
use super::controls::KeyControl;
use super::partitions::PartitionStore;
use super::readiness::Readiness;
use super::token::Token;

/// The state that commands read and change; cheap to clone.
#[derive(Clone, Debug)]
pub struct Control {
    /// Accounts.
    pub accounts: AccountStore,
    /// Live requests.
    pub trace: Trace,
    /// The fault dial.
    pub faults: Faults,
    /// Partitions of the index, once this node serves them.
    pub partitions: Arc<OnceLock<PartitionStore>>,
}

/// The state of all routes; cheap to clone.
#[derive(Clone, Debug)]
pub struct AdminState {
    /// The admin token.
    pub(super) token: Token,
    /// Handles of the roles, once they run.
    pub control: Arc<OnceLock<Control>>,
    /// The disks, once they are open.
    pub disks: Arc<OnceLock<Arc<dyn DiskControl>>>,
    /// Makes backups, once all roles run.
    pub backups: Arc<OnceLock<Arc<dyn BackupControl>>>,
    /// The master keys, once they are open.
    pub keys: Arc<OnceLock<Arc<dyn KeyControl>>>,
    /// Whether the node serves.
    pub readiness: Readiness,
    /// The host names that are answered.
    pub known_hosts: KnownHosts,
    /// All metrics, once every role has registered its own.
    pub registry: Arc<OnceLock<Registry>>,
    /// Those of roles that started later, on a node of a cluster.
    pub registry_of_roles: Arc<OnceLock<Registry>>,
    /// The metrics of the index, once a node of a cluster serves it.
    pub registry_of_index: Arc<OnceLock<Registry>>,
    /// Set on a node of a cluster that has no front end, and so no accounts to show.
    pub without_front_end: Arc<OnceLock<()>>,
    /// Gets a line for each command.
    pub(super) audit_log: AuditLog,
    /// Browsers that were logged in to the console.
    pub(super) sessions: Sessions,
}

impl AdminState {
    /// The state of a starting node.
    #[must_use]
    pub fn new(token: Token) -> Self {
        let (control, disks, registry) = (Arc::default(), Arc::default(), Arc::default());
        let (backups, keys, known_hosts) = (Arc::default(), Arc::default(), KnownHosts::default());
        let (readiness, audit_log) = (Readiness::default(), AuditLog::default());
        let sessions = Sessions::default();
        Self {
            token,
            control,
            disks,
            backups,
            keys,
            readiness,
            known_hosts,
            registry,
            registry_of_roles: Arc::default(),
            registry_of_index: Arc::default(),
            without_front_end: Arc::default(),
            audit_log,
            sessions,
        }
    }

    /// The path of a new link that logs one browser in to the console, once, within a minute.
    ///
    /// # Errors
    /// The operating system returns no random bytes.
    pub fn login_link(&self, clock: &dyn Clock) -> Result<String, SysError> {
        Ok(link(&self.sessions.new_code(clock.monotonic())?))
    }

    /// The same with an audit log.
    #[must_use]
    pub fn with_audit_log(self, audit_log: AuditLog) -> Self {
        Self { audit_log, ..self }
    }

    /// The same with these host names.
    #[must_use]
    pub fn with_known_hosts(self, known_hosts: KnownHosts) -> Self {
        Self { known_hosts, ..self }
    }

    pub(super) fn control(&self) -> Result<&Control, Failure> {
        let absent = || match self.without_front_end.get() {
            Some(()) => Failure::no_front_end(),
            None => Failure::absent(self.readiness.phase()),
        };
        self.control.get().ok_or_else(absent)
    }

    pub(super) fn partitions(&self) -> Result<&PartitionStore, Failure> {
        self.control()?.partitions.get().ok_or_else(Failure::elsewhere)
    }

    pub(super) fn backups(&self) -> Result<&Arc<dyn BackupControl>, Failure> {
        self.backups.get().ok_or_else(|| Failure::absent(self.readiness.phase()))
    }

    pub(super) fn keys(&self) -> Result<&Arc<dyn KeyControl>, Failure> {
        self.keys.get().ok_or_else(|| Failure::absent(self.readiness.phase()))
    }

    pub(super) fn disks(&self) -> Result<&Arc<dyn DiskControl>, Failure> {
        self.disks.get().ok_or_else(|| Failure::absent(self.readiness.phase()))
    }
}
