//! The choice of a disk for a new extent.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::capacity::ExtentKind;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::header::kind_code;

/// Weighted round robin by available space, separately for each kind of extent. Disks fill in
/// proportion to their space, and the logs of a node are spread over its disks.
#[derive(Debug)]
pub(crate) struct Placement {
    /// For each kind and disk, its credit: available space added in each round, less the sum of a
    /// round when it is chosen.
    owed: [Vec<i128>; 4],
}

impl Placement {
    /// A placement over this many disks.
    pub(crate) fn new(disks: usize) -> Self {
        Self { owed: std::array::from_fn(|_| vec![0; disks]) }
    }

    /// The disks to try, best first. Poisoned and draining disks are left out.
    pub(crate) fn order(&mut self, kind: ExtentKind, stores: &[Arc<Store>]) -> Vec<usize> {
        let available: Vec<Option<u64>> = stores
            .iter()
            .map(|store| {
                let takes = !store.health.poisoned() && !store.draining.load(Ordering::Acquire);
                takes.then(|| store.space.available())
            })
            .collect();
        self.pick(kind, &available)
    }

    fn pick(&mut self, kind: ExtentKind, available: &[Option<u64>]) -> Vec<usize> {
        let owed = &mut self.owed[usize::from(kind_code(kind))];
        let total: i128 = available.iter().flatten().map(|&n| i128::from(n)).sum();
        for (owed, available) in owed.iter_mut().zip(available) {
            *owed += i128::from(available.unwrap_or(0));
        }
        let mut order: Vec<usize> =
            (0..available.len()).filter(|&n| available[n].is_some()).collect();
        order.sort_by_key(|&number| -owed[number]);
        if let Some(&first) = order.first() {
            owed[first] -= total;
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_chosen_in_proportion_to_their_space() {
        let mut placement = Placement::new(3);
        let mut counts = [0; 3];
        for _ in 0..40 {
            let order = placement.pick(ExtentKind::Data, &[Some(100), Some(300), None]);
            assert_eq!(order.len(), 2);
            counts[order[0]] += 1;
        }
        assert_eq!(counts, [10, 30, 0]);
    }
}
