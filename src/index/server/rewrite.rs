//! Rewrites the logs and runs of all partitions that hold old values of rows with secrets.

use crate::index::api::Error;
use crate::index::engine::Failed;
use crate::index::server::IndexServer;

/// The most passes over all partitions. A pass is repeated if the map changed during it.
const PASSES_MAX: usize = 16;

impl IndexServer {
    /// Rewrites files until no file of a partition holds an older value of an account or a pending
    /// copy than its row. Returns false if some may remain: a quarantined partition is not
    /// rewritten, nor is one that keeps changing.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Unavailable`]: files that were rewritten stay so.
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

    /// Numbers that change with every change of the open partitions.
    fn versions(&self) -> Vec<u64> {
        self.hosts.iter().map(|host| host.opened.version()).collect()
    }
}
