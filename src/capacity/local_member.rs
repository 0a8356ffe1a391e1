//! The local node as a member.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::capacity::Audited;
use crate::capacity::Capacity;
use crate::capacity::CapacityNode;
use crate::capacity::CopyId;
use crate::capacity::CopyInfo;
use crate::capacity::Damage;
use crate::capacity::Damages;
use crate::capacity::Error;
use crate::capacity::Extension;
use crate::capacity::ExtentKind;
use crate::capacity::ExtentState;
use crate::capacity::FramePart;
use crate::capacity::FramedAppend;
use crate::capacity::Member;
use crate::capacity::Mended;
use crate::capacity::OwnedLog;
use crate::capacity::RawFrame;
use crate::capacity::ScrubReport;
use crate::capacity::disk::append::PlacedAppend;
use crate::capacity::extent::frame::Expected;
use crate::capacity::extent::frame::Placed;
use crate::capacity::extent::header::NewExtent;
use crate::capacity::extent::ranges::numbers;
use crate::capacity::groups::Extents;
use crate::capacity::groups::GroupRecord;
use crate::capacity::groups::KnownGroups;
use crate::capacity::groups::MayCreate;
use crate::capacity::groups::MemberReport;
use crate::capacity::home::Home;
use crate::capacity::leases::GivenLeases;
use crate::env::Clock;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Generation;
use crate::types::GroupId;
use crate::types::Location;

/// The local node's copies of extents.
#[derive(Clone, Debug)]
pub struct LocalMember {
    pub(super) node: Arc<CapacityNode>,
    /// What the node knows of groups, if it heeds that.
    groups: Option<Arc<KnownGroups>>,
    leases: Arc<GivenLeases>,
}

impl LocalMember {
    /// The copies of this node. It takes every call for right: see [`Self::heeding`].
    #[must_use]
    pub fn new(node: Arc<CapacityNode>) -> Self {
        let leases = Arc::new(GivenLeases::new(Arc::clone(&node.env.clock)));
        Self { node, groups: None, leases }
    }

    /// Heeds what the node knows of groups: which extents are gone, and which groups are closed.
    /// Every node of a cluster does.
    #[must_use]
    pub fn heeding(self, groups: Arc<KnownGroups>) -> Self {
        Self { groups: Some(groups), ..self }
    }

    /// Follows the records of groups for ever, and removes copies of what is gone. Run it in a
    /// task. Returns immediately if the node heeds none.
    pub async fn follow_groups(&self, clock: &dyn Clock) {
        if let Some(groups) = &self.groups {
            groups.follow(clock, |record| self.remove_unneeded(groups, record)).await;
        }
    }

    /// Removes copies that a record says are gone, and those of a group that the node has left. It
    /// may have joined again meanwhile, so the record is read once more before that. A later
    /// generation is noted, and reported, only after this.
    async fn remove_unneeded(&self, groups: &KnownGroups, record: GroupRecord) {
        let group = record.id();
        let has_left = |record: &GroupRecord| !record.has_member(groups.node());
        // A coordinator that was restored from an older state may name members that were replaced.
        let noted = groups.noted(group).filter(has_left);
        if let Some(noted) = noted.filter(|_| has_left(&record)) {
            let is_left =
                |now: &GroupRecord| has_left(now) && now.generation() >= noted.generation();
            let copies = group.extents().filter(|extent| self.has_copy(*extent));
            let copies: Vec<ExtentId> = copies.collect();
            if !copies.is_empty() && groups.read(group).await.is_some_and(|now| is_left(&now)) {
                tracing::info!(%group, copies = copies.len(), "the node has left a group");
                for extent in copies {
                    self.remove_copy(extent).await;
                }
            }
        }
        self.remove_gone(record).await;
    }

    /// Notes copies that this node lacks of extents whose ends are recorded: it may have died after
    /// it removed a damaged copy, and before it had made another one. For the start.
    pub fn note_missing(&self) {
        let Some(groups) = &self.groups else { return };
        let is_missing = |extent: &ExtentId| {
            matches!(self.node.home_unless_gone(*extent), Ok(None)) && !groups.is_gone(*extent)
        };
        for extent in groups.ended_here().into_iter().filter(is_missing) {
            self.node.damages.note(Damage { extent, offset: ExtentOffset::START });
        }
    }

    fn has_copy(&self, extent: ExtentId) -> bool {
        matches!(self.node.home_unless_gone(extent), Ok(Some(_)))
    }

    async fn remove_copy(&self, extent: ExtentId) {
        // A failure is logged by the node. The next start tries again.
        if let Err(error) = Capacity::remove(&*self.node, extent).await {
            tracing::warn!(%extent, %error, "a copy that is not needed stays");
        }
    }

    async fn remove_gone(&self, record: GroupRecord) {
        for extent in record.gone().in_group(record.id()) {
            if self.has_copy(extent) {
                self.remove_copy(extent).await;
            }
        }
    }

    /// Makes sure that the group of an extent is known, if it was made.
    async fn learn_of(&self, extent: ExtentId) -> Result<(), Error> {
        let Some(groups) = &self.groups else { return Ok(()) };
        let asked = groups.may_create(extent).await;
        asked.map(|_| ()).map_err(|error| Error::NoAnswer { reason: error.to_string() })
    }

    /// # Errors
    /// If no copy of an extent may be created.
    fn check_new(&self, extent: ExtentId, id: Id) -> Result<(), Error> {
        let Some(groups) = &self.groups else { return Ok(()) };
        let may = match id {
            Id::Fresh => groups.may_create_now(extent),
            Id::Used if groups.is_gone(extent) => MayCreate::Gone,
            // Fences and pulls are right in closed groups too.
            Id::Used => MayCreate::Yes,
        };
        match may {
            MayCreate::Yes => Ok(()),
            MayCreate::Closed => Err(Error::Sealed { extent }),
            MayCreate::Gone => Err(Error::NoSuchExtent { extent }),
        }
    }

    async fn create_unless_there(&self, new: NewExtent, id: Id) -> Result<Home, Error> {
        let node = &self.node;
        let _one = node.creating.lock().await;
        if let Some(home) = node.home_unless_gone(new.extent)? {
            return Ok(home);
        }
        // In the lock, which a report takes too: the closing of the group may have been noted while
        // this waited.
        self.check_new(new.extent, id)?;
        if id == Id::Used && node.removed.may_have(new.extent) {
            // The records of the removed copy must leave the journals before there is another one,
            // to which a start would apply them.
            let removed = node.removed.all();
            for store in node.stores() {
                store.checkpoint().await?;
            }
            node.removed.forget(&removed);
        }
        node.create_extent(new).await
    }

    /// Whether the members of an extent's group have changed, as far as this node knows.
    fn has_joined_later(&self, extent: ExtentId) -> bool {
        let noted = self.groups.as_ref().and_then(|groups| groups.noted_state(extent.group()));
        noted.is_some_and(|(generation, _)| generation != Generation::FIRST)
    }

    /// What was found damaged in the copies of this node.
    #[must_use]
    pub fn damages(&self) -> Damages {
        self.node.damages.clone()
    }

    /// Writes frames of another copy where those of the local one are damaged.
    ///
    /// # Errors
    /// [`Error::Corrupt`]: one of the other frames is damaged too; [`Error::NoSuchExtent`] if there
    /// is no local copy; [`Error::Poisoned`].
    pub async fn mend(&self, extent: ExtentId, frames: Vec<RawFrame>) -> Result<Mended, Error> {
        let frames = Arc::new(frames);
        loop {
            let home = self.node.home(extent)?;
            let (Home { store, extent }, frames) = (home.clone(), Arc::clone(&frames));
            let mend = async move { store.mend(&extent, &frames).await };
            let done = self.node.owned("mend", mend).await;
            if !self.node.should_retry(&home, &done) {
                return done;
            }
        }
    }

    /// Scrubs the local copy at once.
    ///
    /// # Errors
    /// As [`Capacity::scrub`].
    pub async fn scrub(&self, extent: ExtentId) -> Result<ScrubReport, Error> {
        Capacity::scrub(&*self.node, extent).await
    }

    /// The node's copy of an extent.
    fn copy_info(&self, extent: ExtentId) -> Result<Option<CopyInfo>, Error> {
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

    /// The node's copy of an extent, created if there is none. In a task of the node: a creation
    /// must end before another call looks for the copy, also if its caller is cancelled.
    async fn copy_or_new(&self, new: NewExtent, id: Id) -> Result<Home, Error> {
        if let Some(home) = self.node.home_unless_gone(new.extent)? {
            return Ok(home);
        }
        if id == Id::Fresh {
            self.learn_of(new.extent).await?;
        }
        let this = self.clone();
        self.node.owned("create", async move { this.create_unless_there(new, id).await }).await
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
        // What a node lacks that joined the group later is on the others.
        let incomplete = self.has_joined_later(copy.extent);
        loop {
            let new = NewExtent { incomplete, ..copy.created(epoch) };
            let home = self.copy_or_new(new, Id::Used).await?;
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
        self.copy_info(extent)
    }

    async fn report(&self, group: GroupId) -> Result<MemberReport, Error> {
        let not_noted = || Error::NoAnswer { reason: format!("group {group} is not noted yet") };
        let known = self.groups.as_ref().ok_or_else(not_noted)?;
        // In this order: what was let pass before the closing was noted has been created then.
        let (generation, has_noted_closed) = known.noted_state(group).ok_or_else(not_noted)?;
        drop(self.node.creating.lock().await);
        let [mut absent, mut sealed, mut whole] = [Extents::NONE; 3];
        for extent in group.extents() {
            let this = Extents::of(group, [extent]).unwrap_or_default();
            match self.copy_info(extent)? {
                None => absent = absent.with(this),
                Some(copy) if copy.state == ExtentState::Sealed => {
                    sealed = sealed.with(this);
                    if !copy.incomplete {
                        whole = whole.with(this);
                    }
                }
                Some(_) => {}
            }
        }
        let node = known.node();
        Ok(MemberReport { node, generation, has_noted_closed, absent, sealed, whole })
    }

    async fn fenced(&self, logs: &[OwnedLog]) -> Result<Vec<ExtentId>, Error> {
        self.leases.note(logs);
        let is_served = |owned: &OwnedLog| {
            self.node.home(owned.log).is_ok_and(|home| {
                let state = home.extent.state();
                let is_open = state.phase() == ExtentState::Open && !state.slot.incomplete;
                is_open && state.slot.epoch == owned.epoch
            })
        };
        Ok(logs.iter().filter(|owned| !is_served(owned)).map(|owned| owned.log).collect())
    }

    async fn lease_left(&self, log: ExtentId) -> Result<Duration, Error> {
        Ok(self.leases.left(log))
    }

    async fn give_back(&self, logs: &[OwnedLog]) -> Result<(), Error> {
        self.leases.give_back(logs);
        Ok(())
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
        // The first page of a copy elsewhere may be damaged, so that it looks like data there.
        let kind = self.node.home(extent)?.extent.kind;
        if kind != ExtentKind::Data {
            let reason = format!("{extent} is no data: an audit does not free in it");
            return Err(Error::NoAnswer { reason });
        }
        Capacity::retain(&*self.node, extent, live, audited).await
    }

    async fn note_damage(&self, damage: Damage) -> Result<(), Error> {
        self.node.damages.note(damage);
        Ok(())
    }

    async fn remove(&self, extent: ExtentId) -> Result<(), Error> {
        Capacity::remove(&*self.node, extent).await
    }
}
