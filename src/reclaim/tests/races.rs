//! Blobs change between the pages of an audit: locations move from staged to committed to garbage, others come and go.

use std::collections::BTreeSet;

use super::fakes::*;
use crate::capacity::ExtentKind::Data;
use crate::capacity::ExtentState::{Open, Sealed};
use crate::index::objects::fake::Partition;
use crate::types::*;

const NAMES: [&str; 6] = ["a", "b", "d", "k", "p", "z"];

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn name(&mut self) -> &'static str {
        NAMES[usize::try_from(self.below(6)).unwrap()]
    }
}

/// One change; new bytes go to the open extent 9.
fn change(dice: &mut Dice, partitions: &mut [Partition], next: &mut u64) {
    let name = dice.name();
    let owner = partitions
        .iter()
        .position(|p| p.memory.range.contains(RoutingKey::blob(&key(name)).as_bytes()))
        .unwrap();
    *next += 10;
    let new = [location(9, *next, 9)];
    let write = match dice.below(5) {
        0 => put(name, &new),
        1 => stage(name, "1", &new),
        2 => commit(name, &["1"]),
        3 => commit(name, &["2", "1"]),
        _ => delete(name),
    };
    // A commit of blocks that are not there, or a delete of nothing, is refused and changes nothing.
    drop(partitions[owner].write(&write));
}

#[tokio::test(start_paused = true)]
async fn audit_keeps_what_moves_between_rows() {
    let mut freed_in_all = 0;
    for seed in 0..200 {
        let bench = Bench::new();
        bench.capacity.add(1, Data, Sealed, 400);
        bench.capacity.add(9, Data, Open, 0);
        let mut dice = Dice(seed);
        // Each name has a blob or staged blocks or both in extent 1, with gaps that nothing names.
        for (n, name) in (0..).zip(NAMES) {
            let at = |m: u64| [location(1, n * 60 + m * 20, 9)];
            if dice.below(2) == 0 {
                bench.index.must(&put(name, &at(0)));
            }
            bench.index.must(&stage(name, "1", &at(1)));
            if dice.below(2) == 0 {
                bench.index.must(&stage(name, "2", &at(2)));
            }
        }
        let mut next = 0;
        let hook_seed = dice.below(1 << 30);
        let mut hook_dice = Dice(hook_seed);
        *bench.index.between_pages.lock().unwrap() = Some(Box::new(move |partitions| {
            for _ in 0..hook_dice.below(4) {
                change(&mut hook_dice, partitions, &mut next);
            }
        }));
        bench.reclaim().await.audit(&BTreeSet::new()).await.unwrap();
        for named in bench.index.named() {
            let safe = named.extent.get() != 1 || bench.capacity.is_live(&named);
            assert!(safe, "seed {seed}: {named:?} is named and was freed");
        }
        freed_in_all += 400 - bench.capacity.live(1).len();
    }
    assert!(freed_in_all > 200 * 100, "{freed_in_all} bytes freed: the audit did nothing");
}
