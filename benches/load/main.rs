//! The load driver: measures what a workload costs a server, on any endpoint, in the same way.
//!
//! Main path: `args` (command line) → `workloads` (the table) → `run` (prepare, distribute,
//! measure) → `connection` (operations in order, at a pace) → `step` (one operation; `churn`
//! compares with earlier ones) → `client` (one socket) → `target` (the request in the dialect) →
//! `signing`. `tally` counts, `procstat` reads CPU and memory of the server, `syncs` reads its
//! count of disk syncs, `hold` waits for a profiler, `report` prints.
//!
//! Invariants: CPU time is divided by completed operations, never by time; every answer is
//! verified, and wrong bytes count as errors; the driver shares only third-party crates with the
//! server, so it checks independently.
//!
//! It does not start or compare servers: `benches/compare` does.
//!
//! ```text
//! cargo bench --bench load -- --endpoint http://127.0.0.1:10000/devstoreaccount1 \
//!   --workload put4k --pid N
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]
#![expect(
    clippy::disallowed_methods,
    reason = "a client outside of the server: it measures real time and reads /proc"
)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "numbers drawn below small bounds on 64-bit machines"
)]

mod args;
mod call;
mod churn;
mod client;
mod connection;
mod data;
mod hold;
mod procstat;
mod report;
mod run;
mod signing;
mod step;
mod syncs;
mod tally;
mod target;
mod workloads;

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Parser;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use crate::args::Args;
use crate::args::Protocol;
use crate::connection::Pace;
use crate::run::Driver;
use crate::signing::shared_key::SharedKey;
use crate::signing::sigv4::SigV4;
use crate::target::Dialect;
use crate::target::Target;
use crate::workloads::Kind;
use crate::workloads::Workload;

fn main() -> ExitCode {
    let args = Args::parse();
    // Test runners start every bench target without `--bench`: there is nothing to test.
    if args.list || !args.bench {
        eprintln!("the load driver runs under: cargo bench --bench load -- --help");
        return ExitCode::SUCCESS;
    }
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match LocalSet::new().block_on(&runtime, drive(args)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(errors) => {
            eprintln!("{errors} operations failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all requested workloads. Returns the number of failed operations.
async fn drive(args: Args) -> Result<u64, String> {
    let workloads = chosen(&args)?;
    let pace = pace(&args)?;
    let dialect = match args.protocol {
        Protocol::Azure => Dialect::Azure(SharedKey::new(&args.account, &args.key)?),
        Protocol::S3 => {
            Dialect::S3(SigV4 { access_key: args.account, secret: args.key, region: args.region })
        }
    };
    let target = Target::new(&args.endpoint, &args.container, dialect)?;
    let mut driver = Driver::new(target, args.pid, args.metrics);
    driver.wait = Duration::from_secs(args.wait);
    driver.pace = pace;
    driver.first = args.first;
    driver.hold = args.hold;
    let mut rows = Vec::new();
    let mut errors = 0;
    for (i, workload) in workloads.iter().enumerate() {
        let (place, all) = (i + 1, workloads.len());
        let length = match args.seconds {
            Some(seconds) => format!("{seconds} seconds"),
            None if args.until_closed => "until told to end".to_owned(),
            None => format!("{} operations", workload.ops),
        };
        eprintln!("[{place}/{all}] {}: {length}, {} at once", workload.name, workload.concurrency);
        let figures = driver.run(workload).await?;
        let line = serde_json::to_string(&figures).map_err(|e| e.to_string())?;
        println!("{line}");
        errors += figures.errors;
        rows.push(figures.row());
    }
    eprintln!("{}", report::HEAD);
    for row in rows {
        eprintln!("{row}");
    }
    Ok(errors)
}

/// When workloads end, and their rate.
fn pace(args: &Args) -> Result<Pace, String> {
    let mut pace = Pace { rate: args.rate, each_second: args.each_second, ..Pace::counted() };
    if pace.rate.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
        return Err("--rate must be above 0".to_owned());
    }
    if let Some(seconds) = args.seconds {
        pace.time = Some(Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())?);
    }
    if args.until_closed {
        let closed = Arc::new(AtomicBool::new(false));
        pace.closed = Some(Arc::clone(&closed));
        std::thread::spawn(move || {
            let mut some = [0; 64];
            while std::io::stdin().read(&mut some).is_ok_and(|length| length > 0) {}
            closed.store(true, Ordering::Relaxed);
        });
    }
    Ok(pace)
}

/// The requested workloads, with the settings of the command line.
fn chosen(args: &Args) -> Result<Vec<Workload>, String> {
    let mut chosen = Vec::new();
    for name in &args.workload {
        let mut workload = workloads::find(name).ok_or_else(|| {
            let known: Vec<_> = workloads::ALL.iter().map(|w| w.name).collect();
            format!("no workload {name}; there are {}", known.join(", "))
        })?;
        workload.concurrency = args.concurrency.unwrap_or(workload.concurrency).max(1);
        let smallest = workload.ops.min(workload.concurrency as u64);
        workload.ops = args.ops.unwrap_or((workload.ops / args.divide.max(1)).max(smallest));
        if let (Some(prefix), Kind::Put(set) | Kind::Get(set) | Kind::Audit(set)) =
            (&args.prefix, &mut workload.kind)
        {
            // Leaked: names are needed as long as the program runs.
            set.name = prefix.clone().leak();
        }
        chosen.push(workload);
    }
    Ok(chosen)
}
