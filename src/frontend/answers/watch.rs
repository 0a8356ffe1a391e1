//! Cuts off answers whose clients do not take them, and uploads whose clients do not send them.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::env::Clock;
use crate::frontend::admission::Gate;
use crate::frontend::answers::AnswerBudget;
use crate::frontend::answers::Flow;
use crate::frontend::answers::Flows;
use crate::frontend::answers::StallLimits;
use crate::frontend::answers::flow::CutOffReason;
use crate::frontend::answers::warnings::Warnings;
use crate::frontend::state::FrontEnd;
use crate::frontend::write::BodyBudget;

/// The longest and the shortest pause between two checks of all answers.
const CHECK_MAX: Duration = Duration::from_millis(500);
const CHECK_MIN: Duration = Duration::from_millis(20);
/// How long an answer or upload may make no progress while others need its resources. Not shorter,
/// because a healthy client on a slow line takes nothing until it has read what its connection has
/// buffered.
const STILL_MAX: Duration = Duration::from_secs(5);
/// One check cuts off at most 1 / `PART` of the answers that hold contended resources.
const PART: usize = 4;

/// The flows that are checked, and their limits.
#[derive(Debug)]
pub(crate) struct StallCheck<'a> {
    pub(crate) flows: &'a Flows,
    pub(crate) limits: StallLimits,
    pub(crate) clock: &'a dyn Clock,
    /// Ends the checks.
    pub(crate) stop: CancellationToken,
}

/// A flow that was cut off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CutOff {
    reason: CutOffReason,
    /// By the monotonic clock.
    at: Duration,
}

/// Watches the answers and uploads of a front end until the node stops.
pub async fn run(front: Arc<FrontEnd>) {
    tokio::join!(watch_answers(&front), watch_uploads(&front));
}

async fn watch_answers(front: &FrontEnd) {
    let check = StallCheck {
        flows: &front.load.flows,
        limits: front.config.stall_limits(),
        clock: front.env.clock.as_ref(),
        stop: front.env.tasks.stopping(),
    };
    let contended = |now| {
        let memories = [&front.load.answers, &front.load.queries];
        contended_answers(&front.load.flows, &front.load.gate, memories, now)
    };
    let record = |_: &Flow, cut: CutOff| {
        tracing::debug!(
            reason = cut.reason.as_str(),
            "an answer is cut: its client does not take it"
        );
        front.count_cut_off(cut.reason);
    };
    check.run(contended, record).await;
}

async fn watch_uploads(front: &FrontEnd) {
    let check = StallCheck {
        flows: &front.load.uploads,
        limits: front.config.upload_limits(),
        clock: front.env.clock.as_ref(),
        stop: front.env.tasks.stopping(),
    };
    let bodies = front.pool.budget();
    let contended = |now| contended_uploads(&front.load.uploads, &front.load.gate, bodies, now);
    let mut warnings = Warnings::default();
    let record = move |flow: &Flow, cut: CutOff| {
        front.count_upload_cut_off(cut.reason);
        let account = flow.upload().map(|upload| upload.memory.account());
        warnings.record(cut.reason, cut.at, || front.accounts.name_of(account?));
    };
    check.run(contended, record).await;
}

impl StallCheck<'_> {
    /// Cuts off flows that stall or are slower than the limits, and those that `contended` returns,
    /// until `stop` fires. `record` is called once for each.
    pub(crate) async fn run(
        self,
        contended: impl Fn(Duration) -> Vec<Arc<Flow>>,
        mut record: impl FnMut(&Flow, CutOff),
    ) {
        let Self { flows, limits, clock, stop } = self;
        let every = (limits.stall / 8).clamp(CHECK_MIN, CHECK_MAX);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = clock.sleep(every) => {}
            }
            let at = clock.monotonic();
            let mut cut = flows.find(|flow| flow.judge(limits, at));
            cut.extend(contended(at).into_iter().map(|flow| (flow, CutOffReason::Contention)));
            for (flow, reason) in cut {
                if flow.cut_off(reason, at) {
                    record(&flow, CutOff { reason, at });
                }
            }
        }
    }
}

/// Answers to cut off because others need their place among the requests or their memory.
fn contended_answers<'a>(
    flows: &Flows,
    gate: &Gate,
    memories: impl IntoIterator<Item = &'a Arc<AnswerBudget>>,
    now: Duration,
) -> Vec<Arc<Flow>> {
    let mut cut = Vec::new();
    if let Some(scarcity) = gate.scarcity() {
        let above = gate.above_share(now);
        cut.extend(standing(flows, now, |flow| {
            let account = flow.pass().filter(|account| scarcity.concerns(*account))?;
            Some(above.contains(&account))
        }));
    }
    let each = memories.into_iter().flat_map(|memory| [(memory, true), (memory, false)]);
    for (memory, known) in each {
        if !memory.is_short(known) {
            continue;
        }
        let above = memory.above_share(now);
        cut.extend(standing(flows, now, |flow| {
            // Anonymous callers have only a part of the memory; known callers may take all of it.
            let mut payers = flow.payers(memory.id());
            payers.retain(|payer| known || !payer.known);
            (!payers.is_empty()).then(|| payers.iter().any(|payer| above.contains(payer)))
        }));
    }
    cut
}

/// Uploads to cut off because accounts below their share need their resources. Only uploads of
/// accounts above their share are cut off, so that each account keeps its share however slow its
/// clients are.
fn contended_uploads(
    flows: &Flows,
    gate: &Gate,
    bodies: &BodyBudget,
    now: Duration,
) -> Vec<Arc<Flow>> {
    let mut cut = Vec::new();
    if gate.is_short(now)
        && let Some(scarcity) = gate.scarcity()
    {
        let above = gate.above_share(now);
        cut.extend(standing(flows, now, |flow| {
            let account = flow.upload()?.admitted.filter(|account| scarcity.concerns(*account))?;
            above.contains(&account).then_some(true)
        }));
    }
    if bodies.is_short(now) {
        let above = bodies.above_share(now);
        cut.extend(standing(flows, now, |flow| {
            let account = flow.upload()?.memory.holder()?;
            above.contains(&account).then_some(true)
        }));
    }
    cut
}

/// A part of the flows that made no progress for [`STILL_MAX`] and for which `holds` returns a
/// value. `true` means that the payer has more than its share; these come first. Among equals, the
/// one without progress for longest comes first.
fn standing(flows: &Flows, now: Duration, holds: impl Fn(&Flow) -> Option<bool>) -> Vec<Arc<Flow>> {
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
