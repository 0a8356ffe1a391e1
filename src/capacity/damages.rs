//! Damage that was found in the copies of this node. In a cluster it is mended from other copies.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use serde::Deserialize;
use serde::Serialize;
use tokio::sync::Notify;

use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// Places that are remembered. If there are more, the next scrub finds the others again.
const REMEMBERED_MAX: usize = 10_000;

/// Where a copy is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Damage {
    /// The extent.
    pub extent: ExtentId,
    /// Where the damaged frame starts. If the first page, the map or the file is damaged, all
    /// frames are, and this is the start of the extent.
    pub offset: ExtentOffset,
}

/// The damage that nobody has looked after yet; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Damages(Arc<Found>);

#[derive(Debug, Default)]
struct Found {
    places: Mutex<BTreeSet<Damage>>,
    news: Notify,
}

impl Damages {
    /// Notes damage.
    pub fn note(&self, damage: Damage) {
        let mut places = self.0.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() < REMEMBERED_MAX && places.insert(damage) {
            self.0.news.notify_one();
        }
    }

    /// Waits for damage, and removes it from the list. For one caller at a time.
    ///
    /// Cancel safe: nothing is lost.
    pub async fn next(&self) -> Damage {
        loop {
            if let Some(first) = self.take() {
                return first;
            }
            self.0.news.notified().await;
        }
    }

    fn take(&self) -> Option<Damage> {
        self.0.places.lock().unwrap_or_else(PoisonError::into_inner).pop_first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn damage_is_handed_out_once() {
        let damages = Damages::default();
        let damage =
            |offset| Damage { extent: ExtentId::new(1), offset: ExtentOffset::new(offset) };
        let mut waiting = Box::pin(damages.next());
        assert!(futures_util::poll!(&mut waiting).is_pending());
        for offset in [7, 3, 7] {
            damages.note(damage(offset));
        }
        assert_eq!(waiting.await, damage(3));
        assert_eq!(damages.next().await, damage(7));
        assert!(futures_util::poll!(Box::pin(damages.next())).is_pending());
        (0..20_000).for_each(|offset| damages.note(damage(offset)));
        assert_eq!(damages.0.places.lock().unwrap().len(), REMEMBERED_MAX);
    }
}
