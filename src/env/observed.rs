//! A value whose changes can be waited for.
//!
//! Whoever waits is woken in the order of arrival. The receivers of a `tokio::sync::watch` are
//! woken in a random order, which no simulation could repeat.

use std::sync::PoisonError;
use std::sync::RwLock;

use tokio::sync::Notify;

/// A value, and who waits for its changes.
#[derive(Debug, Default)]
pub struct Observed<T> {
    value: RwLock<T>,
    changed: Notify,
}

impl<T> Observed<T> {
    /// Looks at the value. Nothing else may be waited for meanwhile.
    pub fn look<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.value.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the value, and wakes all who wait.
    pub fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.value.write().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_waiters();
    }

    /// Waits until this is true of the value. Cancel safe.
    pub async fn wait_until(&self, mut is_true: impl FnMut(&T) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Before the look: a change after it then wakes this task.
            changed.as_mut().enable();
            if self.look(&mut is_true) {
                return;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn changes_wake_all_who_wait_for_them() {
        let observed = Observed::<u64>::default();
        observed.wait_until(|value| *value == 0).await;
        let waits = async |number| observed.wait_until(|value| *value >= number).await;
        let changes = async {
            for number in 1..=3 {
                tokio::task::yield_now().await;
                observed.change(|value| *value = number);
            }
        };
        tokio::join!(waits(3), waits(1), waits(2), changes);
        assert_eq!(observed.look(|value| *value), 3);
    }
}
