//! A host of a simulated network, as its program sees it: it listens and dials.

use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;

use crate::env::net::Dial;
use crate::env::net::Listener;
use crate::env::net::Stream;
use crate::env::net_sim::connection::Step;
use crate::env::net_sim::links::Link;
use crate::env::net_sim::stream::SimStream;
use crate::env::net_sim::world::Listening;
use crate::env::net_sim::world::Process;
use crate::env::net_sim::world::Shared;

/// A host of a simulated network. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SimHost {
    shared: Arc<Shared>,
    ip: IpAddr,
}

impl SimHost {
    pub(super) fn new(shared: Arc<Shared>, ip: IpAddr) -> Self {
        Self { shared, ip }
    }

    /// Its address.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        self.ip
    }

    /// Listens on a port. Port 0 selects a free one.
    ///
    /// # Errors
    /// `AddrInUse` if a listener has the port, `NetworkDown` if the host is without power.
    pub fn listen(&self, port: u16) -> io::Result<SimListen> {
        let listening = self.shared.lock().listen(self.ip, port)?;
        Ok(SimListen { shared: Arc::clone(&self.shared), listening })
    }

    /// Waits until a packet of a dial has passed a link. A packet that a block or a power failure
    /// meets on its way is sent again.
    async fn pass(&self, dialer: Process, link: Link) -> io::Result<()> {
        loop {
            let changed = self.shared.changed.notified();
            let arrival = self.shared.lock().departs(dialer, link)?;
            let Some(at) = arrival else {
                changed.await;
                continue;
            };
            tokio::time::sleep_until(at).await;
            let is_open = self.shared.lock().links.is_open(link);
            if is_open {
                return Ok(());
            }
        }
    }
}

#[async_trait]
impl Dial for SimHost {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let named = self.shared.lock().names.get(host).copied();
        match host.parse().ok().or(named) {
            Some(ip) => Ok(vec![SocketAddr::new(ip, port)]),
            None => Err(io::Error::new(io::ErrorKind::NotFound, format!("no host named {host}"))),
        }
    }

    /// Takes a round trip of the link. Waits while a direction is blocked or the other host is
    /// without power.
    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        let dialer = self.shared.lock().process(self.ip)?;
        self.pass(dialer, (self.ip, address.ip())).await?;
        let listening = self.shared.lock().listening(address);
        self.pass(dialer, (address.ip(), self.ip)).await?;
        let listening = listening.ok_or(io::ErrorKind::ConnectionRefused)?;
        let socket = self.shared.lock().open(dialer, listening)?;
        self.shared.changed.notify_waiters();
        Ok(Box::new(SimStream::new(Arc::clone(&self.shared), socket)))
    }
}

/// Accepts connections of a simulated network. Dropping it frees the port.
#[derive(Debug)]
pub struct SimListen {
    shared: Arc<Shared>,
    listening: Listening,
}

#[async_trait]
impl Listener for SimListen {
    /// Fails with `NotConnected` after the host was killed or has lost its power.
    async fn accept(&self) -> io::Result<(Box<dyn Stream>, SocketAddr)> {
        loop {
            let changed = self.shared.changed.notified();
            let step = self.shared.lock().accept(self.listening);
            match step {
                Step::Done(accepted) => {
                    let (socket, dialer) = accepted?;
                    let stream = SimStream::new(Arc::clone(&self.shared), socket);
                    return Ok((Box::new(stream), dialer));
                }
                Step::Wait(None) => changed.await,
                Step::Wait(Some(at)) => tokio::select! {
                    biased;
                    () = changed => {}
                    () = tokio::time::sleep_until(at) => {}
                },
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.listening.address)
    }
}

impl Drop for SimListen {
    fn drop(&mut self) {
        self.shared.lock().end_listener(self.listening);
    }
}
