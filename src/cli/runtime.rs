//! The threads on which a command runs.

use std::future::Future;

use super::error::CliError;

/// Runs a command to its end. Tasks that still run then are aborted.
///
/// # Errors
/// [`CliError::System`] when there are no threads.
pub(super) fn block_on<F: Future>(future: F) -> Result<F::Output, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::system("threads", &error))?;
    let output = runtime.block_on(future);
    // Tasks that still run are aborted on purpose.
    runtime.shutdown_background();
    Ok(output)
}
