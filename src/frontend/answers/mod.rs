//! Answers that are being sent: their memory is bounded, and an answer that its client does not
//! read is cut. So is an upload that its client does not send.
//!
//! 1. `budget.rs`: the bytes that all answers may hold, shared by accounts and peers (`payer.rs`).
//!    A body takes bytes of it before it reads (`answer_memory.rs`, `holding.rs`), and gives them back when
//!    the connection has taken them (`counted.rs`). A body that gets none immediately waits
//!    (`queue.rs`).
//! 2. `flow.rs`: measures how fast a client takes one answer, or sends one upload.
//! 3. `socket.rs`: measures the same for a whole connection.
//! 4. `watch.rs`: cuts answers and uploads that stall or are too slow; it cuts sooner while others
//!    need their memory or their place among the requests. `warnings.rs` says so of uploads.

mod answer_memory;
mod budget;
mod counted;
mod flow;
mod holding;
mod payer;
mod queue;
mod socket;
mod warnings;
mod watch;

pub(crate) use answer_memory::AnswerMemory;
pub(crate) use budget::Budget;
pub(crate) use budget::Reservation;
pub(crate) use budget::STEP_MIN_BYTES;
pub(crate) use flow::Fault;
pub(crate) use flow::Flow;
pub(crate) use flow::Flows;
pub(crate) use flow::StallLimits;
pub(crate) use flow::Upload;
pub(crate) use flow::Watch;
pub(crate) use holding::Holding;
pub(crate) use payer::Payer;
pub(crate) use socket::paced;
pub(crate) use watch::cut_stalled;
pub use watch::run;
