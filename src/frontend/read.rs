//! Streams the pieces of a blob. The pieces of a long layout are looked up in several steps.

mod checksum;

use std::collections::BTreeSet;
use std::collections::VecDeque;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinError;

use crate::capacity::Capacity;
use crate::env::Clock;
use crate::env::Tasks;
use crate::env::boxed;
use crate::env::waiting;
use crate::env::working_on;
use crate::frontend::answers::AnswerMemory;
use crate::frontend::answers::Reservation;
use crate::frontend::answers::STEP_MIN_BYTES;
use crate::frontend::body::BodyError;
use crate::frontend::body::Pull;
use crate::frontend::body::ResponseBody;
use crate::frontend::body::Source;
use crate::frontend::encrypt;
use crate::frontend::encrypt::Decrypting;
use crate::frontend::encrypt::PieceError;
use crate::frontend::encrypt::Split;
use crate::frontend::errors;
use crate::frontend::lookup::BlobVersion;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::BlobView;
use crate::index::Guard;
use crate::index::Piece;
use crate::index::ReadBlob;
use crate::index::Router;
use crate::index::inflight::ReadNote;
use crate::protocol::model::Refusal;
use crate::types::ByteRange;
use crate::types::Conditions;
use crate::types::Etag;
use crate::types::EtagMatch;
use crate::types::request;
use crate::types::request::CurrentRequest;
use crate::types::request::Stage;

pub(crate) use checksum::checksum;

/// Payload bytes of one step of a copy, whose memory is counted as that of an upload.
const STEP_BYTES: u64 = 1 << 20;

/// A blob that was looked up and is to be read.
pub(crate) struct Reading {
    pub(crate) blob: BlobVersion,
    pub(crate) view: Box<BlobView>,
    /// Keeps reclaim from freeing the bytes that the view names.
    pub(crate) note: ReadNote,
    /// Of a request with a customer-provided key.
    pub(crate) decrypting: Option<Decrypting>,
    /// The memory budget of each step; `None` for a copy.
    pub(crate) memory: Option<AnswerMemory>,
}

/// The rest of a response body.
pub(crate) struct BlobSource {
    router: Arc<Router>,
    capacity: Arc<dyn Capacity>,
    tasks: Tasks,
    clock: Arc<dyn Clock>,
    blob: BlobVersion,
    content: ContentVersion,
    pieces: VecDeque<Piece>,
    /// The blob offset at which the pieces end.
    pieces_end: u64,
    /// The blob offset at which the wanted range ends.
    end: u64,
    /// Of a request with a customer-provided key.
    decrypting: Option<Decrypting>,
    memory: Option<AnswerMemory>,
    /// Keeps reclaim from freeing the bytes that the pieces name.
    note: ReadNote,
    /// The request's id, for log lines: the body is read after the head was sent.
    request: Option<CurrentRequest>,
}

/// The properties that must not change between the look-ups of one read.
#[derive(Clone, Copy)]
struct ContentVersion {
    etag: Etag,
    /// Of a blob that changes in place; then the tag may change.
    generation: Option<u64>,
}

/// A step of a read: a piece, and the memory for it.
struct Step {
    piece: Piece,
    reserved: Option<Reservation>,
}

/// The most extents that one read names at a time, so that naming them costs little.
const EXTENTS_MAX: usize = 256;

/// Protects what a look-up found.
pub(crate) fn found(note: &mut ReadNote, view: &mut BlobView) {
    if let Some(len) = shorten(&mut view.pieces, EXTENTS_MAX) {
        view.pieces_end = view.range.start + len;
    }
    note.names(view.pieces.iter().filter_map(Piece::extent));
}

/// Drops the pieces after the first `extents_max` extents; they are looked up again later. Returns
/// the length of the rest if any were dropped.
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

/// The wanted bytes, if the row has all of them, so that no extent is read.
pub(crate) fn in_row(view: &BlobView) -> Option<Bytes> {
    if let [Piece::Inline(bytes)] = view.pieces.as_slice() { Some(bytes.clone()) } else { None }
}

/// Begins a body. Its first bytes are read before the head is sent, so that a failure still becomes
/// a status.
pub(crate) async fn begin(front: &FrontEnd, reading: Reading) -> Result<ResponseBody, Refusal> {
    let len = reading.view.range.end - reading.view.range.start;
    if let Some(bytes) = in_row(&reading.view) {
        return Ok(ResponseBody::full(bytes));
    }
    let mut source = source(front, reading);
    let first = source.before_head().await?.unwrap_or_default();
    let rest = !source.is_done();
    if rest {
        source.describe();
    }
    let holding = source.memory.as_ref().map(|memory| Arc::clone(memory.holding()));
    let body = ResponseBody::stream(first, rest.then(|| Box::new(source) as Source), len);
    Ok(body.holding(holding))
}

/// Reads a blob in steps.
pub(crate) fn source(front: &FrontEnd, reading: Reading) -> BlobSource {
    let Reading { blob, view, note, decrypting, memory } = reading;
    BlobSource {
        router: Arc::clone(&front.rows.router),
        capacity: Arc::clone(&front.capacity),
        tasks: front.env.tasks.clone(),
        clock: Arc::clone(&front.env.clock),
        blob,
        content: ContentVersion { etag: view.record.etag, generation: view.generation },
        pieces: view.pieces.into(),
        pieces_end: view.pieces_end,
        end: view.range.end,
        decrypting,
        memory,
        note,
        request: request::current_whole(),
    }
}

enum Failure {
    /// No memory was free before the head was sent.
    Busy(Refusal),
    Piece(PieceError),
    Index(index::Error),
}

impl BlobSource {
    fn is_done(&self) -> bool {
        self.pieces.is_empty() && self.pieces_end >= self.end
    }

    /// The next pieces, read before the head of the answer is sent: a failure becomes its status.
    async fn before_head(&mut self) -> Result<Option<VecDeque<Bytes>>, Refusal> {
        self.step(true).await.map_err(|failure| match failure {
            Failure::Busy(error) => error,
            Failure::Piece(error) => error.refusal(),
            Failure::Index(error) => errors::from_index(&error, errors::Subject::Blob),
        })
    }

    /// Goes on with another range of the blob.
    pub(crate) fn seek(&mut self, range: Range<u64>) {
        self.pieces.clear();
        (self.pieces_end, self.end) = (range.start, range.end);
    }

    /// The next pieces, for a caller that does not stream them to a client; `None` at the end.
    ///
    /// # Errors
    /// Those of the index and of the content; `ServerBusy` if no memory is free.
    pub(crate) async fn next_pieces(&mut self) -> Result<Option<VecDeque<Bytes>>, Refusal> {
        self.before_head().await
    }

    /// The next pieces of the body; `None` at its end. Before the head is sent, a step is refused
    /// after all steps together have waited too long for memory.
    async fn step(&mut self, before_head: bool) -> Result<Option<VecDeque<Bytes>>, Failure> {
        if self.pieces.is_empty() && self.pieces_end < self.end {
            self.more().await?;
        }
        let Some(piece) = self.pieces.pop_front() else { return Ok(None) };
        let Step { piece, reserved } =
            self.reserve(piece, before_head).await.map_err(Failure::Busy)?;
        let decrypting = self.decrypting.as_ref();
        // Pinned here: a future that is moved into another one takes its space twice.
        let fetched = pin!(encrypt::fetch(&*self.capacity, decrypting, &piece));
        let bytes = waiting(self.clock.as_ref(), Stage::Read, fetched).await;
        let bytes = bytes.map_err(Failure::Piece)?;
        Ok(Some(match reserved {
            Some(reserved) => reserved.count(bytes),
            None => bytes.into(),
        }))
    }

    /// Reserves memory for as much of a piece as may be read now.
    async fn reserve(&mut self, piece: Piece, before_head: bool) -> Result<Step, Refusal> {
        let Some(memory) = self.memory.clone() else {
            return Ok(Step { piece: self.first_step(piece, STEP_BYTES), reserved: None });
        };
        let piece = self.first_step(piece, memory.step_bytes());
        if let Some(reservation) = memory.try_take(encrypt::length(&piece)) {
            return Ok(Step { piece, reserved: Some(reservation) });
        }
        let piece = self.first_step(piece, STEP_MIN_BYTES);
        let bytes = encrypt::length(&piece);
        let reservation = match before_head {
            true => memory.begin(bytes).await?,
            false => memory.wait(bytes).await,
        };
        Ok(Step { piece, reserved: Some(reservation) })
    }

    /// The beginning of a piece; the rest is the next piece.
    fn first_step(&mut self, piece: Piece, step: u64) -> Piece {
        let Split { first, rest } = encrypt::split_at_step(piece, step);
        if let Some(rest) = rest {
            self.pieces.push_front(rest);
        }
        first
    }

    /// Looks up the next pieces; the pieces so far have been read. The look-up is a task of its
    /// own, because reclaim waits for it: a client that does not take its bytes must not stop it
    /// half-way.
    async fn more(&mut self) -> Result<(), Failure> {
        let content = self.content;
        let range = self.pieces_end..self.end;
        let (router, blob) = (Arc::clone(&self.router), self.blob.clone());
        let mut note = self.note.another();
        self.note.names([]);
        let task = self.tasks.spawn_part("further look-up", async move {
            note.looks_up();
            let mut view = look_up_next(&router, blob, content, range).await?;
            found(&mut note, &mut view);
            Ok((view, note))
        });
        let stopped = |error: JoinError| Err(index::Error::Unavailable(error.to_string()));
        let (view, note) = task.await.unwrap_or_else(stopped).map_err(Failure::Index)?;
        self.note = note;
        self.pieces = view.pieces.into();
        self.pieces_end = view.pieces_end;
        Ok(())
    }

    /// For the log line about a read that runs for long.
    fn describe(&self) {
        let key = &self.blob.key;
        let (account, container, name) = (key.account, key.container, key.name.as_str());
        self.note.describe(format!("blob {name:?} of container {container}, account {account}"));
    }
}

/// Looks up the next range of a long layout, of the same content.
async fn look_up_next(
    router: &Router,
    BlobVersion { key, revision }: BlobVersion,
    ContentVersion { etag, generation }: ContentVersion,
    range: Range<u64>,
) -> Result<Box<BlobView>, index::Error> {
    let same = EtagMatch::Tags(vec![Some(etag)]);
    let if_match = generation.is_none().then_some(same);
    let conditions = Conditions { if_match, ..Conditions::default() };
    let read = ReadBlob {
        key,
        revision,
        guard: Guard { conditions, ..Guard::default() },
        range: ByteRange::new(range.start, Some(range.end.saturating_sub(1))),
        pieces: true,
    };
    let view = router.ask(read).await?;
    // The name belongs to another blob now, or the blob is shorter.
    if view.generation != generation || view.pieces_end <= range.start {
        return Err(index::Refused::BlobNotFound.into());
    }
    Ok(view)
}

impl Pull for BlobSource {
    fn pull(mut self: Box<Self>) -> crate::frontend::body::Next {
        let request = self.request.clone();
        let step = async move {
            match self.step(false).await {
                Ok(Some(pieces)) => Some((Ok(pieces), self as Source)),
                Ok(None) => None,
                Err(failure) => {
                    let reason = match failure {
                        Failure::Busy(error) => error.reason.name().to_owned(),
                        Failure::Piece(error) => error.to_string(),
                        Failure::Index(error) => error.to_string(),
                    };
                    tracing::error!(%reason, "a response body is cut short");
                    Some((Err(BodyError(reason)), self as Source))
                }
            }
        };
        boxed(|| working_on(request, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ByteLen;
    use crate::types::Crc32c;
    use crate::types::ExtentId;
    use crate::types::ExtentOffset;
    use crate::types::Location;

    #[test]
    fn pieces_beyond_so_many_extents_are_left_to_a_further_look_up() {
        let piece = |extent| {
            let location = Location {
                extent: ExtentId::new(extent),
                offset: ExtentOffset::START,
                len: ByteLen::new(10),
                crc: Crc32c::EMPTY,
            };
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
