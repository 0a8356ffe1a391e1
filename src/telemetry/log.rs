//! Where log lines go: standard error, as text for people or JSON lines for machines.

use std::io;
use std::io::IsTerminal;

use serde::Deserialize;
use thiserror::Error;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::util::SubscriberInitExt;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Why logging cannot start.
#[derive(Debug, Error)]
pub enum LogError {
    /// The filter does not parse.
    #[error("{0}")]
    Filter(#[from] ParseError),
    /// Something else in the process logs already.
    #[error("logging is set up already")]
    Taken,
}

/// Sends log lines that pass `filter` (such as `info` or `info,blockyard::index=debug`) to standard
/// error.
///
/// # Errors
/// [`LogError`].
pub fn start(filter: &str, format: LogFormat) -> Result<(), LogError> {
    let filter = EnvFilter::try_new(filter)?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    let started = match format {
        LogFormat::Text => lines.finish().try_init(),
        LogFormat::Json => lines.json().flatten_event(true).finish().try_init(),
    };
    started.map_err(|_| LogError::Taken)
}

/// Whether `filter` parses.
///
/// # Errors
/// [`LogError::Filter`].
pub fn check_filter(filter: &str) -> Result<(), LogError> {
    EnvFilter::try_new(filter)?;
    Ok(())
}
