//! The state of a simulated disk: files, names, which changes are durable, and planned faults.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io;

use bytes::Bytes;

use crate::env::DiskError;
use crate::env::Space;
use crate::env::disk_sim::dice::Dice;
use crate::env::disk_sim::faults::Fault;
use crate::env::disk_sim::faults::Faults;
use crate::env::disk_sim::image::Image;
use crate::env::disk_sim::image::PAGE_BYTES;
use crate::env::disk_sim::names::NameChange;
use crate::env::disk_sim::power::Change;
use crate::env::disk_sim::power::What;
use crate::env::disk_sim::power::apply_survivors;

/// A file, without its name.
#[derive(Clone, Debug, Default)]
struct Inode {
    /// The content that reads return.
    now: Image,
    /// The content that survives a power failure.
    durable: Image,
    /// Changes in `now` that are not in `durable`, oldest first.
    pending: Vec<Change>,
}

/// Whether the result of an operation reaches the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It does.
    Answered,
    /// The power fails after the operation took effect: the caller gets an error.
    Unanswered,
}

/// An operation, for the trace and for errors.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Call<'a> {
    pub(super) action: &'static str,
    pub(super) path: &'a str,
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Call<'_> {
    pub(super) fn failed(&self, kind: io::ErrorKind) -> DiskError {
        DiskError::Io { action: self.action, path: self.path.to_owned(), kind }
    }

    /// The error of a machine without power.
    pub(super) fn dead(&self) -> DiskError {
        self.failed(io::ErrorKind::NotConnected)
    }
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) dice: Dice,
    pub(super) faults: Faults,
    /// Faults that happen once, each with the number of operations to skip.
    pub(super) one_time_faults: Vec<(Fault, u64)>,
    pub(super) capacity_pages: u64,
    /// Number of restarts. Handles of earlier generations fail.
    pub(super) generation: u64,
    /// Number of operations.
    pub(super) operations: u64,
    /// The operation at which the power fails.
    pub(super) crash_at: Option<u64>,
    pub(super) down: bool,
    /// Until when all operations wait.
    pub(super) stalled_until: Option<tokio::time::Instant>,
    /// Until when syncs wait.
    pub(super) syncs_stalled_until: Option<tokio::time::Instant>,
    inodes: BTreeMap<u64, Inode>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    pending_names: Vec<NameChange>,
    next_inode: u64,
    /// Pages freed by changes that may not be durable yet. After a power failure they may belong to
    /// their old file again, so no other file may use them before.
    returned_pages: u64,
}

impl World {
    pub(super) fn new(seed: u64, capacity_bytes: u64) -> Self {
        Self {
            dice: Dice::new(seed),
            faults: Faults::default(),
            one_time_faults: Vec::new(),
            capacity_pages: capacity_bytes / PAGE_BYTES,
            generation: 0,
            operations: 0,
            crash_at: None,
            down: false,
            stalled_until: None,
            syncs_stalled_until: None,
            inodes: BTreeMap::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending_names: Vec::new(),
            next_inode: 1,
            returned_pages: 0,
        }
    }

    /// Counts an operation and decides whether the power fails.
    pub(super) fn enter(&mut self, generation: u64, call: &Call<'_>) -> Result<Fate, DiskError> {
        if self.down || generation != self.generation {
            return Err(call.dead());
        }
        self.operations += 1;
        self.dice.record(&(self.operations, call));
        if self.crash_at == Some(self.operations) {
            self.down = true;
            return if self.dice.below(2) == 0 { Ok(Fate::Unanswered) } else { Err(call.dead()) };
        }
        Ok(Fate::Answered)
    }

    /// Whether this fault happens now, as planned or by chance.
    fn strikes(&mut self, fault: Fault) -> bool {
        let mut struck = false;
        self.one_time_faults.retain_mut(|(kind, wait)| {
            if *kind != fault {
                return true;
            }
            if *wait == 0 && !struck {
                struck = true;
                return false;
            }
            *wait = wait.saturating_sub(1);
            true
        });
        struck || self.dice.happens(self.faults.chance(fault))
    }

    // Names

    pub(super) fn open(&mut self, call: &Call<'_>) -> Result<u64, DiskError> {
        let missing = || DiskError::NotFound { path: call.path.to_owned() };
        self.names.get(call.path).copied().ok_or_else(missing)
    }

    pub(super) fn create(&mut self, call: &Call<'_>) -> Result<u64, DiskError> {
        if self.strikes(Fault::WriteError) {
            return Err(call.failed(io::ErrorKind::Other));
        }
        if self.strikes(Fault::Full) || !self.has_room(1) {
            return Err(DiskError::Full);
        }
        if let Some(inode) = self.names.get(call.path).copied() {
            self.change(inode, What::SetLen { len: 0 });
            return Ok(inode);
        }
        let inode = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(inode, Inode::default());
        self.change_names(NameChange::Link { name: call.path.to_owned(), inode });
        Ok(inode)
    }

    pub(super) fn rename(&mut self, call: &Call<'_>, to: &str) -> Result<(), DiskError> {
        let inode = self.open(call)?;
        if self.strikes(Fault::WriteError) {
            return Err(call.failed(io::ErrorKind::Other));
        }
        let from = call.path.to_owned();
        self.change_names(NameChange::Rename { from, to: to.to_owned(), inode });
        Ok(())
    }

    pub(super) fn remove(&mut self, call: &Call<'_>) -> Result<(), DiskError> {
        if self.strikes(Fault::WriteError) {
            return Err(call.failed(io::ErrorKind::Other));
        }
        if self.names.contains_key(call.path) {
            self.change_names(NameChange::Unlink { name: call.path.to_owned() });
        }
        Ok(())
    }

    pub(super) fn list(&mut self, call: &Call<'_>) -> Result<Vec<String>, DiskError> {
        if self.strikes(Fault::ReadError) {
            return Err(call.failed(io::ErrorKind::Other));
        }
        let folder = call.path;
        Ok(self.names.keys().filter(|name| below(name, folder)).cloned().collect())
    }

    /// Makes the changes in a folder durable, with the earlier changes that they depend on and no
    /// others.
    pub(super) fn sync_dir(&mut self, call: &Call<'_>) -> Result<(), DiskError> {
        if self.strikes(Fault::SyncLie) {
            return Ok(());
        }
        if self.strikes(Fault::SyncError) {
            return Err(call.failed(io::ErrorKind::Other));
        }
        self.make_names_durable(|name| directly_in(name, call.path));
        Ok(())
    }

    /// Makes removals durable, as a file system does after some time.
    pub(super) fn make_removals_durable(&mut self) {
        let mut gone = BTreeSet::new();
        for change in &self.pending_names {
            if let NameChange::Unlink { name } = change
                && !self.names.contains_key(name)
            {
                gone.insert(name.clone());
            }
        }
        self.make_names_durable(|name| gone.contains(name));
    }

    /// Makes the changes of these names durable, with the earlier changes that they depend on and
    /// no others.
    fn make_names_durable(&mut self, is_chosen: impl Fn(&str) -> bool) {
        let mut touched: BTreeSet<String> = BTreeSet::new();
        let mut chosen = vec![false; self.pending_names.len()];
        for (change, chosen) in self.pending_names.iter().zip(&mut chosen).rev() {
            let names = change.names();
            // An earlier change of the same name must not be applied after a later one.
            *chosen = names.iter().any(|name| is_chosen(name) || touched.contains(*name));
            if *chosen {
                touched.extend(names.into_iter().cloned());
            }
        }
        let mut left = Vec::new();
        for (change, chosen) in self.pending_names.drain(..).zip(chosen) {
            if chosen {
                change.apply(&mut self.durable_names);
            } else {
                left.push(change);
            }
        }
        self.pending_names = left;
    }

    fn change_names(&mut self, change: NameChange) {
        let before = self.used_pages();
        change.apply(&mut self.names);
        self.returned_pages += before.saturating_sub(self.used_pages());
        self.pending_names.push(change);
    }

    // Bytes

    pub(super) fn read(&mut self, inode: u64, call: &Call<'_>) -> Result<Bytes, DiskError> {
        if self.strikes(Fault::ReadError) {
            return Err(call.failed(io::ErrorKind::Other));
        }
        let len =
            usize::try_from(call.len).map_err(|_| call.failed(io::ErrorKind::InvalidInput))?;
        Ok(self.inode(inode).now.read(call.offset, len).into())
    }

    pub(super) fn write(
        &mut self,
        inode: u64,
        call: &Call<'_>,
        bytes: Bytes,
    ) -> Result<(), DiskError> {
        self.dice.record(&bytes);
        let offset = call.offset;
        let full = self.is_full(inode, call);
        if full || self.strikes(Fault::WriteError) {
            self.write_garbage(inode, offset, &bytes, full);
            return Err(if full { DiskError::Full } else { call.failed(io::ErrorKind::Other) });
        }
        if !bytes.is_empty() {
            self.change(inode, What::Write { offset, bytes });
        }
        Ok(())
    }

    /// Applies the first bytes of a failed write. After an I/O error they may be anywhere. On a
    /// full disk they are only beyond the old end and within existing space.
    fn write_garbage(&mut self, inode: u64, offset: u64, bytes: &Bytes, full: bool) {
        let keep = self.dice.below(bytes.len() as u64 + 1);
        let beyond = offset >= self.inode(inode).now.len();
        if keep == 0 || (full && (!beyond || !self.fits(inode, offset, keep))) {
            return;
        }
        let keep = usize::try_from(keep).expect("below the buffer's length");
        self.change(inode, What::Write { offset, bytes: bytes.slice(..keep) });
    }

    pub(super) fn allocate(&mut self, inode: u64, call: &Call<'_>) -> Result<(), DiskError> {
        let (offset, len) = (call.offset, call.len);
        if self.is_full(inode, call) {
            return Err(DiskError::Full);
        }
        self.reshape(inode, call, What::Allocate { offset, len })
    }

    /// A change of the file's shape that needs no space.
    pub(super) fn reshape(
        &mut self,
        inode: u64,
        call: &Call<'_>,
        what: What,
    ) -> Result<(), DiskError> {
        if self.strikes(Fault::WriteError) {
            return Err(call.failed(io::ErrorKind::Other));
        }
        self.change(inode, what);
        Ok(())
    }

    /// Number of the latest change. A sync that starts now makes changes up to it durable.
    pub(super) const fn mark(&self) -> u64 {
        self.operations
    }

    /// Makes the changes up to `mark` durable, or fails as a kernel does: the bytes may be lost,
    /// they are marked clean in the cache, and no later sync writes them.
    pub(super) fn sync(&mut self, inode: u64, call: &Call<'_>, mark: u64) -> Result<(), DiskError> {
        if self.strikes(Fault::SyncLie) {
            return Ok(());
        }
        let failed = self.strikes(Fault::SyncError);
        let dice = &mut self.dice;
        let inode = self.inodes.get_mut(&inode).expect("an open file exists");
        let later = inode.pending.partition_point(|change| change.number <= mark);
        let rest = inode.pending.split_off(later);
        let changes = std::mem::replace(&mut inode.pending, rest);
        if failed {
            apply_survivors(&mut inode.durable, &changes, false, dice);
            return Err(call.failed(io::ErrorKind::Other));
        }
        for change in &changes {
            change.what.apply(&mut inode.durable);
        }
        Ok(())
    }

    /// Drops cached pages: reads return the content of the device with the pending changes.
    pub(super) fn drop_cache(&mut self, inode: u64) {
        let inode = self.inodes.get_mut(&inode).expect("an open file exists");
        inode.now = inode.durable.clone();
        for change in &inode.pending {
            change.what.apply(&mut inode.now);
        }
    }

    pub(super) fn len(&self, inode: u64) -> u64 {
        self.inode(inode).now.len()
    }

    pub(super) fn allocated(&self, inode: u64) -> u64 {
        self.inode(inode).now.pages() * PAGE_BYTES
    }

    pub(super) fn space(&self) -> Space {
        let total = self.capacity_pages * PAGE_BYTES;
        let available = total.saturating_sub(self.used_pages() * PAGE_BYTES);
        Space { total, available, file_system: None }
    }

    fn used_pages(&self) -> u64 {
        self.names.values().map(|inode| self.inode(*inode).now.pages()).sum()
    }

    /// Whether a write needs more space than there is. Space that is already taken or reserved is
    /// never refused.
    fn is_full(&mut self, inode: u64, call: &Call<'_>) -> bool {
        let missing = self.inode(inode).now.missing(call.offset, call.len);
        missing > 0 && (self.strikes(Fault::Full) || !self.fits(inode, call.offset, call.len))
    }

    fn fits(&mut self, inode: u64, offset: u64, len: u64) -> bool {
        let missing = self.inode(inode).now.missing(offset, len);
        missing == 0 || self.has_room(missing)
    }

    fn has_room(&mut self, pages: u64) -> bool {
        let free = |world: &Self| world.capacity_pages.saturating_sub(world.used_pages());
        if free(self) < pages {
            return false;
        }
        if free(self) < pages + self.returned_pages {
            self.commit_returns();
        }
        true
    }

    /// Makes every change that frees space durable, as a file system does when space is short.
    fn commit_returns(&mut self) {
        for change in self.pending_names.drain(..) {
            change.apply(&mut self.durable_names);
        }
        for inode in self.inodes.values_mut() {
            if inode.pending.iter().any(|change| change.what.frees()) {
                for change in inode.pending.drain(..) {
                    change.what.apply(&mut inode.durable);
                }
            }
        }
        self.returned_pages = 0;
    }

    fn inode(&self, inode: u64) -> &Inode {
        self.inodes.get(&inode).expect("an open file exists")
    }

    fn change(&mut self, inode: u64, what: What) {
        let number = self.operations;
        let inode = self.inodes.get_mut(&inode).expect("an open file exists");
        let before = inode.now.pages();
        what.apply(&mut inode.now);
        self.returned_pages += before.saturating_sub(inode.now.pages());
        inode.pending.push(Change { number, what });
    }

    // Disasters

    /// The process dies and starts again; the machine keeps running, so its cache is whole.
    pub(super) fn kill(&mut self) {
        self.generation += 1;
        self.down = false;
        // They are times of a clock that the next process does not have.
        self.stalled_until = None;
        self.syncs_stalled_until = None;
        self.crash_at = None;
        self.one_time_faults.clear();
        self.dice.record(&("kill", self.operations));
    }

    /// The machine loses power and starts again.
    pub(super) fn power_cut(&mut self) {
        self.returned_pages = 0;
        for inode in self.inodes.values_mut() {
            let changes = std::mem::take(&mut inode.pending);
            apply_survivors(&mut inode.durable, &changes, true, &mut self.dice);
            inode.now = inode.durable.clone();
        }
        for change in std::mem::take(&mut self.pending_names) {
            if self.dice.below(2) == 0 {
                change.apply(&mut self.durable_names);
            }
        }
        self.names = self.durable_names.clone();
        let live: BTreeSet<u64> = self.names.values().copied().collect();
        self.inodes.retain(|inode, _| live.contains(inode));
        self.kill();
    }

    /// Flips a bit of a written byte, on the device and in the cache.
    pub(super) fn flip(&mut self, path: &str, offset: u64) -> bool {
        let bit = u8::try_from(self.dice.below(8)).expect("below 8");
        let Some(inode) = self.names.get(path).and_then(|inode| self.inodes.get_mut(inode)) else {
            return false;
        };
        inode.durable.flip(offset, bit);
        inode.now.flip(offset, bit)
    }

    /// A random written byte of the files whose path `wanted` accepts.
    pub(super) fn pick(&mut self, wanted: impl Fn(&str) -> bool) -> Option<(String, u64)> {
        let names = self.names.iter().filter(|(name, _)| wanted(name));
        let pages: Vec<(&String, u64)> = names
            .flat_map(|(name, inode)| {
                self.inode(*inode).now.written().map(move |page| (name, page))
            })
            .collect();
        let chosen = usize::try_from(self.dice.below(pages.len() as u64)).ok()?;
        let (name, page) = pages.get(chosen)?;
        Some(((*name).clone(), page * PAGE_BYTES + self.dice.below(PAGE_BYTES)))
    }
}

fn below(name: &str, folder: &str) -> bool {
    folder.is_empty() || name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn directly_in(name: &str, folder: &str) -> bool {
    name.rsplit_once('/').map_or("", |(parent, _)| parent) == folder
}
