//! The creation of an extent on one of the disks.

use std::sync::Arc;
use std::sync::PoisonError;

use crate::capacity::CapacityNode;
use crate::capacity::Error;
use crate::capacity::disk::store::Store;
use crate::capacity::extent::header::NewExtent;
use crate::capacity::home::Home;

impl CapacityNode {
    /// Creates an extent that does not exist on the first disk that takes it. Durable when it
    /// returns.
    pub(super) async fn create_extent(&self, new: NewExtent) -> Result<Home, Error> {
        let stores = self.stores();
        let order = {
            let mut placement = self.placement.lock().unwrap_or_else(PoisonError::into_inner);
            placement.order(new.kind, &stores)
        };
        // Without a disk to try, all disks are poisoned or draining.
        let mut last = if order.is_empty() { Error::Poisoned { disk: 0 } } else { Error::Full };
        for number in order {
            let Some(store) = stores.get(number) else { continue };
            match self.create_on(store, new).await {
                Ok(home) => {
                    let mut extents = self.extents.write().unwrap_or_else(PoisonError::into_inner);
                    // The disk may have been detached meanwhile; then the next disk is tried.
                    if self.stores().iter().any(|here| Arc::ptr_eq(here, store)) {
                        extents.insert(new.extent, home.clone());
                        store.creation_done(new.extent);
                        return Ok(home);
                    }
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn create_on(&self, store: &Arc<Store>, new: NewExtent) -> Result<Home, Error> {
        let worker = Arc::clone(store);
        store.begin_creation(new.extent);
        let work = async move { worker.create(new).await };
        let task = self.env.tasks.spawn("create", work);
        let extent = task.await.unwrap_or(Err(Error::Ended { doing: "create" }))?;
        Ok(Home { store: Arc::clone(store), extent })
    }
}
