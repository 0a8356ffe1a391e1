//! How to reach an etcd.

use std::fmt;
use std::time::Duration;

use zeroize::Zeroizing;

/// Where the keys of a cluster are, by default.
pub const PREFIX: &str = "/blockyard/";
/// How long a call may take, by default.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may take to open, by default.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How to reach an etcd, and which of its keys are ours.
#[derive(Clone, Debug)]
pub struct EtcdConfig {
    /// The addresses of its members, such as `https://etcd-1:2379`. One is used at a time, the next
    /// one after a failure.
    pub endpoints: Vec<String>,
    /// All keys begin with it; no other key is read or written. Not empty. Clusters that share an
    /// etcd have different prefixes, none of which begins with another.
    pub prefix: Vec<u8>,
    /// For addresses with `https`.
    pub tls: Option<EtcdTls>,
    /// Needed if the etcd has authentication enabled and does not take the name in the certificate
    /// of a client. The password is sent over `https` only, or to a loopback address.
    pub user: Option<EtcdUser>,
    /// How long a call may take, with all its attempts.
    pub call_timeout: Duration,
    /// How long a connection may take to open, with its TLS handshake.
    pub connect_timeout: Duration,
}

impl EtcdConfig {
    /// These members, and defaults for the rest.
    #[must_use]
    pub fn new(endpoints: Vec<String>) -> Self {
        Self {
            endpoints,
            prefix: PREFIX.into(),
            tls: None,
            user: None,
            call_timeout: CALL_TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
        }
    }
}

/// Whom to trust, and who we are.
#[derive(Clone, Debug, Default)]
pub struct EtcdTls {
    /// PEM: the authorities that may sign the certificates of members. `None`: those of the
    /// machine.
    pub authorities: Option<Vec<u8>>,
    /// The certificate of this client.
    pub identity: Option<EtcdIdentity>,
}

/// The certificate of a client (`--client-cert-auth` of etcd).
#[derive(Clone)]
pub struct EtcdIdentity {
    /// PEM: the certificate, and those between it and the authority.
    pub certificates: Vec<u8>,
    /// PEM.
    pub key: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for EtcdIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdIdentity").finish_non_exhaustive()
    }
}

/// A user of etcd, who may read and write all keys of the prefix.
#[derive(Clone)]
pub struct EtcdUser {
    /// The name.
    pub name: String,
    /// The password.
    pub password: Zeroizing<String>,
}

impl fmt::Debug for EtcdUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdUser").field("name", &self.name).finish_non_exhaustive()
    }
}
