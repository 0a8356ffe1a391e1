//! The load of each partition of a cluster, from the requests and the processor time that its
//! process has counted.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::index::PartitionCounts;
use crate::manager::PolicyConfig;
use crate::types::HostId;
use crate::types::PartitionId;

/// How often the processes are asked what they have counted.
const EVERY: Duration = Duration::from_secs(5);

/// The loads, averaged over the last seconds.
#[derive(Debug, Default)]
pub(super) struct Loads {
    /// When the processes were asked last.
    asked: Option<Duration>,
    partitions: BTreeMap<PartitionId, Counted>,
    /// There is an answer that no move has followed yet.
    is_new: bool,
}

/// What a process has counted.
#[derive(Clone, Copy, Debug)]
struct Counted {
    host: HostId,
    at: Duration,
    requests: u64,
    cpu: Duration,
    /// As a multiple of the load of a hot partition; `None` before there are two answers.
    weight: Option<f64>,
}

impl Loads {
    /// Whether the processes are to be asked now.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        let is_due = self.asked.is_none_or(|last| now >= last + EVERY);
        if is_due {
            self.asked = Some(now);
        }
        is_due
    }

    /// Takes an answer. The partitions that `are_known` are kept, others are forgotten.
    pub(super) fn note(
        &mut self,
        now: Duration,
        (counts, policy): (Vec<PartitionCounts>, &PolicyConfig),
        are_known: impl Fn(PartitionId) -> bool,
    ) {
        for one in counts {
            let before = self.partitions.get(&one.id);
            let weight = match before {
                // Its process has opened it again, or another one has it: it counts from zero.
                Some(before) if before.host != one.host || before.requests > one.requests => {
                    before.weight
                }
                // A mean with what was before: a load of a moment moves nothing.
                Some(before) => weight(before, &one, (now, policy))
                    .map(|new| before.weight.map_or(new, |before| f64::midpoint(before, new))),
                None => None,
            };
            let PartitionCounts { id, host, requests, cpu, .. } = one;
            self.partitions.insert(id, Counted { host, at: now, requests, cpu, weight });
        }
        self.partitions.retain(|id, _| are_known(*id));
        self.is_new = true;
    }

    /// The load of a partition, as a multiple of that of a hot one, if it is known.
    pub(super) fn of(&self, partition: PartitionId) -> Option<f64> {
        self.partitions.get(&partition).and_then(|one| one.weight)
    }

    /// Whether there is an answer since the last time.
    pub(super) fn take_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }
}

/// The load since the last answer.
fn weight(
    before: &Counted,
    now: &PartitionCounts,
    (at, policy): (Duration, &PolicyConfig),
) -> Option<f64> {
    let elapsed = at.saturating_sub(before.at).as_secs_f64();
    if elapsed <= 0.0 {
        return before.weight;
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let requests = now.requests.saturating_sub(before.requests) as f64;
    let cpu = now.cpu.saturating_sub(before.cpu).as_secs_f64();
    Some(policy.weight_of(requests / elapsed, cpu / elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::KeyRange;
    use crate::types::NodeId;

    fn counts(id: u64, node: u64, requests: u64) -> PartitionCounts {
        PartitionCounts {
            id: PartitionId::new(id),
            host: HostId::of(NodeId::new(node), 0),
            range: KeyRange::all(),
            stripe: None,
            requests,
            cpu: Duration::ZERO,
        }
    }

    /// In thousandths.
    fn weight_of(loads: &Loads, id: u64) -> Option<u64> {
        loads
            .of(PartitionId::new(id))
            .map(|weight| u64::try_from(Duration::from_secs_f64(weight).as_millis()).unwrap())
    }

    #[test]
    fn load_is_a_mean_that_survives_a_move() {
        let (mut loads, second) = (Loads::default(), Duration::from_secs);
        let policy = PolicyConfig::default();
        assert!(loads.is_due(second(1)) && !loads.is_due(second(5)) && loads.is_due(second(6)));
        loads.note(second(0), (vec![counts(1, 1, 50_000), counts(2, 1, 0)], &policy), |_| true);
        assert!(loads.take_new() && !loads.take_new());
        assert_eq!((weight_of(&loads, 1), weight_of(&loads, 9)), (None, None), "not known yet");
        // As much as a hot partition has.
        loads.note(second(5), (vec![counts(1, 1, 75_000), counts(2, 1, 0)], &policy), |_| true);
        assert_eq!((weight_of(&loads, 1), weight_of(&loads, 2)), (Some(1_000), Some(0)));
        loads.note(second(10), (vec![counts(1, 1, 75_000)], &policy), |id| id.get() == 1);
        assert_eq!((weight_of(&loads, 1), weight_of(&loads, 2)), (Some(500), None));
        // Another process has it, and counts from zero.
        loads.note(second(15), (vec![counts(1, 2, 900)], &policy), |_| true);
        assert_eq!(weight_of(&loads, 1), Some(500));
        loads.note(second(20), (vec![counts(1, 2, 900)], &policy), |_| true);
        assert_eq!(weight_of(&loads, 1), Some(250));
        // A process that does not answer changes nothing.
        loads.note(second(25), (Vec::new(), &policy), |_| true);
        assert_eq!(weight_of(&loads, 1), Some(250));
        let cpu = PartitionCounts { cpu: second(6), ..counts(1, 2, 900) };
        loads.note(second(30), (vec![cpu], &policy), |_| true);
        assert_eq!(weight_of(&loads, 1), Some(625), "60 % of a processor is hot too");
    }
}
