//! Standard output, for streams of lines.

use std::io;
use std::io::Write;

use crate::env::DiskError;

/// Writes bytes and flushes them. Blocks until the reader of the stream has taken them, so do not
/// call it on a thread of the runtime.
///
/// # Errors
/// [`DiskError::Io`]. It is unknown how many bytes were written.
pub fn print(bytes: &[u8]) -> Result<(), DiskError> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| DiskError::Io {
        action: "write",
        path: "standard output".to_owned(),
        kind: error.kind(),
    })
}
