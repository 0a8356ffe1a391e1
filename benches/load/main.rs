//! The load driver: measures what a workload costs a server, on any endpoint, in the same way.
//!
//! Main path: `args` (command line) → `workloads` (the table) → `run` (prepare, measure) → the
//! driver, which `blockyard bench` has too (`src/cli/bench/driver`). `procstat` reads CPU and
//! memory of the server, `syncs` its count of disk syncs, `hold` waits for a profiler, `report`
//! prints.
//!
//! Invariants: CPU time is divided by completed operations, never by time; every answer is
//! verified, and wrong bytes count as errors.
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

mod args;
mod hold;
mod procstat;
mod report;
mod run;
mod syncs;
mod workloads;

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use blockyard::auth::AccountKeys;
use blockyard::cli::bench::driver::client::Way;
use blockyard::cli::bench::driver::data::Pool;
use blockyard::cli::bench::driver::run::Driver;
use blockyard::cli::bench::driver::shared::Pace;
use blockyard::cli::bench::driver::signing::shared_key::SharedKey;
use blockyard::cli::bench::driver::signing::sigv4::SigV4;
use blockyard::cli::bench::driver::target::Dialect;
use blockyard::cli::bench::driver::target::Target;
use blockyard::cli::bench::driver::workload::Kind;
use blockyard::cli::bench::driver::workload::Workload;
use blockyard::env::Env;
use blockyard::env::OsClock;
use blockyard::env::OsRand;
use blockyard::env::Tasks;
use clap::Parser;
use http::Uri;
use tokio::runtime::Builder;

use crate::args::Args;
use crate::args::Protocol;
use crate::run::Measured;

/// Largest body of any workload.
const LARGEST: usize = 16 << 20;

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
    match runtime.block_on(drive(args)) {
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
    let mut driver = driver(&args)?;
    driver.pace = pace;
    driver.first = args.first;
    driver.report = |text| eprintln!("  {text}");
    let (pid, metrics, hold) = (args.pid, args.metrics, args.hold);
    let measured = Measured { driver, pid, metrics, wait: Duration::from_secs(args.wait), hold };
    let mut rows = Vec::new();
    let mut errors = 0;
    for (i, workload) in workloads.iter().enumerate() {
        let (place, all) = (i + 1, workloads.len());
        let length = match args.seconds {
            Some(seconds) => format!("{seconds} seconds"),
            None if args.until_closed => "until its input is closed".to_owned(),
            None => format!("{} operations", workload.ops),
        };
        eprintln!("[{place}/{all}] {}: {length}, {} at once", workload.name, workload.concurrency);
        let figures = measured.run(workload).await?;
        let line = serde_json::to_string(&figures).map_err(|e| e.to_string())?;
        println!("{line}");
        errors += figures.achieved.errors;
        rows.push(figures.row());
    }
    eprintln!("{}", report::HEAD);
    for row in rows {
        eprintln!("{row}");
    }
    Ok(errors)
}

/// The driver of the endpoint.
fn driver(args: &Args) -> Result<Driver, String> {
    let endpoint = &args.endpoint;
    let uri: Uri = endpoint.parse().map_err(|e| format!("{endpoint}: {e}"))?;
    if uri.scheme_str() != Some("http") {
        return Err(format!("{endpoint}: only http:// is driven"));
    }
    let authority = uri.authority().ok_or_else(|| format!("{endpoint}: no host"))?;
    let (host, port) = (authority.host().trim_matches(['[', ']']), authority.port_u16());
    let (account, key) = (args.account.clone(), args.key.clone());
    let dialect = match args.protocol {
        Protocol::Azure => {
            let keys = AccountKeys::of_any_length(&[key]).map_err(|e| e.to_string())?;
            Dialect::Azure(SharedKey::new(account, keys))
        }
        Protocol::S3 => {
            let region = args.region.clone();
            Dialect::S3(SigV4 { access_key: account, secret: key, token: None, region })
        }
    };
    let clock = Arc::new(OsClock::new());
    let env = Env { clock, rand: Arc::new(OsRand), tasks: Tasks::new() };
    let way = Way { env, host: host.to_owned(), port: port.unwrap_or(80), tls: None };
    let mut target = Target::new(authority.as_str(), uri.path(), &args.container, dialect);
    target.crc64 = true;
    Ok(Driver::new(way, target, Pool::new(LARGEST)))
}

/// When workloads end, and their rate.
fn pace(args: &Args) -> Result<Pace, String> {
    let mut pace = Pace { rate: args.rate, each_second: args.each_second, ..Pace::default() };
    if pace.rate.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
        return Err("--rate must be above 0".to_owned());
    }
    if let Some(seconds) = args.seconds {
        pace.time = Some(Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())?);
    }
    if args.until_closed {
        pace.endless = true;
        let closed = pace.stop.clone();
        std::thread::spawn(move || {
            let mut some = [0; 64];
            while std::io::stdin().read(&mut some).is_ok_and(|length| length > 0) {}
            closed.cancel();
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
        if let (
            Some(prefix),
            Kind::Put(set)
            | Kind::PutSigned(set)
            | Kind::Blocks(set, _)
            | Kind::Get(set)
            | Kind::Audit(set),
        ) = (&args.prefix, &mut workload.kind)
        {
            // Leaked: names are needed as long as the program runs.
            set.name = prefix.clone().leak();
        }
        chosen.push(workload);
    }
    Ok(chosen)
}
