//! The sender of a request.

use crate::frontend::accounts::Account;
use crate::frontend::answers::Payer;
use crate::frontend::dialect::Arrival;
use crate::types::AccountId;

/// The sender of a request that was admitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requester<'a> {
    /// The account that the request is about.
    pub(crate) account: &'a Account,
    /// The request as it arrived.
    pub(crate) arrival: Arrival<'a>,
    /// Whether the sender is authenticated.
    pub(crate) authenticated: bool,
    /// Whether the sender may create a blob but not overwrite one, and does not say so itself with
    /// `If-None-Match: *`.
    pub(crate) create_only: bool,
    /// The account for which the request is counted among the running requests.
    pub(crate) admitted: Option<AccountId>,
}

impl Requester<'_> {
    /// The payer to which the memory of an answer is charged.
    pub(crate) const fn payer(&self) -> Payer {
        let (account, peer) = (self.account.id, self.arrival.peer.address.ip());
        Payer { account, peer, known: self.authenticated }
    }
}
