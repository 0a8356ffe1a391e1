//! Deterministic simulation: capacity and index on disks that lose and tear writes, fail and lie,
//! compared with a reference model.
//!
//! Each seed is one history: sessions of concurrent work, each ended by a crash, a kill or a
//! shutdown, then a final check of everything. `SEED=n cargo test --test sim` replays one seed in
//! every scenario, and `LOG=debug` also shows the program's log lines. `SEEDS=n` sets how many
//! seeds run in all scenarios together (default 1,000), `FIRST=n` the first seed. Seeds that found
//! a bug are kept in `regressions.txt` and always run. `HISTORIES=n` runs this many seeds of each
//! scenario, and ends a scenario at the first violation; planted faults use it (`tests/mutants`).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod answer;
mod audits;
mod calls;
mod capacity;
mod chain;
mod change;
mod changes;
mod client;
mod content;
mod contests;
mod copies;
mod counts;
mod credential_state;
mod credentials;
mod disks;
mod draw;
mod emptied;
mod extents;
mod index;
mod kept;
mod lease;
mod lives;
mod model;
mod nodes;
mod policy;
mod readers;
mod reads;
mod requests;
mod rig;
mod search;
mod seeds;
mod splitter;
mod stack;
mod state;
mod streams;
mod stumble;
mod tier;
mod uploads;
mod watch;
mod when;

use crate::seeds::check_seeds;
use crate::seeds::find_violation;

#[test]
fn capacity_keeps_its_promises_under_every_fault() {
    check_seeds("capacity", 30, |seed| capacity::run(seed, rig::Device::Honest));
}

#[test]
fn capacity_replays_the_same_trace_for_the_same_seed() {
    for seed in 0..10 {
        let first = capacity::run(seed, rig::Device::Honest).unwrap();
        assert_eq!(first, capacity::run(seed, rig::Device::Honest).unwrap(), "seed {seed}");
    }
}

/// A planted bug: acknowledgement before the sync, simulated by a device whose syncs do nothing.
#[test]
fn capacity_checker_catches_acknowledging_before_the_sync() {
    let found = find_violation(20, |seed| capacity::run(seed, rig::Device::Liar));
    println!("caught: {}", found.expect("20 seeds with a lying device and nothing was noticed"));
}

/// What the program stops for a violated invariant could pass for an outage.
#[test]
fn session_that_violates_an_invariant_fails() {
    let mut rig = rig::Rig::new(1, 1, 1 << 20, rig::Device::Honest);
    let plan = rig::Plan { trouble: rig::Trouble::ReadErrors, end: rig::End::Kill };
    let mut session = |violated: &'static [&'static str]| {
        rig.session(&draw::Draw::new(1), plan, |machine| async move {
            let health = machine.env.tasks.health();
            violated.iter().for_each(|invariant| health.violated(invariant, "planted"));
            Ok(())
        })
    };
    assert_eq!(session(&[]), Ok(()));
    let why = session(&["I4", "I2"]).unwrap_err();
    let found = "invariant I4 is violated: planted; invariant I2 is violated: planted\n";
    assert!(why.starts_with(found), "{why}");
    assert_eq!(session(&[]), Ok(()), "each session is judged by itself");
}

#[test]
fn index_keeps_its_promises_under_every_fault() {
    check_seeds("index", 50, |seed| index::run(seed, rig::Device::Honest));
}

#[test]
fn index_replays_the_same_trace_for_the_same_seed() {
    for seed in 0..10 {
        let first = index::run(seed, rig::Device::Honest).unwrap();
        assert_eq!(first, index::run(seed, rig::Device::Honest).unwrap(), "seed {seed}");
    }
}

#[test]
fn index_checker_catches_acknowledging_before_the_sync() {
    let found = find_violation(20, |seed| index::run(seed, rig::Device::Liar));
    println!("caught: {}", found.expect("20 seeds with a lying device and nothing was noticed"));
}

/// What happens in the histories of the index.
const EVENTS: &[&str] = &[
    "changes done",
    "stumbles of a disk",
    "writes refused as overload",
    "changes refused",
    "changes not done",
    "changes unknown",
    "made blocks",
    "made append blobs",
    "made page blobs",
    "staged",
    "committed",
    "uploads started",
    "parts staged",
    "uploads completed",
    "uploads aborted",
    "appended",
    "sealed",
    "pages written",
    "pages cleared",
    "reshaped",
    "marked",
    "tagged",
    "tiers set",
    "leases acquired",
    "leases renewed",
    "leases changed",
    "leases released",
    "leases broken",
    "snapshots taken",
    "deleted",
    "deleted with snapshots",
    "all snapshots deleted",
    "snapshots deleted",
    "batches",
    "copies",
    "blocks copied",
    "page blobs copied",
    "blobs found by tag",
    "starts that failed",
    "stores of an older release",
    "blobs streamed",
    "blobs streamed while they changed",
    "syncs stalled",
    "troubles lifted",
    "partitions written to afterwards",
    "garbage gone afterwards",
    "power cuts at work",
    "kills at work",
    "failed syncs",
    "disks grown",
    "disks emptied",
    "flips",
    "index_flushes",
    "index_compactions",
    "splits",
    "splits that failed",
    "merges",
    "moves",
    "stripings",
    "unstripings",
    "capacity_journal_batches",
    "capacity_removed_extents",
    "reclaim_garbage_rows",
    "reclaim_audits",
];

/// Histories that never execute a part of the code prove nothing about it.
#[test]
fn index_histories_come_through_everything() {
    let counts = counts::Counts::default();
    for seed in 0..160 {
        index::run_counted(seed, rig::Device::Honest, &counts).unwrap();
    }
    println!("{counts:#?}");
    let missing = counts.missing(EVENTS);
    assert!(missing.is_empty(), "never happened: {missing:?}");
}

#[test]
fn capacity_does_not_believe_a_cache_after_a_failed_sync() {
    check_seeds("failed-sync", 10, capacity::run_failed_sync);
}

#[test]
fn index_does_not_believe_a_cache_after_a_failed_sync() {
    let plans = [
        rig::Plan { trouble: rig::Trouble::SyncError, end: rig::End::Kill },
        rig::Plan { trouble: rig::Trouble::None, end: rig::End::PowerCut },
    ];
    let counts = counts::Counts::default();
    check_seeds("index-failed-sync", 10, |seed| {
        index::run_planned(seed, rig::Device::Honest, &plans, &counts)
    });
}

#[test]
fn index_keeps_what_a_slow_reader_found_while_syncs_stall() {
    let stalls = rig::Plan { trouble: rig::Trouble::Stalls, end: rig::End::Shutdown };
    let counts = counts::Counts::default();
    check_seeds("index-stalls", 5, |seed| {
        index::run_planned(seed, rig::Device::Honest, &[stalls; 2], &counts)
    });
}

#[test]
fn index_goes_on_once_the_coordinator_is_back() {
    let away = rig::Plan { trouble: rig::Trouble::Coordinator, end: rig::End::Kill };
    let back = rig::Plan { end: rig::End::PowerCut, ..away };
    let counts = counts::Counts::default();
    check_seeds("index-coordinator", 5, |seed| {
        index::run_planned(seed, rig::Device::Honest, &[away, back], &counts)
    });
}

#[test]
fn index_goes_on_beside_a_poisoned_disk() {
    let plans = [
        rig::Plan { trouble: rig::Trouble::OneDisk, end: rig::End::Shutdown },
        rig::Plan { trouble: rig::Trouble::OneDisk, end: rig::End::PowerCut },
    ];
    let counts = counts::Counts::default();
    check_seeds("index-one-disk", 10, |seed| {
        index::run_planned(seed, rig::Device::Honest, &plans, &counts)
    });
    let missing = counts.missing(&["sound disks beside a poisoned one"]);
    assert!(missing.is_empty(), "never happened: {missing:?}");
}

#[test]
fn index_writes_again_once_a_full_disk_has_room() {
    let plans = [
        rig::Plan { trouble: rig::Trouble::Full, end: rig::End::Shutdown },
        rig::Plan { trouble: rig::Trouble::Full, end: rig::End::PowerCut },
    ];
    let counts = counts::Counts::default();
    check_seeds("index-full", 10, |seed| {
        index::run_planned(seed, rig::Device::Honest, &plans, &counts)
    });
}

/// What happens to the nodes of a cluster.
const NODE_EVENTS: &[&str] = &[
    "nodes killed",
    "nodes without power",
    "connections cut",
    "nodes silent",
    "changes done",
    "splits",
    "index_flushes",
    "flips",
];

/// Index and front end of one process, extents with copies on three nodes. One node at a time
/// crashes, is cut off or is silent; all lose their power together.
#[test]
fn index_keeps_its_promises_on_the_nodes_of_a_cluster() {
    let counts = counts::Counts::default();
    check_seeds("cluster", 5, |seed| {
        index::run_clustered(seed, rig::MachineKind::Cluster, &counts)
    });
    let missing = counts.missing(NODE_EVENTS);
    assert!(!seeds::are_many() || missing.is_empty(), "never happened: {missing:?}");
}

/// What happens to the process that serves the index.
const INDEX_EVENTS: &[&str] = &[
    "nodes killed",
    "nodes silent",
    "changes done",
    "splits",
    "index killed",
    "index stopped in order",
    "manager killed",
    "index stood still",
    "index deposed while it stood still",
    "front end cut off from the index",
];

/// As above, with the index in two processes of its own. They are killed, stand still, are cut off
/// and stop, partitions move between them, and the process that manages is killed, while a node is
/// harmed too. No change is done twice, and none stays in doubt.
#[test]
fn front_end_keeps_its_promises_whoever_serves_the_index() {
    let counts = counts::Counts::default();
    check_seeds("front-end", 5, |seed| {
        index::run_clustered(seed, rig::MachineKind::FrontEnd, &counts)
    });
    println!("{counts:#?}");
    let missing = counts.missing(INDEX_EVENTS);
    assert!(!seeds::are_many() || missing.is_empty(), "never happened: {missing:?}");
}

#[test]
fn cluster_replays_the_same_trace_for_the_same_seed() {
    for kind in [rig::MachineKind::Cluster, rig::MachineKind::FrontEnd] {
        let run = |seed| index::run_clustered(seed, kind, &counts::Counts::default()).unwrap();
        for seed in 0..5 {
            assert_eq!(run(seed), run(seed), "seed {seed}");
        }
    }
}

/// Readers overlap changes of the same blobs while syncs stall. One read never ends.
#[test]
fn readers_keep_what_they_found_and_nothing_else() {
    check_seeds("readers", 20, readers::run);
}

/// Containers are deleted if they are empty while clients write into them.
#[test]
fn emptied_containers_are_deleted_with_nothing_in_them() {
    let counts = counts::Counts::default();
    check_seeds("emptied", 20, |seed| emptied::run(seed, &counts));
    println!("{counts:#?}");
    let missing = counts.missing(&[
        "containers deleted",
        "deletions of containers with blobs refused",
        "writes into deleted containers refused",
        "closings left behind",
        "kills at work",
    ]);
    assert!(missing.is_empty() || !seeds::are_many(), "never happened: {missing:?}");
}

/// Versions, delete markers, soft delete and object lock.
#[test]
fn versions_are_kept_and_held_ones_are_not_removed() {
    let counts = counts::Counts::default();
    check_seeds("kept", 20, |seed| kept::run(seed, &counts));
    println!("{counts:#?}");
    let missing = counts.missing(&[
        "puts",
        "uploads",
        "uploads completed again",
        "uploads aborted",
        "metadata changes",
        "metadata changes refused",
        "markers",
        "versions deleted",
        "versions deleted refused",
        "held versions",
        "protections changed",
        "protections changed refused",
        "undeletions",
        "changes of the map",
        "kills at work",
    ]);
    assert!(missing.is_empty() || !seeds::are_many(), "never happened: {missing:?}");
}

/// Users, keys and roles.
#[test]
fn credentials_are_changed_whole_and_at_once() {
    let counts = counts::Counts::default();
    check_seeds("credentials", 10, |seed| credentials::run(seed, &counts));
    println!("{counts:#?}");
    let missing = counts.missing(&[
        "changes",
        "changes refused",
        "changes without an answer",
        "changes given up",
        "changes of the map",
        "accounts that had to be read again",
        "users at the end",
        "kills at work",
    ]);
    assert!(missing.is_empty() || !seeds::are_many(), "never happened: {missing:?}");
}

/// Audits run while writes and copies are about to name bytes, and while shared bytes are read.
/// Restarts interrupt their rounds.
#[test]
fn audits_free_nothing_that_is_named_or_read() {
    let counts = counts::Counts::default();
    check_seeds("audits", 10, |seed| audits::run(seed, &counts));
    let missing = counts.missing(&["rounds cut off"]);
    assert!(missing.is_empty() || !seeds::are_many(), "never happened: {missing:?}");
}
