//! What is set for a node of a cluster, beside the settings of a node alone.

use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use crate::coordinator::etcd::PREFIX;
use crate::env::host_name;
use crate::node::config::ListenAddress;
use crate::types::NodeRoles;

/// How to reach the coordinator.
#[derive(clap::Args, Clone, Debug)]
pub struct CoordinatorSettings {
    /// Address of a member of the etcd, such as <http://etcd-1:2379>; repeat for more
    #[arg(
        long,
        value_name = "URL",
        env = "BLOCKYARD_COORDINATOR",
        value_delimiter = ',',
        required = true
    )]
    pub coordinator: Vec<String>,
    /// What the keys of the cluster in etcd begin with; clusters that share an etcd need different
    /// prefixes
    #[arg(long, value_name = "PREFIX", env = "BLOCKYARD_COORDINATOR_PREFIX", default_value_t = prefix())]
    pub coordinator_prefix: String,
    /// The authorities that may sign the certificates of etcd, a PEM file [default: those of the
    /// machine]
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_COORDINATOR_CA")]
    pub coordinator_ca: Option<PathBuf>,
    /// The certificate that etcd demands of its clients, a PEM file; needs --coordinator-key
    #[arg(
        long,
        value_name = "FILE",
        env = "BLOCKYARD_COORDINATOR_CERT",
        requires = "coordinator_key"
    )]
    pub coordinator_cert: Option<PathBuf>,
    /// The private key of --coordinator-cert, a PEM file
    #[arg(
        long,
        value_name = "FILE",
        env = "BLOCKYARD_COORDINATOR_KEY",
        requires = "coordinator_cert"
    )]
    pub coordinator_key: Option<PathBuf>,
}

fn prefix() -> String {
    PREFIX.to_owned()
}

/// What a node does.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Answers clients.
    Front,
    /// Serves the index.
    Index,
    /// Has copies of extents.
    Capacity,
    /// Changes the partition map.
    Manager,
}

impl Role {
    const fn bits(self) -> NodeRoles {
        match self {
            Self::Front => NodeRoles::FRONT,
            Self::Index => NodeRoles::INDEX,
            Self::Capacity => NodeRoles::CAPACITY,
            Self::Manager => NodeRoles::MANAGER,
        }
    }

    /// The names of roles.
    #[must_use]
    pub fn names(roles: NodeRoles) -> Vec<&'static str> {
        let named = [
            (Self::Front, "front"),
            (Self::Index, "index"),
            (Self::Capacity, "capacity"),
            (Self::Manager, "manager"),
        ];
        let has = |(role, name): (Self, &'static str)| roles.has(role.bits()).then_some(name);
        named.into_iter().filter_map(has).collect()
    }
}

/// The settings of a node of a cluster.
#[derive(clap::Args, Clone, Debug)]
pub struct NodeSettings {
    /// How to reach the coordinator.
    #[command(flatten)]
    pub coordinator: CoordinatorSettings,
    /// The name of the node, which no other node of the cluster has or had [default: the name of
    /// this machine]
    #[arg(long, value_name = "NAME", env = "BLOCKYARD_NAME")]
    pub name: Option<String>,
    /// The machine on which the node runs: no two copies of an extent are on one [default: the name
    /// of this machine]
    #[arg(long, value_name = "NAME", env = "BLOCKYARD_MACHINE")]
    pub machine: Option<String>,
    /// The zone of the machine: copies are spread over zones
    #[arg(long, value_name = "NAME", env = "BLOCKYARD_ZONE", default_value = "")]
    pub zone: String,
    /// What the node does: it answers clients, serves the index, has copies of extents, may manage
    #[arg(
        long,
        value_name = "ROLE",
        env = "BLOCKYARD_ROLES",
        value_delimiter = ',',
        default_value = "front,index,capacity,manager"
    )]
    pub roles: Vec<Role>,
    /// Address for the calls of other nodes
    #[arg(
        long,
        value_name = "ADDR",
        env = "BLOCKYARD_NODE_LISTEN",
        default_value = "127.0.0.1:10070"
    )]
    pub node_listen: ListenAddress,
    /// Host name or IP address under which other nodes reach --node-listen [default: its address]
    #[arg(long, value_name = "HOST", env = "BLOCKYARD_NODE_ADDRESS")]
    pub node_address: Option<String>,
    /// Nodes prove who they are by certificates over loopback addresses too, as they do over all
    /// others
    #[arg(long, env = "BLOCKYARD_NODE_TLS")]
    pub node_tls: bool,
    /// Lets nodes talk without certificates and in plain text over a network that nobody else
    /// reaches: whoever reaches --node-listen can read and change everything
    #[arg(long, env = "BLOCKYARD_TRUSTED_NETWORK")]
    pub trusted_network: bool,
    /// A token of `blockyard cluster token`: the node gets the master key file with it, if it has
    /// none
    #[arg(long, value_name = "TOKEN", env = "BLOCKYARD_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}

/// Settings that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// A node without a role.
    #[error("--roles: give one role at least: front, index, capacity, manager")]
    Roles,
    /// Two of the ways in which nodes trust each other.
    #[error("--node-tls and --trusted-network exclude each other: give one of them")]
    Trust,
    /// Nobody can call this address.
    #[error("--node-listen {0}: give --node-address, the name under which other nodes reach it")]
    Unspecified(SocketAddr),
    /// A text is empty or too long.
    #[error("--{flag}: give 1 to 255 characters")]
    Text {
        /// Of which flag.
        flag: &'static str,
    },
    /// The machine has no name.
    #[error("this machine has no name: give --name and --machine")]
    NoHostName,
}

/// The checked settings.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) machine: String,
    pub(super) zone: String,
    pub(super) roles: NodeRoles,
    pub(super) listen: SocketAddr,
    /// Under which other nodes reach it.
    pub(super) host: String,
    pub(super) proof: Proof,
}

/// How the node and others prove who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// By certificates of the cluster's authority.
    Certificates,
    /// Not at all: only users of this machine reach the node.
    Loopback,
    /// Not at all: only nodes reach the network.
    TrustedNetwork,
}

impl NodeSettings {
    pub(super) fn checked(&self) -> Result<Place, SettingsError> {
        let of_machine = || host_name().ok_or(SettingsError::NoHostName);
        let name = self.name.clone().map_or_else(of_machine, Ok)?;
        let machine = self.machine.clone().map_or_else(of_machine, Ok)?;
        for (flag, text) in [("name", &name), ("machine", &machine)] {
            if text.is_empty() || text.len() > 255 {
                return Err(SettingsError::Text { flag });
            }
        }
        let roles = self.roles.iter().fold(NodeRoles::default(), |all, one| all.with(one.bits()));
        if self.roles.is_empty() {
            return Err(SettingsError::Roles);
        }
        let ListenAddress(listen) = self.node_listen;
        let host = match &self.node_address {
            Some(host) => host.clone(),
            None if listen.ip().is_unspecified() => return Err(SettingsError::Unspecified(listen)),
            None => listen.ip().to_string(),
        };
        if self.trusted_network && self.node_tls {
            return Err(SettingsError::Trust);
        }
        let proof = if self.trusted_network {
            Proof::TrustedNetwork
        } else if self.node_tls || !listen.ip().is_loopback() {
            Proof::Certificates
        } else {
            Proof::Loopback
        };
        let zone = self.zone.clone();
        Ok(Place { name, machine, zone, roles, listen, host, proof })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        settings: NodeSettings,
    }

    fn parsed(line: &str) -> NodeSettings {
        let words = ["node", "--coordinator", "http://etcd:2379"].into_iter();
        Line::try_parse_from(words.chain(line.split_whitespace())).unwrap().settings
    }

    fn checked(line: &str) -> Result<Place, SettingsError> {
        parsed(line).checked()
    }

    #[test]
    fn defaults_are_a_node_of_all_roles_that_only_this_machine_reaches() {
        let place = checked("--name n --machine m").unwrap();
        assert_eq!(place.roles, NodeRoles::ALL);
        assert_eq!((&*place.host, place.listen.port()), ("127.0.0.1", 10_070));
        assert_eq!(place.proof, Proof::Loopback);
    }

    #[test]
    fn nodes_have_certificates_unless_only_nodes_or_users_of_the_machine_reach_them() {
        let proof = |line: &str| checked(&format!("--name n --machine m {line}")).unwrap().proof;
        assert_eq!(proof("--node-tls"), Proof::Certificates);
        assert_eq!(proof("--node-listen 10.0.0.1:7"), Proof::Certificates);
        assert_eq!(proof("--node-listen 10.0.0.1:7 --trusted-network"), Proof::TrustedNetwork);
        assert_eq!(proof("--trusted-network"), Proof::TrustedNetwork);
    }

    #[test]
    fn each_role_may_be_alone() {
        let roles = |line: &str| checked(&format!("--name n --machine m {line}")).unwrap().roles;
        assert_eq!(roles("--roles front"), NodeRoles::FRONT);
        assert_eq!(roles("--roles manager"), NodeRoles::MANAGER);
        let both = NodeRoles::INDEX.with(NodeRoles::CAPACITY);
        assert_eq!(roles("--roles index,capacity"), both);
        let none = NodeSettings { roles: Vec::new(), ..parsed("--name n --machine m") };
        assert_eq!(none.checked().unwrap_err(), SettingsError::Roles);
    }

    #[test]
    fn addresses_that_cannot_work_are_refused() {
        let refused = |line: &str| checked(&format!("--name n --machine m {line}")).unwrap_err();
        assert_eq!(refused("--node-tls --trusted-network"), SettingsError::Trust);
        let unspecified = refused("--node-listen :7");
        assert!(matches!(unspecified, SettingsError::Unspecified(_)), "{unspecified}");
        let empty = checked("--machine m --name=").unwrap_err();
        assert_eq!(empty, SettingsError::Text { flag: "name" });
        let place = checked("--name n --machine m --node-listen :7 --node-address n-1").unwrap();
        assert_eq!((&*place.host, place.listen.port()), ("n-1", 7));
    }
}
