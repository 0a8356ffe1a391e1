//! A model of a node under a random workload. After any crash the node must have every durable byte
//! and no wrong one.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Dice, payload};
use crate::capacity::units::size;
use crate::capacity::{
    AppendRequest, Capacity, CapacityNode, Durability, Error, ExtentKind, ExtentState, end_after,
};
use crate::env::disk_sim::SimDisk;
use crate::types::ByteLen;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;
use crate::types::Location;

/// One stored payload.
#[derive(Clone, Debug)]
struct Stored {
    location: Location,
    bytes: Bytes,
    end: u64,
    freed: bool,
}

/// One extent of the model.
#[derive(Clone, Debug)]
struct Known {
    kind: ExtentKind,
    epoch: Epoch,
    end: u64,
    /// All bytes below this must survive.
    durable: u64,
    stored: Vec<Stored>,
    /// The final length, if a seal was acknowledged.
    sealed: Option<u64>,
    /// Whether a call on it failed. The model makes no more calls on it.
    failed: bool,
    removed: bool,
    /// Whether a restart has lost frees: there may be holes where the node expects frames.
    holes: bool,
}

impl Known {
    fn forget_frees(&mut self) {
        let before = self.stored.len();
        self.stored.retain(|stored| !stored.freed);
        self.holes |= self.stored.len() < before;
    }
}

/// The expected state of a node.
#[derive(Debug, Default)]
pub(super) struct Model {
    extents: BTreeMap<ExtentId, Known>,
    next: u64,
    payloads: u64,
    refused: u64,
}

impl Model {
    /// Whether no extent was ever created.
    pub(super) fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// Number of appends that failed on a full disk.
    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    /// Makes a random step on a disk that may be full. There a creation may be refused.
    pub(super) async fn step_full(&mut self, node: &CapacityNode, dice: &Dice) {
        if !self.step(node, dice).await {
            let id = ExtentId::new(u64::MAX);
            let full = node.create(id, ExtentKind::Data, Epoch::new(1)).await;
            assert!(matches!(full, Err(Error::Full)), "{full:?}");
            self.refused += 1;
        }
    }

    /// Whether every kind of write is refused and reads succeed.
    pub(super) async fn every_write_is_refused(&mut self, node: &CapacityNode) -> bool {
        let id = ExtentId::new(u64::MAX);
        let created = node.create(id, ExtentKind::Log, Epoch::new(1)).await;
        let mut refused = matches!(created, Err(Error::Poisoned { .. }));
        for (id, known) in &self.extents {
            let gone = |answer: &Error| {
                matches!(
                    answer,
                    Error::Poisoned { .. }
                        | Error::NoSuchExtent { .. }
                        | Error::Sealed { .. }
                        | Error::WrongOffset { .. }
                        | Error::Fenced { .. }
                )
            };
            let request = AppendRequest {
                extent: *id,
                epoch: known.epoch,
                offset: ExtentOffset::new(known.end),
                payloads: vec![vec![Bytes::from_static(b"x")]],
                durability: Durability::Durable,
            };
            refused &= node.append(request).await.is_err_and(|e| gone(&e));
            refused &= node.flush(*id, known.epoch.next()).await.is_err_and(|e| gone(&e));
            for stored in known.stored.iter().filter(|s| !s.freed) {
                let read = node.read(&stored.location, 0..stored.location.len.get()).await;
                refused &= !matches!(read, Err(Error::Poisoned { .. }));
            }
        }
        refused
    }

    /// Verifies the node after a restart, if the power has not failed again.
    pub(super) async fn verify_restarted_or_down(&mut self, node: &CapacityNode, sim: &SimDisk) {
        // Only the extents that the start found are verified. Reads fail after a power failure, so
        // they are verified at the next restart.
        for info in node.extents().await {
            if let Some(known) = self.extents.get_mut(&info.extent) {
                assert!(info.len >= known.durable || sim.is_down());
                known.sealed = Some(info.len);
                known.epoch = known.epoch.max(info.epoch);
                known.stored.retain(|stored| stored.end <= known.durable);
                known.forget_frees();
            }
        }
        for known in self.extents.values_mut() {
            known.failed |= known.sealed.is_none();
        }
    }

    /// How many acknowledged payloads cannot be read. Asserts that the others are correct.
    pub(super) async fn unreadable(&self, node: &CapacityNode) -> u64 {
        let mut lost = 0;
        for known in self.extents.values().filter(|k| !k.removed && !k.failed) {
            for stored in known.stored.iter().filter(|s| !s.freed && s.end <= known.durable) {
                match node.read(&stored.location, 0..stored.location.len.get()).await {
                    Ok(read) => assert_eq!(read.concat(), stored.bytes),
                    Err(_) => lost += 1,
                }
            }
        }
        lost
    }

    /// Makes one random call on the node and updates the model. Returns false if the call failed
    /// and only a fault explains that.
    pub(super) async fn step(&mut self, node: &CapacityNode, dice: &Dice) -> bool {
        let open: Vec<ExtentId> = self.which(|k| k.sealed.is_none() && !k.failed && !k.removed);
        let choice = dice.below(100);
        if open.is_empty() || choice < 4 {
            return self.create(node, dice).await;
        }
        let id = *dice.pick(&open).unwrap();
        match choice {
            4..20 => self.burst(node, dice, &open).await,
            20..60 => self.append(node, dice, id, Durability::Durable).await,
            60..75 => self.append(node, dice, id, Durability::Deferred).await,
            75..80 => self.flush(node, id).await,
            80..84 => self.seal(node, id).await,
            84..87 => self.fence(node, id).await,
            87..96 => self.free(node, dice).await,
            96 => self.remove(node, dice).await,
            _ => self.read_some(node, dice).await,
        }
    }

    fn which(&self, of: impl Fn(&Known) -> bool) -> Vec<ExtentId> {
        self.extents.iter().filter(|(_, known)| of(known)).map(|(id, _)| *id).collect()
    }

    fn known(&mut self, id: ExtentId) -> &mut Known {
        self.extents.get_mut(&id).unwrap()
    }

    async fn create(&mut self, node: &CapacityNode, dice: &Dice) -> bool {
        let kinds = [ExtentKind::Data, ExtentKind::Data, ExtentKind::Log, ExtentKind::Run];
        let kind = *dice.pick(&kinds).unwrap();
        self.next += 1;
        let id = ExtentId::new(self.next);
        if node.create(id, kind, Epoch::new(1)).await.is_err() {
            return false;
        }
        let known = Known {
            kind,
            epoch: Epoch::new(1),
            end: 0,
            durable: 0,
            stored: Vec::new(),
            sealed: None,
            failed: false,
            removed: false,
            holes: false,
        };
        self.extents.insert(id, known);
        true
    }

    async fn append(
        &mut self,
        node: &CapacityNode,
        dice: &Dice,
        id: ExtentId,
        durability: Durability,
    ) -> bool {
        let limit = *dice.pick(&[100, 5_000, 5_000, 20_000, 50_000, 1_200_000]).unwrap();
        let count = if limit > 10_000 { 1 } else { 1 + dice.below(3) };
        let lens: Vec<u64> = (0..count).map(|_| 1 + dice.below(limit)).collect();
        let bytes: Vec<Bytes> = lens
            .iter()
            .map(|&len| {
                self.payloads += 1;
                payload(self.payloads, len)
            })
            .collect();
        let known = self.known(id);
        let request = AppendRequest {
            extent: id,
            epoch: known.epoch,
            offset: ExtentOffset::new(known.end),
            payloads: bytes.iter().map(|b| vec![b.clone()]).collect(),
            durability,
        };
        match node.append(request).await {
            Ok(appended) => {
                assert_eq!(appended.end, end_after(ExtentOffset::new(known.end), &lens));
                known.end = appended.end.get();
                if durability == Durability::Durable {
                    known.durable = appended.end.get();
                }
                for (location, bytes) in appended.locations.into_iter().zip(bytes) {
                    let end = node.frames_of(&location).end;
                    known.stored.push(Stored { location, bytes, end, freed: false });
                }
                true
            }
            Err(Error::Full) => {
                self.refused += 1;
                true
            }
            Err(_) => {
                known.failed = true;
                false
            }
        }
    }

    /// Appends to several extents concurrently, several times to each without waiting for the
    /// result of the append before.
    async fn burst(&mut self, node: &CapacityNode, dice: &Dice, open: &[ExtentId]) -> bool {
        let mut appends = Vec::new();
        for &id in open.iter().take(6) {
            let mut offset = self.known(id).end;
            for _ in 0..dice.below(4) {
                self.payloads += 1;
                let bytes = payload(self.payloads, 1 + dice.below(9_000));
                let payloads = vec![vec![bytes.clone()]];
                let epoch = self.known(id).epoch;
                let durability = Durability::Durable;
                let request = AppendRequest {
                    extent: id,
                    epoch,
                    offset: ExtentOffset::new(offset),
                    payloads,
                    durability,
                };
                offset = end_after(ExtentOffset::new(offset), &[size(bytes.len())]).get();
                appends.push(async move { (id, bytes, node.append(request).await) });
            }
        }
        let mut good = true;
        for (id, bytes, answer) in futures_util::future::join_all(appends).await {
            let refused = self.refused > 0;
            let known = self.known(id);
            match answer {
                Ok(appended) => {
                    known.end = appended.end.get();
                    known.durable = appended.end.get();
                    let location = appended.locations[0];
                    let end = node.frames_of(&location).end;
                    known.stored.push(Stored { location, bytes, end, freed: false });
                }
                Err(Error::Full) => self.refused += 1,
                // The append before it was refused.
                Err(Error::WrongOffset { .. }) if refused => {}
                Err(_) => {
                    known.failed = true;
                    good = false;
                }
            }
        }
        good
    }

    async fn flush(&mut self, node: &CapacityNode, id: ExtentId) -> bool {
        let known = self.known(id);
        if node.flush(id, known.epoch).await.is_err() {
            known.failed = true;
            return false;
        }
        known.durable = known.end;
        true
    }

    async fn seal(&mut self, node: &CapacityNode, id: ExtentId) -> bool {
        let known = self.known(id);
        let Ok(end) = node.seal(id, known.epoch).await else {
            known.failed = true;
            return false;
        };
        assert_eq!(end, ExtentOffset::new(known.end));
        known.durable = end.get();
        known.sealed = Some(end.get());
        true
    }

    async fn fence(&mut self, node: &CapacityNode, id: ExtentId) -> bool {
        let known = self.known(id);
        let higher = known.epoch.next();
        if node.fence(id, higher).await.is_err() {
            known.failed = true;
            return false;
        }
        known.epoch = higher;
        true
    }

    async fn free(&mut self, node: &CapacityNode, dice: &Dice) -> bool {
        let here = self.which(|k| !k.removed && !k.failed && !k.stored.is_empty());
        let Some(&id) = dice.pick(&here) else { return true };
        let known = self.known(id);
        let from = crate::capacity::units::index(dice.below(size(known.stored.len())));
        let count = 1 + crate::capacity::units::index(dice.below(4));
        let mut locations = Vec::new();
        for stored in known.stored.iter_mut().skip(from).take(count) {
            stored.freed = true;
            locations.push(stored.location);
        }
        node.free(&locations).await.is_ok()
    }

    async fn remove(&mut self, node: &CapacityNode, dice: &Dice) -> bool {
        let here = self.which(|k| !k.removed);
        let Some(&id) = dice.pick(&here) else { return true };
        // From the call on, the extent may be gone.
        self.known(id).failed = true;
        if node.remove(id).await.is_err() {
            self.known(id).durable = 0;
            return false;
        }
        self.known(id).removed = true;
        true
    }

    async fn read_some(&mut self, node: &CapacityNode, dice: &Dice) -> bool {
        let here = self.which(|k| !k.removed && !k.failed && !k.stored.is_empty());
        let Some(&id) = dice.pick(&here) else { return true };
        let stored = dice.pick(&self.known(id).stored).unwrap().clone();
        let len = stored.location.len;
        let start = dice.below(len.get());
        let end = start + dice.below(len.get() - start + 1);
        match node.read(&stored.location, start..end).await {
            Ok(read) => {
                let expected = stored.bytes.slice(
                    crate::capacity::units::index(start)..crate::capacity::units::index(end),
                );
                assert_eq!(read.concat(), expected);
                assert!(!stored.freed, "a freed location was served");
                true
            }
            Err(Error::Corrupt { .. } | Error::NoSuchExtent { .. }) => {
                assert!(stored.freed, "{:?} is gone", stored.location);
                true
            }
            Err(_) => false,
        }
    }

    /// Verifies all acknowledged bytes after a restart. All its extents are sealed then; the next
    /// steps create new ones.
    pub(super) async fn verify_restarted(&mut self, node: &CapacityNode, frees_survive: bool) {
        let infos: BTreeMap<ExtentId, _> =
            node.extents().await.into_iter().map(|info| (info.extent, info)).collect();
        for (id, known) in &mut self.extents {
            let Some(info) = infos.get(id) else {
                let needed = known.stored.iter().any(|s| !s.freed && s.end <= known.durable);
                assert!(known.removed || !needed || known.failed, "extent {id} is gone");
                known.removed = true;
                continue;
            };
            assert!(!known.removed, "removed extent {id} is back");
            assert_eq!((info.kind, info.state), (known.kind, ExtentState::Sealed), "extent {id}");
            assert!(info.epoch >= known.epoch, "extent {id} forgot its epoch");
            assert!(info.len >= known.durable, "{id} ends at {}, not {}", info.len, known.durable);
            assert!(known.sealed.is_none_or(|len| len == info.len));
            known.sealed = Some(info.len);
            known.epoch = info.epoch;
        }
        let ids: Vec<ExtentId> = self.which(|k| !k.removed);
        for id in ids {
            self.verify_extent(node, id, frees_survive).await;
        }
    }

    async fn verify_extent(&mut self, node: &CapacityNode, id: ExtentId, frees_survive: bool) {
        let known = self.known(id);
        for stored in &known.stored {
            let read = node.read(&stored.location, 0..stored.location.len.get()).await;
            let must = stored.end <= known.durable && !stored.freed;
            match read {
                Ok(read) => {
                    assert_eq!(read.concat(), stored.bytes);
                    assert!(!(stored.freed && frees_survive), "a freed location is back");
                }
                Err(error) => assert!(!must, "acknowledged {:?}: {error}", stored.location),
            }
        }
        known.stored.retain(|stored| stored.end <= known.durable);
        let mut expected =
            known.stored.iter().filter(|s| !s.freed && s.location.len <= ByteLen::new(1 << 20));
        let mut next = expected.next();
        let mut offset = 0;
        // If frees were lost, freed frames may be holes, and the log cannot be read past them.
        let intact = frees_survive || !(known.holes || known.stored.iter().any(|s| s.freed));
        while let Ok(Some(frame)) = node.next_frame(id, ExtentOffset::new(offset)).await {
            if let Some(stored) = next
                && stored.location.offset == frame.offset
            {
                assert_eq!(frame.payload, stored.bytes);
                next = expected.next();
            }
            offset = frame.next.get();
        }
        assert!(!intact || next.is_none(), "walking {id} missed {next:?}");
        if !frees_survive {
            known.forget_frees();
        }
    }
}
