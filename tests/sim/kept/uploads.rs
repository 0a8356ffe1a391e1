//! Versions that uploads in parts make. What protects such a version is said when its upload is
//! started. Some uploads are completed in a later session than they began in, and some twice.

use std::collections::BTreeMap;

use blockyard::index::AbortUpload;
use blockyard::index::Guard;
use blockyard::index::NamedPart;
use blockyard::index::StartUpload;
use blockyard::index::UploadRefusal;
use blockyard::types::Crc64;
use blockyard::types::LockClaim;
use blockyard::types::Protection;
use blockyard::types::VersionId;

use super::*;
use crate::content::Segment;
use crate::draw::content;
use crate::state::Marks;
use crate::uploads;

/// The most bytes of a part beside another one: the parts of an upload take no more room than a
/// blob that is put.
const SMALL_PART: u64 = 3_700;

/// What is known of all uploads.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    /// The blob of each upload that was sent, and how far it came.
    stages: BTreeMap<u64, (String, Stage)>,
    /// Uploads of each name that have their parts and wait for their completion.
    open: BTreeMap<String, Vec<Upload>>,
    /// The upload of a name whose completion has no answer. The next look decides it.
    in_doubt: BTreeMap<String, Upload>,
    /// The last upload of each name that is known to be completed, and the version that it made.
    completed: BTreeMap<String, (Upload, Option<VersionId>)>,
}

/// How far an upload came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its start was sent.
    Asked,
    /// Its start was acknowledged.
    Started,
    /// Its completion was sent.
    Completing,
    /// Its completion was acknowledged, or a look has shown what it made.
    Completed,
}

/// An upload with its parts, and the version that it will make.
#[derive(Clone, Debug)]
struct Upload {
    id: u64,
    parts: Vec<NamedPart>,
    entry: Entry,
}

impl Session<'_> {
    /// Goes on with the uploads of a name: completes one that is open, or starts another one and
    /// stages its parts. At times an earlier one is completed again first.
    pub(super) async fn upload(
        &self,
        name: &str,
        chain: Chain,
        guard: Guard,
    ) -> Result<(), Violation> {
        if self.draw.percent(20) {
            self.complete_again(name).await?;
        }
        let waiting = self.uploads(|all| all.open.get(name).map_or(0, Vec::len));
        let upload = if waiting > 0 && self.draw.percent(50) {
            self.uploads(|all| all.open.get_mut(name).map(|open| open.remove(0)))
        } else {
            self.start(name, guard.protection).await?
        };
        let Some(upload) = upload else { return Ok(()) };
        if self.draw.percent(35) {
            self.uploads(|all| all.open.entry(name.to_owned()).or_default().push(upload));
            return Ok(());
        }
        self.complete(name, chain, guard, upload).await
    }

    /// Starts an upload and stages its parts. `None` if the machine could not.
    async fn start(&self, name: &str, protection: Protection) -> Result<Option<Upload>, Violation> {
        let id = self.mark();
        let is_locked = protection.lock.is_some();
        let retention = (is_locked && self.draw.percent(25)).then(|| self.retention());
        let legal_hold = (is_locked && self.draw.percent(10)).then_some(true);
        let lock = LockClaim { retention, legal_hold, ..LockClaim::default() };
        let marks = Marks { mark: id, ..Marks::default() };
        let start = StartUpload { lock, ..uploads::start(key(name), id, marks) };
        self.stage(name, id, Stage::Asked);
        let until = retention.map(|retention| retention.until);
        if !self.ask(name, Write::StartUpload(Box::new(start)), until).await? {
            return Ok(None);
        }
        self.stage(name, id, Stage::Started);
        let Some((parts, crc64)) = self.stage_parts(name, id).await? else { return Ok(None) };
        let entry = Entry { retention, hold: legal_hold, ..Entry::of(id, crc64) };
        Ok(Some(Upload { id, parts, entry }))
    }

    /// Stages the parts of an upload. Returns them and the checksum of the whole, or `None` if the
    /// machine could not.
    async fn stage_parts(
        &self,
        name: &str,
        upload: u64,
    ) -> Result<Option<(Vec<NamedPart>, Crc64)>, Violation> {
        let count = u32::try_from(self.draw.between(1, 2)).unwrap();
        let most = if count == 1 { 20_000 } else { SMALL_PART };
        let (mut parts, mut crc64) = (Vec::new(), Crc64::EMPTY);
        for number in 1..=count {
            let len = self.draw.between(1_500, most);
            // Other bytes than those of all marks.
            let tag = (1 << 40) + 2 * upload + u64::from(number);
            let segment = Segment { id: Some(number), tag, len };
            let bytes = content(tag, len);
            let of = Crc64::of(&bytes);
            let Some(stored) = self.store(name, bytes).await? else { return Ok(None) };
            let part = uploads::part(key(name), upload, segment, (stored.content(), of));
            let committing = stored.committing();
            if !self.ask(name, Write::StagePart(part), None).await? {
                if !self.is_down() {
                    committing.refused();
                }
                return Ok(None);
            }
            parts.push(uploads::named(segment));
            crc64 = crc64.combine(of, len);
        }
        Ok(Some((parts, crc64)))
    }

    async fn complete(
        &self,
        name: &str,
        chain: Chain,
        guard: Guard,
        upload: Upload,
    ) -> Result<(), Violation> {
        let versioning = guard.protection.versioning;
        let complete = uploads::complete(key(name), upload.id, guard, upload.parts.clone());
        let sent = Sent {
            write: Write::CompleteUpload(Box::new(complete)),
            after: chain.pushed(upload.entry.clone(), versioning),
            refusable: false,
            ends: None,
            doable: true,
            what: "uploads",
        };
        self.stage(name, upload.id, Stage::Completing);
        self.uploads(|all| all.in_doubt.insert(name.to_owned(), upload));
        match self.deliver(name, sent).await? {
            Delivered::Done => self.settle_upload(name).await,
            Delivered::Refused => {
                self.uploads(|all| {
                    let upload = all.in_doubt.remove(name).into_iter();
                    all.open.entry(name.to_owned()).or_default().extend(upload);
                });
                Ok(())
            }
            Delivered::Unknown => Ok(()),
        }
    }

    /// Decides a completion from what is known of the name now. One that made no version may be
    /// sent again later; one that did must answer with that version when it is.
    pub(super) async fn settle_upload(&self, name: &str) -> Result<(), Violation> {
        let Some(upload) = self.uploads(|all| all.in_doubt.remove(name)) else { return Ok(()) };
        let made = self.world.borrow().chains[name]
            .versions
            .iter()
            .find(|made| made.mark == upload.id)
            .map(|made| made.time.map(|time| VersionId { time, is_null: made.is_null }));
        let Some(version) = made else {
            self.uploads(|all| all.open.entry(name.to_owned()).or_default().push(upload));
            return Ok(());
        };
        self.stage(name, upload.id, Stage::Completed);
        self.uploads(|all| all.completed.insert(name.to_owned(), (upload, version)));
        if self.draw.percent(30) {
            self.complete_again(name).await?;
        }
        Ok(())
    }

    /// Completes an upload again that is completed, as a client does that lost the answer. It
    /// answers the same, and no version is made.
    async fn complete_again(&self, name: &str) -> Result<(), Violation> {
        let last = self.uploads(|all| all.completed.get(name).cloned());
        let Some((Upload { id, parts, .. }, version)) = last else { return Ok(()) };
        let guard = Guard { protection: self.protection(name), ..Guard::default() };
        let complete = uploads::complete(key(name), id, guard, parts);
        match self.stack.router.write(Write::CompleteUpload(Box::new(complete))).await {
            Ok(WriteReply::UploadCompleted(again)) if again.written.version == version => {
                self.counts.add("uploads completed again", 1);
                Ok(())
            }
            Err(Error::Overloaded | Error::Full(_)) => Ok(()),
            Err(Error::Unavailable(_)) if self.is_down() => Ok(()),
            other => Err(format!("{name}: completed again, {version:?} became {other:?}")),
        }
    }

    /// Ends all uploads, so that only versions keep bytes. Each is there that must be, and none
    /// that was completed.
    pub(super) async fn abort_uploads(&self) -> Result<(), Violation> {
        let stages = self.uploads(|all| std::mem::take(&mut all.stages));
        for (upload, (name, stage)) in stages {
            let abort = AbortUpload { key: key(&name), upload: uploads::id(upload) };
            let was_there = match self.stack.router.write(Write::AbortUpload(abort)).await {
                Ok(_) => true,
                Err(Error::Refused(Refused::Upload(UploadRefusal::NotFound))) => false,
                Err(error) => return Err(format!("{name}: an upload cannot be ended: {error}")),
            };
            self.counts.add("uploads aborted", u64::from(was_there));
            let must_be = match stage {
                Stage::Started => Some(true),
                Stage::Completed => Some(false),
                Stage::Asked | Stage::Completing => None,
            };
            if must_be.is_some_and(|must_be| must_be != was_there) {
                return Err(format!("{name}: upload {upload}, {stage:?}, there: {was_there}"));
            }
        }
        Ok(())
    }

    /// Sends a request that changes no version. Returns whether it was done. `ends` is the end of
    /// the retention that it sets, which may be before the request is evaluated.
    async fn ask(
        &self,
        name: &str,
        write: Write,
        ends: Option<Timestamp>,
    ) -> Result<bool, Violation> {
        match self.stack.router.write(write).await {
            Ok(_) => Ok(true),
            Err(Error::Overloaded | Error::Full(_)) => Ok(false),
            Err(Error::Unavailable(_)) if self.is_down() => Ok(false),
            Err(Error::Refused(Refused::RetentionInPast))
                if ends.is_some_and(|until| until <= self.latest()) =>
            {
                Ok(false)
            }
            Err(error) => Err(format!("{name}: an upload was not started or staged: {error}")),
        }
    }

    fn uploads<T>(&self, change: impl FnOnce(&mut Uploads) -> T) -> T {
        change(&mut self.world.borrow_mut().uploads)
    }

    fn stage(&self, name: &str, upload: u64, stage: Stage) {
        self.uploads(|all| all.stages.insert(upload, (name.to_owned(), stage)));
    }
}
