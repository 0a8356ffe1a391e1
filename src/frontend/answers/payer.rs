//! Who pays for the memory of an answer.

use std::net::IpAddr;
use std::net::Ipv6Addr;

use crate::types::AccountId;

/// For whom bytes are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Payer {
    /// Whose data is read.
    pub(crate) account: AccountId,
    /// Where the answer goes.
    pub(crate) peer: IpAddr,
    /// Whether the caller has shown who it is.
    pub(crate) known: bool,
}

/// An account, and the network among those who do not say who they are.
pub(super) type Key = (AccountId, Option<IpAddr>);

impl Payer {
    /// Whose turn it is when it waits.
    pub(super) fn key(&self) -> Key {
        (self.account, (!self.known).then(|| self.network()))
    }

    /// A network counts as one peer: whoever has an IPv6 address has 2^64 of them.
    pub(super) fn network(&self) -> IpAddr {
        match self.peer.to_canonical() {
            IpAddr::V6(address) => {
                let bits = address.to_bits() >> 64 << 64;
                IpAddr::V6(Ipv6Addr::from_bits(bits))
            }
            v4 @ IpAddr::V4(_) => v4,
        }
    }
}
