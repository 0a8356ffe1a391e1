//! From the command line to an exit code.

use clap::CommandFactory;

use super::account;
use super::args::Cli;
use super::args::Command;
use super::azurite;
use super::azurite::Services;
use super::backup;
use super::bench::bench;
use super::check;
use super::cluster;
use super::completions;
use super::console;
use super::disk;
use super::error::CliError;
use super::fault;
use super::files::cat::cat;
use super::files::cp::cp;
use super::files::ls::ls;
use super::files::rm::rm;
use super::files::stat::stat;
use super::health;
use super::key;
use super::keygen;
use super::man;
use super::node;
use super::partitions;
use super::runtime::block_on;
use super::sas;
use super::scope;
use super::serve;
use super::status;
use super::trace;
use super::user;

/// Runs the command and returns the exit code. The caller prints the error.
///
/// # Errors
/// [`CliError`].
pub fn run(cli: Cli) -> Result<i32, CliError> {
    match cli.command {
        Command::Serve(args) => serve::run(*args),
        Command::Node(args) => node::run(*args),
        Command::Cluster(command) => block_on(cluster::cluster(&command))?.map(|()| 0),
        Command::Azurite(args) => azurite::run(*args, Services::All),
        Command::AzuriteBlob(args) => azurite::run(*args, Services::Blob),
        Command::Check(args) => check::run(&args),
        Command::Keygen(args) => keygen::run(&args),
        Command::Sas(args) => sas::run(&args),
        Command::Ls(args) => Ok(block_on(ls(&args))?.map(|()| 0)?),
        Command::Cp(args) => Ok(block_on(cp(&args))?.map(|()| 0)?),
        Command::Rm(args) => Ok(block_on(rm(&args))?.map(|()| 0)?),
        Command::Cat(args) => Ok(block_on(cat(&args))?.map(|()| 0)?),
        Command::Stat(args) => Ok(block_on(stat(&args))?.map(|()| 0)?),
        Command::Bench(args) => block_on(bench(&args))?,
        Command::Health(args) => health::run(&args),
        Command::Status(args) => block_on(status::status(&args))?,
        Command::Account(command) => block_on(account::account(&command))?.map(|()| 0),
        Command::User(command) => block_on(user::user(&command))?.map(|()| 0),
        Command::Scope(command) => block_on(scope::scope(&command))?.map(|()| 0),
        Command::Partitions(command) => block_on(partitions::partitions(&command))?.map(|()| 0),
        Command::Backup(args) => block_on(backup::backup(&args))?.map(|()| 0),
        Command::Restore(args) => block_on(backup::restore(&args))?.map(|()| 0),
        Command::Key(command) => block_on(key::key(&command))?.map(|()| 0),
        Command::Disk(command) => block_on(disk::disk(&command))?.map(|()| 0),
        Command::Console(args) => block_on(console::console(&args))?.map(|()| 0),
        Command::Trace(args) => block_on(trace::trace(&args))?.map(|()| 0),
        Command::Fault(command) => block_on(fault::fault(&command))?.map(|()| 0),
        Command::Completions(args) => completions::run(&args, Cli::command()).map(|()| 0),
        Command::Man(args) => man::run(&args, Cli::command()).map(|()| 0),
    }
}
