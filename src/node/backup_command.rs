//! `blockyard backup` and `blockyard restore`.

use std::io::IsTerminal;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use http_body_util::BodyExt;
use serde_json::Value;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::sync::mpsc::Receiver;

use crate::admin::BackupControl;
use crate::env::Env;
use crate::env::OsClock;
use crate::env::OsRand;
use crate::env::Tasks;

use super::admin_client::AdminClient;
use super::admin_client::ClientError;
use super::backup;
use super::backup::Manifest;
use super::backup::Source;
use super::backup::Step;
use super::cli::AdminArgs;
use super::command::print;
use super::config::DATA;
use super::error::NodeError;
use super::storage::Storage;

/// Lines that wait for whoever shows them.
const LINES: usize = 16;

/// Arguments of `backup`.
#[derive(clap::Args, Debug)]
pub struct BackupArgs {
    /// The directory of the backup: an empty or new one, or the last backup, which is brought up to date. Of a running node it is
    /// one of the node's machine
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// The node does not run: reads its data directories, given with --data in the order `serve` was given them
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
    /// An empty or new directory, which becomes the only data directory of the store
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Print the outcome as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs `blockyard backup`.
///
/// # Errors
/// [`NodeError`].
pub async fn backup(args: &BackupArgs) -> Result<(), NodeError> {
    let directory = std::path::absolute(&args.directory)
        .map_err(|error| NodeError::System { what: "the directory", reason: error.to_string() })?;
    let manifest = if args.stopped {
        let env = env();
        let mut data = args.admin.place.data.clone();
        if data.is_empty() {
            data.push(PathBuf::from(DATA));
        }
        let storage = Storage::open_for_check(&data, &env).await?;
        let made = backup::backup(&Source::stopped(&storage), &directory, &env, &show).await;
        storage.capacity.shutdown().await;
        env.tasks.shutdown().await;
        made?
    } else {
        of_running(args, &directory).await?
    };
    tell(&manifest, args.json, "backup complete")
}

/// Runs `blockyard restore`.
///
/// # Errors
/// [`NodeError`].
pub async fn restore(args: &RestoreArgs) -> Result<(), NodeError> {
    let env = env();
    let made = backup::restore(&args.backup, &args.directory, &env, &show).await;
    env.tasks.shutdown().await;
    tell(&made?, args.json, "restored")
}

fn env() -> Env {
    Env { clock: Arc::new(OsClock::new()), rand: Arc::new(OsRand), tasks: Tasks::new() }
}

async fn of_running(args: &BackupArgs, directory: &std::path::Path) -> Result<Manifest, NodeError> {
    let client = AdminClient::new(&args.admin)?;
    let body = json!({ "directory": directory });
    let mut body = client.open(Method::POST, "/admin/backup", Some(&body)).await?.into_body();
    let mut rest = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { break };
        rest.extend_from_slice(&frame.into_data().unwrap_or_default());
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let line: Value = serde_json::from_slice(&line).unwrap_or_default();
            if let Some(error) = line["error"].as_str() {
                let (code, message) = ("BackupFailed".to_owned(), error.to_owned());
                return Err(ClientError::Refused { code, message }.into());
            }
            if let Ok(manifest) = serde_json::from_value(line["done"].clone()) {
                return Ok(manifest);
            }
            if let Ok(step) = serde_json::from_value(line) {
                show(step);
            }
        }
    }
    let message = "the node stopped before the backup was complete; run it again".to_owned();
    Err(ClientError::Refused { code: "BackupFailed".to_owned(), message }.into())
}

/// Shows how far it is, to people.
fn show(step: Step) {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        let Step { extents, extents_total, copied_bytes } = step;
        // A terminal that cannot be written to shows nothing: nothing is lost.
        drop(write!(out, "\r{extents} of {extents_total} extents, {copied_bytes} bytes copied"));
        if extents == extents_total {
            drop(writeln!(out));
        }
    }
}

fn tell(manifest: &Manifest, json: bool, what: &str) -> Result<(), NodeError> {
    if json {
        return print(&format!("{}\n", json!(manifest)));
    }
    let Manifest { began, extents, copied_bytes, .. } = manifest;
    print(&format!(
        "{what}: all that was acknowledged before {began}; {extents} extents, {copied_bytes} bytes copied\n"
    ))
}

/// Makes backups of the node that serves, one at a time.
#[derive(Debug)]
pub struct NodeBackups {
    source: Source,
    env: Env,
    running: Arc<tokio::sync::Mutex<()>>,
}

impl NodeBackups {
    /// Of this node.
    #[must_use]
    pub fn new(source: Source, env: Env) -> Self {
        Self { source, env, running: Arc::default() }
    }
}

#[async_trait]
impl BackupControl for NodeBackups {
    async fn begin(&self, directory: PathBuf) -> Option<Receiver<String>> {
        let running = Arc::clone(&self.running).try_lock_owned().ok()?;
        let (lines, answer) = mpsc::channel(LINES);
        let (source, env) = (self.source.clone(), self.env.clone());
        drop(self.env.tasks.spawn_part("backup", async move {
            let _one = running;
            tracing::info!(directory = %directory.display(), "backup begins");
            let told = lines.clone();
            // Who shows them slowly misses some.
            let progress = move |step: Step| drop(told.try_send(json!(step).to_string()));
            let stop = env.tasks.stopping();
            let made = tokio::select! {
                biased;
                made = backup::backup(&source, &directory, &env, &progress) => Some(made),
                () = stop.cancelled() => None,
            };
            let last = match made {
                Some(Ok(manifest)) => {
                    tracing::info!(directory = %directory.display(), ?manifest, "backup complete");
                    json!({ "done": manifest })
                }
                Some(Err(error)) => {
                    tracing::error!(directory = %directory.display(), %error, "no backup");
                    json!({ "error": error.to_string() })
                }
                None => json!({ "error": "the node stops" }),
            };
            drop(lines.send(last.to_string()).await);
        }));
        Some(answer)
    }
}
