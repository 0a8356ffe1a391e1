//! Runs `bench`: makes the container, does the workloads, removes everything, also after Ctrl-C.

use std::convert::Infallible;
use std::time::Duration;

use indicatif::ProgressBar;
use indicatif::ProgressStyle;

use crate::cli::error::CliError;
use crate::cli::files::error::FilesError;
use crate::cli::files::show::Style;
use crate::cli::output::print;
use crate::cli::output::warn;
use crate::env::Signals;

use super::args::BenchArgs;
use super::bed::Bed;
use super::plan::Step;
use super::report;
use super::report::Figures;

/// How long running operations may take after a signal.
const GRACE: Duration = Duration::from_secs(10);
/// How often the progress is shown.
const BEAT: Duration = Duration::from_millis(250);

/// The outcome of the workloads.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    ops: u64,
    errors: u64,
    interrupted: bool,
}

/// Runs `blockyard bench`. The exit code is 0 if all operations succeeded and nothing is left.
///
/// # Errors
/// [`CliError`].
pub(in crate::cli) async fn bench(args: &BenchArgs) -> Result<i32, CliError> {
    let (bed, steps) = Bed::new(args)?;
    let mut signals = Signals::new().map_err(|error| CliError::system("signals", &error))?;
    let style = Style::of(args.json);
    tokio::select! {
        biased;
        made = bed.make() => made?,
        name = signals.next() => return Err(FilesError::Wrong(bed.left(name)).into()),
    }
    let ran = {
        let running = std::pin::pin!(run(&bed, &steps, style));
        until_signal(running, &mut signals, &bed).await
    };
    // A second signal ends the program although something is left.
    let removed = tokio::select! {
        biased;
        removed = bed.clear() => removed,
        name = signals.next() => return Err(FilesError::Wrong(bed.left(name)).into()),
    };
    print(&report::removed(style, &removed))?;
    let Outcome { ops, errors, interrupted } = match (ran, removed.left) {
        (Ok(ran), None) => ran,
        (Ok(_), Some(left)) => return Err(FilesError::Wrong(left).into()),
        (Err(error), left) => {
            if let Some(left) = left {
                warn(&format!("{left}\n"))?;
            }
            return Err(error);
        }
    };
    if errors > 0 {
        warn(&format!("{errors} of {} operations failed\n", ops + errors))?;
    }
    Ok(i32::from(errors > 0 || interrupted))
}

/// Waits for the workloads. After a signal they begin nothing more.
async fn until_signal<F: Future<Output = Result<Outcome, CliError>> + Unpin>(
    mut running: F,
    signals: &mut Signals,
    bed: &Bed,
) -> Result<Outcome, CliError> {
    let stopped = |name| FilesError::Wrong(format!("ended by {name}")).into();
    let name = tokio::select! {
        biased;
        ran = &mut running => return ran,
        name = signals.next() => name,
    };
    bed.driver.pace.stop.cancel();
    warn(&format!("{name}: running operations end, and what was written is removed\n"))?;
    tokio::select! {
        biased;
        ran = &mut running => ran.map(|ran| Outcome { interrupted: true, ..ran }),
        _ = signals.next() => Err(stopped(name)),
        () = bed.driver.way.env.clock.sleep(GRACE) => Err(stopped(name)),
    }
}

async fn run(bed: &Bed, steps: &[Step], style: Style) -> Result<Outcome, CliError> {
    let mut outcome = Outcome::default();
    print(&report::head(style))?;
    for step in steps {
        if bed.driver.pace.is_stopped() {
            break;
        }
        let bar = bar();
        let worked = tokio::select! {
            biased;
            worked = one(bed, step) => worked,
            never = show(&bar, bed, step) => match never {},
        };
        bar.finish_and_clear();
        let figures = worked.map_err(FilesError::Wrong)?;
        outcome.ops += figures.achieved.ops;
        outcome.errors += figures.achieved.errors;
        print(&figures.shown(style))?;
    }
    Ok(outcome)
}

async fn one(bed: &Bed, step: &Step) -> Result<Figures, String> {
    let driver = &bed.driver;
    driver.prepare_for(&step.workload).await?;
    let tally = driver.measure(step.workload, bed.pace_of(step)).await?;
    let mut figures = Figures::new(step, bed.protocol(), &tally);
    figures.interrupted = driver.pace.is_stopped();
    Ok(figures)
}

/// A line on standard error, hidden if that is no terminal.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    let style =
        ProgressStyle::with_template("{spinner} {msg}  {elapsed}").expect("a good template");
    bar.set_style(style);
    bar
}

/// Shows how many operations have ended, again and again.
async fn show(bar: &ProgressBar, bed: &Bed, step: &Step) -> Infallible {
    loop {
        let (name, ended) = (step.workload.name, bed.driver.ended.get());
        bar.set_message(format!("{name}: {ended} operations"));
        bar.tick();
        bed.driver.way.env.clock.sleep(BEAT).await;
    }
}
