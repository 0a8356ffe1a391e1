//! Admission control. Overload of an account or of the host is refused immediately with 503
//! `ServerBusy` and `Retry-After`, before the work of a request begins.
//!
//! 1. `shares.rs`: fair shares of a bounded resource. One account alone may take all of it; several
//!    cannot starve each other.
//! 2. `gate.rs`: the requests that run at a time, shared by accounts. A request of an account that
//!    may have more waits briefly.
//! 3. `denied.rs`: when an account below its share was last refused. Slow uploads are cut off then.
//! 4. `rates.rs`: requests per second of an account, when a limit is configured.
//!
//! A request holds its place until the connection has taken the last byte of its answer.
//!
//! Memory for answers (`answers/budget.rs`) and for bodies (`write/budget.rs`) is shared in the
//! same way. The queues of stored bodies (`write/group_append.rs`) and of the index's committers
//! are bounded by time ([`crate::env::Waits`]). Connections beyond the limit are answered and
//! closed (`server.rs`).
//!
//! Invariants: an admitted request gets no 503 for lack of resources once its outcome may be
//! durable; a change of the partition map is not overload (`index/client`).

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
use shares::{Transfer, Usage};

use crate::types::AccountId;

/// Stands for the account of requests that have none: those that name an unknown account, and those
/// that ask for no account's data.
pub(crate) const UNKNOWN_ACCOUNT: AccountId = AccountId::new(0);

/// Stands for the account of permitted anonymous requests, so that readers of public data do not
/// use up the share of its owner.
pub(crate) const ANONYMOUS: AccountId = AccountId::new(u64::MAX);
