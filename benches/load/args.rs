//! The command line of the load driver.

use clap::Parser;
use clap::ValueEnum;

/// Drives one endpoint with one or more workloads and reports what they cost the server.
///
/// A JSON line per workload goes to standard output, progress and a table to standard error.
#[derive(Debug, Parser)]
#[command(name = "load")]
pub(crate) struct Args {
    /// Endpoint: http://HOST:PORT/ACCOUNT for Azure path style, http://HOST:PORT for S3.
    #[arg(long, default_value = "http://127.0.0.1:10000/devstoreaccount1")]
    pub(crate) endpoint: String,
    /// Protocol to speak.
    #[arg(long, value_enum, default_value_t = Protocol::Azure)]
    pub(crate) protocol: Protocol,
    /// Account name, or S3 access key id.
    #[arg(long, default_value = "devstoreaccount1")]
    pub(crate) account: String,
    /// Account key in base64, or S3 secret; without it the public key of the development account.
    #[arg(long, default_value = DEVELOPMENT_KEY, hide_default_value = true)]
    pub(crate) key: String,
    /// Region in S3 signatures.
    #[arg(long, default_value = "us-east-1")]
    pub(crate) region: String,
    /// Container (bucket); made when it is not there.
    #[arg(long, default_value = "bench")]
    pub(crate) container: String,
    /// Workloads by name, comma-separated, run in this order.
    #[arg(long, value_delimiter = ',', default_value = "put4k,get4k,head,delete,list,mixed")]
    pub(crate) workload: Vec<String>,
    /// Operations, in place of each workload's own number.
    #[arg(long)]
    pub(crate) ops: Option<u64>,
    /// Divides each workload's own number of operations. At least one for each connection is kept.
    #[arg(long, default_value_t = 1)]
    pub(crate) divide: u64,
    /// Connections, in place of each workload's own number.
    #[arg(long)]
    pub(crate) concurrency: Option<usize>,
    /// Seconds after which each workload ends, in place of a number of operations; for workloads
    /// that do not use their blobs up. Failures do not end it then.
    #[arg(long)]
    pub(crate) seconds: Option<f64>,
    /// Ends each workload when standard input closes, in place of a number of operations. Failures
    /// do not end it.
    #[arg(long)]
    pub(crate) until_closed: bool,
    /// Operations that begin per second over all connections, even if earlier ones have not ended.
    /// Without it each connection begins the next operation when the last one ended.
    #[arg(long)]
    pub(crate) rate: Option<f64>,
    /// Shows figures for each second of a workload.
    #[arg(long)]
    pub(crate) each_second: bool,
    /// Number of each workload's first operation, to continue where another run ended.
    #[arg(long, default_value_t = 0)]
    pub(crate) first: u64,
    /// First part of the names, in place of the workload's own (one set of blobs only).
    #[arg(long)]
    pub(crate) prefix: Option<String>,
    /// Process id of the server; without it no CPU, memory and disk figures.
    #[arg(long)]
    pub(crate) pid: Option<u32>,
    /// Prometheus page of the server, for its own count of disk syncs.
    #[arg(long)]
    pub(crate) metrics: Option<String>,
    /// Writes a line of JSON before and after the measured part of each workload, and waits for a
    /// line of standard input each time, so that a profiler can be switched on and off.
    #[arg(long, conflicts_with = "until_closed")]
    pub(crate) hold: bool,
    /// Longest time `ready` waits, seconds.
    #[arg(long, default_value_t = 120)]
    pub(crate) wait: u64,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
    /// Given by test runners that ask for the list of tests; there are none here.
    #[arg(long, hide = true)]
    pub(crate) list: bool,
    /// Goes with `--list`.
    #[arg(long, hide = true)]
    pub(crate) format: Option<String>,
    /// Goes with `--list`.
    #[arg(long, hide = true)]
    pub(crate) ignored: bool,
}

/// Key of the development account that emulators and their users share; it is no secret.
const DEVELOPMENT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// The protocol of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// Azure Blob REST.
    Azure,
    /// S3.
    S3,
}
