//! The store behind /dev/fuse.
//!
//! The kernel keeps no answer (all times to live are zero) and no written byte (its cache writes
//! through), so that what is unsynced is unsynced here and nowhere else.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;
use std::time::SystemTime;

use fuser::BsdFileFlags;
use fuser::Errno;
use fuser::FileAttr;
use fuser::FileHandle;
use fuser::FileType;
use fuser::Filesystem;
use fuser::FopenFlags;
use fuser::Generation;
use fuser::INodeNo;
use fuser::LockOwner;
use fuser::OpenFlags;
use fuser::RenameFlags;
use fuser::ReplyAttr;
use fuser::ReplyCreate;
use fuser::ReplyData;
use fuser::ReplyDirectory;
use fuser::ReplyEmpty;
use fuser::ReplyEntry;
use fuser::ReplyOpen;
use fuser::ReplyStatfs;
use fuser::ReplyWrite;
use fuser::Request;
use fuser::TimeOrNow;
use fuser::WriteFlags;

use crate::content::Change;
use crate::content::PAGE_BYTES;
use crate::file::File;
use crate::store::Inode;
use crate::store::Kind;
use crate::store::Store;

/// The kernel asks again each time.
const NOT_KEPT: Duration = Duration::ZERO;

/// A store that others, such as the control socket, use too.
pub type Shared = Arc<Mutex<Store>>;

/// The store, even after a panic with it: the test should continue and report.
pub fn lock(store: &Shared) -> MutexGuard<'_, Store> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What fuser calls.
#[derive(Debug)]
pub struct PowerFs {
    store: Shared,
    /// The longest a sync takes; each takes a random part of it. What is written meanwhile is not
    /// covered.
    sync_max: Duration,
    /// What open folders contained when they were opened, so that a removal moves no later name.
    listings: Mutex<(u64, BTreeMap<u64, Vec<(u64, OsString)>>)>,
}

impl PowerFs {
    pub fn new(store: Shared, sync_max: Duration) -> Self {
        Self { store, sync_max, listings: Mutex::default() }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        lock(&self.store)
    }

    fn listings(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Vec<(u64, OsString)>>)> {
        self.listings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(
        &self,
        request: &Request,
        place: (INodeNo, &OsStr),
        kind: Kind,
        mode: u32,
    ) -> Result<FileAttr, Errno> {
        let mut store = self.store();
        let owner = (request.uid(), request.gid());
        let new = (kind, mode & 0o7777);
        let inode = store.create(place.0.0, place.1, new, owner, SystemTime::now())?;
        store.looked_up(inode);
        Ok(attributes(inode, store.inode(inode)?))
    }

    /// Answers a sync after a while, from a thread of its own.
    fn sync(&self, inode: INodeNo, reply: ReplyEmpty) {
        let begun = match self.store().begin_sync(inode.0) {
            Ok(begun) => begun,
            Err(error) => return reply.error(error),
        };
        let (store, wait) = (Arc::clone(&self.store), self.sync_max.mul_f64(fastrand::f64()));
        thread::spawn(move || {
            thread::sleep(wait);
            let finished = lock(&store).finish_sync(&begun);
            answer(reply, finished);
        });
    }
}

fn answer(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

fn attributes(number: u64, inode: &Inode) -> FileAttr {
    let (kind, size, room, nlink) = match &inode.kind {
        Kind::Folder => (FileType::Directory, 0, 0, 2),
        Kind::File(file) => {
            let content = file.content();
            (FileType::RegularFile, content.len(), content.allocated(), 1)
        }
    };
    let (uid, gid) = inode.owner;
    FileAttr {
        ino: INodeNo(number),
        size,
        // stat(2) counts 512 bytes on every file system.
        blocks: room / 512,
        atime: inode.modified,
        mtime: inode.modified,
        ctime: inode.modified,
        crtime: inode.modified,
        kind,
        perm: inode.mode as u16,
        nlink,
        uid,
        gid,
        rdev: 0,
        blksize: PAGE_BYTES as u32,
        flags: 0,
    }
}

impl Filesystem for PowerFs {
    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut store = self.store();
        match store.find(parent.0, name) {
            Ok(inode) => {
                store.looked_up(inode);
                match store.inode(inode) {
                    Ok(found) => {
                        reply.entry(&NOT_KEPT, &attributes(inode, found), Generation(0));
                    }
                    Err(error) => reply.error(error),
                }
            }
            Err(error) => reply.error(error),
        }
    }

    fn forget(&self, _request: &Request, inode: INodeNo, lookups: u64) {
        self.store().forgotten(inode.0, lookups);
    }

    fn getattr(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        match self.store().inode(inode.0) {
            Ok(found) => reply.attr(&NOT_KEPT, &attributes(inode.0, found)),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _noted: Option<SystemTime>,
        _saved: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut store = self.store();
        let mut set = || {
            if let Some(size) = size {
                store.change(inode.0, Change::Length(size), SystemTime::now())?;
            }
            let found = store.inode_mut(inode.0)?;
            found.mode = mode.map_or(found.mode, |mode| mode & 0o7777);
            found.owner = (uid.unwrap_or(found.owner.0), gid.unwrap_or(found.owner.1));
            found.modified = match modified {
                Some(TimeOrNow::SpecificTime(time)) => time,
                Some(TimeOrNow::Now) => SystemTime::now(),
                None => found.modified,
            };
            Ok(attributes(inode.0, found))
        };
        match set() {
            Ok(found) => reply.attr(&NOT_KEPT, &found),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        match self.make(request, (parent, name), Kind::Folder, mode & !umask) {
            Ok(found) => reply.entry(&NOT_KEPT, &found, Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        match self.make(request, (parent, name), Kind::File(File::default()), mode & !umask) {
            Ok(found) => {
                let (handle, flags) = (FileHandle(0), FopenFlags::empty());
                reply.created(&NOT_KEPT, &found, Generation(0), handle, flags);
            }
            Err(error) => reply.error(error),
        }
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(reply, self.store().remove(parent.0, name, false));
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(reply, self.store().remove(parent.0, name, true));
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !(flags - RenameFlags::RENAME_NOREPLACE).is_empty() {
            return reply.error(Errno::EINVAL);
        }
        let replace = !flags.contains(RenameFlags::RENAME_NOREPLACE);
        let (from, to) = ((parent.0, name), (new_parent.0, new_name));
        answer(reply, self.store().rename(from, to, replace));
    }

    fn read(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let read = self.store().read(inode.0, offset, size as usize);
        match read {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let change = Change::Write { offset, bytes: data.into() };
        let written = self.store().change(inode.0, change, SystemTime::now());
        match written {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    /// Closing a file makes nothing durable.
    fn flush(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn fsync(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        self.sync(inode, reply);
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        self.sync(inode, reply);
    }

    fn fallocate(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let change = match mode {
            0 => Change::Allocate { offset, len: length, keep_length: false },
            libc::FALLOC_FL_KEEP_SIZE => {
                Change::Allocate { offset, len: length, keep_length: true }
            }
            PUNCH => Change::Punch { offset, len: length },
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        answer(reply, self.store().change(inode.0, change, SystemTime::now()));
    }

    fn opendir(&self, _request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let found = self.store().list(inode.0);
        let mut listings = self.listings();
        listings.0 += 1;
        let handle = listings.0;
        listings.1.insert(handle, found);
        reply.opened(FileHandle(handle), FopenFlags::empty());
    }

    fn readdir(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listings = self.listings();
        let Some(found) = listings.1.get(&handle.0) else { return reply.error(Errno::EBADF) };
        let own = [(inode.0, OsString::from(".")), (inode.0, OsString::from(".."))];
        let store = self.store();
        for (at, (number, name)) in own.iter().chain(found).enumerate().skip(offset as usize) {
            let is_folder =
                store.inode(*number).is_ok_and(|found| matches!(found.kind, Kind::Folder));
            let kind = if is_folder { FileType::Directory } else { FileType::RegularFile };
            if reply.add(INodeNo(*number), at as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _request: &Request,
        _inode: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.listings().1.remove(&handle.0);
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _inode: INodeNo, reply: ReplyStatfs) {
        let (all, free) = self.store().space();
        let (all, free) = (all / PAGE_BYTES, free / PAGE_BYTES);
        let files = 1 << 20;
        reply.statfs(all, free, free, files, files, PAGE_BYTES as u32, 255, PAGE_BYTES as u32);
    }
}
