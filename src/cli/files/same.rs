//! Whether a target is equal to its source already. The rule: the sizes are equal, and so are the
//! digests; where one of them has no digest, the target was changed after the source.

use std::io;
use std::io::Read;
use std::path::Path;

use crate::env::user_files;
use crate::env::user_files::UserFileFacts;
use crate::protocol::azure::answers::ListedBlob;
use crate::types::Md5;
use crate::types::Md5Hasher;
use crate::types::Timestamp;

use super::copying::Copying;
use super::error::FilesError;

/// Bytes that are read at a time to compute a digest.
const STEP: usize = 1 << 20;

/// Whether the blob at the target has the bytes of a file.
pub(super) async fn is_uploaded(
    copying: &Copying,
    path: &Path,
    file: UserFileFacts,
    blob: &ListedBlob,
) -> Result<bool, FilesError> {
    if copying.options.force || blob.size != file.len {
        return Ok(false);
    }
    match blob.md5 {
        Some(md5) => Ok(digest(copying, path).await? == md5),
        None => Ok(is_later(blob.modified, file.modified)),
    }
}

/// Whether the file at the target has the bytes of a blob.
pub(super) async fn is_downloaded(
    copying: &Copying,
    path: &Path,
    file: UserFileFacts,
    blob: &ListedBlob,
) -> Result<bool, FilesError> {
    if copying.options.force || blob.size != file.len {
        return Ok(false);
    }
    match blob.md5 {
        Some(md5) => Ok(digest(copying, path).await? == md5),
        None => Ok(is_later(file.modified, blob.modified)),
    }
}

/// Whether the blob at the target has the bytes of another.
pub(super) fn is_copied(copying: &Copying, source: &ListedBlob, target: &ListedBlob) -> bool {
    if copying.options.force || source.size != target.size {
        return false;
    }
    match (source.md5, target.md5) {
        (Some(source), Some(target)) => source == target,
        (_, _) => is_later(target.modified, source.modified),
    }
}

/// Whether `target` is known to be no earlier than `source`.
fn is_later(target: Option<Timestamp>, source: Option<Timestamp>) -> bool {
    matches!((target, source), (Some(target), Some(source)) if target >= source)
}

/// The digest of a file.
async fn digest(copying: &Copying, path: &Path) -> Result<Md5, FilesError> {
    let file = path.to_owned();
    copying.on_disk(path, move || digest_of(&mut user_files::open_user_file(&file)?)).await
}

/// The digest of all that can be read.
pub(super) fn digest_of(reader: &mut dyn Read) -> io::Result<Md5> {
    let mut hasher = Md5Hasher::default();
    loop {
        let bytes = user_files::read_piece(reader, STEP)?;
        if bytes.is_empty() {
            return Ok(hasher.finish());
        }
        hasher.update(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_only_where_both_are_known() {
        let time = |text| Timestamp::from_iso(text);
        let (early, late) = (time("2026-11-21T05:00:00Z"), time("2026-11-21T05:00:01Z"));
        assert!(is_later(late, early) && is_later(early, early) && !is_later(early, late));
        assert!(!is_later(None, early) && !is_later(late, None) && !is_later(None, None));
    }
}
