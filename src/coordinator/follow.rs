//! Follows all keys under a prefix.

use std::time::Duration;

use futures_util::FutureExt;

use super::api::Coordinator;
use super::api::Error;
use super::api::Event;
use super::api::Revision;
use super::api::Snapshot;
use crate::env::Clock;

/// How long a follower waits before it asks a coordinator again that did not answer.
const PAUSE: Duration = Duration::from_millis(250);

/// What follows the keys under a prefix. It may be behind the coordinator, never ahead.
pub trait Follows: Send + Sync {
    /// The prefix.
    fn prefix(&self) -> &'static [u8];

    /// The revision up to which all changes are known.
    fn revision(&self) -> Revision;

    /// Takes changes. Those of one transaction come together.
    fn take(&self, events: Vec<Event>);

    /// Takes all keys as of one revision, since changes were missed.
    fn take_all(&self, all: Snapshot);
}

/// Follows the changes for ever. If changes were missed, all keys are read again.
///
/// Cancel safe: another call goes on.
pub async fn follow(coordinator: &dyn Coordinator, clock: &dyn Clock, follows: &impl Follows) {
    loop {
        let error = match watch(coordinator, follows).await {
            Error::Compacted => {
                tracing::info!("changes were missed; all keys are read again");
                match coordinator.range(follows.prefix()).await {
                    Ok(all) => {
                        follows.take_all(all);
                        continue;
                    }
                    Err(error) => error,
                }
            }
            error @ (Error::Ambiguous
            | Error::Unavailable { .. }
            | Error::SessionEnded
            | Error::Corrupt { .. }) => error,
        };
        // Nothing is missed by that: the next watch begins where this one ended.
        tracing::debug!(%error, "changes are not followed for a moment");
        clock.sleep(PAUSE).await;
    }
}

/// Applies changes until the watch fails, and returns why.
async fn watch(coordinator: &dyn Coordinator, follows: &impl Follows) -> Error {
    let mut watch = match coordinator.watch(follows.prefix(), follows.revision()).await {
        Ok(watch) => watch,
        Err(error) => return error,
    };
    loop {
        let mut events = Vec::new();
        let mut next = Some(watch.next().await);
        // A transaction is delivered without waiting, so it is applied as a whole.
        while let Some(Ok(event)) = next {
            events.push(event);
            next = watch.next().now_or_never();
        }
        if !events.is_empty() {
            follows.take(events);
        }
        if let Some(Err(error)) = next {
            return error;
        }
    }
}
