//! Uploads in parts, through the operations of a front end.

use super::*;
use crate::protocol::model::Precondition;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::model::operation::ClaimedChecksums;
use crate::protocol::model::operation::CompleteUpload;
use crate::protocol::model::operation::CreateUpload;
use crate::protocol::model::operation::Framing;
use crate::protocol::model::operation::ListUploads;
use crate::protocol::model::operation::NamedPart;
use crate::protocol::model::operation::RequestEncryption;
use crate::protocol::model::operation::Upload;
use crate::protocol::model::operation::UploadOperation;
use crate::protocol::model::operation::UploadPart;
use crate::protocol::model::operation::UploadPath;
use crate::protocol::model::upload_reply::PartFacts;
use crate::protocol::model::upload_reply::UploadItem;
use crate::protocol::model::upload_reply::UploadPosition;
use crate::protocol::model::upload_reply::UploadReply;

fn path(name: &str) -> BlobPath {
    BlobPath {
        container: photos(),
        blob: BlobName::new(name).unwrap(),
        revision: Revision::Current,
    }
}

fn plain() -> Precondition {
    Precondition { encryption: RequestEncryption::Plain, ..Precondition::default() }
}

/// Carries out one operation, with a body of these bytes.
async fn carry_out(
    fixture: &Fixture,
    operation: UploadOperation,
    bytes: &'static [u8],
) -> Result<UploadReply, Refusal> {
    let Fixture { front, account, .. } = fixture;
    let body = ResponseBody::full(Bytes::from_static(bytes));
    let mut body = RequestBody::of_source(body, SOON, front.env.clone());
    body.pay(account.id);
    let head = head("Put Blob", bytes.len());
    let peer =
        Peer { address: "192.0.2.1:9".parse().unwrap(), secure: true, protocols: Protocols::All };
    let arrival =
        Arrival { dialect: front.config.dialects.of(&head, Protocols::All), head: &head, peer };
    let requester =
        Requester { account, arrival, authenticated: true, create_only: false, admitted: None };
    let content = RequestContent { body: &mut body, document: None };
    let reply = dispatch(front, requester, Box::new(operation.into()), content).await?.reply;
    let Reply::Upload(reply) = reply else { panic!("{reply:?}") };
    Ok(*reply)
}

async fn create(fixture: &Fixture, name: &str, tags: Tags) -> UploadId {
    let create = CreateUpload {
        path: path(name),
        precondition: plain(),
        properties: BlobProperties::default(),
        metadata: Metadata::default(),
        tags,
        tier: None,
        checksum: None,
        object: None,
    };
    match carry_out(fixture, UploadOperation::Create(Box::new(create)), b"").await {
        Ok(UploadReply::Created(id, None)) => id,
        other => panic!("{other:?}"),
    }
}

async fn part(
    fixture: &Fixture,
    upload: UploadPath,
    number: u32,
    bytes: &'static [u8],
) -> Result<PartFacts, Refusal> {
    let framing = Framing::Known { len: bytes.len() as u64 };
    let part = UploadPart {
        upload,
        number: PartNumber::new(number).unwrap(),
        body: Upload { framing, md5: None, crc64: None, checksums: ClaimedChecksums::default() },
    };
    let reply = carry_out(fixture, UploadOperation::UploadPart(part), bytes).await?;
    let UploadReply::PartUploaded(part) = reply else { panic!("{reply:?}") };
    Ok(part)
}

fn upload(name: &str, id: UploadId) -> UploadPath {
    UploadPath { path: path(name), precondition: plain(), id }
}

fn complete(name: &str, id: UploadId, parts: &[&PartFacts]) -> UploadOperation {
    let named =
        |part: &&PartFacts| NamedPart { number: part.number, tag: part.tag, checksum: None };
    UploadOperation::Complete(Box::new(CompleteUpload {
        upload: upload(name, id),
        parts: parts.iter().map(named).collect(),
        part_len_min: 0,
        len: None,
        checksum: None,
        coverage: None,
    }))
}

#[tokio::test(start_paused = true)]
async fn parts_become_a_blob_whose_tags_are_indexed() {
    let fixture = front().await;
    let tags = Tags::new(vec![("k".to_owned(), "v".to_owned())]).unwrap();
    let id = create(&fixture, "a", tags).await;
    let one = part(&fixture, upload("a", id), 1, b"one").await.unwrap();
    let two = part(&fixture, upload("a", id), 2, b"two").await.unwrap();
    assert_eq!((one.tag, one.len), (ContentEtag::md5(Md5::of(b"one")), 3));
    let whole = complete("a", id, &[&one, &two]);
    let done = carry_out(&fixture, whole.clone(), b"").await.unwrap();
    let UploadReply::Completed { tag, .. } = &done else { panic!("{done:?}") };
    assert_eq!(Some(*tag), tag_of_parts([&one.tag, &two.tag]).etag(None));
    assert_eq!(carry_out(&fixture, whole, b"").await, Ok(done));
    let work = fixture.index.partition.lock().unwrap().memory.rows.clone();
    let is_work = |row: &(index::rows::Family, Bytes)| row.0 == index::rows::Family::Work;
    assert!(!work.keys().any(is_work), "the tag index is up to date");
    let unknown = part(&fixture, upload("a", id), 3, b"late").await.unwrap_err();
    assert_eq!(unknown.reason, Reason::UploadNotFound);
}

#[tokio::test(start_paused = true)]
async fn uploads_and_parts_are_listed_until_they_end() {
    let fixture = front().await;
    let mut ids = Vec::new();
    for name in ["a", "d/1", "d/2", "e"] {
        ids.push(create(&fixture, name, Tags::default()).await);
    }
    part(&fixture, upload("a", ids[0]), 7, b"seven").await.unwrap();
    let parts = UploadOperation::ListParts { upload: upload("a", ids[0]), after: 0, limit: 1 };
    let UploadReply::Parts { parts, is_truncated, .. } =
        carry_out(&fixture, parts, b"").await.unwrap()
    else {
        panic!("no parts")
    };
    assert_eq!((parts.len(), parts[0].number.get(), is_truncated), (1, 7, false));
    let list = |after: Option<UploadPosition>, limit| {
        let (name, id) = after.map_or((None, None), |after| (Some(after.name), after.upload));
        UploadOperation::ListUploads(Box::new(ListUploads {
            container: photos(),
            prefix: None,
            delimiter: Some("/".to_owned()),
            after: name,
            after_upload: id,
            limit,
        }))
    };
    for limit in [1, 2, 3, 9] {
        let (mut names, mut at) = (Vec::new(), None);
        loop {
            let reply = carry_out(&fixture, list(at, limit), b"").await.unwrap();
            let UploadReply::Uploads { items, next } = reply else { panic!("no uploads") };
            assert!(items.len() <= limit);
            names.extend(items.into_iter().map(|item| match item {
                UploadItem::Upload { name, .. } | UploadItem::Prefix { name } => name,
            }));
            at = next;
            if at.is_none() {
                break;
            }
        }
        assert_eq!(names, ["a", "d/", "e"], "{limit}");
    }
    let aborted = carry_out(&fixture, UploadOperation::Abort(upload("a", ids[0])), b"").await;
    assert_eq!(aborted, Ok(UploadReply::Aborted));
    let again = carry_out(&fixture, UploadOperation::Abort(upload("a", ids[0])), b"").await;
    assert_eq!(again.unwrap_err().reason, Reason::UploadNotFound);
}

/// The store is not filled with bytes that no request can use.
#[tokio::test(start_paused = true)]
async fn body_of_a_part_without_an_upload_is_not_read() {
    let fixture = front().await;
    let unknown = UploadId::from_bytes([1; 16]);
    // The head says more bytes than come, which only a reader notices.
    let framing = Framing::Known { len: 1_000 };
    let part = UploadPart {
        upload: upload("a", unknown),
        number: PartNumber::new(1).unwrap(),
        body: Upload { framing, md5: None, crc64: None, checksums: ClaimedChecksums::default() },
    };
    let refused = carry_out(&fixture, UploadOperation::UploadPart(part), b"few").await;
    assert_eq!(refused.unwrap_err().reason, Reason::UploadNotFound);
}
