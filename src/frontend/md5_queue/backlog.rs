//! The pieces that wait, by body, and whose turn it is. No hashing.

use std::collections::HashMap;
use std::collections::VecDeque;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::types::MD5_BATCH_MAX;
use crate::types::Md5Stream;

/// Shorter bodies are hashed immediately: waiting costs more than it saves. So are shorter pieces,
/// when it is their turn.
pub(super) const PIECE_BYTES_MIN: usize = 8 << 10;
/// The most bytes of a body in one batch: one long piece would be hashed alone after the others.
const PIECE_BYTES_MAX: usize = 64 << 10;
/// The cost of a piece beside its bytes: many tiny ones must not take much memory.
const PIECE_COST: usize = 512;
/// A body with this much joins the batches of others, bytes.
const READY_BYTES: usize = 32 << 10;

/// The bodies that have a place.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    bodies: HashMap<u64, Body>,
    next_id: u64,
    /// The queued bytes of all bodies.
    bytes: usize,
    /// Bodies that may join a batch, in turn. Some may have left.
    ready: VecDeque<u64>,
}

#[derive(Debug)]
struct Body {
    /// `None` while a thread hashes it.
    stream: Option<Md5Stream>,
    pieces: VecDeque<Bytes>,
    /// The cost of its pieces.
    bytes: usize,
    /// Whether it is among the ready ones.
    is_ready: bool,
    /// Dropped when its stream is back.
    returned: Option<oneshot::Sender<()>>,
}

/// The stream of a body and what is hashed next.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) id: u64,
    pub(super) stream: Md5Stream,
    /// Pieces that are too short for a batch, which come first.
    pub(super) short: Vec<Bytes>,
    /// A piece for the batch; empty if no piece waits.
    pub(super) piece: Bytes,
}

/// The next step of a body that lags behind.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing: it has caught up.
    Done,
    /// It has no place any more.
    Broken,
    /// Hash these.
    Hash(Vec<Lane>),
    /// Another thread hashes it: wait.
    Wait(oneshot::Receiver<()>),
}

impl Backlog {
    /// A place for a body.
    pub(super) fn enter(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let stream = Some(Md5Stream::default());
        let pieces = VecDeque::new();
        self.bodies.insert(id, Body { stream, pieces, bytes: 0, is_ready: false, returned: None });
        id
    }

    /// The queued bytes of all bodies.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many bodies may join a batch, and how many there are.
    pub(super) fn company(&self) -> (usize, usize) {
        (self.ready.len(), self.bodies.len())
    }

    /// Adds a piece. Returns what waits of the body.
    pub(super) fn push(&mut self, id: u64, piece: Bytes) -> usize {
        let Some(body) = self.bodies.get_mut(&id) else { return 0 };
        let cost = cost(&piece);
        body.bytes += cost;
        self.bytes += cost;
        body.pieces.push_back(piece);
        let bytes = body.bytes;
        self.make_ready(id);
        bytes
    }

    /// The next step of a body, so that it lags behind by at most `lag` bytes.
    pub(super) fn step(&mut self, id: u64, lag: usize) -> Step {
        let Some(body) = self.bodies.get_mut(&id) else { return Step::Broken };
        let is_out = body.stream.is_none();
        if body.bytes <= lag && !(is_out && lag == 0) {
            return Step::Done;
        }
        if is_out {
            let (returned, waiting) = oneshot::channel();
            body.returned = Some(returned);
            return Step::Wait(waiting);
        }
        let mut lanes: Vec<Lane> = self.take(id).into_iter().collect();
        while lanes.len() < MD5_BATCH_MAX
            && let Some(other) = self.ready.pop_front()
        {
            if let Some(body) = self.bodies.get_mut(&other) {
                body.is_ready = false;
            }
            lanes.extend(self.take(other));
        }
        Step::Hash(lanes)
    }

    /// Takes out a stream and what is hashed next; `None` if there is nothing.
    fn take(&mut self, id: u64) -> Option<Lane> {
        let body = self.bodies.get_mut(&id).filter(|body| !body.pieces.is_empty())?;
        let stream = body.stream.take()?;
        let (mut short, mut piece, mut taken) = (Vec::new(), Bytes::new(), 0);
        while taken < PIECE_BYTES_MAX
            && let Some(mut first) = body.pieces.pop_front()
        {
            if first.len() < PIECE_BYTES_MIN {
                taken += cost(&first);
                short.push(first);
                continue;
            }
            piece = first.split_to(first.len().min(PIECE_BYTES_MAX));
            taken += piece.len();
            if first.is_empty() {
                taken += PIECE_COST;
            } else {
                body.pieces.push_front(first);
            }
            break;
        }
        body.bytes -= taken;
        self.bytes -= taken;
        Some(Lane { id, stream, short, piece })
    }

    /// Takes streams back that were hashed.
    pub(super) fn put_back(&mut self, lanes: Vec<Lane>) {
        for Lane { id, stream, .. } in lanes {
            // A body that was given up has no place any more.
            let Some(body) = self.bodies.get_mut(&id) else { continue };
            body.stream = Some(stream);
            drop(body.returned.take());
            self.make_ready(id);
        }
    }

    fn make_ready(&mut self, id: u64) {
        let Some(body) = self.bodies.get_mut(&id) else { return };
        if body.bytes >= READY_BYTES && !body.is_ready && body.stream.is_some() {
            body.is_ready = true;
            self.ready.push_back(id);
        }
    }

    /// Ends a body whose stream is lost.
    pub(super) fn give_up(&mut self, id: u64) {
        self.leave(id);
    }

    /// Ends a body. Returns its stream, if no thread has it.
    pub(super) fn leave(&mut self, id: u64) -> Option<Md5Stream> {
        let body = self.bodies.remove(&id)?;
        self.bytes -= body.bytes;
        body.stream
    }
}

fn cost(piece: &Bytes) -> usize {
    piece.len() + PIECE_COST
}
