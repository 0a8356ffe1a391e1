//! The ports. They are bound first: if one is busy, the start fails before data is touched.

use std::io;
use std::net::SocketAddr;
#[cfg(debug_assertions)]
use std::sync::Arc;

use crate::env::net::Listener;
use crate::env::net::TcpListen;
use crate::env::net::UnixListen;
use crate::env::port_holder;
use crate::frontend::dialect::Addressing;
use crate::frontend::dialect::Dialects;
#[cfg(debug_assertions)]
use crate::frontend::dialect::Foreign;
use crate::frontend::dialect::S3Settings;
use crate::types::AccountName;

use super::config::AdminAddress;
use super::config::Config;
use super::config::UnservedPort;
use super::config::UnservedService;
use super::error::NodeError;

/// A bound port.
#[derive(Debug)]
pub struct Bound {
    /// Accepts connections.
    pub listener: Box<dyn Listener>,
    /// Its address, with the port that the system chose for port 0.
    pub address: SocketAddr,
}

/// The admin listener's port or socket.
#[derive(Debug)]
pub struct AdminBound {
    /// Accepts connections.
    pub listener: Box<dyn Listener>,
    /// Its address, as [`Bound::address`].
    pub address: AdminAddress,
}

/// The ports of a node.
#[derive(Debug)]
pub struct Listeners {
    /// Every protocol.
    pub blob: Bound,
    /// S3 alone, if configured.
    pub s3: Option<Bound>,
    /// Health and metrics.
    pub admin: AdminBound,
    /// Ports of services that are not served.
    pub unserved: Vec<(UnservedService, Bound)>,
    /// A dialect that a test brings along, spoken beside Azure's. A release has none (ADR 0031).
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    pub dialect: Option<Arc<dyn Foreign>>,
}

impl Listeners {
    /// Binds the ports.
    ///
    /// # Errors
    /// [`NodeError::Listen`] names the address and the flag.
    pub async fn bind(config: &Config) -> Result<Self, NodeError> {
        let (blob, s3) = bind_clients(config).await?;
        Ok(Self {
            blob,
            s3,
            admin: bind_admin(&config.admin_listen).await?,
            unserved: bind_unserved(&config.unserved).await?,
            #[cfg(debug_assertions)]
            dialect: None,
        })
    }

    /// The dialects that the front end speaks on them.
    pub(super) fn dialects(&self, config: &Config) -> Dialects {
        Dialects {
            #[cfg(debug_assertions)]
            foreign: self.dialect.clone(),
            ..dialects(config)
        }
    }
}

/// The dialects that every front end speaks.
pub(super) fn dialects(config: &Config) -> Dialects {
    Dialects {
        addressing: Addressing { domains: config.blob_domains.clone() },
        s3: S3Settings {
            domains: config.blob_domains.clone(),
            account: config.s3.account.clone().or_else(|| first_account(config)),
            region: config.s3.region.clone(),
            ..S3Settings::default()
        },
        #[cfg(debug_assertions)]
        foreign: None,
    }
}

/// Binds the ports for clients: that of every protocol, and that of S3 alone.
///
/// # Errors
/// [`NodeError::Listen`].
pub(super) async fn bind_clients(config: &Config) -> Result<(Bound, Option<Bound>), NodeError> {
    let blob = bind(config.blob_listen, "--blob-listen").await?;
    let s3 = match config.s3.listen {
        Some(address) => Some(bind(address, "--s3-listen").await?),
        None => None,
    };
    Ok((blob, s3))
}

/// The account whose buckets an unsigned request of S3 means.
fn first_account(config: &Config) -> Option<AccountName> {
    config.accounts.first().map(|account| account.name().clone())
}

pub(super) async fn bind_admin(address: &AdminAddress) -> Result<AdminBound, NodeError> {
    let flag = "--admin-listen";
    match address {
        AdminAddress::Tcp(address) => {
            let Bound { listener, address } = bind(*address, flag).await?;
            Ok(AdminBound { listener, address: AdminAddress::Tcp(address) })
        }
        AdminAddress::Unix(path) => {
            let (named, by) = (address.to_string(), None);
            let refused = |error| NodeError::Listen { address: named, flag, by, error };
            let listener = UnixListen::bind(path).await.map_err(refused)?;
            Ok(AdminBound { listener: Box::new(listener), address: address.clone() })
        }
    }
}

async fn bind_unserved(ports: &[UnservedPort]) -> Result<Vec<(UnservedService, Bound)>, NodeError> {
    let mut bound = Vec::new();
    for UnservedPort { service, address } in ports {
        bound.push((*service, bind(*address, service.flag()).await?));
    }
    Ok(bound)
}

pub(super) async fn bind(address: SocketAddr, flag: &'static str) -> Result<Bound, NodeError> {
    let refused = |error: io::Error| {
        let is_taken = error.kind() == io::ErrorKind::AddrInUse;
        let by = is_taken.then(|| port_holder(address)).flatten();
        NodeError::Listen { address: address.to_string(), flag, by, error }
    };
    let listener = TcpListen::bind(address).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok(Bound { listener: Box::new(listener), address })
}
