//! The ports, taken before anything else: a busy one ends the start before data is touched.

use std::net::SocketAddr;

use crate::env::net::Listener;
use crate::env::net::TcpListen;

use super::config::Config;
use super::error::NodeError;

/// A port that was taken.
#[derive(Debug)]
pub struct Bound {
    /// Accepts on it.
    pub listener: Box<dyn Listener>,
    /// Its address, with the port the system chose if that was left open.
    pub address: SocketAddr,
}

/// Both ports of a node.
#[derive(Debug)]
pub struct Listeners {
    /// Blob.
    pub blob: Bound,
    /// Health and metrics.
    pub admin: Bound,
}

impl Listeners {
    /// Takes both ports.
    ///
    /// # Errors
    /// [`NodeError::Listen`] names the address and the flag.
    pub async fn bind(config: &Config) -> Result<Self, NodeError> {
        Ok(Self {
            blob: bind(config.blob_listen, "--blob-listen").await?,
            admin: bind(config.admin_listen, "--admin-listen").await?,
        })
    }
}

async fn bind(address: SocketAddr, flag: &'static str) -> Result<Bound, NodeError> {
    let refused = |error| NodeError::Listen { address, flag, error };
    let listener = TcpListen::bind(address).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok(Bound { listener: Box::new(listener), address })
}
