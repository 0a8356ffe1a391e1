//! Common fixtures of tests of stores.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use crate::coordinator::Coordinator;
use crate::coordinator::SimulatedStore;
use crate::env::Env;
use crate::env::OsClock;
use crate::env::OsRand;
use crate::env::Tasks;

use super::config::Config;
use super::config::Settings;
use super::config::Size;
use super::error::NodeError;
use super::storage::CoordinatorPlace;

/// The machine's clock, and tasks of its own.
pub(in crate::node) fn env() -> Env {
    Env { clock: Arc::new(OsClock::new()), rand: Arc::new(OsRand), tasks: Tasks::new() }
}

/// A small store in one data directory, which nothing reads in the background.
pub(in crate::node) fn config(data: &Path) -> Config {
    let settings = Settings {
        data: Some(vec![data.to_owned()]),
        journal_bytes: Some(Size::new(1 << 20)),
        scrub_bytes_per_second: Some(Size::new(0)),
        ..Settings::default()
    };
    Config::from_settings(settings).unwrap()
}

/// A coordinator in memory, which outlives the node.
#[derive(Debug)]
pub(in crate::node) struct SimulatedPlace(
    pub(in crate::node) SimulatedStore,
    pub(in crate::node) Env,
);

#[async_trait]
impl CoordinatorPlace for SimulatedPlace {
    fn path(&self) -> &Path {
        Path::new("/coordinator")
    }

    fn is_made(&self) -> bool {
        self.0.is_made()
    }

    async fn open(&self) -> Result<Arc<dyn Coordinator>, NodeError> {
        Ok(Arc::new(self.0.open(&self.1)))
    }
}
