//! Who asks for a copy.

use http::request::Parts;

use crate::frontend::accounts::Account;
use crate::frontend::answers::Payer;
use crate::types::AccountId;
use crate::types::Peer;

/// Who asks for a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requester<'a> {
    /// The head of the request, which was admitted.
    pub(crate) head: &'a Parts,
    /// Where it came from.
    pub(crate) peer: Peer,
    /// Whether the sender proved who they are.
    pub(crate) authenticated: bool,
    /// For whom the request has a place among the requests.
    pub(crate) admitted: Option<AccountId>,
}

impl Requester<'_> {
    /// Whose share of memory an answer takes.
    pub(crate) const fn payer(&self, account: &Account) -> Payer {
        Payer { account: account.id, peer: self.peer.address.ip(), known: self.authenticated }
    }
}
