//! `blockyard check`: its progress and its report.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use indicatif::HumanBytes;
use indicatif::ProgressBar;
use indicatif::ProgressStyle;

use crate::env::Env;
use crate::env::OsClock;
use crate::env::OsRand;
use crate::env::Tasks;
use crate::node::check;
use crate::node::disks::Given;

use super::error::CliError;
use super::output::print;
use super::output::warn;
use super::runtime::block_on;

/// Arguments of `check`.
#[derive(clap::Args, Debug)]
pub struct CheckArgs {
    /// All data directories of the node, in the order `serve` was given them
    #[arg(required = true, value_name = "DIR")]
    pub data: Vec<PathBuf>,
    /// Lost disk of the store: its content counts as missing, and the report lists the lost
    /// content. Repeat for more
    #[arg(long, value_name = "DIR")]
    pub without_disk: Vec<PathBuf>,
    /// The node's master key file [default: the first data directory with .key behind its name]
    #[arg(long, value_name = "FILE", env = "BLOCKYARD_MASTER_KEY_FILE")]
    pub master_key_file: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs `blockyard check`, and returns the exit code.
///
/// # Errors
/// [`CliError`].
pub(super) fn run(args: &CheckArgs) -> Result<i32, CliError> {
    let env = Env { clock: Arc::new(OsClock::new()), rand: Arc::new(OsRand), tasks: Tasks::new() };
    let checked = block_on(async {
        let key = args.master_key_file.as_deref();
        let mut terminal = Terminal::default();
        let given = Given { data: &args.data, add: &[], without: &args.without_disk };
        let report = check::check(given, key, &env, &mut terminal).await;
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
        let json = serde_json::to_string(&report)
            .map_err(|error| CliError::system("the report", &error))?;
        print(&format!("{json}\n"))?;
    } else {
        print(&report.to_string())?;
    }
    Ok(i32::from(!report.is_sound()))
}

/// A progress bar on standard error, hidden if that is no terminal.
#[derive(Debug)]
struct Terminal {
    bar: ProgressBar,
    on_blobs: bool,
}

impl Default for Terminal {
    fn default() -> Self {
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} extents  {msg}");
        bar.set_style(style.expect("a good template"));
        Self { bar, on_blobs: false }
    }
}

impl check::Progress for Terminal {
    fn extents(&mut self, disk: &Path, done: u64, total: u64, bytes: u64) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.bar.set_message(format!("{}  {}", HumanBytes(bytes), disk.display()));
    }

    fn blobs(&mut self, done: u64, bytes: u64) {
        if !self.on_blobs {
            self.on_blobs = true;
            let style = ProgressStyle::with_template("{spinner} {pos} blobs  {msg}");
            self.bar.set_style(style.expect("a good template"));
        }
        self.bar.set_position(done);
        self.bar.set_message(HumanBytes(bytes).to_string());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
