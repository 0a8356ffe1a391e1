//! From the command line to an exit code.

use std::future::Future;
use std::io::Write;
use std::sync::Arc;

use crate::admin::new_key;
use crate::env::Clock;
use crate::env::Env;
use crate::env::OsClock;
use crate::env::OsRand;
use crate::env::Tasks;
use crate::env::make_files_private;
use crate::telemetry::log;

use super::account_command;
use super::admin_address::AdminPlace;
use super::admin_command;
use super::backup_command;
use super::check;
use super::cli::CheckArgs;
use super::cli::Cli;
use super::cli::Command;
use super::cli::HealthArgs;
use super::cli::ServeArgs;
use super::config::Config;
use super::disk_command;
use super::disks::Given;
use super::error::NodeError;
use super::health;
use super::key_command;
use super::open_files;
use super::partition_command;
use super::sas;
use super::sas::SasArgs;
use super::serve::Ended;
use super::serve::serve;
use super::variables;

/// Runs the command and returns the exit code; what went wrong is for the caller to print.
///
/// # Errors
/// [`NodeError`].
pub fn run(cli: Cli) -> Result<i32, NodeError> {
    match cli.command {
        Command::Serve(args) => run_serve(*args),
        Command::Check(args) => run_check(&args),
        Command::Keygen => run_keygen(),
        Command::Sas(args) => run_sas(&args),
        Command::Health(args) => run_health(&args),
        Command::Account(command) => block_on(account_command::account(&command))?.map(|()| 0),
        Command::Partitions(command) => {
            block_on(partition_command::partitions(&command))?.map(|()| 0)
        }
        Command::Backup(args) => block_on(backup_command::backup(&args))?.map(|()| 0),
        Command::Restore(args) => block_on(backup_command::restore(&args))?.map(|()| 0),
        Command::Key(command) => block_on(key_command::key(&command))?.map(|()| 0),
        Command::Disk(command) => block_on(disk_command::disk(&command))?.map(|()| 0),
        Command::Trace(args) => block_on(admin_command::trace(&args))?.map(|()| 0),
        Command::Fault(command) => block_on(admin_command::fault(&command))?.map(|()| 0),
    }
}

fn run_serve(args: ServeArgs) -> Result<i32, NodeError> {
    variables::check(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))?;
    make_files_private();
    // Of flags and variables; those of the file are not seen by others.
    let exposed = args.settings.account.as_ref().is_some_and(|accounts| !accounts.is_empty());
    let config = Config::load(args.settings, args.config.as_deref())?;
    log::start(&config.log, config.log_format)?;
    if exposed && config.accounts.iter().any(|account| !account.is_public()) {
        tracing::warn!(
            "keys given with --account or BLOCKYARD_ACCOUNT can be read by others on this machine: \
             use --account-file"
        );
    }
    open_files::raise();
    match block_on(serve(config))?? {
        Ended::Drained => Ok(0),
        Ended::Cut => Ok(1),
    }
}

fn run_check(args: &CheckArgs) -> Result<i32, NodeError> {
    let env = Env { clock: Arc::new(OsClock::new()), rand: Arc::new(OsRand), tasks: Tasks::new() };
    let checked = block_on(async {
        let key = args.master_key_file.as_deref();
        let mut terminal = check::Terminal::default();
        let given = Given { data: &args.data, add: &[], without: &args.without_disk };
        let report = check::check((given, key), &env, &mut terminal).await;
        env.tasks.shutdown().await;
        report
    })?;
    let report = match checked {
        Ok(report) => report,
        Err(error) => {
            warn(&format!("blockyard: cannot check: {error}\n"))?;
            return Ok(2);
        }
    };
    if args.json {
        let json = serde_json::to_string(&report).map_err(|error| system("the report", &error))?;
        print(&format!("{json}\n"))?;
    } else {
        print(&report.to_string())?;
    }
    Ok(i32::from(!report.is_sound()))
}

fn run_keygen() -> Result<i32, NodeError> {
    let key = new_key().map_err(|error| system("randomness", &error))?;
    print(&format!("{key}\n"))?;
    Ok(0)
}

fn run_sas(args: &SasArgs) -> Result<i32, NodeError> {
    let minted = sas::mint(args, OsClock::new().now())?;
    if let Some(warning) = &minted.warning {
        warn(&format!("blockyard: warning: {warning}\n"))?;
    }
    if args.json {
        let json =
            serde_json::to_string(&minted).map_err(|error| system("the signature", &error))?;
        print(&format!("{json}\n"))?;
    } else {
        print(&format!("{}\n", minted.url))?;
    }
    Ok(0)
}

fn run_health(args: &HealthArgs) -> Result<i32, NodeError> {
    let address = &args.place.admin_listen;
    let asked = async { health::is_ready(&AdminPlace::new(&args.place)?).await };
    let (code, answer) = match block_on(asked)? {
        Ok(true) => (0, "ready".to_owned()),
        Ok(false) => (1, "not ready".to_owned()),
        Err(error) => (1, format!("no answer from {address}: {error}")),
    };
    print(&format!("{answer}\n"))?;
    Ok(code)
}

/// Prints what the user asked for.
pub(super) fn print(text: &str) -> Result<(), NodeError> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| system("standard output", &error))
}

/// Prints what is not the answer.
fn warn(text: &str) -> Result<(), NodeError> {
    let written = std::io::stderr().write_all(text.as_bytes());
    written.map_err(|error| system("standard error", &error))
}

pub(super) fn block_on<F: Future>(future: F) -> Result<F::Output, NodeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| system("threads", &error))?;
    let output = runtime.block_on(future);
    // What still runs was cut on purpose.
    runtime.shutdown_background();
    Ok(output)
}

fn system(what: &'static str, reason: &dyn std::fmt::Display) -> NodeError {
    NodeError::System { what, reason: reason.to_string() }
}
