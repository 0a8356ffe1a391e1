//! Ids of new extents.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::capacity::ExtentKind;
use crate::coordinator::Error;
use crate::coordinator::IdAllocator;
use crate::types::ExtentId;

/// Issues ids of new extents.
#[async_trait]
pub trait ExtentIds: Send + Sync + Debug {
    /// Returns an id that was never issued before, for an extent of this kind. Ids for logs and for
    /// runs are the same.
    ///
    /// # Errors
    /// Those of the coordinator; no id was issued.
    async fn next_extent(&self, kind: ExtentKind) -> Result<ExtentId, Error>;
}

/// The ids of a store that was made alone have no kind.
#[async_trait]
impl ExtentIds for IdAllocator {
    async fn next_extent(&self, _: ExtentKind) -> Result<ExtentId, Error> {
        self.next().await.map(ExtentId::new)
    }
}
