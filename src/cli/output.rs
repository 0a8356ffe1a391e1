//! The output of commands.

use std::io::Write;

use super::error::CliError;

/// Prints the result to standard output.
///
/// # Errors
/// [`CliError::System`].
pub(super) fn print(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| CliError::system("standard output", &error))
}

/// Prints a remark to standard error.
///
/// # Errors
/// [`CliError::System`].
pub(super) fn warn(text: &str) -> Result<(), CliError> {
    let written = std::io::stderr().write_all(text.as_bytes());
    written.map_err(|error| CliError::system("standard error", &error))
}
