//! Connects to the coordinator of a cluster.

use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;
use zeroize::Zeroizing;

use crate::coordinator;
use crate::coordinator::Coordinator;
use crate::coordinator::EtcdConfig;
use crate::coordinator::EtcdCoordinator;
use crate::coordinator::EtcdIdentity;
use crate::coordinator::EtcdTls;
use crate::env::Env;

use super::settings::CoordinatorSettings;

/// Why the coordinator cannot be used.
#[derive(Debug, Error)]
pub enum CoordinatorFault {
    /// A file cannot be read.
    #[error("{flag} {path}: {error}")]
    File {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It does not answer, or refuses.
    #[error("--coordinator {urls}: {error}")]
    Refused {
        /// Its addresses.
        urls: String,
        /// Why.
        error: coordinator::Error,
    },
}

/// Connects to the etcd.
pub(super) async fn connect(
    settings: &CoordinatorSettings,
    env: &Env,
) -> Result<Arc<dyn Coordinator>, CoordinatorFault> {
    let mut config = EtcdConfig::new(settings.coordinator.clone());
    config.prefix = settings.coordinator_prefix.clone().into_bytes();
    let (cert, key) = (&settings.coordinator_cert, &settings.coordinator_key);
    let identity = match (cert, key) {
        (Some(cert), Some(key)) => Some(EtcdIdentity {
            certificates: read("--coordinator-cert", cert)?,
            key: Zeroizing::new(read("--coordinator-key", key)?),
        }),
        _ => None,
    };
    let authorities = settings.coordinator_ca.as_deref();
    let authorities = authorities.map(|path| read("--coordinator-ca", path)).transpose()?;
    if authorities.is_some() || identity.is_some() {
        config.tls = Some(EtcdTls { authorities, identity });
    } else if settings.coordinator.iter().any(|url| url.starts_with("https:")) {
        config.tls = Some(EtcdTls::default());
    }
    let connected = EtcdCoordinator::connect(config, env).await;
    let coordinator = connected.map_err(|error| CoordinatorFault::Refused {
        urls: settings.coordinator.join(", "),
        error,
    })?;
    Ok(Arc::new(coordinator))
}

#[expect(
    clippy::disallowed_methods,
    reason = "certificates, read once at a start, never on a request's way"
)]
fn read(flag: &'static str, path: &Path) -> Result<Vec<u8>, CoordinatorFault> {
    std::fs::read(path).map_err(|error| CoordinatorFault::File { flag, path: path.into(), error })
}
