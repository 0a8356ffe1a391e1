//! Who is at the other end of a connection.

use std::net::SocketAddr;

/// The other end of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Where it connects from.
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
