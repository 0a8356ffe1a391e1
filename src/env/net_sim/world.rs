//! The state of a simulated network: its hosts, listeners and connections, and the faults.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::collections::btree_map::Entry;
use std::fmt;
use std::io;
use std::io::IoSlice;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::task::Context;

use tokio::io::ReadBuf;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::env::net_sim::connection::Connection;
use crate::env::net_sim::connection::Side;
use crate::env::net_sim::connection::Step;
use crate::env::net_sim::links::Link;
use crate::env::net_sim::links::Links;
use crate::env::net_sim::pipe::Phase;

/// The first port that hosts give to dialers, and to listeners that ask for any.
const FREE_PORT_FIRST: u16 = 49_152;

/// What all handles of a network share.
pub(super) struct Shared {
    world: Mutex<World>,
    /// Wakes listeners and dials after each change that is none of a stream.
    pub(super) changed: Notify,
}

impl Shared {
    pub(super) fn new(seed: u64) -> Self {
        Self { world: Mutex::new(World::new(seed)), changed: Notify::new() }
    }

    /// Ignores a poisoned lock, as the simulated disk does.
    pub(super) fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn change(&self, fault: impl FnOnce(&mut World)) {
        fault(&mut self.lock());
        self.changed.notify_waiters();
    }
}

/// Without the state, which would fill pages.
impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimNet").finish_non_exhaustive()
    }
}

/// An end of a connection, as a stream knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Socket {
    pub(super) connection: u64,
    pub(super) side: Side,
}

/// A listener, as its handle knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listening {
    pub(super) address: SocketAddr,
    /// A later listener on the same address has another one.
    id: u64,
}

/// A process, as its dials know it. The next one of the host has another number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) ip: IpAddr,
    number: u64,
}

#[derive(Debug, Default)]
struct Machine {
    /// How many processes have ended.
    ended: u64,
    /// The last port that was given away.
    port: u16,
}

#[derive(Debug)]
struct Backlog {
    id: u64,
    /// Connections that nobody has accepted, in the order of dialing.
    waiting: VecDeque<u64>,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) links: Links,
    pub(super) names: BTreeMap<String, IpAddr>,
    machines: BTreeMap<IpAddr, Machine>,
    listeners: BTreeMap<SocketAddr, Backlog>,
    /// Those of which a stream exists.
    connections: BTreeMap<u64, Connection>,
    /// How many listeners there were.
    listened: u64,
    /// How many connections there were; the number of the last one.
    pub(super) opened: u64,
    /// Bytes written.
    pub(super) bytes: u64,
}

/// Listeners and dials.
impl World {
    fn new(seed: u64) -> Self {
        Self {
            links: Links::new(seed),
            names: BTreeMap::new(),
            machines: BTreeMap::new(),
            listeners: BTreeMap::new(),
            connections: BTreeMap::new(),
            listened: 0,
            opened: 0,
            bytes: 0,
        }
    }

    /// The present process of a host.
    pub(super) fn process(&mut self, ip: IpAddr) -> io::Result<Process> {
        if self.links.off.contains(&ip) {
            return Err(io::ErrorKind::NetworkDown.into());
        }
        Ok(Process { ip, number: self.machines.entry(ip).or_default().ended })
    }

    fn must_live(&mut self, process: Process) -> io::Result<()> {
        let ended = self.machines.entry(process.ip).or_default().ended;
        if ended == process.number { Ok(()) } else { Err(io::ErrorKind::ConnectionReset.into()) }
    }

    fn free_port(&mut self, ip: IpAddr) -> io::Result<u16> {
        let machine = self.machines.entry(ip).or_default();
        for _ in FREE_PORT_FIRST..=u16::MAX {
            machine.port = machine.port.checked_add(1).unwrap_or_default().max(FREE_PORT_FIRST);
            if !self.listeners.contains_key(&SocketAddr::new(ip, machine.port)) {
                return Ok(machine.port);
            }
        }
        Err(io::ErrorKind::AddrNotAvailable.into())
    }

    pub(super) fn listen(&mut self, ip: IpAddr, port: u16) -> io::Result<Listening> {
        self.process(ip)?;
        let port = if port == 0 { self.free_port(ip)? } else { port };
        let address = SocketAddr::new(ip, port);
        let Entry::Vacant(place) = self.listeners.entry(address) else {
            return Err(io::ErrorKind::AddrInUse.into());
        };
        self.listened += 1;
        place.insert(Backlog { id: self.listened, waiting: VecDeque::new() });
        Ok(Listening { address, id: self.listened })
    }

    /// The next connection of a listener, and who dialed.
    pub(super) fn accept(
        &mut self,
        listening: Listening,
    ) -> Step<io::Result<(Socket, SocketAddr)>> {
        let backlog = self.listeners.get_mut(&listening.address);
        let Some(backlog) = backlog.filter(|backlog| backlog.id == listening.id) else {
            return Step::Done(Err(io::ErrorKind::NotConnected.into()));
        };
        let mut first: Option<Instant> = None;
        let mut found = None;
        for (place, id) in backlog.waiting.iter().enumerate() {
            match self.connections.get_mut(id).map(Connection::opened) {
                Some(Step::Done(dialer)) => {
                    found = Some((place, *id, dialer));
                    break;
                }
                Some(Step::Wait(Some(at))) => first = Some(first.map_or(at, |one| one.min(at))),
                Some(Step::Wait(None)) | None => {}
            }
        }
        let Some((place, connection, dialer)) = found else { return Step::Wait(first) };
        backlog.waiting.remove(place);
        Step::Done(Ok((Socket { connection, side: Side::Acceptor }, dialer)))
    }

    /// Ends a listener, if it has not ended. Connections that nobody has accepted are reset.
    pub(super) fn end_listener(&mut self, listening: Listening) {
        if self.listening(listening.address) == Some(listening)
            && let Some(backlog) = self.listeners.remove(&listening.address)
        {
            for connection in backlog.waiting {
                self.hang_up(Socket { connection, side: Side::Acceptor }, Phase::Reset);
            }
        }
    }

    /// When a packet of a dial of this process arrives, if the link lets it pass.
    pub(super) fn departs(&mut self, dialer: Process, link: Link) -> io::Result<Option<Instant>> {
        self.must_live(dialer)?;
        Ok(self.links.is_open(link).then(|| self.links.arrival(link)))
    }

    pub(super) fn listening(&self, address: SocketAddr) -> Option<Listening> {
        self.listeners.get(&address).map(|backlog| Listening { address, id: backlog.id })
    }

    /// Makes a connection to a listener that has answered.
    pub(super) fn open(&mut self, dialer: Process, listening: Listening) -> io::Result<Socket> {
        self.must_live(dialer)?;
        if self.listening(listening.address) != Some(listening) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let from = SocketAddr::new(dialer.ip, self.free_port(dialer.ip)?);
        self.opened += 1;
        let connection = Connection::new(&self.links, from, listening.address);
        self.connections.insert(self.opened, connection);
        if let Some(backlog) = self.listeners.get_mut(&listening.address) {
            backlog.waiting.push_back(self.opened);
        }
        Ok(Socket { connection: self.opened, side: Side::Dialer })
    }
}

/// Streams.
impl World {
    pub(super) fn read(
        &mut self,
        socket: Socket,
        cx: &Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Step<io::Result<()>> {
        let Some(connection) = self.connections.get_mut(&socket.connection) else {
            return Step::Done(Err(io::ErrorKind::NotConnected.into()));
        };
        let step = connection.read(&self.links, socket.side, buf);
        if matches!(step, Step::Wait(_)) {
            connection.wait_to_read(socket.side, cx.waker());
        }
        step
    }

    pub(super) fn write(
        &mut self,
        socket: Socket,
        cx: &Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Step<io::Result<usize>> {
        let Some(connection) = self.connections.get_mut(&socket.connection) else {
            return Step::Done(Err(io::ErrorKind::NotConnected.into()));
        };
        let step = connection.write(&self.links, socket.side, pieces);
        match &step {
            Step::Done(Ok(len)) => self.bytes += *len as u64,
            Step::Done(Err(_)) => {}
            Step::Wait(_) => connection.wait_to_write(socket.side, cx.waker()),
        }
        step
    }

    pub(super) fn shut(&mut self, socket: Socket) -> io::Result<()> {
        match self.connections.get_mut(&socket.connection) {
            Some(connection) => connection.shut(&self.links, socket.side),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Drops a stream.
    pub(super) fn hang_up(&mut self, socket: Socket, notice: Phase) {
        if let Some(connection) = self.connections.get_mut(&socket.connection)
            && connection.hang_up(&self.links, socket.side, notice)
        {
            self.connections.remove(&socket.connection);
        }
    }
}

/// Faults.
impl World {
    /// Acts on both sides of all connections, after what has arrived was received.
    fn each(&mut self, mut act: impl FnMut(&Links, &mut Connection, Side)) {
        for connection in self.connections.values_mut() {
            connection.settle();
            for side in Side::BOTH {
                act(&self.links, connection, side);
            }
        }
    }

    pub(super) fn block(&mut self, link: Link) {
        if self.links.blocked.insert(link) {
            self.each(|_, connection, side| {
                if connection.link(side) == link {
                    connection.hold(side);
                }
            });
        }
    }

    pub(super) fn unblock(&mut self, link: Link) {
        if self.links.blocked.remove(&link) {
            self.each(|links, connection, side| {
                if connection.link(side) == link {
                    connection.release(links, side);
                }
            });
        }
    }

    pub(super) fn cut(&mut self, a: IpAddr, b: IpAddr) {
        self.each(|links, connection, side| {
            if [(a, b), (b, a)].contains(&connection.link(side)) {
                connection.break_off(links, side);
            }
        });
    }

    pub(super) fn kill(&mut self, host: IpAddr) {
        self.machines.entry(host).or_default().ended += 1;
        // The kernel resets the connections that nobody has accepted.
        self.end_listeners(host);
        self.each(|links, connection, side| {
            if connection.link(side).0 == host {
                connection.kill(links, side);
            }
        });
    }

    pub(super) fn power_off(&mut self, host: IpAddr) {
        if !self.links.off.insert(host) {
            return;
        }
        self.machines.entry(host).or_default().ended += 1;
        self.each(|links, connection, side| {
            if connection.link(side).0 == host {
                connection.power_off(links, side);
            }
        });
        // No end of the host sends a notice any more.
        self.end_listeners(host);
    }

    pub(super) fn power_on(&mut self, host: IpAddr) {
        if self.links.off.remove(&host) {
            self.each(|links, connection, side| {
                if connection.link(side).1 == host {
                    connection.send_again(links, side);
                }
            });
        }
    }

    fn end_listeners(&mut self, host: IpAddr) {
        let of_host = self.listeners.keys().filter(|address| address.ip() == host);
        let listening: Vec<Listening> =
            of_host.filter_map(|address| self.listening(*address)).collect();
        for one in listening {
            self.end_listener(one);
        }
    }
}
