//! The client's end of a connection.

use std::net::SocketAddr;

/// Which requests a listener serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocols {
    /// Each request says itself which protocol it speaks.
    #[default]
    All,
    /// All requests are S3's, signed or not.
    S3,
}

/// The client's end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The address of the client.
    pub address: SocketAddr,
    /// Whether the connection is TLS.
    pub secure: bool,
    /// The protocols of the listener that accepted the connection.
    pub protocols: Protocols,
}

impl Peer {
    /// The URL scheme of requests on the connection.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }
}
