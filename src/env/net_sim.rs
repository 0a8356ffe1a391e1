//! A simulated network of hosts with faults. A seed determines them, so a test can repeat a run
//! exactly under tokio's paused time.
//!
//! A connection behaves as one of TCP: two streams of bytes, each in order and with a bounded
//! buffer. Bytes arrive after a random delay. Reads return a part of what has arrived now and then,
//! so that decoders meet every boundary. Each direction of a link has its own delay and can be
//! blocked; connections are cut; hosts are killed, lose their power and get it back.
//!
//! Main path: [`SimHost`] dials and listens (`host.rs`) -> `stream.rs` is what the program holds ->
//! `world.rs` has all connections and carries out the faults -> `connection.rs` has the two ends of
//! one, `pipe.rs` one direction of it. `links.rs` makes the random decisions.
//!
//! Packets are not simulated: loss shows as delay, as TCP hides it. Nor are bandwidth,
//! acknowledgements (reading makes room for the writer at once, also if the way back is blocked),
//! keep-alive, timeouts of the kernel, and a bound of the connections that wait to be accepted. A
//! reset is heard behind the bytes that arrived before it. Each host has one address; the loopback
//! address is a host of its own.

mod connection;
mod host;
mod links;
mod pipe;
mod stream;
#[cfg(test)]
mod tests;
mod world;

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::env::net_sim::world::Shared;

pub use host::{SimHost, SimListen};

/// The control of a simulated network: a test uses it to get hosts and to cause faults. Its methods
/// are to be called in a tokio runtime. Clones share the network.
#[derive(Clone, Debug)]
pub struct SimNet {
    shared: Arc<Shared>,
}

impl SimNet {
    /// A network without faults. Delays are up to 3 ms, buffers have 256 KiB, and one read in 16
    /// returns only a part.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { shared: Arc::new(Shared::new(seed)) }
    }

    /// The network as the host of this address sees it. The handle stays valid when the host is
    /// killed.
    #[must_use]
    pub fn host(&self, ip: IpAddr) -> SimHost {
        SimHost::new(Arc::clone(&self.shared), ip)
    }

    /// Gives a host a name that every host resolves. An earlier host of that name loses it.
    pub fn name(&self, name: &str, ip: IpAddr) {
        self.shared.lock().names.insert(name.to_owned(), ip);
    }

    /// Sets the delay of all links that have none of their own. It is drawn for each write. An
    /// empty range means its start. Tokio's timers count whole milliseconds.
    pub fn set_default_delay(&self, delay: Range<Duration>) {
        self.shared.lock().links.default_delay = delay;
    }

    /// As [`Self::set_default_delay`], for what one host sends to another. It applies to later
    /// writes.
    pub fn set_delay(&self, from: IpAddr, to: IpAddr, delay: Range<Duration>) {
        self.shared.lock().links.delays.insert((from, to), delay);
    }

    /// Makes one read in `one_in` return only a random part of what it could; 0 means none.
    pub fn set_short_reads(&self, one_in: u64) {
        self.shared.lock().links.short_reads = one_in;
    }

    /// Sets how many bytes of a direction of a connection may be in flight or unread before its
    /// writer waits.
    pub fn set_buffer(&self, bytes: usize) {
        self.shared.lock().links.buffer_bytes = bytes;
    }

    /// Holds all that one host sends to another, with what is in flight, until [`Self::unblock`].
    /// Nothing is lost. Dials that need this direction wait.
    pub fn block(&self, from: IpAddr, to: IpAddr) {
        self.shared.change(|world| world.block((from, to)));
    }

    /// Ends a block. What was held arrives after the delay, in order.
    pub fn unblock(&self, from: IpAddr, to: IpAddr) {
        self.shared.change(|world| world.unblock((from, to)));
    }

    /// Resets the connections between two hosts. Of the bytes in flight in each direction a random
    /// prefix arrives. A reset follows it, held by a block as all else.
    pub fn cut(&self, a: IpAddr, b: IpAddr) {
        self.shared.change(|world| world.cut(a, b));
    }

    /// Kills the process of a host; its kernel lives. Its streams, listeners and dials fail. Its
    /// peers get a random prefix of the bytes in flight, then a reset. The host may listen again at
    /// once.
    pub fn kill(&self, host: IpAddr) {
        self.shared.change(|world| world.kill(host));
    }

    /// Takes the power from a host. Its streams, listeners and dials fail, and it can neither
    /// listen nor dial. Its peers get a random prefix of the bytes in flight and hear nothing more.
    /// What is sent to it waits.
    pub fn power_off(&self, host: IpAddr) {
        self.shared.change(|world| world.power_off(host));
    }

    /// Gives a host its power back. It knows none of its connections: a peer gets a reset once
    /// bytes of it arrive there, those too that it sent in the meantime. Dials go on.
    pub fn power_on(&self, host: IpAddr) {
        self.shared.change(|world| world.power_on(host));
    }

    /// How many bytes were written to all connections.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shared.lock().bytes
    }

    /// How many connections were made.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.lock().opened
    }
}
