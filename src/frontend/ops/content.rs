//! Get Blob and its properties.

use bytes::Bytes;

use crate::frontend::accounts::Account;
use crate::frontend::answers::Payer;
use crate::frontend::answers::Purse;
use crate::frontend::body::ResponseBody;
use crate::frontend::dispatch::Answer;
use crate::frontend::encrypt;
use crate::frontend::encrypt::Decrypting;
use crate::frontend::errors;
use crate::frontend::errors::Subject;
use crate::frontend::ops;
use crate::frontend::read;
use crate::frontend::service::FrontEnd;
use crate::index::BlobView;
use crate::index::Read;
use crate::index::ReadBlob;
use crate::index::ReadReply;
use crate::index::inflight::ReadGuard;
use crate::protocol::Error;
use crate::protocol::ErrorCode;
use crate::protocol::Precondition;
use crate::protocol::Reply;
use crate::protocol::azure::RANGE_CHECKSUM_BYTES_MAX;
use crate::protocol::operation::BlobPath;
use crate::protocol::operation::RangeChecksum;
use crate::protocol::reply::BlobFacts;
use crate::protocol::reply::BodyChecksum;
use crate::types::BlobKey;
use crate::types::ByteRange;
use crate::types::Crc64Hasher;
use crate::types::CustomerKey;
use crate::types::Md5Hasher;
use crate::types::RoutingKey;
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
    let key = ops::blob_key(front, account, path).await?;
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
    let facts = ops::facts(front, view.record.clone(), now);
    let wanted = view.range.clone();
    let checksum = match checksum {
        Some(_) if wanted.end - wanted.start > RANGE_CHECKSUM_BYTES_MAX => {
            return Err(ErrorCode::OutOfRangeInput.into());
        }
        Some(kind) => {
            let of = (&key, snapshot);
            let again = guard.another();
            Some(range_checksum(front, of, (&view, again), kind, decrypting.as_ref()).await?)
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
) -> Result<Box<BlobFacts>, Error> {
    let snapshot = path.snapshot;
    let decrypting = decrypting(front, account, (&path, precondition.encryption.key()));
    let key = ops::blob_key(front, account, path).await?;
    let mut view = look_up(front, (&key, snapshot), precondition, None, false).await?;
    encrypt::decrypt_md5(decrypting.as_ref(), &mut view.record.properties)?;
    front.copies.tell(&mut view.record);
    Ok(ops::facts(front, view.record, front.env.clock.now()))
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
) -> Result<BlobView, Error> {
    let position = RoutingKey::blob(key);
    let guard = ops::guard(precondition);
    let read = Read::Blob(ReadBlob { key: key.clone(), snapshot, guard, range, pieces });
    match front.router.read(position.as_bytes(), read).await {
        Ok(ReadReply::Blob(view)) => Ok(*view),
        Ok(_) => Err(ops::mismatched()),
        Err(error) => Err(errors::from_index(&error, Subject::Blob)),
    }
}

/// Reads the range once more for its checksum: at most 4 MiB, just read into the page cache or
/// about to be.
async fn range_checksum(
    front: &FrontEnd,
    blob: (&BlobKey, Option<Timestamp>),
    (view, mut guard): (&BlobView, ReadGuard),
    kind: RangeChecksum,
    decrypting: Option<&Decrypting>,
) -> Result<BodyChecksum, Error> {
    let pieces = read::all_pieces(&front.router, blob, view, &mut guard)
        .await
        .map_err(|error| errors::from_index(&error, Subject::Blob))?;
    let (mut md5, mut crc64) = (Md5Hasher::default(), Crc64Hasher::default());
    let mut update = |bytes: &Bytes| match kind {
        RangeChecksum::Md5 => md5.update(bytes),
        RangeChecksum::Crc64 => crc64.update(bytes),
    };
    for piece in &pieces {
        let bytes = encrypt::fetch(&*front.capacity, decrypting, piece).await;
        bytes.map_err(|e| errors::from_fetch(&e))?.iter().for_each(&mut update);
    }
    Ok(match kind {
        RangeChecksum::Md5 => BodyChecksum::Md5(md5.finish()),
        RangeChecksum::Crc64 => BodyChecksum::Crc64(crc64.finish()),
    })
}
