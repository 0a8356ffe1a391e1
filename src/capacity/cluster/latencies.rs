//! How long small reads of each member take, so that the next member is asked too when one takes
//! longer than usual.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use crate::types::NodeId;

/// A read that takes longer is sent to another member too, whatever is usual.
pub(super) const SLOW_READ: Duration = Duration::from_millis(500);
/// A read is not sent to another member earlier than this.
const HEDGE_MIN: Duration = Duration::from_millis(5);
/// Reads of this many bytes are small.
pub(super) const SMALL_READ: u64 = 64 << 10;
/// So many times as long as the others usually take, a member is waited for at most.
const SLOWER_MAX: u32 = 4;
/// Reads that are remembered of each member.
const REMEMBERED: usize = 128;
/// How often it is computed what is usual, in reads.
const COMPUTED_EVERY: usize = 32;

/// The times of the last small reads.
#[derive(Debug, Default)]
pub(super) struct Latencies(Mutex<BTreeMap<NodeId, Recent>>);

#[derive(Debug, Default)]
struct Recent {
    /// A ring.
    times: Vec<Duration>,
    count: usize,
    /// What 95 of 100 reads do not exceed, once there are enough.
    usual: Option<Duration>,
}

impl Latencies {
    /// Notes how long a member took, or has taken without an answer.
    pub(super) fn note(&self, node: NodeId, took: Duration) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = all.entry(node).or_default();
        let place = recent.count % REMEMBERED;
        match recent.times.get_mut(place) {
            Some(old) => *old = took,
            None => recent.times.push(took),
        }
        recent.count += 1;
        if recent.count.is_multiple_of(COMPUTED_EVERY) {
            let mut sorted = recent.times.clone();
            sorted.sort_unstable();
            recent.usual = sorted.get(sorted.len() * 95 / 100).copied();
        }
    }

    /// How long a small read of a member is waited for before the next one is asked too: as long as
    /// it usually takes, but not much longer than the others that may be asked usually take. A
    /// member that hangs is never known to have taken long.
    pub(super) fn patience(
        &self,
        node: NodeId,
        others: impl IntoIterator<Item = NodeId>,
    ) -> Duration {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let usual = |node: NodeId| all.get(&node).and_then(|recent| recent.usual);
        let of_others = others.into_iter().filter_map(usual).min().map(|usual| usual * SLOWER_MAX);
        let patience = [usual(node), of_others].into_iter().flatten().min();
        patience.map_or(SLOW_READ, |patience| patience.clamp(HEDGE_MIN, SLOW_READ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_follows_what_is_usual() {
        let latencies = Latencies::default();
        let (node, millis) = (NodeId::new(1), Duration::from_millis);
        let patience = |of: NodeId| latencies.patience(of, []);
        (0..31).for_each(|_| latencies.note(node, millis(20)));
        assert_eq!(patience(node), SLOW_READ, "too few are known");
        // One of ten takes long: that is usual.
        (0..97).for_each(|read| latencies.note(node, millis(if read % 10 == 0 { 90 } else { 20 })));
        assert_eq!(patience(node), millis(90));
        (0..128)
            .for_each(|read| latencies.note(node, millis(if read % 50 == 0 { 90 } else { 20 })));
        assert_eq!(patience(node), millis(20));
        (0..128).for_each(|_| latencies.note(node, millis(1)));
        assert_eq!(patience(node), HEDGE_MIN);
        (0..128).for_each(|_| latencies.note(node, millis(9_000)));
        assert_eq!(patience(node), SLOW_READ);
        assert_eq!(patience(NodeId::new(2)), SLOW_READ);
    }

    #[test]
    fn member_that_hangs_is_not_waited_for_because_it_never_answers() {
        let latencies = Latencies::default();
        let [hangs, other, far] = [1, 2, 3].map(NodeId::new);
        let millis = Duration::from_millis;
        (0..64).for_each(|_| latencies.note(other, millis(10)));
        assert_eq!(latencies.patience(hangs, [other]), millis(40));
        (0..64).for_each(|_| latencies.note(hangs, millis(300)));
        assert_eq!(latencies.patience(hangs, [far, other]), millis(40));
        assert_eq!(latencies.patience(hangs, [far]), millis(300));
        // All are slow now.
        (0..128).for_each(|_| latencies.note(other, millis(300)));
        assert_eq!(latencies.patience(hangs, [far, other]), millis(300));
    }
}
