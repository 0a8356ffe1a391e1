//! `blockyard backup` and `blockyard restore`.

use std::path::PathBuf;
use std::sync::Arc;

use indicatif::HumanBytes;
use indicatif::ProgressBar;
use indicatif::ProgressStyle;
use serde_json::json;

use crate::env::Env;
use crate::env::OsClock;
use crate::env::OsRand;
use crate::env::Tasks;
use crate::env::make_files_private;

use super::backup;
use super::backup::Source;
use super::backup::Step;
use super::backup::Summary;
use super::cli::AdminArgs;
use super::command::print;
use super::config::DATA;
use super::config::master_key_beside;
use super::error::NodeError;
use super::storage::Storage;

/// Arguments of `backup`.
#[derive(clap::Args, Debug)]
pub struct BackupArgs {
    /// The directory of the backup: an empty or new one, or the last backup. The node writes it, so
    /// it is a directory of the node's machine
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// The node is stopped: reads its data directories, all of which are given with --data
    #[arg(long)]
    pub stopped: bool,
    /// Print the outcome as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Arguments of `restore`.
#[derive(clap::Args, Debug)]
pub struct RestoreArgs {
    /// The directory of the backup
    #[arg(value_name = "BACKUP")]
    pub backup: PathBuf,
    /// An empty or new directory, which becomes the data directory of the store
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// The master key file of the store [default: DIR with .key behind its name]
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_MASTER_KEY_FILE")]
    pub master_key_file: Option<PathBuf>,
    /// Print the outcome as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs `blockyard backup`.
///
/// # Errors
/// [`NodeError`].
pub async fn backup(args: &BackupArgs) -> Result<(), NodeError> {
    make_files_private();
    let env = env();
    let mut data = args.admin.place.data.clone();
    if data.is_empty() {
        data.push(PathBuf::from(DATA));
    }
    let storage = Storage::open_for_backup(&data, &env).await?;
    let bar = Bar::default();
    let source = Source::stopped(&storage);
    let made = backup::backup(&source, &args.directory, &env, &|step| bar.show(step)).await;
    drop(bar);
    storage.capacity.shutdown().await;
    env.tasks.shutdown().await;
    let summary = made?;
    tell(&summary, args.json, &format!("{} is complete", args.directory.display()))
}

/// Runs `blockyard restore`.
///
/// # Errors
/// [`NodeError`].
pub async fn restore(args: &RestoreArgs) -> Result<(), NodeError> {
    make_files_private();
    let key = match &args.master_key_file {
        Some(key) => key.clone(),
        None => master_key_beside(&args.directory)?,
    };
    let env = env();
    let bar = Bar::default();
    let from = (args.backup.as_path(), key.as_path());
    let made = backup::restore(from, &args.directory, &env, &|step| bar.show(step)).await;
    drop(bar);
    env.tasks.shutdown().await;
    let to = args.directory.display();
    tell(&made?, args.json, &format!("{to} is restored: serve it with --data {to}"))
}

fn env() -> Env {
    Env { clock: Arc::new(OsClock::new()), rand: Arc::new(OsRand), tasks: Tasks::new() }
}

fn tell(summary: &Summary, json: bool, what: &str) -> Result<(), NodeError> {
    if json {
        return print(&format!("{}\n", json!(summary)));
    }
    let Summary { begun, extents, copied_bytes, .. } = summary;
    print(&format!(
        "{what}\nit holds what was acknowledged before {begun}: {extents} extents, {} copied now\n",
        HumanBytes(*copied_bytes)
    ))
}

/// A bar on standard error, hidden when that is no terminal.
#[derive(Debug)]
struct Bar(ProgressBar);

impl Default for Bar {
    fn default() -> Self {
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} extents  {msg}");
        bar.set_style(style.expect("a good template"));
        Self(bar)
    }
}

impl Bar {
    fn show(&self, step: Step) {
        self.0.set_length(u64::try_from(step.extents_total).unwrap_or(u64::MAX));
        self.0.set_position(u64::try_from(step.extents).unwrap_or(u64::MAX));
        self.0.set_message(HumanBytes(step.copied_bytes).to_string());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
