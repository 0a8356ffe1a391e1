//! The work of a copy, found step by step: trees of any size are never in memory as a whole.

use std::collections::VecDeque;
use std::path::PathBuf;

use crate::protocol::azure::answers::ListedBlob;

use super::copying::Copying;
use super::download::Download;
use super::error::FilesError;
use super::listing::Listing;
use super::listing::Lookup;
use super::names::safe_path;
use super::place::Remote;
use super::transfer::Transfer;
use super::upload::Upload;
use super::walk::Found;
use super::walk::Walk;

/// Entries of a folder that are read at a time.
const BATCH: usize = 256;

/// One file or blob to copy.
#[derive(Debug)]
pub(super) enum Job {
    /// A file becomes a blob.
    Upload(Upload),
    /// A blob becomes a file.
    Download(Download),
    /// A blob becomes another.
    Transfer(Transfer),
    /// Standard input becomes a blob.
    Input(Remote),
}

impl Job {
    /// Bytes of the source, as far as known.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Upload(job) => job.file.len,
            Self::Download(job) => job.blob.size,
            Self::Transfer(job) => job.blob.size,
            Self::Input(_) => 0,
        }
    }

    /// The source, for messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Upload(job) => job.path.display().to_string(),
            Self::Download(job) => job.source.url(),
            Self::Transfer(job) => job.source.url(),
            Self::Input(_) => "standard input".to_owned(),
        }
    }
}

/// The next step.
#[derive(Debug)]
pub(super) enum Next {
    /// Something to copy.
    Job(Box<Job>),
    /// An entry that is not copied, which is not a failure.
    LeftOut { name: String, why: String },
    /// Something that cannot be copied.
    Refused { name: String, why: String },
}

/// A source of jobs.
#[derive(Debug)]
pub(super) enum Work {
    /// One.
    One(Option<Box<Job>>),
    /// The files below a folder, to be blobs.
    Files(Box<Files>),
    /// Blobs, to be files.
    Blobs(Blobs),
    /// Blobs, to be other blobs.
    Across(Blobs, Remote, Box<Lookup>),
}

/// The files below a folder.
#[derive(Debug)]
pub(super) struct Files {
    /// The walk, unless it is on another thread.
    pub(super) walk: Option<Walk>,
    pub(super) ready: VecDeque<Found>,
    pub(super) folder: PathBuf,
    /// The folder of the blobs.
    pub(super) target: Remote,
    pub(super) lookup: Box<Lookup>,
}

/// The blobs in a list.
#[derive(Debug)]
pub(super) struct Blobs {
    pub(super) list: Box<Listing>,
    pub(super) source: Remote,
    /// The prefix of their names.
    pub(super) prefix: String,
    /// The local folder, if they become files.
    pub(super) folder: PathBuf,
}

impl Blobs {
    async fn next(
        &mut self,
        copying: &Copying,
    ) -> Result<Option<(ListedBlob, String)>, FilesError> {
        let Some(blob) = self.list.next_blob(&copying.service).await? else { return Ok(None) };
        let rest = blob.name.strip_prefix(&self.prefix).unwrap_or(&blob.name).to_owned();
        Ok(Some((blob, rest)))
    }
}

impl Work {
    /// One job.
    pub(super) fn one(job: Job) -> Self {
        Self::One(Some(Box::new(job)))
    }

    /// All blobs below a folder, the first of which was read.
    pub(super) fn blobs(list: Listing, source: &Remote, folder: PathBuf) -> Blobs {
        Blobs { list: Box::new(list), source: source.clone(), prefix: source.prefix(), folder }
    }

    /// The target: a path, or the URL of a blob or folder.
    pub(super) fn target(&self) -> PathBuf {
        match self {
            Self::One(job) => match job.as_deref() {
                Some(Job::Upload(job)) => job.target.url().into(),
                Some(Job::Download(job)) => job.path.clone(),
                Some(Job::Transfer(job)) => job.target.url().into(),
                Some(Job::Input(target)) => target.url().into(),
                None => PathBuf::new(),
            },
            Self::Files(files) => files.target.url().into(),
            Self::Blobs(blobs) => blobs.folder.clone(),
            Self::Across(_, target, _) => target.url().into(),
        }
    }

    /// The next job; none at the end.
    ///
    /// # Errors
    /// [`FilesError`]: a list ended early, and more may be to copy.
    pub(super) async fn next(&mut self, copying: &Copying) -> Result<Option<Next>, FilesError> {
        match self {
            Self::One(job) => Ok(job.take().map(Next::Job)),
            Self::Files(files) => files.next(copying).await,
            Self::Blobs(blobs) => {
                let Some((blob, rest)) = blobs.next(copying).await? else { return Ok(None) };
                Ok(Some(to_file(blobs, blob, &rest)))
            }
            Self::Across(blobs, target, lookup) => {
                let Some((blob, rest)) = blobs.next(copying).await? else { return Ok(None) };
                let name = format!("{}{rest}", target.prefix());
                let existing = lookup.find(&copying.service, &name).await?;
                let source = blobs.source.with(blob.name.clone());
                let job = Transfer { source, blob, target: target.with(name), existing };
                Ok(Some(Next::Job(Box::new(Job::Transfer(job)))))
            }
        }
    }
}

/// The job for a listed blob whose name behind the prefix is `rest`.
fn to_file(blobs: &Blobs, blob: ListedBlob, rest: &str) -> Next {
    let source = blobs.source.with(blob.name.clone());
    // Some clients mark a folder by an empty blob.
    if blob.size == 0 && (rest.is_empty() || rest.ends_with('/')) {
        return Next::LeftOut { name: source.url(), why: "it marks a folder".to_owned() };
    }
    match safe_path(&blobs.folder, rest) {
        Ok(path) => {
            let folder = Some(blobs.folder.clone());
            Next::Job(Box::new(Job::Download(Download { source, blob, path, folder })))
        }
        Err(why) => {
            let why =
                format!("its name can be no file here: {why}; copy it alone, to another name");
            Next::Refused { name: source.url(), why }
        }
    }
}

impl Files {
    async fn next(&mut self, copying: &Copying) -> Result<Option<Next>, FilesError> {
        if self.ready.is_empty()
            && let Some(mut walk) = self.walk.take()
        {
            let walked = copying.on_disk(&self.folder, move || {
                let found = walk.next(BATCH);
                Ok((found, walk))
            });
            let (found, walk) = walked.await?;
            self.ready = found.into();
            self.walk = Some(walk);
        }
        let shown = |path: PathBuf| path.display().to_string();
        match self.ready.pop_front() {
            None => Ok(None),
            Some(Found::LeftOut { path, why }) => {
                Ok(Some(Next::LeftOut { name: shown(path), why: why.to_owned() }))
            }
            Some(Found::Refused { path, why }) => {
                Ok(Some(Next::Refused { name: shown(path), why }))
            }
            Some(Found::File { name, path, file }) => {
                let name = format!("{}{name}", self.target.prefix());
                let existing = self.lookup.find(&copying.service, &name).await?;
                let target = self.target.with(name);
                let job = Upload { path, file, target, existing };
                Ok(Some(Next::Job(Box::new(Job::Upload(job)))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::cli::files::connect::Login;
    use crate::cli::files::connect::LoginArgs;
    use crate::cli::files::place::Place;

    fn blobs() -> Blobs {
        let args = LoginArgs { endpoint: None, account: None, connection_string: None, ca: None };
        let login = Login::new(&args).unwrap();
        let source = Place::parse(OsStr::new("by://box/in"), &login).unwrap().remote().unwrap();
        let list = Listing::new(&source, source.prefix(), false);
        Work::blobs(list, &source, PathBuf::from("/to"))
    }

    fn listed(name: &str, size: u64) -> ListedBlob {
        ListedBlob { name: format!("in/{name}"), size, ..ListedBlob::default() }
    }

    #[test]
    fn hostile_names_are_refused_with_a_way_out_and_marks_of_folders_are_left_out() {
        let blobs = blobs();
        for name in ["../x", "a/../../x", "/etc/x", "a//b", "c/"] {
            let next = to_file(&blobs, listed(name, 7), name);
            assert!(
                matches!(&next, Next::Refused { why, .. } if why.contains("alone")),
                "{next:?}"
            );
        }
        for name in ["", "c/"] {
            let next = to_file(&blobs, listed(name, 0), name);
            assert!(matches!(next, Next::LeftOut { .. }), "{next:?}");
        }
        let next = to_file(&blobs, listed("a/b", 7), "a/b");
        let Next::Job(job) = next else { panic!("{next:?}") };
        assert!(matches!(*job, Job::Download(job) if job.path.ends_with("a/b")));
    }
}
