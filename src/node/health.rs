//! Asks a running node whether it serves: for container health checks, where there is no other HTTP
//! client.

use std::io;
use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;

use super::admin_address::AdminPlace;

/// A node that takes longer is not healthy.
const PATIENCE: Duration = Duration::from_secs(5);
/// The answer is a few lines.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Whether `/readyz` at `place` answers 200.
///
/// # Errors
/// The node cannot be reached or does not answer within 5 s.
pub async fn is_ready(place: &AdminPlace) -> io::Result<bool> {
    let asked = ask(place);
    tokio::time::timeout(PATIENCE, asked).await.map_err(|_| io::ErrorKind::TimedOut)?
}

/// An address a client on this machine can use: one that means "all interfaces" is no address to
/// connect to.
pub(super) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, address.port())
}

async fn ask(place: &AdminPlace) -> io::Result<bool> {
    let (mut stream, host) = (place.connect().await?, place.host());
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
    Ok(answer.starts_with(b"HTTP/1.1 200 "))
}
