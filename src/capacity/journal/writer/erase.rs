//! Erases batches that no replay needs, between the writer's batches.

use std::ops::Range;

use crate::capacity::journal::layout::RING_AT;
use crate::capacity::journal::writer::Journal;
use crate::capacity::units::{FileOffset, index};

/// Bytes that are erased at a time. No batch is written meanwhile.
const ERASED_AT_ONCE: u64 = 1024 * 1024;

impl Journal {
    /// Overwrites with zeros all parts of the ring that no replay needs. Batches that are written
    /// meanwhile are kept.
    pub(crate) async fn erase(&self) {
        let mut at = RING_AT;
        while at < self.ring_end() && !self.health.poisoned() {
            let end = self.ring_end().min(at + ERASED_AT_ONCE);
            let _placing = self.placing.lock().await;
            for free in outside(at..end, &self.live()) {
                let len = free.end - free.start;
                if self.health.poisoned() {
                    return;
                }
                let _syncing = self.syncing.lock().await;
                self.metrics.fsyncs.inc();
                if let Err(error) =
                    self.file.write_sync(free.start.get(), vec![vec![0; index(len)].into()]).await
                {
                    self.health.poison("journal erase", &error);
                    return;
                }
            }
            at = end;
        }
    }
}

/// The parts of `piece` that are in none of `live`.
fn outside(piece: Range<FileOffset>, live: &[Range<FileOffset>]) -> Vec<Range<FileOffset>> {
    let mut left = vec![piece];
    for live in live {
        let without = |part: Range<FileOffset>| {
            let before = part.start..part.end.min(live.start);
            let after = part.start.max(live.end)..part.end;
            if live.is_empty() { [part, RING_AT..RING_AT] } else { [before, after] }
        };
        left = left.into_iter().flat_map(without).filter(|part| !part.is_empty()).collect();
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The piece, two live ranges, and the parts outside of them.
    type Case = (Range<u64>, [Range<u64>; 2], &'static [(u64, u64)]);

    #[test]
    fn outside_is_what_no_live_range_covers() {
        let cases: [Case; 6] = [
            (0..10, [0..0, 0..0], &[(0, 10)]),
            (0..10, [5..5, 3..3], &[(0, 10)]),
            (0..10, [3..5, 0..0], &[(0, 3), (5, 10)]),
            (0..10, [8..20, 0..2], &[(2, 8)]),
            (0..10, [0..10, 0..0], &[]),
            (4..6, [0..3, 7..9], &[(4, 6)]),
        ];
        for (piece, live, expected) in cases {
            let at = |range: Range<u64>| FileOffset::new(range.start)..FileOffset::new(range.end);
            let found = outside(at(piece.clone()), &live.clone().map(at)).into_iter();
            let found: Vec<(u64, u64)> =
                found.map(|part| (part.start.get(), part.end.get())).collect();
            assert_eq!(found, expected, "{piece:?} {live:?}");
        }
    }
}
