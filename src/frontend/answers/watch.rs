//! Cuts answers that their clients do not take.

use std::sync::Arc;
use std::time::Duration;

use crate::frontend::answers::flow::Fault;
use crate::frontend::service::FrontEnd;

/// How often is looked, at most and at least.
const LOOK_MAX: Duration = Duration::from_millis(500);
const LOOK_MIN: Duration = Duration::from_millis(20);
/// How long an answer may stand still while others need the room it takes. A healthy client on a
/// slow line may take nothing for as long as it needs to take what its connection holds already.
const STILL_MAX: Duration = Duration::from_secs(5);
/// The part of the answers that are cut in one look for the others' sake, those that stand still
/// longest.
const PART: usize = 4;

/// Watches until the node stops.
pub async fn run(front: Arc<FrontEnd>) {
    let every = (front.config.response_stall / 8).clamp(LOOK_MIN, LOOK_MAX);
    let stopping = front.env.tasks.stopping();
    loop {
        tokio::select! {
            biased;
            () = stopping.cancelled() => return,
            () = front.env.clock.sleep(every) => look(&front),
        }
    }
}

/// One look at all answers.
fn look(front: &FrontEnd) {
    let (now, limits) = (front.env.clock.monotonic(), front.stall_limits());
    let mut cut = front.flows.find(|flow| flow.judge(limits, now));
    if front.is_pressed() {
        let still = |still: Duration| (still >= STILL_MAX).then_some(still);
        let mut standing = front.flows.find(|flow| flow.in_the_way(now).and_then(still));
        standing.sort_unstable_by_key(|(_, still)| std::cmp::Reverse(*still));
        standing.truncate(standing.len().div_ceil(PART));
        cut.extend(standing.into_iter().map(|(flow, _)| (flow, Fault::InTheWay)));
    }
    for (flow, fault) in &cut {
        tracing::debug!(reason = fault.as_str(), "an answer is cut: its client does not take it");
        front.count_cut(*fault);
        flow.cut(*fault, now);
    }
}
