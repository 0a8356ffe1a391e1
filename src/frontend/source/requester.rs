//! The sender of a request.

use http::request::Parts;

use crate::frontend::accounts::Account;
use crate::frontend::answers::Payer;
use crate::types::AccountId;
use crate::types::Peer;

/// The sender of a request that was admitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requester<'a> {
    /// The account that the request is about.
    pub(crate) account: &'a Account,
    /// The head of the request.
    pub(crate) head: &'a Parts,
    /// The address that the request came from.
    pub(crate) peer: Peer,
    /// Whether the sender is authenticated.
    pub(crate) authenticated: bool,
    /// The account for which the request is counted among the running requests.
    pub(crate) admitted: Option<AccountId>,
}

impl Requester<'_> {
    /// Whom the memory of an answer is charged to.
    pub(crate) const fn payer(&self) -> Payer {
        Payer { account: self.account.id, peer: self.peer.address.ip(), known: self.authenticated }
    }
}
