//! The client's end of a connection.

use std::net::SocketAddr;

/// The client's end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The address of the client.
    pub address: SocketAddr,
    /// Whether the connection is TLS.
    pub secure: bool,
}

impl Peer {
    /// The URL scheme of requests on the connection.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }
}
