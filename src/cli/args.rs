//! The command line. The arguments of each command are in its own file.

use clap::Parser;
use clap::Subcommand;

use super::account::args::AccountCommand;
use super::azurite::args::AzuriteArgs;
use super::backup::BackupArgs;
use super::backup::RestoreArgs;
use super::bench::BenchArgs;
use super::check::CheckArgs;
use super::cluster::ClusterCommand;
use super::completions::CompletionsArgs;
use super::console::ConsoleArgs;
use super::disk::DiskCommand;
use super::fault::FaultCommand;
use super::files::cat::CatArgs;
use super::files::cp::CpArgs;
use super::files::ls::LsArgs;
use super::files::rm::RmArgs;
use super::files::stat::StatArgs;
use super::health::HealthArgs;
use super::key::KeyCommand;
use super::keygen::KeygenArgs;
use super::man::ManArgs;
use super::node::args::NodeArgs;
use super::partitions::args::PartitionsCommand;
use super::sas::args::SasArgs;
use super::scope::ScopeCommand;
use super::serve::args::ServeArgs;
use super::status::StatusArgs;
use super::trace::TraceArgs;
use super::user::UserCommand;

/// A durable object store that speaks Azure Blob REST and S3 over the same bytes.
#[derive(Debug, Parser)]
#[command(name = "blockyard", version, about, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve Blob from one or more data directories
    Serve(Box<ServeArgs>),
    /// Run a node of a cluster, which has copies of extents, answers clients, or both
    Node(Box<NodeArgs>),
    /// Make a cluster, and show its nodes
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Serve in the place of Azurite: takes its flags, listens on its ports, prints its lines
    #[command(version)]
    Azurite(Box<AzuriteArgs>),
    /// The same without the ports of Queue and Table Storage
    #[command(version)]
    AzuriteBlob(Box<AzuriteArgs>),
    /// Verify the data directories of a stopped node; replays their journals as a start does. Exit
    /// code 0: no damage, 1: damage, 2: the check could not run
    Check(CheckArgs),
    /// Print a new random account key
    Keygen(KeygenArgs),
    /// Print a URL with a shared access signature for an account, container or blob; needs no
    /// running server
    Sas(Box<SasArgs>),
    /// List containers, folders and blobs of a blob service, or local files
    Ls(Box<LsArgs>),
    /// Copy files and blobs, in either direction or from blob to blob; goes on where it stopped
    Cp(Box<CpArgs>),
    /// Delete blobs, containers, or local files and folders
    Rm(Box<RmArgs>),
    /// Print blobs and local files to standard output
    Cat(Box<CatArgs>),
    /// Show the properties, metadata and tags of blobs and containers, or facts of local files
    Stat(Box<StatArgs>),
    /// Measure a blob or S3 service: operations a second, latencies, errors. Removes what it wrote
    Bench(Box<BenchArgs>),
    /// Ask a running node whether it can serve: exit code 0 yes, 1 no
    Health(HealthArgs),
    /// Show on one screen how a running node is: load, disks, partitions, warnings
    Status(StatusArgs),
    /// Create, show, change and delete accounts of a running node
    #[command(subcommand)]
    Account(AccountCommand),
    /// Create, show, change and delete users of accounts, who have access keys of S3
    #[command(subcommand)]
    User(UserCommand),
    /// Create, show, disable and enable encryption scopes that have keys of their own
    #[command(subcommand)]
    Scope(ScopeCommand),
    /// Show, split, merge, move and prepare the partitions of a running node's index
    #[command(subcommand)]
    Partitions(PartitionsCommand),
    /// Show, drain and remove the disks of a running node
    #[command(subcommand)]
    Disk(DiskCommand),
    /// Copy the store of a running or stopped node to a directory, or bring the copy up to date
    Backup(Box<BackupArgs>),
    /// Make a data directory from a backup
    Restore(RestoreArgs),
    /// Show and rotate the master keys, under which secrets in the store are sealed
    #[command(subcommand)]
    Key(KeyCommand),
    /// Print a link that logs a browser in to the console of a running node, once
    Console(ConsoleArgs),
    /// Show the requests to a running node live, one line each
    Trace(TraceArgs),
    /// Make requests to a running node fail on purpose, to test your client
    #[command(subcommand)]
    Fault(FaultCommand),
    /// Print the completions of this program for a shell
    Completions(CompletionsArgs),
    /// Write the manual pages of this program to a directory
    #[command(hide = true)]
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;

    /// Commands without `--json`, and why.
    const NO_JSON: [(&str, &str); 7] = [
        ("azurite", "it serves, and prints the lines of Azurite"),
        ("azurite-blob", "the same"),
        ("cat", "it prints the bytes of blobs"),
        ("completions", "it prints a script for a shell"),
        ("man", "it writes files"),
        ("node", "it serves; its log has --log-format json"),
        ("serve", "it serves; its log has --log-format json"),
    ];

    /// The names of all commands that do something, and whether they have `--json`.
    fn leaves(command: &clap::Command, name: &str, found: &mut Vec<(String, bool)>) {
        let mut inner = command.get_subcommands().peekable();
        if inner.peek().is_none() {
            let has = command.get_arguments().any(|argument| argument.get_long() == Some("json"));
            found.push((name.trim_start().to_owned(), has));
        }
        for one in inner {
            leaves(one, &format!("{name} {}", one.get_name()), found);
        }
    }

    #[test]
    fn every_command_that_says_something_says_it_in_json_too() {
        let mut found = Vec::new();
        leaves(&Cli::command(), "", &mut found);
        assert!(found.len() > 40, "{found:?}");
        let without: BTreeSet<_> =
            found.iter().filter(|(_, has)| !has).map(|(name, _)| name.as_str()).collect();
        let wanted = NO_JSON.map(|(name, why)| {
            assert!(!why.is_empty(), "{name}");
            name
        });
        assert_eq!(without, BTreeSet::from(wanted), "give it --json, or say here why not");
    }
}
