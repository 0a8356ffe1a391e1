//! Get Blob and its properties.

use bytes::Bytes;

use crate::frontend::accounts::Account;
use crate::frontend::answers::Payer;
use crate::frontend::answers::Purse;
use crate::frontend::body::ResponseBody;
use crate::frontend::encrypt;
use crate::frontend::encrypt::Decrypting;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::facts;
use crate::frontend::lookup;
use crate::frontend::ops::Answer;
use crate::frontend::read;
use crate::frontend::state::FrontEnd;
use crate::index::BlobView;
use crate::index::ReadBlob;
use crate::protocol::azure::RANGE_CHECKSUM_BYTES_MAX;
use crate::protocol::model::Precondition;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::operation::BlobPath;
use crate::protocol::model::operation::RangeChecksum;
use crate::protocol::model::reply::BlobFacts;
use crate::types::BlobKey;
use crate::types::ByteRange;
use crate::types::CustomerKey;
use crate::types::Timestamp;

/// Get Blob.
pub(crate) async fn get(
    front: &FrontEnd,
    account: &Account,
    (path, precondition): (BlobPath, Precondition),
    (range, checksum): (Option<ByteRange>, Option<RangeChecksum>),
    payer: Payer,
) -> Answer {
    let snapshot = path.snapshot;
    let customer_key = precondition.encryption.key();
    let decrypting = decrypting(front, account, (&path, customer_key));
    let key = lookup::blob_key(front, account, path).await?;
    // Before the look-up: what it finds is not freed until the body is out.
    let mut guard = front.inflight.read(front.env.clock.monotonic());
    let mut view = look_up(front, (&key, snapshot), precondition, range, true).await?;
    read::found(&mut guard, &mut view);
    encrypt::decrypt_md5(decrypting.as_ref(), &mut view.record.properties)?;
    front.copies.tell(&mut view.record);
    let now = front.env.clock.now();
    if let Some(reads) = &front.last_access {
        reads.note((&key, snapshot), &view.record, now);
    }
    let facts = facts::of_blob(front, view.record.clone(), now);
    let wanted = view.range.clone();
    let checksum = match checksum {
        Some(_) if wanted.end - wanted.start > RANGE_CHECKSUM_BYTES_MAX => {
            return Err(Reason::OutOfRangeInput.into());
        }
        Some(kind) => {
            // It is read once more for that: the head with the checksum comes before the bytes.
            let blob = (key.clone(), snapshot);
            let paid = (decrypting.clone(), Some(Purse::new(&front.answers, payer)));
            let source = read::source(front, blob, view.clone(), guard.another(), paid);
            Some(read::checksum(source, kind).await?)
        }
        None => None,
    };
    let body = if wanted.is_empty() {
        ResponseBody::full(Bytes::new())
    } else {
        let paid = (decrypting, Some(Purse::new(&front.answers, payer)));
        read::begin(front, (key, snapshot), view, guard, paid).await?
    };
    let range = range.map(|_| wanted);
    Ok((Reply::Blob { facts, range, checksum }, Some(body)))
}

/// Get Blob Properties, Get Blob Metadata.
pub(crate) async fn facts(
    front: &FrontEnd,
    account: &Account,
    path: BlobPath,
    precondition: Precondition,
) -> Result<Box<BlobFacts>, Refusal> {
    let snapshot = path.snapshot;
    let decrypting = decrypting(front, account, (&path, precondition.encryption.key()));
    let key = lookup::blob_key(front, account, path).await?;
    let mut view = look_up(front, (&key, snapshot), precondition, None, false).await?;
    encrypt::decrypt_md5(decrypting.as_ref(), &mut view.record.properties)?;
    front.copies.tell(&mut view.record);
    Ok(facts::of_blob(front, view.record, front.env.clock.now()))
}

/// For a request that brings a key.
fn decrypting(
    front: &FrontEnd,
    account: &Account,
    (path, key): (&BlobPath, Option<&CustomerKey>),
) -> Option<Decrypting> {
    Some(Decrypting::new(key?, (&account.name, path), front.not_authentic()))
}

async fn look_up(
    front: &FrontEnd,
    (key, snapshot): (&BlobKey, Option<Timestamp>),
    precondition: Precondition,
    range: Option<ByteRange>,
    pieces: bool,
) -> Result<BlobView, Refusal> {
    let guard = lookup::guard(precondition);
    let read = ReadBlob { key: key.clone(), snapshot, guard, range, pieces };
    let found = front.router.ask(read).await;
    found.map_err(|error| errors::from_index(&error, Subject::Blob))
}
