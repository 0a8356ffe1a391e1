//! Rewriting what logs and runs of all partitions hold of rows with secrets.

use crate::index::api::Error;
use crate::index::engine::Failed;
use crate::index::server::IndexServer;

/// Passes over all partitions, should the map change each time.
const PASSES_MAX: usize = 16;

impl IndexServer {
    /// Has no file of an index partition hold older values of accounts and pending copies than
    /// their rows show. Returns whether that is so: a partition that is quarantined is not
    /// rewritten, nor is one that keeps changing.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Unavailable`]: what was done stays done.
    pub async fn rewrite_secret_rows(&self) -> Result<bool, Error> {
        for _ in 0..PASSES_MAX {
            let before = self.versions();
            let mut all = true;
            for host in &self.hosts {
                for partition in host.opened.all() {
                    if self.stop.is_cancelled() {
                        return Ok(false);
                    }
                    all &= match partition.rewrite_secret_rows().await {
                        Ok(done) => done,
                        Err(Failed::Fenced) => false,
                        Err(failed) => return Err(failed.into()),
                    };
                }
            }
            for host in &self.hosts {
                host.context.do_chores().await;
            }
            if all && before == self.versions() {
                return Ok(self.hosts.iter().all(|host| host.opened.closed().is_empty()));
            }
        }
        Ok(false)
    }

    /// Other numbers whenever the partitions are others.
    fn versions(&self) -> Vec<u64> {
        self.hosts.iter().map(|host| host.opened.version()).collect()
    }
}
