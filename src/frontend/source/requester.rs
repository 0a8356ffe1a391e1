//! Who asks for a copy.

use crate::frontend::accounts::Account;
use crate::frontend::answers::Payer;
use crate::frontend::dialect::Arrival;
use crate::types::AccountId;

/// Who asks for a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requester<'a> {
    /// The request, which was admitted.
    pub(crate) arrival: Arrival<'a>,
    /// Whether the sender proved who they are.
    pub(crate) authenticated: bool,
    /// For whom the request has a place among the requests.
    pub(crate) admitted: Option<AccountId>,
}

impl Requester<'_> {
    /// Whose share of memory an answer takes.
    pub(crate) const fn payer(&self, account: &Account) -> Payer {
        Payer {
            account: account.id,
            peer: self.arrival.peer.address.ip(),
            known: self.authenticated,
        }
    }
}
