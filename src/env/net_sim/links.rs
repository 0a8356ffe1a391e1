//! The links of a simulated network, and all its random decisions.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

use tokio::time::Instant;

use crate::env::Rand;
use crate::env::SeededRand;

/// A direction: from a host to a host.
pub(super) type Link = (IpAddr, IpAddr);

/// The present time of the simulation.
#[expect(clippy::disallowed_methods, reason = "the seam")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// How the network is at present.
#[derive(Debug)]
pub(super) struct Links {
    rand: SeededRand,
    pub(super) default_delay: Range<Duration>,
    /// Delays of links that have their own.
    pub(super) delays: BTreeMap<Link, Range<Duration>>,
    pub(super) blocked: BTreeSet<Link>,
    /// Hosts without power.
    pub(super) off: BTreeSet<IpAddr>,
    /// One read in this many returns a part; 0 means none.
    pub(super) short_reads: u64,
    /// Bytes that a direction of a connection holds.
    pub(super) buffer_bytes: usize,
}

impl Links {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            rand: SeededRand::new(seed),
            default_delay: Duration::ZERO..Duration::from_millis(3),
            delays: BTreeMap::new(),
            blocked: BTreeSet::new(),
            off: BTreeSet::new(),
            short_reads: 16,
            buffer_bytes: 256 << 10,
        }
    }

    /// A number in `0..bound`; 0 if `bound` is 0.
    pub(super) fn below(&self, bound: usize) -> usize {
        usize::try_from(self.rand.below(bound as u64)).unwrap_or(0)
    }

    /// When something that is sent now arrives, if nothing holds it.
    pub(super) fn arrival(&self, link: Link) -> Instant {
        let delay = self.delays.get(&link).unwrap_or(&self.default_delay);
        let span = delay.end.saturating_sub(delay.start).as_nanos();
        let random = self.rand.below(u64::try_from(span).unwrap_or(u64::MAX));
        now() + delay.start + Duration::from_nanos(random)
    }

    /// How many bytes a read returns that could return `most`.
    pub(super) fn read_len(&self, most: usize) -> usize {
        let is_short = self.short_reads > 0 && self.rand.below(self.short_reads) == 0;
        if is_short && most > 1 { 1 + self.below(most - 1) } else { most }
    }

    /// Whether packets pass: the direction is not blocked and both hosts have power.
    pub(super) fn is_open(&self, link: Link) -> bool {
        let is_off = self.off.contains(&link.0) || self.off.contains(&link.1);
        !is_off && !self.blocked.contains(&link)
    }
}
