//! `blockyard backup` and `blockyard restore`.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use indicatif::HumanBytes;
use indicatif::ProgressBar;
use indicatif::ProgressStyle;
use serde_json::json;

use crate::admin::BackupView;
use crate::env::Clock;
use crate::env::Env;
use crate::env::OsClock;
use crate::env::OsRand;
use crate::env::Tasks;
use crate::env::make_files_private;
use crate::node::backup;
use crate::node::backup::BackupError;
use crate::node::backup::Progress;
use crate::node::backup::RestoreFrom;
use crate::node::backup::Source;
use crate::node::backup::Step;
use crate::node::backup::Summary;
use crate::node::config::DATA;
use crate::node::config::master_key_beside;
use crate::node::storage::Storage;

use super::admin::args::AdminArgs;
use super::admin::client::AdminClient;
use super::admin::client::ClientError;
use super::error::CliError;
use super::output::print;

const PATH: &str = "/admin/backup";
/// How often the state of a running backup is requested.
const POLL_EVERY: Duration = Duration::from_millis(200);

/// Arguments of `backup`.
#[derive(clap::Args, Debug)]
pub struct BackupArgs {
    /// The directory of the backup: an empty or new one, or the last backup. The node writes it, so
    /// it must be on the node's machine
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// The node is stopped: the command itself reads the data directories, all of which are given
    /// with --data
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
/// [`CliError`].
pub(super) async fn backup(args: &BackupArgs) -> Result<(), CliError> {
    let directory = std::path::absolute(&args.directory)
        .map_err(|error| CliError::System { what: "the directory", reason: error.to_string() })?;
    let summary = if args.stopped {
        of_stopped(args, &directory).await?
    } else {
        of_running(args, &directory).await?
    };
    report(&summary, args.json, &format!("{} is complete", args.directory.display()))
}

async fn of_stopped(args: &BackupArgs, directory: &Path) -> Result<Summary, CliError> {
    make_files_private();
    let env = env();
    let mut data = args.admin.place.data.clone();
    if data.is_empty() {
        data.push(PathBuf::from(DATA));
    }
    let storage = Storage::open_for_backup(&data, &env).await?;
    let bar = Bar::default();
    let source = Source::stopped(&storage);
    let made = backup::backup(&source, directory, &env, bar.progress()).await;
    bar.end();
    storage.capacity.shutdown().await;
    env.tasks.shutdown().await;
    Ok(made?)
}

async fn of_running(args: &BackupArgs, directory: &Path) -> Result<Summary, CliError> {
    let Some(directory) = directory.to_str() else {
        return Err(BackupError::NotText(directory.to_owned()).into());
    };
    let client = AdminClient::new(&args.admin)?;
    let body = json!({ "directory": directory });
    let begun = client.call(Method::POST, PATH, Some(&body)).await?;
    let number = begun["number"].clone();
    let (bar, clock) = (Bar::default(), OsClock::new());
    let failed = |code: &str, message: &str| {
        CliError::from(ClientError::Refused { code: code.to_owned(), message: message.to_owned() })
    };
    loop {
        clock.sleep(POLL_EVERY).await;
        let view = client.call(Method::GET, PATH, None).await.map_err(|error| {
            let ClientError::NoAnswer { error, .. } = error else { return error.into() };
            failed(
                "BackupFailed",
                &format!("the node does not answer any more ({error}): run the command again"),
            )
        })?;
        let view: BackupView = serde_json::from_value(view).map_err(|error| CliError::System {
            what: "the node's answer",
            reason: error.to_string(),
        })?;
        if number != view.number {
            return Err(failed(
                "BackupFailed",
                "another backup was begun meanwhile: the node's log says what became of this one",
            ));
        }
        let BackupView { extents, extents_total, copied_bytes, .. } = view;
        bar.show(Step { extents, extents_total, copied_bytes });
        if let Some(error) = view.error {
            return Err(failed("BackupFailed", &error));
        }
        if let Some(summary) = view.summary {
            let read = serde_json::from_value(summary);
            let what = "the node's answer";
            let malformed =
                |error: serde_json::Error| CliError::System { what, reason: error.to_string() };
            return read.map_err(malformed);
        }
    }
}

/// Runs `blockyard restore`.
///
/// # Errors
/// [`CliError`].
pub(super) async fn restore(args: &RestoreArgs) -> Result<(), CliError> {
    make_files_private();
    let key = match &args.master_key_file {
        Some(key) => key.clone(),
        None => master_key_beside(&args.directory)?,
    };
    let env = env();
    let bar = Bar::default();
    let from = RestoreFrom { backup: &args.backup, master_key_file: &key };
    let made = backup::restore(from, &args.directory, &env, bar.progress()).await;
    bar.end();
    env.tasks.shutdown().await;
    let to = args.directory.display();
    report(&made?, args.json, &format!("{to} is restored: serve it with --data {to}"))
}

fn env() -> Env {
    Env { clock: Arc::new(OsClock::new()), rand: Arc::new(OsRand), tasks: Tasks::new() }
}

fn report(summary: &Summary, json: bool, what: &str) -> Result<(), CliError> {
    if json {
        return print(&format!("{}\n", json!(summary)));
    }
    let Summary { begun, extents, copied_bytes, .. } = summary;
    print(&format!(
        "{what}\nit holds what was acknowledged before {begun}: {extents} extents, {} copied now\n",
        HumanBytes(*copied_bytes)
    ))
}

/// A progress bar on standard error, hidden if that is no terminal.
#[derive(Clone, Debug)]
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
    fn progress(&self) -> Progress {
        let bar = self.clone();
        Arc::new(move |step| bar.show(step))
    }

    /// Removes it from the terminal.
    fn end(&self) {
        self.0.finish_and_clear();
    }

    fn show(&self, step: Step) {
        self.0.set_length(u64::try_from(step.extents_total).unwrap_or(u64::MAX));
        self.0.set_position(u64::try_from(step.extents).unwrap_or(u64::MAX));
        self.0.set_message(HumanBytes(step.copied_bytes).to_string());
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use clap::Args;
    use clap::Command;
    use clap::FromArgMatches;

    use super::*;

    #[tokio::test]
    async fn directory_that_is_not_text_is_refused() {
        let command = BackupArgs::augment_args(Command::new("backup"));
        let directory = OsStr::from_bytes(b"/mnt/\xff");
        let words = [OsStr::new("backup"), directory];
        let mut args = BackupArgs::from_arg_matches(&command.get_matches_from(words)).unwrap();
        args.admin.admin_token = Some("x".to_owned());
        args.admin.place.admin_listen = "127.0.0.1:9".parse().unwrap();
        let refused = backup(&args).await.unwrap_err().to_string();
        assert!(refused.contains("UTF-8"), "{refused}");
    }
}
