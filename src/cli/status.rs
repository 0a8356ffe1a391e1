//! `blockyard status`: shows the state of a running node on one screen.

use std::io::IsTerminal;
use std::time::Duration;

use http::Method;
use serde::de::DeserializeOwned;

use crate::env::Clock;
use crate::env::OsClock;

use super::admin::args::AdminArgs;
use super::admin::client::AdminClient;
use super::admin::client::ClientError;
use super::error::CliError;
use super::output::print;

mod samples;
mod view;

use samples::Samples;
use view::Seen;
use view::Status;

/// Clears the screen of a terminal.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Arguments of `status`.
#[derive(clap::Args, Debug)]
pub struct StatusArgs {
    /// Over how many seconds the load is measured
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Show it again and again, until the node or the user stops it
    #[arg(long)]
    pub watch: bool,
    /// Print a JSON object
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub admin: AdminArgs,
}

/// Runs `blockyard status`, and returns the exit code: 0 if the node serves.
///
/// # Errors
/// [`CliError`].
pub(super) async fn status(args: &StatusArgs) -> Result<i32, CliError> {
    let client = AdminClient::new(&args.admin)?;
    let clock = OsClock::new();
    let mut before = sample(&client, &clock).await?;
    loop {
        // A node that does not serve has no load to measure.
        if before.is_ready || args.watch {
            clock.sleep(Duration::from_secs(args.seconds)).await;
        }
        let now = sample(&client, &clock).await?;
        let status = Status::new(&before, &now, clock.now());
        show(&status, args)?;
        if !args.watch {
            return Ok(i32::from(!now.is_ready));
        }
        before = now;
    }
}

fn show(status: &Status, args: &StatusArgs) -> Result<(), CliError> {
    if args.json {
        let json = serde_json::to_string(status)
            .map_err(|error| CliError::system("the status", &error))?;
        return print(&format!("{json}\n"));
    }
    let clear = if args.watch && std::io::stdout().is_terminal() { CLEAR } else { "" };
    print(&format!("{clear}{}", status.text()))
}

/// Queries the node. Until it serves, it answers little.
async fn sample(client: &AdminClient, clock: &OsClock) -> Result<Seen, CliError> {
    let (is_ready, readiness) = client.text("/readyz?verbose").await?;
    let (_, metrics) = client.text("/metrics").await?;
    let mut seen = Seen {
        at: clock.monotonic(),
        is_ready,
        readiness,
        samples: Samples::parse(&metrics),
        ..Seen::default()
    };
    // Disks and partitions are there once the store is open.
    if is_ready {
        seen.disks = read(client, "/admin/disks").await?;
        seen.map = read(client, "/admin/partitions").await?;
        seen.faults = read(client, "/admin/faults").await?;
    }
    Ok(seen)
}

async fn read<T: DeserializeOwned>(client: &AdminClient, path: &str) -> Result<T, CliError> {
    let answer = client.call(Method::GET, path, None).await?;
    let read = serde_json::from_value(answer);
    Ok(read.map_err(|error| ClientError::Refused {
        code: "Version".to_owned(),
        message: format!("this node's answer is of another version: {error}"),
    })?)
}
