//! The same calls with what every operating system has, for development on macOS and Windows. They
//! reserve no space and free none, and know nothing of the page cache.

use std::fs::File;
use std::io;
#[cfg(unix)]
use std::os::unix::fs::FileExt;
#[cfg(windows)]
use std::os::windows::fs::FileExt;

use bytes::Bytes;

use super::Cached;

/// Zeros that are written at a time.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// Nothing is known to be cached.
#[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
pub(in crate::env::disk_os) fn read_cached(_: &File, _: u64, _: usize) -> io::Result<Cached> {
    Ok(Cached::Start(Vec::new()))
}

pub(in crate::env::disk_os) fn read_rest(
    file: &File,
    offset: u64,
    len: usize,
    mut bytes: Vec<u8>,
) -> io::Result<Vec<u8>> {
    let mut filled = bytes.len();
    bytes.resize(len.max(filled), 0);
    while let Some(rest) = bytes.get_mut(filled..len).filter(|rest| !rest.is_empty()) {
        match read_at(file, rest, offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled.min(len));
    Ok(bytes)
}

pub(in crate::env::disk_os) fn write_all(
    file: &File,
    mut offset: u64,
    pieces: &[Bytes],
) -> io::Result<()> {
    for piece in pieces {
        let mut left = piece.as_ref();
        while !left.is_empty() {
            match write_at(file, left, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    offset += written as u64;
                    left = left.get(written..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(bytes, offset)
}

#[cfg(windows)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(bytes, offset)
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    file.write_at(bytes, offset)
}

#[cfg(windows)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    file.seek_write(bytes, offset)
}

/// Makes written bytes durable.
pub(in crate::env::disk_os) fn data_sync(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// The page cache stays as it is.
#[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
pub(in crate::env::disk_os) fn forget(_: &File) -> io::Result<()> {
    Ok(())
}

/// Grows the file. A later write may meet a full disk.
pub(in crate::env::disk_os) fn allocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    if file.metadata()?.len() < offset + len {
        file.set_len(offset + len)?;
    }
    Ok(())
}

/// Writes zeros. The space stays in use.
pub(in crate::env::disk_os) fn punch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let end = (offset + len).min(file.metadata()?.len());
    let mut at = offset;
    while at < end {
        let zeros = usize::try_from(end - at).map_or(ZEROS.len(), |left| left.min(ZEROS.len()));
        let zeros = Bytes::from_static(ZEROS.get(..zeros).unwrap_or_default());
        let written = zeros.len() as u64;
        write_all(file, at, &[zeros])?;
        at += written;
    }
    Ok(())
}
