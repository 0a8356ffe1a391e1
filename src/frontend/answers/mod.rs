//! Answers on their way out: the memory they take is bounded, and those that a client does not take
//! are cut.
//!
//! 1. `budget.rs`: bytes that answers hold, shared by accounts and peers (`payer.rs`). A body takes
//!    its share before it reads (`purse.rs`, `reservation.rs`), and gives it back when the
//!    connection has taken the bytes; who gets none at once waits (`queue.rs`).
//! 2. `flow.rs`: how fast a client takes one answer.
//! 3. `socket.rs`: the same of a whole connection.
//! 4. `watch.rs`: cuts those that stall or are too slow; sooner while others wait for the room they
//!    take.

mod budget;
mod flow;
mod payer;
mod purse;
mod queue;
mod reservation;
mod socket;
mod watch;

pub(crate) use budget::Budget;
pub(crate) use budget::STEP_MIN_BYTES;
pub(crate) use flow::Fault;
pub(crate) use flow::Flow;
pub(crate) use flow::Flows;
pub(crate) use flow::StallLimits;
pub(crate) use flow::Watch;
pub(crate) use payer::Payer;
pub(crate) use purse::Holding;
pub(crate) use purse::Purse;
pub(crate) use reservation::Reservation;
pub(crate) use socket::paced;
pub(crate) use watch::cut_stalled;
pub use watch::run;
