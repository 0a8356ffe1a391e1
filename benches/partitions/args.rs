//! The command line.

use std::path::PathBuf;

use clap::Parser;
use clap::ValueEnum;

/// Measures splits of small and large partitions, and what many partitions cost.
///
/// Progress goes to standard error, a table to standard output and to the results.
#[derive(Debug, Parser)]
#[command(name = "partitions")]
pub(crate) struct Args {
    /// What to measure, in this order; `start` needs the store that `many` leaves.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "splits,many,start")]
    pub(crate) scene: Vec<Scene>,
    /// Rows of the partitions whose splits are measured.
    #[arg(long, value_delimiter = ',', default_value = "10000,10000000")]
    pub(crate) rows: Vec<u64>,
    /// Splits into 2 of each of these partitions.
    #[arg(long, default_value_t = 200)]
    pub(crate) rounds: u64,
    /// Splits into 16 of each of these partitions.
    #[arg(long, default_value_t = 20)]
    pub(crate) wide: u64,
    /// Partitions to split a store into.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) count: u64,
    /// Rows of that store.
    #[arg(long, default_value_t = 200_000)]
    pub(crate) many_rows: u64,
    /// Names that are written and deleted before they are listed.
    #[arg(long, default_value_t = 5_000_000)]
    pub(crate) removed: u64,
    /// Requests of the light load over all of its partitions.
    #[arg(long, default_value_t = 40_000)]
    pub(crate) requests: u64,
    /// The most seconds to wait for work in the background before idle CPU is counted.
    #[arg(long, default_value_t = 300)]
    pub(crate) settle: u64,
    /// Seconds over which idle CPU is counted.
    #[arg(long, default_value_t = 20)]
    pub(crate) idle: u64,
    /// Folder of the disk to measure on. Files made there are removed at the end.
    #[arg(long, default_value = "target")]
    pub(crate) folder: PathBuf,
    /// Folder of the results.
    #[arg(long, default_value = "benches/results")]
    pub(crate) results: PathBuf,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
    /// Given by test runners.
    #[arg(long, hide = true)]
    pub(crate) list: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scene {
    /// Pauses of splits, by rows.
    Splits,
    /// Thousands of partitions in one process.
    Many,
    /// A server started on them.
    Start,
    /// A list over deleted names.
    Removed,
}

impl Scene {
    /// Its key in the results.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Splits => "1-splits",
            Self::Many => "2-many",
            Self::Start => "3-start",
            Self::Removed => "4-removed",
        }
    }
}
