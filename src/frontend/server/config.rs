//! Limits of connections.

use std::time::Duration;

use crate::frontend::connections::Limits;

/// Connections that are being refused at a time.
const REFUSALS_MAX: usize = 256;
/// Of these, those of one peer.
const PEER_REFUSALS_MAX: usize = 64;
/// Connections, beyond those served, that were told to leave for others and have not yet.
const LEAVING_MAX: usize = 256;
/// The share of connections that peers have for themselves of which a request was authenticated:
/// one of so many.
const RESERVED_SHARE: usize = 8;
/// The share of connections that one peer may have, where no number is given: one of so many.
const PEER_SHARE: usize = 4;

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// Open connections. When all are taken, the one leaves that has been idle for longest; when
    /// none is idle, what a new one asks is answered 503, and it is closed. Default 4,096.
    pub connections_max: usize,
    /// Open connections of one address (IPv6: of one network of 64 bits), beyond which new ones are
    /// answered 503. Default: a quarter of all, and no limit for addresses of this machine.
    pub peer_connections_max: Option<usize>,
    /// The first byte of a connection, and after a TLS handshake, must come within this. Default 5
    /// s.
    pub first_byte_timeout: Duration,
    /// A TLS handshake must be complete within this. Default 10 s.
    pub handshake_timeout: Duration,
    /// A request head must be complete within this; an HTTP/2 connection without requests is closed
    /// after it. Default 30 s.
    pub head_timeout: Duration,
    /// Header lines of a request; more are refused with 431. Default 128.
    pub headers_max: usize,
    /// Bytes of a request head, and of read-ahead of a body. Default 128 KiB.
    pub head_bytes_max: usize,
    /// How long running requests may take to end once the server stops. Default 30 s.
    pub drain: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            peer_connections_max: None,
            first_byte_timeout: Duration::from_secs(5),
            handshake_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(30),
            headers_max: 128,
            head_bytes_max: 128 << 10,
            drain: Duration::from_secs(30),
        }
    }
}

impl ServerConfig {
    pub(super) const fn limits(&self) -> Limits {
        let open_max = self.connections_max;
        let (peer_max, loopback_max) = match self.peer_connections_max {
            Some(max) => (max, max),
            // Programs on this machine have all of its resources anyway, and the proxy that brings
            // everybody is often one.
            None => (open_max.div_ceil(PEER_SHARE), usize::MAX),
        };
        Limits {
            open_max,
            peer_max,
            loopback_max,
            reserved: open_max / RESERVED_SHARE,
            leaving_max: LEAVING_MAX,
            refused_max: REFUSALS_MAX,
            refused_peer_max: PEER_REFUSALS_MAX,
        }
    }
}
