//! All inodes and names of the file system, durable and not. It does no I/O and has no clock.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ffi::OsString;
use std::time::SystemTime;

use fastrand::Rng;
use fuser::Errno;

use crate::content::Change;
use crate::cut::Mode;
use crate::cut::Report;
use crate::file::File;
use crate::names::Names;
use crate::names::ROOT;

type Result<T> = std::result::Result<T, Errno>;

/// What an inode is.
#[derive(Debug)]
pub enum Kind {
    Folder,
    File(File),
}

/// A file or folder. Owner, mode and time are durable at once: nothing here is a test of them.
#[derive(Debug)]
pub struct Inode {
    pub kind: Kind,
    pub mode: u32,
    pub owner: (u32, u32),
    pub modified: SystemTime,
    /// Look-ups by the kernel that it has not forgotten.
    lookups: u64,
}

/// A sync that has begun.
#[derive(Debug)]
pub struct Sync {
    inode: u64,
    issued: u64,
    cuts: u64,
}

/// The file system.
#[derive(Debug)]
pub struct Store {
    inodes: BTreeMap<u64, Inode>,
    names: Names,
    next: u64,
    capacity: u64,
    /// Room that the files take as their users see them.
    used: u64,
    cuts: u64,
    syncs: u64,
}

impl Store {
    /// An empty file system of `capacity` bytes.
    pub fn new(capacity: u64, owner: (u32, u32), now: SystemTime) -> Self {
        let root = Inode { kind: Kind::Folder, mode: 0o755, owner, modified: now, lookups: 1 };
        Self {
            inodes: BTreeMap::from([(ROOT, root)]),
            names: Names::default(),
            next: ROOT + 1,
            capacity,
            used: 0,
            cuts: 0,
            syncs: 0,
        }
    }

    /// (bytes in all, bytes free)
    pub fn space(&self) -> (u64, u64) {
        (self.capacity, self.capacity.saturating_sub(self.used))
    }

    pub fn inode(&self, inode: u64) -> Result<&Inode> {
        self.inodes.get(&inode).ok_or(Errno::ENOENT)
    }

    pub fn inode_mut(&mut self, inode: u64) -> Result<&mut Inode> {
        self.inodes.get_mut(&inode).ok_or(Errno::ENOENT)
    }

    pub fn find(&self, folder: u64, name: &OsStr) -> Result<u64> {
        self.names.get(&(folder, name.to_owned())).ok_or(Errno::ENOENT)
    }

    /// Counts a look-up of an inode by the kernel.
    pub fn looked_up(&mut self, inode: u64) {
        if let Some(found) = self.inodes.get_mut(&inode) {
            found.lookups += 1;
        }
    }

    /// Notes that the kernel forgot an inode.
    pub fn forgotten(&mut self, inode: u64, lookups: u64) {
        if let Some(found) = self.inodes.get_mut(&inode) {
            found.lookups = found.lookups.saturating_sub(lookups);
        }
        self.collect(&[inode]);
    }

    /// Names of a folder with where they lead.
    pub fn list(&self, folder: u64) -> Vec<(u64, OsString)> {
        self.names.list(folder).map(|(name, inode)| (inode, name.clone())).collect()
    }

    pub fn create(
        &mut self,
        folder: u64,
        name: &OsStr,
        inode: (Kind, u32),
        owner: (u32, u32),
        now: SystemTime,
    ) -> Result<u64> {
        if !matches!(self.inode(folder)?.kind, Kind::Folder) {
            return Err(Errno::ENOTDIR);
        }
        if self.find(folder, name).is_ok() {
            return Err(Errno::EEXIST);
        }
        let number = self.next;
        self.next += 1;
        let (kind, mode) = inode;
        self.inodes.insert(number, Inode { kind, mode, owner, modified: now, lookups: 0 });
        self.names.link((folder, name.to_owned()), number);
        Ok(number)
    }

    /// Removes a name: of a folder if `is_folder`, else of a file.
    pub fn remove(&mut self, folder: u64, name: &OsStr, is_folder: bool) -> Result<()> {
        let inode = self.find(folder, name)?;
        match (&self.inode(inode)?.kind, is_folder) {
            (Kind::Folder, false) => return Err(Errno::EISDIR),
            (Kind::File(_), true) => return Err(Errno::ENOTDIR),
            (Kind::Folder, true) if self.names.list(inode).next().is_some() => {
                return Err(Errno::ENOTEMPTY);
            }
            (Kind::Folder, true) | (Kind::File(_), false) => {}
        }
        self.names.unlink((folder, name.to_owned()));
        Ok(())
    }

    pub fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr), replace: bool) -> Result<()> {
        let moved = self.find(from.0, from.1)?;
        if let Ok(target) = self.find(to.0, to.1) {
            if !replace {
                return Err(Errno::EEXIST);
            }
            match (&self.inode(moved)?.kind, &self.inode(target)?.kind) {
                (Kind::File(_), Kind::Folder) => return Err(Errno::EISDIR),
                (Kind::Folder, Kind::File(_)) => return Err(Errno::ENOTDIR),
                (Kind::Folder, Kind::Folder) if self.names.list(target).next().is_some() => {
                    return Err(Errno::ENOTEMPTY);
                }
                (Kind::Folder, Kind::Folder) | (Kind::File(_), Kind::File(_)) => {}
            }
        }
        self.names.rename((from.0, from.1.to_owned()), (to.0, to.1.to_owned()));
        Ok(())
    }

    fn file(&mut self, inode: u64) -> Result<&mut File> {
        match &mut self.inode_mut(inode)?.kind {
            Kind::File(file) => Ok(file),
            Kind::Folder => Err(Errno::EISDIR),
        }
    }

    pub fn read(&mut self, inode: u64, offset: u64, len: usize) -> Result<Vec<u8>> {
        Ok(self.file(inode)?.content().read(offset, len))
    }

    /// Changes a file's content. `ENOSPC` when there is no room for what it may take.
    pub fn change(&mut self, inode: u64, change: Change, now: SystemTime) -> Result<()> {
        let wanted = match &change {
            Change::Write { bytes, .. } => bytes.len() as u64,
            Change::Allocate { len, .. } => *len,
            Change::Length(_) | Change::Punch { .. } => 0,
        };
        let (_, free) = self.space();
        let file = self.file(inode)?;
        let before = file.content().allocated();
        if wanted > free {
            return Err(Errno::ENOSPC);
        }
        file.change(change);
        let after = file.content().allocated();
        self.used = self.used + after - before;
        self.inode_mut(inode)?.modified = now;
        Ok(())
    }

    /// Begins a sync of a file, or of a folder's names. It has no effect before `finish_sync`.
    pub fn begin_sync(&self, inode: u64) -> Result<Sync> {
        let issued = match &self.inode(inode)?.kind {
            Kind::File(file) => file.issued(),
            Kind::Folder => self.names.issued(),
        };
        Ok(Sync { inode, issued, cuts: self.cuts })
    }

    /// Makes durable what a sync covers. `EIO` when the power failed meanwhile.
    pub fn finish_sync(&mut self, sync: &Sync) -> Result<()> {
        if sync.cuts != self.cuts {
            return Err(Errno::EIO);
        }
        self.syncs += 1;
        match &mut self.inode_mut(sync.inode)?.kind {
            Kind::File(file) => file.sync(sync.issued),
            Kind::Folder => {
                self.names.sync(sync.inode, sync.issued);
                let all: Vec<u64> = self.inodes.keys().copied().collect();
                self.collect(&all);
            }
        }
        Ok(())
    }

    /// Frees those of `inodes` that neither a name nor the kernel refers to any more.
    fn collect(&mut self, inodes: &[u64]) {
        let unknown = |found: &Inode| found.lookups == 0;
        let candidates: Vec<u64> = inodes
            .iter()
            .copied()
            .filter(|inode| self.inodes.get(inode).is_some_and(unknown))
            .collect();
        if candidates.is_empty() {
            return;
        }
        let reachable = self.names.reachable();
        for inode in candidates.into_iter().filter(|inode| !reachable.contains(inode)) {
            self.drop_inode(inode);
        }
    }

    fn drop_inode(&mut self, inode: u64) {
        if let Some(Inode { kind: Kind::File(file), .. }) = self.inodes.remove(&inode) {
            self.used -= file.content().allocated();
        }
    }

    /// The power fails. The file system must not be used meanwhile.
    pub fn cut(&mut self, mode: Mode, seed: u64) -> Report {
        let mut rng = Rng::with_seed(seed);
        let mut report = Report::default();
        self.cuts += 1;
        self.names.cut(mode, &mut rng, &mut report);
        self.names.drop_unreachable();
        let reachable = self.names.reachable();
        let unreachable: Vec<u64> =
            self.inodes.keys().copied().filter(|inode| !reachable.contains(inode)).collect();
        report.lost = unreachable.len();
        for inode in unreachable {
            self.drop_inode(inode);
        }
        self.used = 0;
        for inode in self.inodes.values_mut() {
            if let Kind::File(file) = &mut inode.kind {
                file.cut(mode, &mut rng, &mut report);
                self.used += file.content().allocated();
            }
        }
        report
    }

    /// One line for people: what is there and what a power failure would meet now.
    pub fn status(&self) -> String {
        let files = self.inodes.values().filter_map(|inode| match &inode.kind {
            Kind::File(file) => Some(file.unsynced()),
            Kind::Folder => None,
        });
        let (count, unsynced) = files.fold((0, 0), |(count, sum), file| (count + 1, sum + file));
        format!(
            "files={count} used={} syncs={} cuts={} changes={unsynced} names={}",
            self.used,
            self.syncs,
            self.cuts,
            self.names.unsynced()
        )
    }
}

#[cfg(test)]
mod tests;
