//! The calls of Linux, repeated until all bytes are read or written.

use std::fs::File;
use std::io;
use std::io::IoSlice;
use std::io::IoSliceMut;

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fs::Advice;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use rustix::io::ReadWriteFlags;
use rustix::io::retry_on_intr;

use super::Cached;

/// The most pieces that the kernel takes in one call (`UIO_MAXIOV`).
const PIECES_MAX: usize = 1024;

pub(in crate::env::disk_os) fn read_cached(
    file: &File,
    offset: u64,
    len: usize,
) -> io::Result<Cached> {
    // Safe Rust has no vectored read into uninitialised memory. Zeroing these bytes costs less than
    // the switch to the pool that is saved.
    let mut bytes = vec![0; len];
    let mut filled = 0;
    while filled < len {
        let Some(rest) = bytes.get_mut(filled..) else { break };
        let at = offset + filled as u64;
        match rustix::io::preadv2(file, &mut [IoSliceMut::new(rest)], at, ReadWriteFlags::NOWAIT) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS) => {
                bytes.truncate(filled);
                return Ok(Cached::Start(bytes));
            }
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(filled);
    Ok(Cached::All(bytes))
}

pub(in crate::env::disk_os) fn read_rest(
    file: &File,
    offset: u64,
    len: usize,
    mut bytes: Vec<u8>,
) -> io::Result<Vec<u8>> {
    bytes.reserve_exact(len.saturating_sub(bytes.len()));
    while bytes.len() < len {
        let at = offset + bytes.len() as u64;
        if retry_on_intr(|| rustix::io::pread(file, spare_capacity(&mut bytes), at))? == 0 {
            break;
        }
    }
    bytes.truncate(len);
    Ok(bytes)
}

pub(in crate::env::disk_os) fn write_all(
    file: &File,
    mut offset: u64,
    pieces: &[Bytes],
) -> io::Result<()> {
    for pieces in pieces.chunks(PIECES_MAX) {
        let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut left = slices.as_mut_slice();
        // Drops leading empty pieces: a call with only empty pieces would write 0 bytes, which is
        // an error below.
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            let written = retry_on_intr(|| rustix::io::pwritev(file, left, offset))?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            offset += written as u64;
            IoSlice::advance_slices(&mut left, written);
        }
    }
    Ok(())
}

/// Makes written bytes durable.
pub(in crate::env::disk_os) fn data_sync(file: &File) -> io::Result<()> {
    Ok(retry_on_intr(|| rustix::fs::fdatasync(file))?)
}

/// Removes a file from the page cache.
pub(in crate::env::disk_os) fn forget(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Reserves space, and grows the file to hold it.
pub(in crate::env::disk_os) fn allocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    Ok(retry_on_intr(|| rustix::fs::fallocate(file, FallocateFlags::empty(), offset, len))?)
}

/// Frees the space of whole pages.
pub(in crate::env::disk_os) fn punch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(retry_on_intr(|| rustix::fs::fallocate(file, flags, offset, len))?)
}
