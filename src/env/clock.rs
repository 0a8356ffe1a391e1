//! The clock seam.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

use crate::types::Timestamp;

/// Time. Sleeping goes through here too, so that a simulation can skip it.
#[async_trait]
pub trait Clock: Send + Sync + Debug {
    /// Wall time; may jump either way.
    fn now(&self) -> Timestamp;

    /// Time since some fixed point of this process; never goes back.
    fn monotonic(&self) -> Duration;

    /// Waits. Cancel safe.
    async fn sleep(&self, duration: Duration);
}
