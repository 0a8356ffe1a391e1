//! The state that all copies of a command share.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;

use super::error::FilesError;
use super::meter::Meter;
use super::service::Service;

/// How to copy.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// Requests at a time.
    pub(super) parallel: usize,
    /// Bytes of a block.
    pub(super) block_size: u64,
    /// Whether to copy files and blobs that are equal at the target.
    pub(super) force: bool,
    /// Whether to hold downloads against their Content-MD5.
    pub(super) verify: bool,
    /// The Content-Type of uploads; `None` to derive it from the name.
    pub(super) content_type: Option<String>,
}

/// A client, counters, and the permits that bound its requests and its memory.
pub(super) struct Copying {
    pub(super) service: Service,
    pub(super) meter: Meter,
    pub(super) options: Options,
    permits: Arc<Semaphore>,
}

impl Copying {
    /// Nothing copied yet.
    pub(super) fn new(service: Service, options: Options) -> Self {
        let permits = Arc::new(Semaphore::new(options.parallel));
        Self { service, meter: Meter::new(), options, permits }
    }

    /// Waits until a block may be in memory and on its way.
    pub(super) async fn permit(&self) -> OwnedSemaphorePermit {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        permit.expect("the semaphore is never closed")
    }

    /// Does work on files that blocks. Its error names `path`.
    pub(super) async fn on_disk<T: Send + 'static>(
        &self,
        path: &Path,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, FilesError> {
        self.service.on_disk(path, work).await
    }
}

/// Reads `--parallel`.
///
/// # Errors
/// What is allowed.
pub(super) fn parallel(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=256).contains(number));
    number.ok_or_else(|| "give a number from 1 to 256".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_requests_run_at_a_time() {
        assert_eq!(parallel("1"), Ok(1));
        for wrong in ["0", "257", "-1", "many"] {
            assert!(parallel(wrong).is_err(), "{wrong}");
        }
    }
}
