//! Simulated nodes, each with a disk of its own, and links that are cut.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;

use async_trait::async_trait;

use crate::capacity::Audited;
use crate::capacity::CapacityConfig;
use crate::capacity::CapacityMetrics;
use crate::capacity::CapacityNode;
use crate::capacity::CopyId;
use crate::capacity::CopyInfo;
use crate::capacity::Error;
use crate::capacity::Extension;
use crate::capacity::FramePart;
use crate::capacity::FramedAppend;
use crate::capacity::LocalMember;
use crate::capacity::Member;
use crate::capacity::OpenExtents;
use crate::capacity::OwnedLog;
use crate::capacity::RawFrame;
use crate::capacity::copies::EndRecord;
use crate::capacity::copies::Recorded;
use crate::env::Disk;
use crate::env::Env;
use crate::env::Tasks;
use crate::env::clock::SimClock;
use crate::env::disk_sim::SimDisk;
use crate::env::rand::SeededRand;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

const DISK_BYTES: u64 = 64 << 20;

/// Opens a node of a cluster on a disk.
pub(super) async fn open(disk: Arc<dyn Disk>, seed: u64) -> Arc<CapacityNode> {
    let env = Env {
        clock: Arc::new(SimClock::new()),
        rand: Arc::new(SeededRand::new(seed)),
        tasks: Tasks::new(),
    };
    let config = CapacityConfig { open_extents: OpenExtents::Close, ..CapacityConfig::small() };
    CapacityNode::open(vec![disk], env, config, CapacityMetrics::default()).await.unwrap()
}

/// How calls to a node go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    /// They are carried out and answered.
    Answered,
    /// They do not arrive.
    Lost,
    /// This many more are answered. The next one is carried out and its answer is lost; later ones
    /// do not arrive.
    CutAfter(u64),
}

/// A node and the link to it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) sim: SimDisk,
    seed: u64,
    member: Mutex<Option<LocalMember>>,
    calls: Mutex<Calls>,
    /// Where another settler seals a copy before the next question about it.
    seal_before_copy: Mutex<Option<(Epoch, ExtentOffset)>>,
}

impl Node {
    pub(super) async fn start(seed: u64) -> Arc<Self> {
        let sim = SimDisk::new(seed, DISK_BYTES);
        let member = LocalMember::new(open(sim.disk(), seed).await);
        let (member, calls) = (Mutex::new(Some(member)), Mutex::new(Calls::Answered));
        let seal_before_copy = Mutex::default();
        Arc::new(Self { sim, seed, member, calls, seal_before_copy })
    }

    /// The node without its link.
    pub(super) fn member(&self) -> LocalMember {
        self.member.lock().unwrap().clone().unwrap()
    }

    pub(super) fn set_calls(&self, calls: Calls) {
        *self.calls.lock().unwrap() = calls;
    }

    /// Runs a checkpoint of the node's disk.
    pub(super) async fn checkpoint(&self) -> Result<(), Error> {
        let member = self.member();
        for store in member.node.stores() {
            store.checkpoint().await?;
        }
        Ok(())
    }

    /// Seals a copy at this end between the next fence and the question where it ends.
    pub(super) fn seal_before_copy(&self, epoch: Epoch, end: ExtentOffset) {
        *self.seal_before_copy.lock().unwrap() = Some((epoch, end));
    }

    /// The process ends at once and starts again; with `power` the machine loses power.
    pub(super) async fn crash(&self, power: bool) {
        drop(self.member.lock().unwrap().take());
        let disk = match power {
            true => self.sim.restart_after_power_cut(),
            false => self.sim.restart_after_kill(),
        };
        let node = open(disk, self.seed).await;
        *self.member.lock().unwrap() = Some(LocalMember::new(node));
    }

    /// The member, if a call arrives, and whether its answer does.
    fn call(&self, extent: ExtentId) -> Result<(LocalMember, bool), Error> {
        let cut = Error::Unreadable { extent, reason: "the link is cut".to_owned() };
        let mut calls = self.calls.lock().unwrap();
        let answered = match *calls {
            Calls::Answered => true,
            Calls::Lost => return Err(cut),
            Calls::CutAfter(0) => {
                *calls = Calls::Lost;
                false
            }
            Calls::CutAfter(left) => {
                *calls = Calls::CutAfter(left - 1);
                true
            }
        };
        Ok((self.member.lock().unwrap().clone().ok_or(cut)?, answered))
    }

    async fn carry_out<T, F>(
        &self,
        extent: ExtentId,
        call: impl FnOnce(LocalMember) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let (member, answered) = self.call(extent)?;
        let answer = call(member).await;
        match answered {
            true => answer,
            false => Err(Error::Unreadable { extent, reason: "the answer was lost".to_owned() }),
        }
    }
}

#[async_trait]
impl Member for Node {
    async fn append(&self, append: FramedAppend) -> Result<ExtentOffset, Error> {
        self.carry_out(append.copy.extent, |to| async move { to.append(append).await }).await
    }

    async fn flush(&self, extent: ExtentId, epoch: Epoch, end: ExtentOffset) -> Result<(), Error> {
        self.carry_out(extent, |to| async move { to.flush(extent, epoch, end).await }).await
    }

    async fn read(&self, location: &Location, range: Range<u64>) -> Result<Vec<FramePart>, Error> {
        self.carry_out(location.extent, |to| async move { to.read(location, range).await }).await
    }

    async fn frames(
        &self,
        extent: ExtentId,
        from: ExtentOffset,
        bytes_max: u64,
    ) -> Result<Vec<RawFrame>, Error> {
        self.carry_out(extent, |to| async move { to.frames(extent, from, bytes_max).await }).await
    }

    async fn fence(&self, copy: CopyId, epoch: Epoch) -> Result<ExtentOffset, Error> {
        self.carry_out(copy.extent, |to| async move { to.fence(copy, epoch).await }).await
    }

    async fn extend(
        &self,
        copy: CopyId,
        epoch: Epoch,
        added: Extension,
    ) -> Result<ExtentOffset, Error> {
        self.carry_out(copy.extent, |to| async move { to.extend(copy, epoch, added).await }).await
    }

    async fn seal_at(
        &self,
        extent: ExtentId,
        epoch: Epoch,
        len: ExtentOffset,
    ) -> Result<(), Error> {
        self.carry_out(extent, |to| async move { to.seal_at(extent, epoch, len).await }).await
    }

    async fn copy(&self, extent: ExtentId) -> Result<Option<CopyInfo>, Error> {
        let seal = self.seal_before_copy.lock().unwrap().take();
        if let Some((epoch, end)) = seal {
            self.member().seal_at(extent, epoch, end).await?;
        }
        self.carry_out(extent, |to| async move { to.copy(extent).await }).await
    }

    async fn fenced(&self, logs: &[OwnedLog]) -> Vec<ExtentId> {
        self.member().fenced(logs).await
    }

    async fn dead(&self, extent: ExtentId) -> Result<Vec<Range<u64>>, Error> {
        self.member().dead(extent).await
    }

    async fn free(&self, locations: &[Location]) -> Result<(), Error> {
        self.member().free(locations).await
    }

    async fn retain(
        &self,
        extent: ExtentId,
        live: &[Range<u64>],
        audited: Audited,
    ) -> Result<(), Error> {
        self.member().retain(extent, live, audited).await
    }

    async fn remove(&self, extent: ExtentId) -> Result<(), Error> {
        self.member().remove(extent).await
    }
}

/// Recorded ends, in memory.
#[derive(Debug, Default)]
pub(super) struct Ends {
    pub(super) ends: Mutex<BTreeMap<ExtentId, ExtentOffset>>,
    pub(super) members_changed: bool,
}

#[async_trait]
impl EndRecord for Ends {
    async fn recorded(&self, extent: ExtentId) -> Result<Recorded, String> {
        let end = self.ends.lock().unwrap().get(&extent).copied();
        Ok(Recorded { end, members_changed: self.members_changed })
    }

    async fn record(&self, extent: ExtentId, end: ExtentOffset) -> Result<ExtentOffset, String> {
        Ok(*self.ends.lock().unwrap().entry(extent).or_insert(end))
    }
}
