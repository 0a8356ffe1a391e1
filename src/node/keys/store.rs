//! The master keys of a running node, for its admin listener.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;

use crate::admin::KeyControl;
use crate::admin::KeyRingView;
use crate::admin::MasterKeyView;
use crate::auth::KeyRing;
use crate::env::Env;
use crate::frontend::Secrets;
use crate::index::Router;

use super::master_key;
use super::reseal::reseal;

/// The key ring in use, and its file.
#[derive(Debug)]
pub struct NodeKeys {
    file: PathBuf,
    secrets: Secrets,
    router: Arc<Router>,
    env: Env,
    /// One rotation at a time.
    rotating: Mutex<()>,
}

impl NodeKeys {
    /// The keys of the ring that `secrets` uses and that is in `file`.
    #[must_use]
    pub fn new(file: &Path, secrets: Secrets, router: Arc<Router>, env: Env) -> Self {
        Self { file: file.to_owned(), secrets, router, env, rotating: Mutex::default() }
    }
}

#[async_trait]
impl KeyControl for NodeKeys {
    fn list(&self) -> KeyRingView {
        view(&self.file, &self.secrets.ring())
    }

    async fn rotate(&self) -> Result<KeyRingView, String> {
        let _one = self.rotating.lock().await;
        let found = master_key::read(&self.file).map_err(|error| error.to_string())?;
        let ring = self.secrets.ring().id();
        if found.is_none_or(|found| found.id() != ring) {
            let file = self.file.display();
            return Err(format!(
                "{file} does not hold key ring {ring}, which this node uses: restore it, then \
                 rotate again"
            ));
        }
        let rotated = master_key::rotate(&self.file, self.env.clock.now())
            .map_err(|error| error.to_string())?;
        tracing::info!(key = rotated.active().id(), "master key added and active");
        self.secrets.replace(rotated);
        let left = |why: &str| {
            format!(
                "the new master key is active, but not all secrets are sealed under it: {why}; \
                 the next start goes on"
            )
        };
        let done = reseal(&self.router, &self.secrets).await;
        let done = done.map_err(|error| left(&error.to_string()))?;
        if done.incomplete {
            return Err(left("a partition of the index does not serve or takes no writes"));
        }
        if done.damaged > 0 {
            return Err(format!(
                "the new master key is active, but not all secrets are sealed under it: {}. The node's log names them: \
                 replace an account's key with `blockyard account rotate`, its delegation keys with \
                 `blockyard account revoke`, and abort a pending copy. Another rotation helps only \
                 after that",
                damaged(done.damaged)
            ));
        }
        Ok(KeyRingView { resealed: Some(done.secrets), ..self.list() })
    }
}

fn damaged(count: usize) -> String {
    let are = if count == 1 { "is" } else { "are" };
    format!("{count} of them {are} damaged, and no key opens what is damaged")
}

/// The view of a ring.
#[must_use]
pub fn view(file: &Path, ring: &KeyRing) -> KeyRingView {
    let keys = ring.keys().iter().map(|key| MasterKeyView {
        id: key.id(),
        created: key.created().to_iso_seconds(),
        state: key.state().word().to_owned(),
    });
    let (ring_id, file) = (ring.id().to_string(), file.display().to_string());
    KeyRingView { ring: ring_id, file, keys: keys.collect(), resealed: None }
}

#[cfg(test)]
mod tests;
