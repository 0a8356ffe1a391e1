//! Cuts answers whose clients do not take them, and uploads whose clients do not send them.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::env::Clock;
use crate::frontend::admission::Gate;
use crate::frontend::answers::Budget;
use crate::frontend::answers::Flow;
use crate::frontend::answers::Flows;
use crate::frontend::answers::StallLimits;
use crate::frontend::answers::flow::Fault;
use crate::frontend::answers::warnings::Warnings;
use crate::frontend::state::FrontEnd;
use crate::frontend::write::Budget as BodyBudget;

/// The longest and the shortest pause between two checks of all answers.
const LOOK_MAX: Duration = Duration::from_millis(500);
const LOOK_MIN: Duration = Duration::from_millis(20);
/// How long an answer or upload may make no progress while others need what it holds. Not shorter,
/// because a healthy client on a slow line takes nothing until it has read what its connection has
/// buffered.
const STILL_MAX: Duration = Duration::from_secs(5);
/// One check cuts at most one of so many of the answers that are in the way.
const PART: usize = 4;

/// Watches the answers and uploads of a front end until the node stops.
pub async fn run(front: Arc<FrontEnd>) {
    let until = || (front.env.clock.as_ref(), front.env.tasks.stopping());
    let answers = {
        let in_the_way = |now| in_the_way((&front.flows, now), &front.gate, &front.answers);
        let count = |_: &Flow, (fault, _): (Fault, _)| {
            tracing::debug!(
                reason = fault.as_str(),
                "an answer is cut: its client does not take it"
            );
            front.count_cut(fault);
        };
        cut_stalled((&front.flows, front.config.stall_limits()), until(), in_the_way, count)
    };
    let uploads = {
        let mut warnings = Warnings::default();
        let front = &front;
        let in_the_way =
            |now| uploads_in_the_way((&front.uploads, now), &front.gate, front.pool.budget());
        let count = move |flow: &Flow, (fault, now)| {
            front.count_upload_cut(fault);
            let account = flow.upload().map(|upload| upload.memory.account());
            warnings.tell((fault, now), || front.accounts.name_of(account?));
        };
        cut_stalled((&front.uploads, front.config.upload_limits()), until(), in_the_way, count)
    };
    tokio::join!(answers, uploads);
}

/// Cuts what stalls or is slower than the limits, and what `in_the_way` names, until `stop` fires.
/// Each is told once, with the time.
pub(crate) async fn cut_stalled(
    (flows, limits): (&Flows, StallLimits),
    (clock, stop): (&dyn Clock, CancellationToken),
    in_the_way: impl Fn(Duration) -> Vec<Arc<Flow>>,
    mut tell: impl FnMut(&Flow, (Fault, Duration)),
) {
    let every = (limits.stall / 8).clamp(LOOK_MIN, LOOK_MAX);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = clock.sleep(every) => {}
        }
        let now = clock.monotonic();
        let mut cut = flows.find(|flow| flow.judge(limits, now));
        cut.extend(in_the_way(now).into_iter().map(|flow| (flow, Fault::InTheWay)));
        for (flow, fault) in &cut {
            if flow.cut(*fault, now) {
                tell(flow, (*fault, now));
            }
        }
    }
}

/// Answers to cut because others need what they hold: a place among the requests, or memory.
fn in_the_way(
    (flows, now): (&Flows, Duration),
    gate: &Gate,
    answers: &Arc<Budget>,
) -> Vec<Arc<Flow>> {
    let mut cut = Vec::new();
    if let Some(scarcity) = gate.scarcity() {
        let above = gate.above_share(now);
        cut.extend(standing((flows, now), |flow| {
            let account = flow.pass().filter(|account| scarcity.concerns(*account))?;
            Some(above.contains(&account))
        }));
    }
    for known in [true, false] {
        if !answers.is_short(known) {
            continue;
        }
        let above = answers.above_share(now);
        cut.extend(standing((flows, now), |flow| {
            // Anonymous callers have only a part of the memory; known callers may take all of it.
            let mut payers = flow.payers();
            payers.retain(|payer| known || !payer.known);
            (!payers.is_empty()).then(|| payers.iter().any(|payer| above.contains(payer)))
        }));
    }
    cut
}

/// Uploads to cut because accounts below their share need what they hold. Only accounts above their
/// share have some, so that each keeps its share however slow its clients are.
fn uploads_in_the_way(
    (flows, now): (&Flows, Duration),
    gate: &Gate,
    bodies: &BodyBudget,
) -> Vec<Arc<Flow>> {
    let mut cut = Vec::new();
    if gate.is_short(now)
        && let Some(scarcity) = gate.scarcity()
    {
        let above = gate.above_share(now);
        cut.extend(standing((flows, now), |flow| {
            let account = flow.upload()?.admitted.filter(|account| scarcity.concerns(*account))?;
            above.contains(&account).then_some(true)
        }));
    }
    if bodies.is_short(now) {
        let above = bodies.above_share(now);
        cut.extend(standing((flows, now), |flow| {
            let account = flow.upload()?.memory.holder()?;
            above.contains(&account).then_some(true)
        }));
    }
    cut
}

/// A part of those that made no progress of note for [`STILL_MAX`] and for which `holds` returns a
/// value. `true` means that the payer has more than its share; these come first. Among equals, the
/// one without progress for longest comes first.
fn standing(
    (flows, now): (&Flows, Duration),
    holds: impl Fn(&Flow) -> Option<bool>,
) -> Vec<Arc<Flow>> {
    let mut standing = flows.find(|flow| {
        let stood = flow.stood(now).filter(|stood| *stood >= STILL_MAX)?;
        Some((holds(flow)?, stood))
    });
    standing.sort_unstable_by_key(|(_, order)| Reverse(*order));
    standing.truncate(standing.len().div_ceil(PART));
    standing.into_iter().map(|(flow, _)| flow).collect()
}

#[cfg(test)]
mod tests;
