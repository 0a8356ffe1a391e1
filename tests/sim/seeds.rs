//! Runs a scenario over many seeds, on all cores.

use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

/// What a seed's run did: the digest of all disk operations.
pub(crate) type Trace = u64;

/// A promise that was broken.
pub(crate) type Violation = String;

/// One run of a scenario.
pub(crate) type Run = Result<Trace, Violation>;

const REGRESSIONS: &str = include_str!("regressions.txt");

/// Seeds of all scenarios together unless `SEEDS` says otherwise.
const SEEDS: u64 = 1_000;

/// Runs this scenario's share of the seeds, in percent, and fails with all violations.
pub(crate) fn check_seeds(scenario: &str, percent: u64, run: impl Fn(u64) -> Run + Sync) {
    let seeds = match setting("SEED") {
        Some(seed) => vec![seed],
        None => {
            let first = setting("FIRST").unwrap_or(0);
            let count = setting("SEEDS").unwrap_or(SEEDS) * percent / 100;
            regressions(scenario).chain(first..first + count).collect()
        }
    };
    let failed = run_all(&seeds, run);
    let shown: Vec<String> = failed
        .iter()
        .map(|(seed, why)| format!("{scenario}, SEED={seed} cargo test --test sim: {why}"))
        .collect();
    assert!(shown.is_empty(), "{} of {} seeds:\n{}", shown.len(), seeds.len(), shown.join("\n"));
}

/// The first violation of seeds `0..count`.
pub(crate) fn find_violation(count: u64, run: impl Fn(u64) -> Run) -> Option<String> {
    (0..count).find_map(|seed| run(seed).err().map(|why| format!("seed {seed}: {why}")))
}

fn run_all(seeds: &[u64], run: impl Fn(u64) -> Run + Sync) -> Vec<(u64, Violation)> {
    let failed = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // A panic in the code under test is a finding of this seed, not the end of the others.
                    let result = catch_unwind(AssertUnwindSafe(|| run(seed)));
                    let why = match result {
                        Ok(Ok(_)) => continue,
                        Ok(Err(why)) => why,
                        Err(panic) => format!("panicked: {}", panic_text(panic.as_ref())),
                    };
                    failed.lock().unwrap().push((seed, why));
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort();
    failed
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// Lines of `scenario seed`, `#` starts a comment.
fn regressions(scenario: &str) -> impl Iterator<Item = u64> {
    REGRESSIONS.lines().filter_map(move |line| {
        let line = line.split('#').next()?.trim();
        let (name, seed) = line.split_once(' ')?;
        (name == scenario).then(|| seed.trim().parse().unwrap())
    })
}

#[expect(clippy::disallowed_methods, reason = "settings of a test, not of the program")]
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}
