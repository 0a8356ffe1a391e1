//! `blockyard health`: asks a running node whether it serves. It is for health checks in containers
//! without another HTTP client.

use std::io;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;

use super::admin::args::AdminPlaceArgs;
use super::admin::place::AdminPlace;
use super::error::CliError;
use super::output::print;
use super::runtime::block_on;

/// A node that takes longer counts as unhealthy.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer in bytes. It has a few lines.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Arguments of `health`.
#[derive(clap::Args, Debug)]
pub struct HealthArgs {
    /// Print a JSON object: ready, and error if there is no answer
    #[arg(long)]
    pub json: bool,
    /// The node.
    #[command(flatten)]
    pub place: AdminPlaceArgs,
}

/// Runs `blockyard health`, and returns the exit code.
///
/// # Errors
/// [`CliError`].
pub(super) fn run(args: &HealthArgs) -> Result<i32, CliError> {
    let address = &args.place.admin_listen;
    let asked = async { is_ready(&AdminPlace::new(&args.place)?).await };
    let (ready, error) = match block_on(asked)? {
        Ok(ready) => (ready, None),
        Err(error) => (false, Some(format!("no answer from {address}: {error}"))),
    };
    let answer = match (args.json, error) {
        (true, error) => json!({ "ready": ready, "error": error }).to_string(),
        (false, Some(error)) => error,
        (false, None) => if ready { "ready" } else { "not ready" }.to_owned(),
    };
    print(&format!("{answer}\n"))?;
    Ok(i32::from(!ready))
}

/// Whether `/readyz` at `place` answers 200.
///
/// # Errors
/// The node cannot be reached or does not answer within 5 s.
async fn is_ready(place: &AdminPlace) -> io::Result<bool> {
    let asked = ask(place);
    tokio::time::timeout(PATIENCE, asked).await.map_err(|_| io::ErrorKind::TimedOut)?
}

async fn ask(place: &AdminPlace) -> io::Result<bool> {
    let (mut stream, host) = (place.connect().await?, place.host());
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
    Ok(answer.starts_with(b"HTTP/1.1 200 "))
}
