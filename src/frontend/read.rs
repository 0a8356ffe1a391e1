//! Streams a blob's pieces out, asking the index for more of a long layout on the way.

mod checksum;

use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinError;
use uuid::Uuid;

use crate::capacity::Capacity;
use crate::env::Tasks;
use crate::env::boxed;
use crate::env::identified;
use crate::frontend::answers::Purse;
use crate::frontend::answers::Reservation;
use crate::frontend::answers::STEP_MIN_BYTES;
use crate::frontend::body::BodyError;
use crate::frontend::body::Pull;
use crate::frontend::body::ResponseBody;
use crate::frontend::body::Source;
use crate::frontend::encrypt;
use crate::frontend::encrypt::Decrypting;
use crate::frontend::encrypt::Fault;
use crate::frontend::errors;
use crate::frontend::route::Router;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::BlobView;
use crate::index::Guard;
use crate::index::Piece;
use crate::index::ReadBlob;
use crate::index::inflight::ReadGuard;
use crate::protocol::model::Refusal;
use crate::types::BlobKey;
use crate::types::ByteRange;
use crate::types::Conditions;
use crate::types::Etag;
use crate::types::EtagMatch;
use crate::types::Timestamp;
use crate::types::request;

pub(crate) use checksum::checksum;

/// Payload bytes read at once where nobody counts them: for a copy, whose bytes are counted as
/// those of an upload.
const STEP_BYTES: u64 = 1 << 20;

/// The rest of a response body.
pub(crate) struct BlobSource {
    router: Arc<Router>,
    capacity: Arc<dyn Capacity>,
    tasks: Tasks,
    key: BlobKey,
    snapshot: Option<Timestamp>,
    etag: Etag,
    /// Of a blob that changes in place, instead of the tag.
    generation: Option<u64>,
    pieces: VecDeque<Piece>,
    /// The blob offsets that pieces cover, and that are wanted.
    pieces_end: u64,
    end: u64,
    /// Of a request with a key.
    decrypting: Option<Decrypting>,
    purse: Option<Purse>,
    /// Keeps reclaim from freeing what the pieces name.
    guard: ReadGuard,
    /// The request's id: its body is read when that has been answered.
    request: Option<Uuid>,
}

/// Extents that one read names at a time: what it costs to note them is bounded.
const EXTENTS_MAX: usize = 256;

/// Notes what a look-up found.
pub(crate) fn found(guard: &mut ReadGuard, view: &mut BlobView) {
    if let Some(len) = shorten(&mut view.pieces, EXTENTS_MAX) {
        view.pieces_end = view.range.start + len;
    }
    guard.names(view.pieces.iter().filter_map(Piece::extent));
}

/// Drops pieces beyond so many extents, which are looked up again when it is their turn. How many
/// bytes are left, if any were dropped.
fn shorten(pieces: &mut Vec<Piece>, extents_max: usize) -> Option<u64> {
    if pieces.len() <= extents_max {
        return None;
    }
    let (mut extents, mut len) = (BTreeSet::new(), 0);
    for (number, piece) in pieces.iter().enumerate() {
        extents.extend(piece.extent());
        if extents.len() > extents_max {
            pieces.truncate(number);
            return Some(len);
        }
        len += encrypt::length(piece);
    }
    None
}

/// Begins a body: the first bytes are read before the head is sent, so that damage there still gets
/// a status.
pub(crate) async fn begin(
    front: &FrontEnd,
    blob: (BlobKey, Option<Timestamp>),
    view: BlobView,
    guard: ReadGuard,
    paid: (Option<Decrypting>, Option<Purse>),
) -> Result<ResponseBody, Refusal> {
    let len = view.range.end - view.range.start;
    if let [Piece::Inline(bytes)] = view.pieces.as_slice() {
        return Ok(ResponseBody::full(bytes.clone()));
    }
    let mut source = source(front, blob, view, guard, paid);
    let first = source.before_head().await?.unwrap_or_default();
    let rest = !source.is_done();
    if rest {
        source.describe();
    }
    let holding = source.purse.as_ref().map(|purse| Arc::clone(purse.holding()));
    let body = ResponseBody::stream(first, rest.then(|| Box::new(source) as Source), len);
    Ok(body.holding(holding))
}

/// What was looked up, to be read in steps. With a purse they are paid for.
pub(crate) fn source(
    front: &FrontEnd,
    (key, snapshot): (BlobKey, Option<Timestamp>),
    view: BlobView,
    guard: ReadGuard,
    (decrypting, purse): (Option<Decrypting>, Option<Purse>),
) -> BlobSource {
    BlobSource {
        router: Arc::clone(&front.router),
        capacity: Arc::clone(&front.capacity),
        tasks: front.env.tasks.clone(),
        key,
        snapshot,
        etag: view.record.etag,
        generation: view.generation,
        pieces: view.pieces.into(),
        pieces_end: view.pieces_end,
        end: view.range.end,
        decrypting,
        purse,
        guard,
        request: request::current(),
    }
}

enum Failure {
    /// No memory was free before the head was sent.
    Busy(Refusal),
    Fetch(Fault),
    Index(index::Error),
}

impl BlobSource {
    fn is_done(&self) -> bool {
        self.pieces.is_empty() && self.pieces_end >= self.end
    }

    /// The next pieces, read before the head of the answer is sent: a failure is still its status.
    async fn before_head(&mut self) -> Result<Option<VecDeque<Bytes>>, Refusal> {
        self.step(true).await.map_err(|failure| match failure {
            Failure::Busy(error) => error,
            Failure::Fetch(fault) => fault.refusal(),
            Failure::Index(error) => errors::from_index(&error, errors::Subject::Blob),
        })
    }

    /// The next pieces of the body; `None` at its end. Before the head is sent, a step is refused
    /// when all steps together have waited for memory for too long.
    async fn step(&mut self, before_head: bool) -> Result<Option<VecDeque<Bytes>>, Failure> {
        if self.pieces.is_empty() && self.pieces_end < self.end {
            self.more().await?;
        }
        let Some(piece) = self.pieces.pop_front() else { return Ok(None) };
        let (piece, held) = self.pay(piece, before_head).await.map_err(Failure::Busy)?;
        let decrypting = self.decrypting.as_ref();
        let bytes =
            encrypt::fetch(&*self.capacity, decrypting, &piece).await.map_err(Failure::Fetch)?;
        Ok(Some(match held {
            Some(held) => held.count(bytes),
            None => bytes.into(),
        }))
    }

    /// As much of a piece as may be read now, paid for.
    async fn pay(
        &mut self,
        piece: Piece,
        before_head: bool,
    ) -> Result<(Piece, Option<Reservation>), Refusal> {
        let Some(purse) = self.purse.clone() else {
            return Ok((self.cut(piece, STEP_BYTES), None));
        };
        let piece = self.cut(piece, purse.step_bytes());
        if let Some(reservation) = purse.try_take(encrypt::length(&piece)) {
            return Ok((piece, Some(reservation)));
        }
        let piece = self.cut(piece, STEP_MIN_BYTES);
        let bytes = encrypt::length(&piece);
        let reservation = match before_head {
            true => purse.begin(bytes).await?,
            false => purse.wait(bytes).await,
        };
        Ok((piece, Some(reservation)))
    }

    /// The beginning of a piece; the rest is next.
    fn cut(&mut self, piece: Piece, step: u64) -> Piece {
        let (piece, rest) = encrypt::cut(piece, step);
        if let Some(rest) = rest {
            self.pieces.push_front(rest);
        }
        piece
    }

    /// The pieces so far have been read. The look-up has a task of its own: while it runs, reclaim
    /// waits for it, and a client that does not take its bytes must not stop it half-way.
    async fn more(&mut self) -> Result<(), Failure> {
        let version = (self.etag, self.generation);
        let range = self.pieces_end..self.end;
        let (router, key, snapshot) = (Arc::clone(&self.router), self.key.clone(), self.snapshot);
        let mut guard = self.guard.another();
        self.guard.names([]);
        let task = self.tasks.spawn_part("further look-up", async move {
            guard.looks_up();
            let mut view = look_up_on(&router, (&key, snapshot), version, range).await?;
            found(&mut guard, &mut view);
            Ok((view, guard))
        });
        let stopped = |error: JoinError| Err(index::Error::Unavailable(error.to_string()));
        let (view, guard) = task.await.unwrap_or_else(stopped).map_err(Failure::Index)?;
        self.guard = guard;
        self.pieces = view.pieces.into();
        self.pieces_end = view.pieces_end;
        Ok(())
    }

    /// For the log line about a read that runs for long.
    fn describe(&self) {
        let (account, container) = (self.key.account, self.key.container);
        let name = self.key.name.as_str();
        self.guard.describe(format!("blob {name:?} of container {container}, account {account}"));
    }
}

/// Looks up the next stretch of a long layout, of the same version of the blob.
async fn look_up_on(
    router: &Router,
    (key, snapshot): (&BlobKey, Option<Timestamp>),
    (etag, generation): (Etag, Option<u64>),
    range: Range<u64>,
) -> Result<BlobView, index::Error> {
    let same = EtagMatch::Tags(vec![Some(etag)]);
    let if_match = generation.is_none().then_some(same);
    let conditions = Conditions { if_match, ..Conditions::default() };
    let read = ReadBlob {
        key: key.clone(),
        snapshot,
        guard: Guard { conditions, ..Guard::default() },
        range: ByteRange::new(range.start, Some(range.end.saturating_sub(1))),
        pieces: true,
    };
    let view = router.ask(read).await?;
    // Another blob under the same name, or not that long any more.
    if view.generation != generation || view.pieces_end <= range.start {
        return Err(index::Error::BlobNotFound);
    }
    Ok(view)
}

impl Pull for BlobSource {
    fn pull(mut self: Box<Self>) -> crate::frontend::body::Next {
        let id = self.request;
        let step = async move {
            match self.step(false).await {
                Ok(Some(pieces)) => Some((Ok(pieces), self as Source)),
                Ok(None) => None,
                Err(failure) => {
                    let reason = match failure {
                        Failure::Busy(error) => error.reason.name().to_owned(),
                        Failure::Fetch(fault) => fault.to_string(),
                        Failure::Index(error) => error.to_string(),
                    };
                    tracing::error!(%reason, "a response body is cut short");
                    Some((Err(BodyError(reason)), self as Source))
                }
            }
        };
        boxed(|| identified(id, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ExtentId;
    use crate::types::Location;

    #[test]
    fn pieces_beyond_so_many_extents_are_left_to_a_further_look_up() {
        let piece = |extent| {
            let location = Location { extent: ExtentId::new(extent), offset: 0, len: 10, crc: 0 };
            Piece::Stored { location, range: 2..10 }
        };
        let all = vec![piece(1), Piece::Zeros(5), piece(2), piece(1), piece(3), piece(1)];
        for (extents_max, left) in [(1, Some(13)), (2, Some(29)), (3, None), (6, None)] {
            let mut pieces = all.clone();
            assert_eq!(shorten(&mut pieces, extents_max), left, "{extents_max}");
            let len: u64 = pieces.iter().map(encrypt::length).sum();
            assert_eq!(len, left.unwrap_or(45));
        }
    }
}
