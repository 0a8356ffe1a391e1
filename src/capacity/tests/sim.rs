//! Crashes and faults on the simulated disk, each determined by a seed.

use std::sync::Arc;

use tokio::runtime::Builder;

use super::Dice;
use super::model::Model;
use crate::capacity::{CapacityConfig, CapacityMetrics, CapacityNode, OpenError, check_disk};
use crate::env::clock::SimClock;
use crate::env::disk_sim::{Fault, Faults, SimDisk};
use crate::env::rand::SeededRand;
use crate::env::{Disk, Env, Tasks};

const DISK_BYTES: u64 = 64 << 20;

fn run<F: Future>(work: F) -> F::Output {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(work)
}

async fn open(disk: Arc<dyn Disk>, seed: u64) -> Result<Arc<CapacityNode>, OpenError> {
    let env = Env {
        clock: Arc::new(SimClock::new()),
        rand: Arc::new(SeededRand::new(seed)),
        tasks: Tasks::new(),
    };
    let metrics = CapacityMetrics::default();
    CapacityNode::open(vec![disk], env, CapacityConfig::small(), metrics).await
}

async fn no_problems(disk: &Arc<dyn Disk>, seed: (u64, Option<u64>)) {
    let report = check_disk(disk, 0, &mut |_| {}).await.unwrap();
    assert_eq!(report.problems, vec![], "seed {seed:?}");
}

/// Runs a workload with a power failure at one operation, and verifies the node after a restart.
/// Returns the number of operations.
async fn crash_once(seed: u64, steps: u64, crash_at: Option<u64>) -> u64 {
    let sim = SimDisk::new(seed, DISK_BYTES);
    if let Some(operation) = crash_at {
        sim.crash_at(operation);
    }
    let dice = Dice::new(seed);
    let mut model = Model::default();
    if let Ok(node) = open(sim.disk(), seed).await {
        for _ in 0..steps {
            if !model.step(&node, &dice).await {
                assert!(sim.is_down(), "seed {seed}: failed without a fault");
                break;
            }
        }
    }
    let operations = sim.operations();
    let disk = sim.restart_after_power_cut();
    if !model.is_empty() {
        no_problems(&disk, (seed, crash_at)).await;
    }
    let node = open(disk, seed).await.unwrap();
    model.verify_restarted(&node, false).await;
    // The node works on after that.
    for _ in 0..5 {
        assert!(model.step(&node, &dice).await, "seed {seed} crash {crash_at:?}");
    }
    operations
}

#[test]
fn acknowledged_bytes_survive_a_power_cut_at_any_operation() {
    for seed in 0..2 {
        let operations = run(crash_once(seed, 40, None));
        for operation in 0..operations {
            run(crash_once(seed, 40, Some(operation)));
        }
    }
}

#[test]
fn acknowledged_bytes_survive_many_power_cuts_in_a_row() {
    for seed in 100..160 {
        run(async {
            let sim = SimDisk::new(seed, DISK_BYTES);
            let dice = Dice::new(seed);
            let mut model = Model::default();
            let mut disk = sim.disk();
            for _ in 0..6 {
                // Some of these power failures come during recovery.
                sim.crash_at(sim.operations() + 5 + dice.below(400));
                if let Ok(node) = open(disk, seed).await {
                    model.verify_restarted_or_down(&node, &sim).await;
                    while !sim.is_down() && model.step(&node, &dice).await {}
                }
                disk = sim.restart_after_power_cut();
            }
            let node = open(disk, seed).await.unwrap();
            model.verify_restarted(&node, false).await;
        });
    }
}

#[test]
fn failed_writes_and_syncs_poison_the_disk_and_lose_nothing() {
    // Seed 2649: a failed sync of a superblock had lost a batch whose own, overlapping sync
    // succeeded.
    for seed in (200..300).chain([2649]) {
        run(async {
            let sim = SimDisk::new(seed, DISK_BYTES);
            let dice = Dice::new(seed);
            let mut model = Model::default();
            let node = open(sim.disk(), seed).await.unwrap();
            let fault = *dice.pick(&[Fault::WriteError, Fault::SyncError]).unwrap();
            sim.fail_once(fault, dice.below(60));
            let mut steps = 0u64;
            while model.step(&node, &dice).await && steps < 300 {
                steps += 1;
            }
            if steps < 300 {
                // Reads succeed, writes fail.
                assert!(model.every_write_is_refused(&node).await, "seed {seed}");
            }
            drop(node);
            let disk = if dice.below(2) == 0 {
                sim.restart_after_power_cut()
            } else {
                sim.restart_after_kill()
            };
            let node = open(disk, seed).await.unwrap();
            model.verify_restarted(&node, false).await;
        });
    }
}

#[test]
fn same_seed_gives_the_same_trace() {
    let trace = |seed| {
        run(async move {
            let sim = SimDisk::new(seed, DISK_BYTES);
            let dice = Dice::new(seed);
            let mut model = Model::default();
            let node = open(sim.disk(), seed).await.unwrap();
            for _ in 0..200 {
                assert!(model.step(&node, &dice).await);
            }
            sim.trace()
        })
    };
    assert_eq!(trace(5), trace(5));
    assert_ne!(trace(5), trace(6));
}

#[test]
fn acknowledging_before_the_sync_would_be_noticed() {
    // A disk whose syncs do nothing simulates code that omits them. The checks above must fail
    // with it.
    let caught = (0..10).any(|seed| {
        let caught = std::panic::catch_unwind(|| {
            run(async {
                let sim = SimDisk::new(seed, DISK_BYTES);
                let dice = Dice::new(seed);
                let mut model = Model::default();
                let node = open(sim.disk(), seed).await.unwrap();
                sim.set_faults(Faults { sync_lie: 1_000_000, ..Faults::default() });
                for _ in 0..60 {
                    model.step(&node, &dice).await;
                }
                let node = open(sim.restart_after_power_cut(), seed).await.unwrap();
                model.verify_restarted(&node, false).await;
            });
        });
        caught.is_err()
    });
    assert!(caught);
}

#[test]
fn full_disk_refuses_appends_serves_reads_and_recovers() {
    for seed in 400..420 {
        run(async {
            let sim = SimDisk::new(seed, DISK_BYTES);
            let dice = Dice::new(seed);
            let mut model = Model::default();
            let node = open(sim.disk(), seed).await.unwrap();
            sim.set_capacity(3 << 20);
            for _ in 0..400 {
                model.step_full(&node, &dice).await;
            }
            assert!(model.refused() > 0, "seed {seed}: never full");
            sim.set_capacity(DISK_BYTES);
            // Longer than a measurement of the free space is used.
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
            for _ in 0..20 {
                assert!(model.step(&node, &dice).await, "seed {seed}: not writable again");
            }
            let node = open(sim.restart_after_power_cut(), seed).await.unwrap();
            model.verify_restarted(&node, false).await;
        });
    }
}

#[test]
fn flipped_bit_is_never_served() {
    for seed in 500..560 {
        run(async {
            let sim = SimDisk::new(seed, DISK_BYTES);
            let dice = Dice::new(seed);
            let mut model = Model::default();
            let node = open(sim.disk(), seed).await.unwrap();
            for _ in 0..100 {
                assert!(model.step(&node, &dice).await);
            }
            node.shutdown().await;
            drop(node);
            let disk = sim.restart_after_kill();
            // A seed that removed all extents has no bit to flip.
            let Some(flipped) = sim.flip_random("extents") else { return };
            let node = open(disk, seed).await.unwrap();
            let lost = model.unreadable(&node).await;
            assert!(lost <= 1, "seed {seed}: one flipped bit at {flipped:?} cost {lost} payloads");
        });
    }
}
