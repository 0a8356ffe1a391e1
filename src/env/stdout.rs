//! Standard output, for what is a stream of lines.

use std::io;
use std::io::Write;

use crate::env::DiskError;

/// Writes bytes and flushes them. Blocks until whoever reads has taken them: not for a thread that
/// serves others.
///
/// # Errors
/// [`DiskError::Io`]; how much was written is unknown.
pub fn print(bytes: &[u8]) -> Result<(), DiskError> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| DiskError::Io {
        action: "write",
        path: "standard output".to_owned(),
        kind: error.kind(),
    })
}
