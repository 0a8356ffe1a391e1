//! Payers: the account and peer to which the memory of an answer is charged.

use std::net::IpAddr;
use std::net::Ipv6Addr;

use crate::types::AccountId;

/// The account and peer to which bytes are charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Payer {
    /// The account whose data is read.
    pub(crate) account: AccountId,
    /// The client's address.
    pub(crate) peer: IpAddr,
    /// Whether the caller is authenticated; if not, it is anonymous.
    pub(crate) known: bool,
}

/// An account; for anonymous callers the network too.
pub(super) type Key = (AccountId, Option<IpAddr>);

impl Payer {
    /// Wishes with the same key wait in one line.
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
