//! Partitions at scale: the cost of a split by the size of the partition, and the cost of ten
//! thousand partitions.
//!
//! Main path: `args` (command line) → one file for each scene: `pauses` (splits of small and large
//! partitions), `many` (a store split into thousands, under a light load), `started` (a server
//! started on that store), `removed` (a list over removed names) → `report`
//! (`benches/results/partitions.md` and `.json`). `bed` opens a store as a node does, `rows` fills
//! it, `trickle` writes at a low rate, `floor` measures a sync of the same disk, `process` reads
//! `/proc`.
//!
//! Invariants: the store has the product's defaults, its coordinator and a real disk; the floor is
//! measured between the splits, on the same disk; a failed request fails the run.
//!
//! No figure makes it fail.
//!
//! ```text
//! cargo bench --bench partitions -- --rows 10000,10000000 --count 10000
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program")]
#![expect(
    clippy::disallowed_methods,
    reason = "it measures real time and reads /proc, outside of the server"
)]
#![expect(clippy::cast_precision_loss, reason = "figures for people")]

mod args;
mod bed;
mod floor;
mod many;
mod pauses;
mod process;
mod removed;
mod report;
mod rows;
mod started;
mod trickle;

use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::Runtime;

use crate::args::Args;
use crate::args::Scene;
use crate::report::Report;

fn main() -> ExitCode {
    let args = Args::parse();
    // Test runners start every bench target without `--bench`: there is nothing to test.
    if args.list || !args.bench {
        eprintln!("this bench runs under: cargo bench --bench partitions -- --help");
        return ExitCode::SUCCESS;
    }
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    std::fs::create_dir_all(&args.folder).map_err(|e| e.to_string())?;
    let folder = tempfile::tempdir_in(&args.folder).map_err(|e| e.to_string())?;
    let mut report = Report::open(&args.results)?;
    for scene in &args.scene {
        // A runtime for each scene, so that tasks of one do not affect the next.
        let runtime = Runtime::new().map_err(|e| e.to_string())?;
        let load = process::load_average();
        let section = match scene {
            Scene::Splits => runtime.block_on(pauses::run(args, folder.path())),
            Scene::Many => runtime.block_on(many::run(args, folder.path())),
            Scene::Start => started::run(args, folder.path()),
            Scene::Removed => runtime.block_on(removed::run(args, folder.path())),
        }?;
        report.put(*scene, section, &load);
        report.save()?;
    }
    println!("{}", report.markdown());
    Ok(())
}
