//! A blob becomes a local file.
//!
//! Bytes go to a file beside the target, which gets the target's name once all have come, are
//! verified and are durable. A large blob comes in pieces, and a note has those that have come. The
//! next run takes them over if the blob is still the same.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::TryStreamExt;
use futures_util::stream;

use crate::env::user_files;
use crate::env::user_files::UserFileKind;
use crate::env::user_files::UserNote;
use crate::env::user_files::UserPart;
use crate::protocol::azure::answers::ListedBlob;
use crate::types::Md5;

use super::blobs::Piece;
use super::blocks;
use super::copying::Copying;
use super::error::FilesError;
use super::meter::Outcome;
use super::names::Unfinished;
use super::note;
use super::note::Header;
use super::place::Remote;
use super::same;

/// Pieces that have come, by their starts.
type Noted = BTreeMap<u64, (Piece, Md5)>;

/// A blob and the file that it becomes.
#[derive(Debug)]
pub(super) struct Download {
    pub(super) source: Remote,
    pub(super) blob: ListedBlob,
    pub(super) path: PathBuf,
    /// The folder that the path must not leave, if the name comes from the server.
    pub(super) folder: Option<PathBuf>,
}

impl Copying {
    /// Downloads a blob.
    ///
    /// # Errors
    /// [`FilesError`].
    pub(super) async fn download(&self, job: &Download) -> Result<Outcome, FilesError> {
        let Download { source, blob, path, folder } = job;
        let files = Unfinished::of(path);
        let (target, inside) = (path.clone(), folder.clone());
        let existing = self
            .on_disk(path, move || {
                make_room(&target, inside.as_deref())?;
                user_files::user_file(&target)
            })
            .await?;
        match existing {
            Some(file) if file.kind == UserFileKind::Folder => {
                let error = io::Error::new(io::ErrorKind::IsADirectory, "there is a folder");
                return Err(FilesError::Disk { path: path.clone(), error });
            }
            Some(file) if same::is_downloaded(self, path, file, blob).await? => {
                self.on_disk(path, move || clear(&files)).await?;
                return Ok(Outcome::Skipped);
            }
            Some(_) | None => {}
        }
        let locking = files.note.clone();
        let note = self.on_disk(path, move || UserNote::lock(&locking)).await?;
        let note = Arc::new(note.ok_or_else(|| busy(path))?);
        if blob.size > self.options.block_size {
            self.in_pieces(source, blob, path, &files, &note).await?;
        } else {
            let done = self.whole(source, blob, path, &files).await;
            // No later run can take over anything of it.
            let held = Arc::clone(&note);
            self.on_disk(path, move || remove(&files, &held)).await?;
            done?;
        }
        Ok(Outcome::Copied)
    }

    /// A blob that is one request.
    async fn whole(
        &self,
        source: &Remote,
        blob: &ListedBlob,
        path: &Path,
        files: &Unfinished,
    ) -> Result<(), FilesError> {
        let permit = self.permit().await;
        let piece = (blob.size > 0).then_some(Piece { start: 0, len: blob.size });
        let bytes = self.service.get(source, &blob.etag, piece).await?;
        let (target, len, part) = (path.to_owned(), blob.size, files.part.clone());
        let wanted = blob.md5.filter(|_| self.options.verify);
        let is_right = self
            .on_disk(path, move || {
                if wanted.is_some_and(|md5| md5 != Md5::of(&bytes)) {
                    return Ok(false);
                }
                let part = UserPart::create(&part)?;
                part.write_at(0, &bytes)?;
                part.finish(len, &target)?;
                Ok(true)
            })
            .await?;
        drop(permit);
        if !is_right {
            return Err(differs(source));
        }
        self.meter.moved(blob.size);
        Ok(())
    }

    /// A blob that is several requests.
    async fn in_pieces(
        &self,
        source: &Remote,
        blob: &ListedBlob,
        path: &Path,
        files: &Unfinished,
        note: &Arc<UserNote>,
    ) -> Result<(), FilesError> {
        let header = Header::new(source.url(), &blob.etag, blob.size);
        let (held, place) = (Arc::clone(note), files.part.clone());
        let (part, done) = self.on_disk(path, move || begin(&held, &place, &header)).await?;
        let begun = Begun { note: Arc::clone(note), part: Arc::new(part) };
        let (begun, done) = (&begun, &done);
        // The size of the blob is the one that the server reports. It must not say what memory is
        // needed.
        stream::iter(blocks::pieces(blob.size, self.options.block_size))
            .map(|piece| {
                let noted = done.get(&piece.start).filter(|(found, _)| *found == piece);
                self.piece(source, blob, piece, noted.map(|(_, digest)| *digest), begun, path)
            })
            .buffer_unordered(self.options.parallel)
            .try_collect::<()>()
            .await?;
        if let Some(md5) = blob.md5.filter(|_| self.options.verify) {
            let part = Arc::clone(&begun.part);
            let digest = move || same::digest_of(&mut part.reader()?);
            if self.on_disk(&files.part, digest).await? != md5 {
                let (wrong, held) = (files.clone(), Arc::clone(note));
                self.on_disk(path, move || remove(&wrong, &held)).await?;
                return Err(differs(source));
            }
        }
        let (target, len) = (path.to_owned(), blob.size);
        let Begun { note, part } = begun.clone();
        self.on_disk(path, move || {
            part.finish(len, &target)?;
            // A command that takes the lock from now on finds the whole file.
            note.remove()
        })
        .await
    }

    /// A piece: taken from the unfinished file if it is there, or requested.
    async fn piece(
        &self,
        source: &Remote,
        blob: &ListedBlob,
        piece: Piece,
        noted: Option<Md5>,
        begun: &Begun,
        path: &Path,
    ) -> Result<(), FilesError> {
        let _permit = self.permit().await;
        if let Some(digest) = noted {
            let part = Arc::clone(&begun.part);
            let len = usize::try_from(piece.len).unwrap_or(usize::MAX);
            let is_there = self
                .on_disk(path, move || {
                    let bytes = part.read_at(piece.start, len)?;
                    Ok(bytes.len() == len && Md5::of(&bytes) == digest)
                })
                .await?;
            if is_there {
                self.meter.reused(piece.len);
                return Ok(());
            }
        }
        let bytes = self.service.get(source, &blob.etag, Some(piece)).await?;
        let Begun { note, part } = begun.clone();
        self.on_disk(path, move || {
            part.write_at(piece.start, &bytes)?;
            note.append(&note::line(piece, Md5::of(&bytes)))
        })
        .await?;
        self.meter.moved(piece.len);
        Ok(())
    }
}

/// A download in pieces. The lock of its note is held as long as anything may write.
#[derive(Clone)]
struct Begun {
    note: Arc<UserNote>,
    part: Arc<UserPart>,
}

/// Makes the folder of a target. Below `inside`, no folder may be a symbolic link: it could lead
/// out of it.
fn make_room(target: &Path, inside: Option<&Path>) -> io::Result<()> {
    let Some(parent) = target.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    if let Some(folder) = inside
        && let Ok(below) = parent.strip_prefix(folder)
    {
        let mut at = folder.to_owned();
        for part in below.components() {
            at.push(part);
            let found = user_files::user_file_itself(&at)?;
            if found.is_some_and(|found| found.kind == UserFileKind::Link) {
                let text = format!("{} is a symbolic link, which is not followed", at.display());
                return Err(io::Error::other(text));
            }
        }
    }
    user_files::make_user_folder(parent)
}

/// The pieces of the same blob that an earlier run has left. Pieces of another blob are removed.
fn begin(note: &UserNote, part: &Path, header: &Header) -> io::Result<(UserPart, Noted)> {
    let done = note.text()?.and_then(|text| note::read(&text, header));
    if let Some(done) = done
        && let Some(part) = UserPart::resume(part)?
    {
        return Ok((part, done));
    }
    let part = UserPart::create(part)?;
    note.restart(&header.line())?;
    Ok((part, Noted::new()))
}

/// The note is removed last: a command that makes a new one may begin.
fn remove(files: &Unfinished, note: &UserNote) -> io::Result<()> {
    user_files::remove_user_file(&files.part)?;
    note.remove()
}

/// Removes the files that a killed run has left of a complete download, unless another command
/// writes it again.
fn clear(files: &Unfinished) -> io::Result<()> {
    if user_files::user_file_itself(&files.note)?.is_none() {
        return Ok(());
    }
    UserNote::lock(&files.note)?.map_or(Ok(()), |note| remove(files, &note))
}

fn busy(path: &Path) -> FilesError {
    FilesError::Wrong(format!(
        "{}: another command writes this file: run this one again when it has ended",
        path.display()
    ))
}

fn differs(source: &Remote) -> FilesError {
    FilesError::Wrong(format!(
        "{}: the bytes are not those of its Content-MD5; run the command again, and if it is the \
         same, the blob's Content-MD5 is wrong: --no-verify copies it nevertheless",
        source.url()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_taken_over_only_for_the_same_blob() {
        let folder = tempfile::tempdir().unwrap();
        let files = Unfinished::of(&folder.path().join("target"));
        let header = Header::new("http://h/a/c/b".to_owned(), "1", 16);
        let note = UserNote::lock(&files.note).unwrap().unwrap();
        let begun = |header| begin(&note, &files.part, header).unwrap();
        let write = |part: &UserPart| {
            let piece = Piece { start: 8, len: 8 };
            part.write_at(8, b"12345678").unwrap();
            note.append(&note::line(piece, Md5::of(b"12345678"))).unwrap();
        };
        let (part, done) = begun(&header);
        assert!(done.is_empty());
        write(&part);
        assert_eq!(begun(&header).1.len(), 1);
        // A note whose bytes are gone says nothing.
        user_files::remove_user_file(&files.part).unwrap();
        let (part, done) = begun(&header);
        assert!(done.is_empty());
        write(&part);
        let (part, done) = begun(&Header::new("http://h/a/c/b".to_owned(), "2", 16));
        assert!(done.is_empty());
        assert_eq!(part.read_at(0, 16).unwrap(), b"", "bytes of the old blob");
    }

    #[test]
    fn left_files_are_cleared_unless_another_writes() {
        let folder = tempfile::tempdir().unwrap();
        let files = Unfinished::of(&folder.path().join("target"));
        let note = UserNote::lock(&files.note).unwrap().unwrap();
        drop(UserPart::create(&files.part).unwrap());
        clear(&files).unwrap();
        assert_eq!(user_files::user_folder(folder.path()).unwrap().len(), 2);
        drop(note);
        clear(&files).unwrap();
        assert_eq!(user_files::user_folder(folder.path()).unwrap().len(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn links_below_the_folder_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        let target = folder.path().join("link/deep/file");
        make_room(&target, Some(folder.path())).unwrap_err();
        assert_eq!(user_files::user_folder(outside.path()).unwrap().len(), 0);
        make_room(&folder.path().join("a/b/file"), Some(folder.path())).unwrap();
        // The user's own path may have links.
        make_room(&target, None).unwrap();
        assert_eq!(user_files::user_folder(outside.path()).unwrap().len(), 1);
    }
}
