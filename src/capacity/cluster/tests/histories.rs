//! Random histories: writers that roll, cuts, crashes, owners that take over. Whatever happens,
//! what was answered is read and replayed, in its order.

use super::*;
use crate::capacity::copies::tests::cluster::Calls;
use crate::env::Rand;

const SEEDS: u64 = 60;
const STEPS: u64 = 40;

/// A log of extents, as its owners know it.
#[derive(Default)]
struct Log {
    /// What was answered, with the extent that it is in.
    answered: Vec<(ExtentId, Location, Bytes)>,
    extents: Vec<ExtentId>,
}

async fn disturb(cluster: &Cluster, dice: &SeededRand) {
    for node in cluster.nodes.values() {
        match dice.below(12) {
            0 => node.set_calls(Calls::Lost),
            1 => node.set_calls(Calls::CutAfter(dice.below(4))),
            2 => node.crash(dice.below(2) == 0).await,
            3 => node.cut(),
            4 => node.block(),
            5..9 => {
                node.set_calls(Calls::Answered);
                node.unblock();
            }
            _ => {}
        }
    }
}

/// Appends until an append fails. The extent is settled by the owner, or by the next one.
async fn write(
    cluster: &Cluster,
    owner: &ClusterCapacity,
    dice: &SeededRand,
    (log, extent, epoch): (&mut Log, ExtentId, Epoch),
) {
    let mut end = ExtentOffset::START;
    if owner.create(extent, ExtentKind::Log, epoch).await.is_err() {
        return;
    }
    log.extents.push(extent);
    for _ in 0..dice.below(8) {
        let bytes = payload(dice.next_u64(), 20 + dice.below(40_000));
        let request = AppendRequest { epoch, ..request(extent, end, &bytes) };
        let Ok(appended) = owner.append(request).await else { break };
        end = appended.end;
        log.answered.push((extent, appended.locations[0], bytes));
        if dice.below(4) == 0 {
            disturb(cluster, dice).await;
        }
    }
    if dice.below(2) == 0 {
        drop(owner.seal(extent, epoch).await);
    }
}

async fn history(seed: u64) -> usize {
    let cluster = Cluster::new(seed).await;
    let group = cluster.group(ExtentKind::Log).await.record.id();
    let dice = SeededRand::new(seed);
    let mut log = Log::default();
    let mut owner = cluster.process(Some(1 + dice.below(3))).await;
    let mut epoch = ONE;
    for (extent, _) in group.extents().zip(0..STEPS) {
        write(&cluster, &owner, &dice, (&mut log, extent, epoch)).await;
        if dice.below(3) == 0 {
            // Another process takes over. The old one does not hear of it.
            let old = std::mem::replace(&mut owner, cluster.process(Some(1 + dice.below(3))).await);
            epoch = epoch.next();
            if owner.fence(extent, epoch).await.is_ok() {
                let bytes = payload(dice.next_u64(), 100);
                let late = AppendRequest {
                    epoch: Epoch::new(epoch.get() - 1),
                    ..request(extent, ExtentOffset::START, &bytes)
                };
                assert!(old.append(late).await.is_err(), "seed {seed}: {extent} is fenced");
            }
        }
        disturb(&cluster, &dice).await;
    }
    for node in cluster.nodes.values() {
        node.set_calls(Calls::Answered);
        node.unblock();
        node.crash(false).await;
    }
    judge(&cluster, &log, epoch.next(), seed).await;
    log.answered.len()
}

async fn judge(cluster: &Cluster, log: &Log, epoch: Epoch, seed: u64) {
    let reader = cluster.process(Some(1)).await;
    for extent in &log.extents {
        let settled = reader.fence(*extent, epoch).await;
        settled.unwrap_or_else(|error| panic!("seed {seed}: {extent}: {error}"));
        let end = reader.seal(*extent, epoch).await;
        let end = end.unwrap_or_else(|error| panic!("seed {seed}: {extent}: {error}"));
        let answered = log.answered.iter().filter(|(of, _, _)| of == extent);
        let bytes: Vec<_> = answered.clone().map(|(_, _, bytes)| bytes.clone()).collect();
        let replayed = replay(&reader, *extent).await.unwrap();
        // The last append may be there although it was not answered.
        assert!(replayed.len() <= bytes.len() + 1, "seed {seed}: {extent} ends at {end}");
        assert!(replayed.starts_with(&bytes), "seed {seed}: {extent} ends at {end}");
        for (_, location, bytes) in answered {
            assert_eq!(read(&reader, location).await.unwrap(), bytes, "seed {seed}");
        }
    }
}

#[test]
fn what_was_answered_is_replayed_whatever_happens() {
    let answered: usize = (0..SEEDS).map(|seed| run(history(seed))).sum();
    assert!(answered > 800, "only {answered} appends were answered");
}
