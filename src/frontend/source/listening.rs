//! The addresses that this process listens on.

use std::net::IpAddr;
use std::net::SocketAddr;

/// The addresses that this process listens on. Its own URLs are recognised by them.
#[derive(Clone, Debug, Default)]
pub struct Listening(pub Vec<SocketAddr>);

impl Listening {
    /// Whether a connection to `host` and `port` would reach this process.
    pub(super) fn is_at(&self, host: &str, port: u16) -> bool {
        self.0.iter().filter(|own| own.port() == port).any(|own| {
            let own = own.ip().to_canonical();
            let loops_back = own.is_loopback() || own.is_unspecified();
            match host.trim_matches(['[', ']']).parse::<IpAddr>() {
                Ok(ip) => {
                    let ip = ip.to_canonical();
                    ip == own || (ip.is_loopback() && loops_back)
                }
                Err(_) => host.eq_ignore_ascii_case("localhost") && loops_back,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_known() {
        let on = |text: &str| Listening(vec![text.parse().unwrap()]);
        assert!(on("127.0.0.1:10000").is_at("127.0.0.1", 10_000));
        assert!(on("127.0.0.1:10000").is_at("localhost", 10_000));
        assert!(on("127.0.0.1:10000").is_at("[::1]", 10_000));
        assert!(on("0.0.0.0:10000").is_at("127.0.0.1", 10_000));
        assert!(on("192.0.2.7:80").is_at("192.0.2.7", 80));
        assert!(!on("127.0.0.1:10000").is_at("127.0.0.1", 10_001));
        assert!(!on("192.0.2.7:80").is_at("127.0.0.1", 80));
        assert!(!on("127.0.0.1:10000").is_at("192.0.2.7", 10_000));
        assert!(!on("127.0.0.1:10000").is_at("example.org", 10_000));
    }
}
