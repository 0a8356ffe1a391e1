//! Limits of connections.

use std::time::Duration;

use crate::frontend::connections::Limits;

/// The most connections that are being refused at a time.
const REFUSALS_MAX: usize = 256;
/// The most of them from one peer.
const PEER_REFUSALS_MAX: usize = 64;
/// The most connections beyond those served that must close and have not closed yet.
const LEAVING_MAX: usize = 256;
/// The divisor of the connections that gives the number reserved for peers with an authenticated
/// request.
const RESERVED_SHARE: usize = 8;
/// The divisor of the connections that gives the limit of one peer, unless a number is configured.
const PEER_SHARE: usize = 4;

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// The most open connections. When all are taken, the one that has been idle for longest is
    /// closed for a new one. When none is idle, the first request of the new one is answered 503,
    /// and it is closed. Default 4,096.
    pub connections_max: usize,
    /// The most open connections of one address (IPv6: of one network of 64 bits); further ones are
    /// answered 503. Default: a quarter of all, and no limit for loopback addresses.
    pub peer_connections_max: Option<usize>,
    /// The time limit of the first byte of a connection, and of the first byte after a TLS
    /// handshake. Default 5 s.
    pub first_byte_timeout: Duration,
    /// The time limit of a TLS handshake. Default 10 s.
    pub handshake_timeout: Duration,
    /// The time limit of a request head. An HTTP/2 connection without requests is closed after this
    /// time too. Default 30 s.
    pub head_timeout: Duration,
    /// The most header lines of a request; more are refused with 431. Default 128.
    pub headers_max: usize,
    /// The most bytes of a request head, and of a body that are read ahead. Default 128 KiB.
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
            // Programs on this machine have all of its resources anyway, and a reverse proxy often
            // runs there.
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
