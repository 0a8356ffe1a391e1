//! The caller's side of one connection.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::error::CallError;
use super::error::Reason;
use super::hello::Credit;
use super::message::NoSuchMessage;
use super::message::decode;
use super::packet::Draft;
use super::packet::HELLO_BYTES_MAX;
use super::packet::Head;
use super::packet::Kind;
use super::packet::Lengths;
use super::packet::Malformed;
use super::packet::Outgoing;
use super::packet::Packet;
use super::packet::Unchecked;
use super::packet::charge;
use super::packet::index;
use super::wire::PacketReader;
use super::wire::Progress;
use super::wire::ReadError;
use super::wire::write_queued;
use crate::env::Env;
use crate::types::request;

/// How often a connection is pinged on which nothing moves.
const PING_EVERY: Duration = Duration::from_secs(1);
/// A connection on which nothing moves after so many pings is given up.
const PINGS_MAX: u32 = 4;

/// A call that was not sent yet.
#[derive(Debug)]
pub(super) struct Unsent {
    pub method: u16,
    /// The message.
    pub draft: Draft,
    pub payload: Vec<Bytes>,
    /// The most bytes of message and payload of the answer.
    pub answer_bytes_max: u32,
    /// Until when the caller waits, in monotonic time.
    pub deadline: Duration,
}

/// What an answer carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub message: Bytes,
    pub payload: Bytes,
}

type Outcome = Result<Answered, CallError>;

/// What a connection sends next. Its packet is made when it is its turn.
#[derive(Debug)]
enum Queued {
    Call { call: u64, unsent: Unsent, request: [u8; 16] },
    Cancel(u64),
    Ping,
}

/// A connection. Calls run side by side; their order means nothing.
pub(super) struct Caller {
    env: Env,
    queue: mpsc::Sender<Queued>,
    calls: Arc<Calls>,
    credit: Credit,
    call_credit: Arc<Semaphore>,
    byte_credit: Arc<Semaphore>,
    next_call: AtomicU64,
    end: CancellationToken,
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("credit", &self.credit).finish_non_exhaustive()
    }
}

/// The calls that have not ended. `None` when the connection has ended.
#[derive(Debug)]
struct Calls(Mutex<Option<BTreeMap<u64, Waiting>>>);

/// A call that has not ended. Its credit is given back when the server says that it has, also if
/// nobody waits any more.
#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Outcome>,
    answer_bytes_max: u32,
    /// Whether its packet was made.
    is_sent: bool,
    _credit: [OwnedSemaphorePermit; 2],
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, Option<BTreeMap<u64, Waiting>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the connection goes on.
    fn add(&self, call: u64, waiting: Waiting) -> bool {
        match &mut *self.lock() {
            Some(calls) => calls.insert(call, waiting).is_none(),
            None => false,
        }
    }

    fn remove(&self, call: u64) -> Option<Waiting> {
        self.lock().as_mut()?.remove(&call)
    }

    /// Whether a call is to be sent: somebody waits for it. Else it is removed.
    fn is_wanted(&self, call: u64) -> bool {
        let mut calls = self.lock();
        let Some(calls) = &mut *calls else { return false };
        match calls.get_mut(&call) {
            Some(waiting) if !waiting.answer.is_closed() => {
                waiting.is_sent = true;
                true
            }
            _ => {
                calls.remove(&call);
                false
            }
        }
    }

    /// Removes a call that was not sent. Whether it was so: then it never is.
    fn withdraw(&self, call: u64) -> bool {
        let mut calls = self.lock();
        let Some(calls) = &mut *calls else { return false };
        let is_unsent = calls.get(&call).is_some_and(|waiting| !waiting.is_sent);
        if is_unsent {
            calls.remove(&call);
        }
        is_unsent
    }

    /// The most bytes of the answer to a call, if it has not ended.
    fn answer_bytes_max(&self, call: u64) -> Option<u32> {
        self.lock().as_ref()?.get(&call).map(|waiting| waiting.answer_bytes_max)
    }

    /// Ends all calls.
    fn end(&self) {
        let ended = self.lock().take();
        for (_, waiting) in ended.into_iter().flatten() {
            finish(waiting, Err(CallError::Unknown(Reason::ConnectionLost)));
        }
    }
}

/// The caller may have gone.
fn finish(waiting: Waiting, outcome: Outcome) {
    drop(waiting.answer.send(outcome));
}

/// Tells the server when the caller has gone before the answer.
struct Asking<'a> {
    caller: &'a Caller,
    call: u64,
    has_ended: bool,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            // There is room for each call and its cancel. Else the answer is just not used.
            drop(self.caller.queue.try_send(Queued::Cancel(self.call)));
        }
    }
}

impl Caller {
    /// Starts the work of a connection whose server has said welcome. The work ends with the
    /// stream, or when `end` is cancelled.
    pub(super) fn start<R, W>(
        env: &Env,
        streams: (PacketReader<R>, W),
        credit: Credit,
        end: CancellationToken,
    ) -> Arc<Self>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (queue, queued) = mpsc::channel(queue_len(credit));
        let (calls_max, bytes_max) = (index(credit.calls), index(credit.bytes));
        let caller = Arc::new(Self {
            env: env.clone(),
            queue: queue.clone(),
            calls: Arc::new(Calls(Mutex::new(Some(BTreeMap::new())))),
            credit,
            call_credit: Arc::new(Semaphore::new(calls_max)),
            byte_credit: Arc::new(Semaphore::new(bytes_max)),
            next_call: AtomicU64::new(1),
            end: end.clone(),
        });
        let calls = Arc::clone(&caller.calls);
        let progress = streams.0.progress();
        let work = Work { env: env.clone(), calls, queue, progress };
        drop(env.tasks.spawn("calls to a node", work.run(streams, queued, end)));
        caller
    }

    /// Whether the connection takes calls.
    pub(super) fn is_open(&self) -> bool {
        self.calls.lock().is_some()
    }

    /// Ends the connection. Calls under way end with an unknown outcome.
    pub(super) fn end(&self) {
        self.end.cancel();
        self.calls.end();
    }

    /// Makes a call. If it is dropped, the server is told; what the call has begun may go on there.
    ///
    /// # Errors
    /// [`CallError`].
    pub(super) async fn call(&self, unsent: Unsent) -> Outcome {
        let left = unsent.deadline.saturating_sub(self.env.clock.monotonic());
        let mut time = pin!(self.env.clock.sleep(left));
        let credit = tokio::select! {
            biased;
            credit = self.credit(&unsent) => credit?,
            () = &mut time => return Err(CallError::NotDone(Reason::OutOfTime)),
        };
        let (mut asking, answer) = self.send(unsent, credit)?;
        let outcome = tokio::select! {
            biased;
            outcome = answer => outcome,
            () = time => {
                asking.has_ended = self.calls.withdraw(asking.call);
                return Err(if asking.has_ended {
                    CallError::NotDone(Reason::OutOfTime)
                } else {
                    CallError::Unknown(Reason::OutOfTime)
                });
            }
        };
        asking.has_ended = true;
        outcome.unwrap_or(Err(CallError::Unknown(Reason::ConnectionLost)))
    }

    /// Waits until the call may be sent.
    async fn credit(&self, unsent: &Unsent) -> Result<[OwnedSemaphorePermit; 2], CallError> {
        let too_large = || CallError::NotDone(Reason::TooLarge);
        let lengths = unsent.draft.fits(&unsent.payload).map_err(|_| too_large())?;
        let bytes = charge(lengths, unsent.answer_bytes_max);
        let bytes = u32::try_from(bytes).map_err(|_| too_large())?;
        if bytes > self.credit.bytes {
            return Err(too_large());
        }
        let closed = |_| CallError::NotDone(Reason::ConnectionLost);
        let call = Arc::clone(&self.call_credit).acquire_owned().await.map_err(closed)?;
        let bytes = Arc::clone(&self.byte_credit).acquire_many_owned(bytes).await;
        Ok([call, bytes.map_err(closed)?])
    }

    fn send(
        &self,
        unsent: Unsent,
        credit: [OwnedSemaphorePermit; 2],
    ) -> Result<(Asking<'_>, oneshot::Receiver<Outcome>), CallError> {
        let call = self.next_call.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let answer_bytes_max = unsent.answer_bytes_max;
        let waiting = Waiting { answer, answer_bytes_max, is_sent: false, _credit: credit };
        if !self.calls.add(call, waiting) {
            return Err(CallError::NotDone(Reason::ConnectionLost));
        }
        let request = request::current().map_or([0; 16], Uuid::into_bytes);
        if self.queue.try_send(Queued::Call { call, unsent, request }).is_err() {
            // The connection has just ended: the queue has room for each call that has credit.
            drop(self.calls.remove(call));
            return Err(CallError::NotDone(Reason::ConnectionLost));
        }
        Ok((Asking { caller: self, call, has_ended: false }, answered))
    }
}

/// The work of a connection.
struct Work {
    env: Env,
    calls: Arc<Calls>,
    queue: mpsc::Sender<Queued>,
    progress: Progress,
}

impl Work {
    async fn run<R, W>(
        self,
        (mut reader, mut writer): (PacketReader<R>, W),
        mut queued: mpsc::Receiver<Queued>,
        end: CancellationToken,
    ) where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let prepare = |next| self.packet_of(next);
        let why = tokio::select! {
            biased;
            () = end.cancelled() => "it is not used any more".to_owned(),
            error = self.read(&mut reader) => error.to_string(),
            ended = write_queued(&mut writer, &mut queued, prepare, &self.progress) => {
                ended.err().map_or_else(|| "it is closed".to_owned(), |error| error.to_string())
            }
            () = self.ping_until_silent() => "the other side is silent".to_owned(),
        };
        tracing::debug!(why, "a connection to a node ended");
        queued.close();
        self.calls.end();
        end.cancel();
    }

    /// What is sent, now that it is its turn. A call that nobody waits for any more is not sent.
    fn packet_of(&self, next: Queued) -> Option<Outgoing> {
        let (call, unsent, request) = match next {
            Queued::Ping => return Some(Outgoing::bare(Kind::Ping, 0)),
            Queued::Cancel(call) => return Some(Outgoing::bare(Kind::Cancel, call)),
            Queued::Call { call, unsent, request } => (call, unsent, request),
        };
        let left = unsent.deadline.saturating_sub(self.env.clock.monotonic());
        let time_left_ms = u32::try_from(left.as_millis()).unwrap_or(u32::MAX);
        if !self.calls.is_wanted(call) {
            return None;
        }
        let not_done = |reason| {
            if let Some(waiting) = self.calls.remove(call) {
                finish(waiting, Err(CallError::NotDone(reason)));
            }
        };
        // A call with less than a millisecond left is not worth sending.
        if time_left_ms == 0 {
            not_done(Reason::OutOfTime);
            return None;
        }
        let Unsent { method, draft, payload, answer_bytes_max, .. } = unsent;
        let kind = Kind::Call;
        let head = Head { kind, method, call, time_left_ms, answer_bytes_max, request };
        let packet = draft.finish(head, payload);
        packet.map_err(|_| not_done(Reason::TooLarge)).ok()
    }

    /// Takes what arrives until the connection ends.
    async fn read<R: AsyncRead + Unpin>(&self, reader: &mut PacketReader<R>) -> ReadError {
        loop {
            match reader.next(|unchecked| self.expected(unchecked)).await {
                Ok(packet) => self.take(packet),
                Err(error) => return error,
            }
        }
    }

    /// Refuses what no server sends, and answers that are larger than their caller takes.
    fn expected(&self, unchecked: &Unchecked) -> Result<(), Malformed> {
        let (kind, call) = (unchecked.head.kind, unchecked.head.call);
        let Lengths { message, payload } = unchecked.lengths;
        let bytes = u64::from(message) + u64::from(payload);
        match (kind, self.calls.answer_bytes_max(call)) {
            (Kind::Pong, _) if call == 0 && bytes == 0 => Ok(()),
            (Kind::Answer, Some(max)) if bytes <= u64::from(max) => Ok(()),
            (Kind::Answer, Some(_)) => Err(Malformed("a larger answer than was asked for")),
            (Kind::Refusal | Kind::Lost, Some(_)) if bytes <= u64::from(HELLO_BYTES_MAX) => Ok(()),
            (Kind::Refusal | Kind::Lost, Some(_)) => Err(Malformed("a part that is too long")),
            (Kind::Answer | Kind::Refusal | Kind::Lost, None) => {
                Err(Malformed("the end of no call"))
            }
            (
                Kind::Hello
                | Kind::Welcome
                | Kind::Unwelcome
                | Kind::Call
                | Kind::Cancel
                | Kind::Ping
                | Kind::Pong,
                _,
            ) => Err(Malformed("a packet that no server sends")),
        }
    }

    fn take(&self, packet: Packet) {
        let Some(waiting) = self.calls.remove(packet.head.call) else { return };
        let outcome = match packet.head.kind {
            Kind::Answer => Ok(Answered { message: packet.message, payload: packet.payload }),
            Kind::Refusal => Err(match decode(&packet.message) {
                Ok(refusal) => CallError::NotDone(Reason::Refused(refusal)),
                // One that this release does not know.
                Err(NoSuchMessage) => CallError::Unknown(Reason::Malformed),
            }),
            Kind::Lost
            | Kind::Hello
            | Kind::Welcome
            | Kind::Unwelcome
            | Kind::Call
            | Kind::Cancel
            | Kind::Ping
            | Kind::Pong => Err(CallError::Unknown(Reason::Failed)),
        };
        finish(waiting, outcome);
    }

    /// Pings a connection on which nothing moves, until it has been silent for too long.
    async fn ping_until_silent(&self) {
        let (mut seen, mut pings) = (0, 0);
        while pings < PINGS_MAX {
            self.env.clock.sleep(PING_EVERY).await;
            let moved = self.progress.get();
            if moved != seen {
                (seen, pings) = (moved, 0);
                continue;
            }
            pings += 1;
            // If the queue is full, nothing is being written either.
            drop(self.queue.try_send(Queued::Ping));
        }
    }
}

/// What may be queued: each call and its cancel, the cancels of calls that have ended since, and
/// some pings. So no sender waits.
fn queue_len(credit: Credit) -> usize {
    3 * index(credit.calls) + 8
}
