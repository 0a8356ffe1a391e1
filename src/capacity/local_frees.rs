//! What is freed in the copies of the local node.

use std::ops::Range;
use std::sync::PoisonError;

use crate::capacity::Error;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::capacity::LocalMember;
use crate::capacity::extent::memory::State;
use crate::capacity::extent::memory::Status;
use crate::capacity::extent::ranges::offsets;
use crate::capacity::home::Home;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

impl LocalMember {
    /// Frees ranges of a sealed copy that has all bytes. Returns how many bytes that were. All
    /// frees of the extent are known then, as after an audit: pages of zeros elsewhere are damage.
    ///
    /// # Errors
    /// [`Error::NoSuchExtent`], [`Error::OutOfService`], [`Error::Poisoned`].
    pub async fn free_ranges(&self, extent: ExtentId, freed: &[Range<u64>]) -> Result<u64, Error> {
        loop {
            let home = self.node.home(extent)?;
            let dead = |home: &Home| {
                let state = home.extent.state();
                let is_whole = state.phase() == ExtentState::Sealed && !state.slot.incomplete;
                is_whole.then(|| state.dead.total())
            };
            let Some(before) = dead(&home) else { return Ok(0) };
            let Home { store, extent } = home.clone();
            let freed: Vec<_> = freed.iter().map(offsets).collect();
            let free = async move { store.free(&extent, &freed).await };
            let done = self.node.owned("free", free).await;
            if !self.node.should_retry(&home, &done) {
                if done.is_ok() {
                    let mut state = home.extent.state();
                    state.frees = state.frees.after_audit();
                }
                return done.map(|()| dead(&home).unwrap_or(before).saturating_sub(before));
            }
        }
    }

    /// The extents with content of which this node has a copy that is sealed and has all bytes.
    #[must_use]
    pub fn whole_extents(&self) -> Vec<ExtentId> {
        self.extents_that(|_| true).into_iter().map(|(extent, _)| extent).collect()
    }

    /// Those of them of which all bytes are freed, and where they end.
    #[must_use]
    pub fn dead_extents(&self) -> Vec<(ExtentId, ExtentOffset)> {
        self.extents_that(|state| state.dead.total() >= state.end.get())
    }

    fn extents_that(&self, is_meant: impl Fn(&State) -> bool) -> Vec<(ExtentId, ExtentOffset)> {
        let extents = self.node.extents.read().unwrap_or_else(PoisonError::into_inner);
        let data = extents.values().filter(|home| home.extent.kind == ExtentKind::Data);
        let meant = data.filter_map(|home| {
            let state = home.extent.state();
            let is_whole = state.phase() == ExtentState::Sealed && !state.slot.incomplete;
            let is_here = state.status == Status::Here && is_whole && is_meant(&state);
            is_here.then_some((home.extent.id, state.end))
        });
        meant.collect()
    }
}
