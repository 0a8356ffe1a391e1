//! The trait.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;

use super::ClusterCapacity;
use crate::capacity::AppendRequest;
use crate::capacity::Appended;
use crate::capacity::Audited;
use crate::capacity::Capacity;
use crate::capacity::Error;
use crate::capacity::ExtentInfo;
use crate::capacity::ExtentKind;
use crate::capacity::LogFrame;
use crate::capacity::ScrubReport;
use crate::capacity::extent::frame::frames_of;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

#[async_trait]
impl Capacity for ClusterCapacity {
    /// As [`Capacity::create`], but the copies are created by the first append.
    async fn create(&self, extent: ExtentId, kind: ExtentKind, epoch: Epoch) -> Result<(), Error> {
        self.begin(extent, kind, epoch).await
    }

    async fn append(&self, request: AppendRequest) -> Result<Appended, Error> {
        self.append_to(request).await
    }

    async fn flush(&self, extent: ExtentId, epoch: Epoch) -> Result<(), Error> {
        self.flush_all(extent, epoch).await
    }

    async fn read(&self, location: &Location, range: Range<u64>) -> Result<Vec<Bytes>, Error> {
        self.read_any(location, range).await
    }

    async fn next_frame(
        &self,
        extent: ExtentId,
        offset: ExtentOffset,
    ) -> Result<Option<LogFrame>, Error> {
        self.next_frame_of(extent, offset).await
    }

    async fn fence(&self, extent: ExtentId, epoch: Epoch) -> Result<(), Error> {
        self.fence_any(extent, epoch).await
    }

    async fn seal(&self, extent: ExtentId, epoch: Epoch) -> Result<ExtentOffset, Error> {
        self.end(extent, epoch).await
    }

    async fn free(&self, locations: &[Location]) -> Result<(), Error> {
        self.free_on_all(locations).await
    }

    async fn remove(&self, extent: ExtentId) -> Result<(), Error> {
        self.remove_all(extent).await
    }

    async fn retain(&self, extent: ExtentId, live: &[Range<u64>], _: Audited) -> Result<(), Error> {
        self.retain_on_all(extent, live).await
    }

    fn frames_of(&self, location: &Location) -> Range<u64> {
        let frames = frames_of(location);
        frames.start.get()..frames.end.get()
    }

    /// The extents of which a member that can be reached has a copy.
    async fn extents(&self) -> Vec<ExtentInfo> {
        self.all_extents().await
    }

    /// Never: a member that is away may have extents that no other one names.
    fn is_whole(&self) -> bool {
        false
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn scrub(&self, extent: ExtentId) -> Result<ScrubReport, Error> {
        self.scrub_all(extent).await
    }
}
