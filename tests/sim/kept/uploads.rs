//! Versions that uploads in parts make. What protects such a version is said when its upload is
//! started.

use blockyard::index::AbortUpload;
use blockyard::index::CompleteUpload;
use blockyard::index::Guard;
use blockyard::index::NamedPart;
use blockyard::index::StartUpload;
use blockyard::index::UploadRefusal;
use blockyard::protocol::model::Reason;
use blockyard::types::Crc64;
use blockyard::types::LockClaim;
use blockyard::types::Retention;
use blockyard::types::VersionId;

use super::*;
use crate::content::Segment;
use crate::draw::content;
use crate::state::Marks;
use crate::uploads;

/// The most bytes of a part beside another one: the parts of an upload take no more room than a
/// blob that is put.
const SMALL_PART: u64 = 3_700;

/// An upload that was completed, and the version that it made.
#[derive(Clone, Debug)]
pub(super) struct Completed {
    complete: CompleteUpload,
    version: Option<VersionId>,
}

impl Session<'_> {
    /// Makes a version of parts: starts an upload, stages the parts, completes it. At times an
    /// earlier upload of the name is completed again first.
    pub(super) async fn upload(
        &self,
        name: &str,
        chain: Chain,
        guard: Guard,
    ) -> Result<(), Violation> {
        if self.draw.percent(20) {
            self.complete_again(name).await?;
        }
        let mark = self.mark();
        let retention =
            (guard.protection.lock.is_some() && self.draw.percent(25)).then(|| self.retention());
        let lock = LockClaim { retention, ..LockClaim::default() };
        let marks = Marks { mark, ..Marks::default() };
        let start = StartUpload { lock, ..uploads::start(key(name), mark, marks) };
        self.world.borrow_mut().uploads.push((name.to_owned(), mark));
        if !self.ask(name, Write::StartUpload(Box::new(start)), retention).await? {
            return Ok(());
        }
        let Some((parts, crc64)) = self.stage(name, mark).await? else { return Ok(()) };
        let versioning = guard.protection.versioning;
        let complete = uploads::complete(key(name), mark, guard, parts);
        let entry = Entry { retention, ..Entry::of(mark, crc64) };
        let sent = Sent {
            write: Write::CompleteUpload(Box::new(complete.clone())),
            after: chain.pushed(entry, versioning),
            refusable: false,
            ends: None,
            doable: true,
            what: "uploads",
        };
        if matches!(self.deliver(name, sent).await?, Delivered::Done) {
            let made = self.world.borrow().chains[name].versions.last().cloned();
            let version = made
                .and_then(|made| made.time.map(|time| VersionId { time, is_null: made.is_null }));
            let completed = Completed { complete, version };
            self.world.borrow_mut().completed.insert(name.to_owned(), completed);
            if self.draw.percent(30) {
                self.complete_again(name).await?;
            }
        }
        Ok(())
    }

    /// Stages the parts of an upload. Returns them and the checksum of the whole, or `None` if the
    /// machine could not.
    async fn stage(
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
            let stored = match self.stack.pool.store(vec![bytes], len).await {
                Ok(stored) => stored,
                Err(error) => {
                    let told = [Reason::ServerBusy, Reason::InsufficientStorage];
                    return match told.contains(&error.reason) || self.is_down() {
                        true => Ok(None),
                        false => Err(format!("storing a part of {name}: {error:?}")),
                    };
                }
            };
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

    /// Completes the last completed upload of a name again, as a client does that lost the answer.
    /// It answers the same, and no version is made.
    async fn complete_again(&self, name: &str) -> Result<(), Violation> {
        let last = self.world.borrow().completed.get(name).cloned();
        let Some(Completed { complete, version }) = last else { return Ok(()) };
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

    /// Ends all uploads, so that only versions keep bytes.
    pub(super) async fn abort_uploads(&self) -> Result<(), Violation> {
        let uploads = std::mem::take(&mut self.world.borrow_mut().uploads);
        for (name, upload) in uploads {
            let abort = AbortUpload { key: key(&name), upload: uploads::id(upload) };
            match self.stack.router.write(Write::AbortUpload(abort)).await {
                Ok(_) => self.counts.add("uploads aborted", 1),
                Err(Error::Refused(Refused::Upload(UploadRefusal::NotFound))) => {}
                Err(error) => return Err(format!("{name}: an upload cannot be ended: {error}")),
            }
        }
        Ok(())
    }

    /// Sends a request that changes no version. Tells whether it was done. `retention` is the one
    /// that it sets, which may be over before it is evaluated.
    async fn ask(
        &self,
        name: &str,
        write: Write,
        retention: Option<Retention>,
    ) -> Result<bool, Violation> {
        let answer = self.stack.router.write(write).await;
        let latest = self.latest();
        match answer {
            Ok(_) => Ok(true),
            Err(Error::Overloaded | Error::Full(_)) => Ok(false),
            Err(Error::Unavailable(_)) if self.is_down() => Ok(false),
            Err(Error::Refused(Refused::RetentionInPast))
                if retention.is_some_and(|of| of.until <= latest) =>
            {
                Ok(false)
            }
            Err(error) => Err(format!("{name}: an upload was not started or staged: {error}")),
        }
    }
}
