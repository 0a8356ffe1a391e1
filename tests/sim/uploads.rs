//! Uploads in parts: their requests, a client's choices among them, and what it reads of them.

use blockyard::index::CompleteUpload;
use blockyard::index::EncryptionClaim;
use blockyard::index::Error;
use blockyard::index::Guard;
use blockyard::index::ListBlobs;
use blockyard::index::ListEntry;
use blockyard::index::ListParts;
use blockyard::index::ListUploads;
use blockyard::index::NamedPart;
use blockyard::index::NewContent;
use blockyard::index::PartView;
use blockyard::index::Refused;
use blockyard::index::StagePart;
use blockyard::index::StartUpload;
use blockyard::index::UploadRefusal;
use blockyard::types::BlobKey;
use blockyard::types::BlobProperties;
use blockyard::types::ContentEtag;
use blockyard::types::Crc64;
use blockyard::types::Md5;
use blockyard::types::PartNumber;
use blockyard::types::UploadId;

use crate::change::Change;
use crate::client::Client;
use crate::content::Segment;
use crate::draw::content;
use crate::index::NAMES;
use crate::index::key;
use crate::model::Blob;
use crate::requests::metadata;
use crate::requests::tags;
use crate::rig::Failing;
use crate::seeds::Violation;
use crate::state::Marks;
use crate::state::State;

/// The highest number of a part. It is low, so that parts are staged again.
const PARTS: u64 = 4;
/// The most uploads of one blob at a time.
const UPLOADS: usize = 3;

/// The id of an upload.
pub(crate) fn id(upload: u64) -> UploadId {
    UploadId::from_bytes(u128::from(upload).to_be_bytes())
}

fn number(segment: Segment) -> PartNumber {
    PartNumber::new(segment.id.unwrap()).unwrap()
}

fn md5(segment: Segment) -> Md5 {
    Md5::of(&content(segment.tag, segment.len))
}

pub(crate) fn start(key: BlobKey, upload: u64, marks: Marks) -> StartUpload {
    StartUpload {
        lock: blockyard::types::LockClaim::default(),
        key,
        id: id(upload),
        properties: BlobProperties::default(),
        metadata: metadata(marks.mark),
        tags: tags(marks.tags),
        tier: marks.tier,
        encryption: EncryptionClaim::Given(None),
        checksum: None,
        object: None,
        initiator: None,
    }
}

pub(crate) fn part(
    key: BlobKey,
    upload: u64,
    segment: Segment,
    (content, crc64): (NewContent, Crc64),
) -> StagePart {
    StagePart {
        key,
        upload: id(upload),
        number: number(segment),
        encryption: EncryptionClaim::Given(None),
        content,
        crc64,
        checksums: vec![md5(segment).into()],
    }
}

pub(crate) fn named(segment: Segment) -> NamedPart {
    let tag = ContentEtag::md5(md5(segment));
    NamedPart { number: number(segment), tag, checksum: None }
}

pub(crate) fn complete(
    key: BlobKey,
    upload: u64,
    guard: Guard,
    parts: Vec<NamedPart>,
) -> CompleteUpload {
    CompleteUpload {
        key,
        upload: id(upload),
        guard,
        parts,
        part_len_min: 0,
        len: None,
        checksum: None,
        coverage: None,
    }
}

impl Client<'_> {
    /// A change of one of the uploads of a blob.
    pub(crate) async fn upload(&self, name: &str) -> Result<(), Violation> {
        let draw = self.session.draw;
        let state = self.likely(name);
        let uploads: Vec<u64> = state.uploads.keys().copied().collect();
        let Some(&upload) = draw.one(&uploads) else { return self.start_upload(name).await };
        match draw.between(0, 19) {
            0..=1 if uploads.len() < UPLOADS => self.start_upload(name).await,
            0..=10 => {
                let number = u32::try_from(draw.between(1, PARTS)).unwrap();
                let segment = Segment { id: Some(number), tag: self.tag(), len: self.length() };
                self.ask_with(name, Change::Part { upload, segment }, segment).await
            }
            11..=15 => {
                let mut list: Vec<Segment> =
                    state.uploads[&upload].parts.values().copied().collect();
                list.retain(|_| draw.percent(85));
                if draw.percent(3) {
                    // A part that was not staged.
                    list.push(Segment { id: Some(9), tag: self.tag(), len: 7 });
                }
                self.complete_upload(name, upload, list).await
            }
            16..=17 => self.complete_again(name, &state).await,
            _ => self.ask(name, Change::Abort { upload }).await,
        }
    }

    async fn start_upload(&self, name: &str) -> Result<(), Violation> {
        let (upload, marks) = (self.tag(), self.marks());
        self.ask(name, Change::Start { upload, marks }).await
    }

    async fn complete_upload(
        &self,
        name: &str,
        upload: u64,
        list: Vec<Segment>,
    ) -> Result<(), Violation> {
        let marks = self.likely(name).uploads.get(&upload).map(|upload| upload.marks);
        self.ask(name, Change::Complete { upload, list: list.clone() }).await?;
        if let Some(marks) = marks {
            self.show_tags(name, marks.tags).await?;
        }
        if self.session.draw.percent(20) {
            // As a client that did not get the answer.
            self.ask(name, Change::Complete { upload, list }).await?;
        }
        Ok(())
    }

    /// Completes an upload that has ended.
    async fn complete_again(&self, name: &str, state: &State) -> Result<(), Violation> {
        let ended: Vec<(u64, Vec<Segment>)> = state.ended().collect();
        match self.session.draw.one(&ended) {
            Some((upload, list)) => {
                let (upload, list) = (*upload, list.clone());
                self.ask(name, Change::Complete { upload, list }).await
            }
            None => Ok(()),
        }
    }

    /// Reads the parts of each upload of a blob.
    pub(crate) async fn check_uploads(&self, name: &str) -> Result<(), Violation> {
        let state = self.likely(name);
        for upload in state.uploads.keys().copied().chain(state.ended().map(|(id, _)| id)) {
            let result = self.check_parts(name, upload).await;
            result.map_err(|why| format!("{name}: upload {upload}: {why}"))?;
        }
        Ok(())
    }

    async fn check_parts(&self, name: &str, upload: u64) -> Result<(), Violation> {
        let ticket = self.with_blob(name, Blob::look);
        let list = ListParts { key: key(name), upload: id(upload), after: 0, limit: 10 };
        let found = match self.stack.router.ask(list).await {
            Ok(page) => Some(page.parts),
            Err(Error::Refused(Refused::Upload(UploadRefusal::NotFound))) => None,
            Err(error) => {
                self.excuse::<()>(Failing::of_rows(&error), &error)?;
                return self.with_blob(name, |blob| blob.looked_away(ticket));
            }
        };
        let what = format!("parts {found:?}");
        let fits = move |state: &mut State| match (state.uploads.get(&upload), &found) {
            (Some(upload), Some(found)) => {
                upload.parts.len() == found.len()
                    && upload.parts.values().zip(found).all(|(part, view)| is_shown(*part, view))
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        self.with_blob(name, |blob| blob.seen_by(ticket, &what, fits))
    }

    /// Lists the uploads of the client's own names, page by page.
    pub(crate) async fn check_upload_list(&self) -> Result<(), Violation> {
        let draw = self.session.draw;
        let BlobKey { account, container, collation, .. } = key("x");
        let limit = usize::try_from(draw.between(1, 4)).unwrap();
        let list = ListBlobs {
            prefix: format!("{}/", self.number),
            ..ListBlobs::first_page(account, container, collation, limit)
        };
        let mut list = ListUploads { list, after: None };
        let mut entries: Vec<(String, UploadId)> = Vec::new();
        loop {
            let page = match self.stack.router.list_uploads(&list).await {
                Ok(page) => page,
                Err(error) => {
                    return self.excuse::<()>(Failing::of_rows(&error), &error).map(|_| ());
                }
            };
            for entry in page.entries {
                let ListEntry::Upload { name, id, .. } = entry else {
                    return Err(format!("{entry:?} in a list of uploads"));
                };
                entries.push((name, id));
            }
            list.list.from = page.next;
            if list.list.from.is_none() {
                break;
            }
        }
        if !entries.is_sorted_by(|a, b| a < b) {
            return Err(format!("uploads out of order, or twice the same: {entries:?}"));
        }
        for number in 0..NAMES {
            let name = format!("{}/{number}", self.number);
            let own: Vec<UploadId> =
                entries.iter().filter(|entry| entry.0 == name).map(|entry| entry.1).collect();
            let fits = |state: &mut State| state.uploads.keys().map(|n| id(*n)).eq(own.clone());
            let result = self.with_blob(&name, |blob| blob.see(&format!("uploads {own:?}"), fits));
            result.map_err(|why| format!("{name}: {why}"))?;
        }
        Ok(())
    }
}

fn is_shown(part: Segment, view: &PartView) -> bool {
    view.number == number(part) && view.len == part.len && view.tag == ContentEtag::md5(md5(part))
}
