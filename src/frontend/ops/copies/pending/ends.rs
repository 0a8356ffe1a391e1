//! Reads the row of a pending copy: its account and its source. Refuses copies that panic again and
//! again.

use bytes::Bytes;

use crate::auth::SecretContext;
use crate::frontend::state::FrontEnd;
use crate::index::CopyLink;
use crate::index::PendingCopy;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::types::AccountId;

/// A copy that panicked this often fails.
pub(super) const PANICS_MAX: u32 = 3;

/// The refusal of a copy that panics again and again.
pub(super) fn given_up() -> Refusal {
    let times = PANICS_MAX;
    Refusal::new(Reason::InternalError).message(format!(
        "The copy was begun {times} times and a fault of the server ended it; the server's log says which. Try it again after a restart."
    ))
}

/// The source of a copy; `None`, which is logged, when it cannot be unsealed.
pub(super) fn link(front: &FrontEnd, pending: &PendingCopy) -> Option<CopyLink> {
    let context = SecretContext::copy_source(&pending.blob, pending.job.id);
    match front.accounts.secrets().open(&context, &pending.job.source) {
        Ok(link) => CopyLink::decode(&link),
        Err(error) => {
            tracing::error!(
                id = %pending.job.id, %error,
                "the source of a pending copy cannot be unsealed"
            );
            None
        }
    }
}

/// The account of a copy's destination: its key begins with it.
pub(super) fn account_of(pending: &PendingCopy) -> AccountId {
    let key = pending.blob.as_bytes().first_chunk();
    AccountId::new(key.copied().map_or(0, u64::from_be_bytes))
}

/// Where the keys of an account begin.
pub(super) fn position(account: AccountId) -> Bytes {
    Bytes::copy_from_slice(&account.get().to_be_bytes())
}
