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

/// The payers that wait in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LineKey {
    account: AccountId,
    /// The network of anonymous callers.
    network: Option<IpAddr>,
}

/// The payers that have one share. The anonymous callers of an account have a share of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ShareKey {
    account: AccountId,
    known: bool,
}

impl Payer {
    /// The line in which it waits.
    pub(super) fn line(&self) -> LineKey {
        let network = (!self.known).then(|| self.network());
        LineKey { account: self.account, network }
    }

    /// The share that it takes from.
    pub(super) const fn share(&self) -> ShareKey {
        ShareKey { account: self.account, known: self.known }
    }

    /// A network counts as one peer: a client with one IPv6 address usually has 2^64 of them.
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
