//! The limits of the load of requests and their memory.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::env::Clock;
use crate::frontend::admission::Gate;
use crate::frontend::admission::Rates;
use crate::frontend::answers::AnswerBudget;
use crate::frontend::answers::Flows;
use crate::frontend::config::FrontEndConfig;

/// Queries that work at a time. Others wait for their turn, a step at a time.
const QUERIES_WORKING_MAX: usize = 2;

/// Bytes that all queries hold together.
const QUERY_BYTES_MAX: u64 = 384 << 20;

/// The limits of requests, answers and uploads, and how far they are used. The memory of request
/// bodies is bounded by the write pool.
#[derive(Debug)]
pub(crate) struct LoadLimits {
    /// Requests that run.
    pub(crate) gate: Arc<Gate>,
    /// Requests per second of each account.
    pub(crate) rates: Rates,
    /// The memory of answers that are being sent.
    pub(crate) answers: Arc<AnswerBudget>,
    /// Turns of queries: the number of queries that work at a time.
    pub(crate) query_turns: Arc<Semaphore>,
    /// The memory of queries. It is separate from that of answers, which a few large queries would
    /// exhaust.
    pub(crate) queries: Arc<AnswerBudget>,
    /// How fast clients take answers.
    pub(crate) flows: Arc<Flows>,
    /// How fast clients send the bodies of their requests.
    pub(crate) uploads: Arc<Flows>,
}

impl LoadLimits {
    /// The configured limits.
    pub(super) fn new(config: &FrontEndConfig, clock: &Arc<dyn Clock>) -> Self {
        Self {
            gate: Gate::new(config.requests_max, Arc::clone(clock)),
            rates: Rates::new(config.account_requests_per_second),
            answers: AnswerBudget::new(config.answer_bytes_max, Arc::clone(clock)),
            query_turns: Arc::new(Semaphore::new(QUERIES_WORKING_MAX)),
            queries: AnswerBudget::new(QUERY_BYTES_MAX, Arc::clone(clock)),
            flows: Arc::default(),
            uploads: Arc::default(),
        }
    }
}
