//! Answers that are being sent. Their memory is bounded, and an answer that its client does not
//! read is cut off. So is an upload that its client does not send.
//!
//! 1. `budget.rs`: the bytes that all answers may hold, shared by accounts and peers (`payer.rs`).
//!    A body takes bytes of it before it reads (`answer_memory.rs`, `memory_use.rs`), and gives
//!    them back when the connection has taken them (`counted.rs`). A body that gets none
//!    immediately waits (`queue.rs`).
//! 2. `flow.rs`: measures how fast a client takes one answer, or sends one upload.
//! 3. `socket.rs`: measures the same for a whole connection.
//! 4. `watch.rs`: cuts off answers and uploads that stall or are too slow, and sooner while others
//!    need their memory or their place among the requests. `warnings.rs` logs it.

mod answer_memory;
mod budget;
mod counted;
mod flow;
mod memory_use;
mod payer;
mod queue;
mod socket;
mod warnings;
mod watch;

pub(crate) use answer_memory::AnswerMemory;
pub(crate) use budget::AnswerBudget;
pub(crate) use budget::Reservation;
pub(crate) use budget::STEP_MIN_BYTES;
pub(crate) use flow::CutOffReason;
pub(crate) use flow::Flow;
pub(crate) use flow::Flows;
pub(crate) use flow::StallLimits;
pub(crate) use flow::UploadResources;
pub(crate) use flow::Watch;
pub(crate) use memory_use::MemoryUse;
pub(crate) use payer::Payer;
pub(crate) use socket::paced;
pub(crate) use watch::StallCheck;
pub use watch::run;
