//! Runs a scenario with many seeds, on all cores. With `--nocapture` it shows its progress, and
//! each violation immediately.

use std::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

/// The digest of all disk operations of a run.
pub(crate) type Trace = u64;

/// The text of a violation.
pub(crate) type Violation = String;

/// One run of a scenario.
pub(crate) type Run = Result<Trace, Violation>;

const REGRESSIONS: &str = include_str!("regressions.txt");

/// The number of seeds of all scenarios together, unless `SEEDS` is set.
const SEEDS: u64 = 1_000;

/// Runs `percent` of the seeds, and fails with all violations.
pub(crate) fn check_seeds(scenario: &str, percent: u64, run: impl Fn(u64) -> Run + Sync) {
    show_logs();
    let planted = setting("HISTORIES");
    let seeds = match (setting("SEED"), planted) {
        (Some(seed), _) => vec![seed],
        (None, Some(histories)) => (0..histories).collect(),
        (None, None) => {
            let first = setting("FIRST").unwrap_or(0);
            let count = setting("SEEDS").unwrap_or(SEEDS) * percent / 100;
            regressions(scenario).chain(first..first + count).collect()
        }
    };
    let failed = run_all(scenario, &seeds, planted.is_some(), run);
    assert!(failed.is_empty(), "{} of {} seeds:\n{}", failed.len(), seeds.len(), failed.join("\n"));
}

/// Whether at least the usual number of seeds runs. With fewer, rare events may not happen.
pub(crate) fn are_many() -> bool {
    setting("SEED").is_none() && setting("SEEDS").is_none_or(|seeds| seeds >= SEEDS)
}

/// The first violation of seeds `0..count`.
pub(crate) fn find_violation(count: u64, run: impl Fn(u64) -> Run) -> Option<String> {
    (0..count).find_map(|seed| run(seed).err().map(|why| format!("seed {seed}: {why}")))
}

/// The progress of the seeds of a scenario.
#[derive(Default)]
struct Progress {
    done: usize,
    /// The digest of all traces, independent of their order. It is the same for the same seeds and
    /// code.
    digest: Trace,
    failed: Vec<String>,
}

impl Progress {
    /// Adds the result of a seed, and reports the progress after every tenth of the seeds.
    #[expect(clippy::print_stderr, reason = "a long run shows how far it is")]
    fn note(&mut self, scenario: &str, seeds: usize, seed: u64, run: Run) {
        match run {
            Ok(trace) => self.digest = self.digest.wrapping_add(trace),
            Err(why) => {
                let shown = format!("{scenario}, SEED={seed} cargo test --test sim: {why}");
                eprintln!("{shown}");
                self.failed.push(shown);
            }
        }
        self.done += 1;
        if self.done == seeds || self.done.is_multiple_of((seeds / 10).max(1)) {
            let (done, failed, digest) = (self.done, self.failed.len(), self.digest);
            eprintln!(
                "{scenario}: {done} of {seeds} histories, {failed} broke a promise, digest \
                 {digest:016x}"
            );
        }
    }
}

/// The violations.
fn run_all(
    scenario: &str,
    seeds: &[u64],
    until_broken: bool,
    run: impl Fn(u64) -> Run + Sync,
) -> Vec<String> {
    let progress = Mutex::new(Progress::default());
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // A panic in the code under test is a violation of this seed, and the others
                    // run on.
                    let result = catch_unwind(AssertUnwindSafe(|| run(seed)));
                    let run = result.unwrap_or_else(|panic| {
                        Err(format!("panicked: {}", panic_text(panic.as_ref())))
                    });
                    if until_broken && run.is_err() {
                        next.fetch_max(seeds.len(), Ordering::Relaxed);
                    }
                    progress.lock().unwrap().note(scenario, seeds.len(), seed, run);
                }
            });
        }
    });
    progress.into_inner().unwrap().failed
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

/// Writes the program's log lines to stderr if `LOG` has a filter, such as `debug`.
#[expect(clippy::disallowed_methods, reason = "settings of a test, not of the program")]
fn show_logs() {
    let Ok(filter) = std::env::var("LOG") else { return };
    let filter = tracing_subscriber::EnvFilter::new(filter);
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Another scenario may have installed it.
    drop(logs.try_init());
}

#[expect(clippy::disallowed_methods, reason = "settings of a test, not of the program")]
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}
