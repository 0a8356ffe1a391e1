//! The local node as a member.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;

use crate::capacity::Audited;
use crate::capacity::Capacity;
use crate::capacity::CapacityNode;
use crate::capacity::CopyId;
use crate::capacity::CopyInfo;
use crate::capacity::Error;
use crate::capacity::Extension;
use crate::capacity::ExtentState;
use crate::capacity::FramePart;
use crate::capacity::FramedAppend;
use crate::capacity::Member;
use crate::capacity::OwnedLog;
use crate::capacity::RawFrame;
use crate::capacity::disk::append::PlacedAppend;
use crate::capacity::extent::frame::Expected;
use crate::capacity::extent::frame::Placed;
use crate::capacity::extent::header::NewExtent;
use crate::capacity::extent::ranges::numbers;
use crate::capacity::home::Home;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

/// The local node's copies of extents.
#[derive(Clone, Debug)]
pub struct LocalMember {
    pub(super) node: Arc<CapacityNode>,
}

impl LocalMember {
    /// The copies of this node.
    #[must_use]
    pub const fn new(node: Arc<CapacityNode>) -> Self {
        Self { node }
    }

    /// The node's copy of an extent, created if there is none. In a task of the node: a creation
    /// must end before another call looks for the copy, also if its caller is cancelled.
    async fn copy_or_new(&self, new: NewExtent, id: Id) -> Result<Home, Error> {
        if let Some(home) = self.node.home_unless_gone(new.extent)? {
            return Ok(home);
        }
        let node = Arc::clone(&self.node);
        self.node.owned("create", async move { node.copy_or_new(new, id).await }).await
    }
}

/// Whether a node may have had a copy of an extent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Id {
    /// It had none: the writer has just got the id.
    Fresh,
    /// It may have had one and removed it.
    Used,
}

impl CapacityNode {
    /// The node's copy of an extent, created if there is none.
    async fn copy_or_new(&self, new: NewExtent, id: Id) -> Result<Home, Error> {
        let _one = self.creating.lock().await;
        if let Some(home) = self.home_unless_gone(new.extent)? {
            return Ok(home);
        }
        if id == Id::Used {
            // The records of the removed copy must leave the journals before there is another one,
            // to which a start would apply them.
            for store in self.stores() {
                store.checkpoint().await?;
            }
        }
        self.create_extent(new).await
    }
}

impl CopyId {
    /// A copy that the writer of this epoch creates.
    fn created(self, epoch: Epoch) -> NewExtent {
        NewExtent { extent: self.extent, kind: self.kind, epoch, incomplete: false }
    }
}

#[async_trait]
impl Member for LocalMember {
    async fn append(&self, append: FramedAppend) -> Result<ExtentOffset, Error> {
        let FramedAppend { copy, epoch, offset, frames, durability } = append;
        let expected = Expected { extent: copy.extent, end: offset };
        let placed = Placed::received(&frames, expected, epoch)
            .ok_or(Error::Corrupt { extent: copy.extent, offset })?;
        let Home { store, extent } = match offset {
            ExtentOffset::START => self.copy_or_new(copy.created(epoch), Id::Fresh).await?,
            _ => self.node.home(copy.extent)?,
        };
        store.health.check()?;
        let append = PlacedAppend { epoch, offset, placed, durability };
        if offset >= extent.state().end {
            match store.append_placed(&extent, append.clone()).await {
                // The same append is ahead of this one.
                Err(Error::WrongOffset { expected, .. }) if offset < expected => {}
                done => return done,
            }
        }
        let work = async move { store.repeat(&extent, &append).await };
        self.node.owned("append", work).await
    }

    async fn flush(&self, extent: ExtentId, epoch: Epoch, end: ExtentOffset) -> Result<(), Error> {
        {
            let home = self.node.home(extent)?;
            let state = home.extent.state();
            if state.phase() == ExtentState::Closed {
                return Err(Error::Sealed { extent });
            }
            if state.end < end {
                return Err(Error::WrongOffset { extent, expected: state.end });
            }
        }
        Capacity::flush(&*self.node, extent, epoch).await
    }

    async fn read(&self, location: &Location, range: Range<u64>) -> Result<Vec<FramePart>, Error> {
        loop {
            let home = self.node.home(location.extent)?;
            let done = home.store.read_parts(&home.extent, location, range.clone()).await;
            if !self.node.should_retry(&home, &done) {
                return done;
            }
        }
    }

    async fn frames(
        &self,
        extent: ExtentId,
        from: ExtentOffset,
        bytes_max: u64,
    ) -> Result<Vec<RawFrame>, Error> {
        loop {
            let home = self.node.home(extent)?;
            let done = home.store.raw_frames(&home.extent, from, bytes_max).await;
            if !self.node.should_retry(&home, &done) {
                return done;
            }
        }
    }

    async fn fence(&self, copy: CopyId, epoch: Epoch) -> Result<ExtentOffset, Error> {
        loop {
            let home = self.copy_or_new(copy.created(epoch), Id::Used).await?;
            let Home { store, extent } = home.clone();
            let fence = async move { store.fence_copy(&extent, epoch).await };
            let done = self.node.owned("fence", fence).await;
            if !self.node.should_retry(&home, &done) {
                return done;
            }
        }
    }

    async fn extend(
        &self,
        copy: CopyId,
        epoch: Epoch,
        added: Extension,
    ) -> Result<ExtentOffset, Error> {
        let new = NewExtent { incomplete: true, ..copy.created(epoch) };
        let Home { store, extent } = self.copy_or_new(new, Id::Used).await?;
        let extend = async move { store.extend(&extent, epoch, &added).await };
        self.node.owned("extend", extend).await
    }

    async fn seal_at(
        &self,
        extent: ExtentId,
        epoch: Epoch,
        len: ExtentOffset,
    ) -> Result<(), Error> {
        loop {
            let home = self.node.home(extent)?;
            let Home { store, extent } = home.clone();
            let seal = async move { store.seal_at(&extent, epoch, len).await };
            let done = self.node.owned("seal", seal).await;
            self.node.forget_removed(&home);
            if !self.node.should_retry(&home, &done) {
                return done;
            }
        }
    }

    async fn copy(&self, extent: ExtentId) -> Result<Option<CopyInfo>, Error> {
        let Some(home) = self.node.home_unless_gone(extent)? else { return Ok(None) };
        let state = home.extent.state();
        Ok(Some(CopyInfo {
            kind: home.extent.kind,
            state: state.phase(),
            epoch: state.slot.epoch,
            end: state.end,
            incomplete: state.slot.incomplete,
        }))
    }

    async fn fenced(&self, logs: &[OwnedLog]) -> Vec<ExtentId> {
        let is_served = |owned: &OwnedLog| {
            self.node.home(owned.log).is_ok_and(|home| {
                let state = home.extent.state();
                let is_open = state.phase() == ExtentState::Open && !state.slot.incomplete;
                is_open && state.slot.epoch == owned.epoch
            })
        };
        logs.iter().filter(|owned| !is_served(owned)).map(|owned| owned.log).collect()
    }

    async fn dead(&self, extent: ExtentId) -> Result<Vec<Range<u64>>, Error> {
        let home = self.node.home(extent)?;
        let state = home.extent.state();
        Ok(state.dead.iter().map(|range| numbers(&range)).collect())
    }

    async fn free(&self, locations: &[Location]) -> Result<(), Error> {
        Capacity::free(&*self.node, locations).await
    }

    async fn retain(
        &self,
        extent: ExtentId,
        live: &[Range<u64>],
        audited: Audited,
    ) -> Result<(), Error> {
        Capacity::retain(&*self.node, extent, live, audited).await
    }

    async fn remove(&self, extent: ExtentId) -> Result<(), Error> {
        Capacity::remove(&*self.node, extent).await
    }
}
