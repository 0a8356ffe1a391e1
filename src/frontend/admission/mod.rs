//! Who is let in while there is too much to do: overload of an account or of the host is told at
//! once, as 503 `ServerBusy` with `Retry-After`, before a request's work begins.
//!
//! 1. `shares.rs`: a bounded good that accounts share: one alone may take all of it, several cannot
//!    starve each other.
//! 2. `gate.rs`: requests at a time, shared so; who may have more waits for a moment.
//! 3. `denied.rs`: when an account below its share was refused last; slow uploads give way then.
//! 4. `rates.rs`: requests a second of an account, when the node is told a limit.
//!
//! A request is let in until its answer is out: until the connection has taken the last of the
//! body.
//!
//! Beside these: memory for answers (`answers/budget.rs`) and for bodies (`write/budget.rs`) is
//! shared likewise; queues of stored bodies (`write/shared.rs`) and of the index's committers end
//! by time ([`crate::env::Waits`]); connections beyond the limit are answered and closed
//! (`server.rs`).
//!
//! Invariants: what was let in is never told 503 for want of room once its outcome may be durable;
//! a change of the partition map is no overload (`index/client`).

mod denied;
mod gate;
mod rates;
mod shares;

pub(crate) use denied::Denied;
pub(crate) use gate::Gate;
pub(crate) use gate::Pass;
pub(crate) use rates::Rates;
pub(crate) use shares::Shares;
pub(crate) use shares::Taken;

use crate::types::AccountId;

/// Pays for requests that belong to no account: those that name an unknown account, and those that
/// ask for no account's data.
pub(crate) const UNKNOWN_ACCOUNT: AccountId = AccountId::new(0);

/// Pays for anonymous requests once they are permitted: readers of public data do not use up its
/// owner's share.
pub(crate) const ANYBODY: AccountId = AccountId::new(u64::MAX);
