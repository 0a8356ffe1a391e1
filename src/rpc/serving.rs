//! The server's side of one connection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::error::Refusal;
use super::hello::Credit;
use super::hello::NodeIdentity;
use super::message::write;
use super::packet::Draft;
use super::packet::Head;
use super::packet::Kind;
use super::packet::Lengths;
use super::packet::Malformed;
use super::packet::Outgoing;
use super::packet::Packet;
use super::packet::Unchecked;
use super::packet::charge;
use super::packet::index;
use super::service::Incoming;
use super::service::Reply;
use super::service::Service;
use super::service::service_of;
use super::wire::PacketReader;
use super::wire::Progress;
use super::wire::ReadError;
use super::wire::write_queued;
use crate::env::Env;
use crate::env::identified;

/// A caller on whose connection nothing moves from one look to the next, after so long, has gone:
/// it pings each second.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// The services of a node, by the upper byte of their methods.
pub type Services = BTreeMap<u8, Arc<dyn Service>>;

/// A connection whose hello was accepted.
pub(super) struct Serving {
    pub env: Env,
    pub services: Arc<Services>,
    pub from: NodeIdentity,
    pub credit: Credit,
    /// Ends the connection.
    pub end: CancellationToken,
}

impl Serving {
    /// Serves calls until the connection ends. No call begins after this has returned. Calls with
    /// effects that have begun go on, without anybody to answer.
    pub(super) async fn run<R, W>(self, reader: &mut PacketReader<R>, writer: &mut W)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let (queue, mut queued) = mpsc::channel(queue_len(self.credit));
        let work = Work {
            calls: Arc::new(Calls { queue, end: self.end.clone(), running: Mutex::default() }),
            progress: reader.progress(),
            serving: self,
        };
        let sent = |Queued { packet, counted }| {
            work.calls.lock().unsent_bytes -= counted;
            Some(packet)
        };
        let why = tokio::select! {
            biased;
            () = work.serving.end.cancelled() => "it is ended here".to_owned(),
            error = work.read(reader) => error.to_string(),
            ended = write_queued(writer, &mut queued, sent, &work.progress) => {
                ended.err().map_or_else(|| "it is closed".to_owned(), |error| error.to_string())
            }
            () = work.wait_for_silence() => "the other side is silent".to_owned(),
        };
        let from = work.serving.from;
        tracing::debug!(%from, why, "a connection of a node ended");
    }
}

/// What a connection sends next.
#[derive(Debug)]
struct Queued {
    packet: Outgoing,
    /// Bytes that it counts as unsent.
    counted: u64,
}

/// The calls of a connection that have not ended.
#[derive(Debug)]
struct Calls {
    queue: mpsc::Sender<Queued>,
    /// Ends the connection.
    end: CancellationToken,
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    /// How a call is told that nobody waits for it, and what it counts.
    calls: BTreeMap<u64, (CancellationToken, u64)>,
    bytes: u64,
    /// Bytes of answers that were not written yet. They count although their calls have ended: a
    /// caller that does not read its answers has them under way.
    unsent_bytes: u64,
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call, if the caller has the credit for it.
    fn begin(&self, call: u64, bytes: u64, credit: Credit) -> Result<(), Malformed> {
        let mut running = self.lock();
        let under_way = running.bytes + bytes + running.unsent_bytes;
        if running.calls.len() >= index(credit.calls) || under_way > u64::from(credit.bytes) {
            return Err(Malformed("a call without credit"));
        }
        if call == 0 || running.calls.contains_key(&call) {
            return Err(Malformed("a number that is no new call's"));
        }
        running.calls.insert(call, (CancellationToken::new(), bytes));
        running.bytes += bytes;
        Ok(())
    }

    fn cancelled(&self, call: u64) -> CancellationToken {
        let running = self.lock();
        running.calls.get(&call).map_or_else(CancellationToken::new, |(token, _)| token.clone())
    }

    fn cancel(&self, call: u64) {
        if let Some((token, _)) = self.lock().calls.get(&call) {
            token.cancel();
        }
    }

    fn cancel_all(&self) {
        for (token, _) in self.lock().calls.values() {
            token.cancel();
        }
    }

    /// Gives back the credit of a call and sends how it ended.
    fn end(&self, call: u64, packet: Outgoing) {
        let counted = packet.len() as u64;
        {
            let mut running = self.lock();
            if let Some((_, bytes)) = running.calls.remove(&call) {
                running.bytes -= bytes;
            }
            running.unsent_bytes += counted;
        }
        if self.queue.try_send(Queued { packet, counted }).is_err() {
            // It has ended, or its caller does not read: the caller learns that it has ended.
            self.end.cancel();
        }
    }
}

/// A call that runs. If its task ends without an answer, the caller is told so.
struct Call {
    calls: Arc<Calls>,
    number: u64,
    has_ended: bool,
}

impl Call {
    fn end(mut self, outcome: Result<Reply, Refusal>, answer_bytes_max: u32) {
        self.has_ended = true;
        self.calls.end(self.number, packet_of(self.number, outcome, answer_bytes_max));
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.has_ended {
            self.calls.end(self.number, Outgoing::bare(Kind::Lost, self.number));
        }
    }
}

/// What may be queued: the end of each call, those of calls that were begun since, and some pongs.
fn queue_len(credit: Credit) -> usize {
    2 * index(credit.calls) + 8
}

/// The packet that ends a call.
fn packet_of(call: u64, outcome: Result<Reply, Refusal>, answer_bytes_max: u32) -> Outgoing {
    let lost = || Outgoing::bare(Kind::Lost, call);
    let mut draft = Draft::new();
    let (kind, payload) = match outcome {
        Ok(Reply { message, payload }) => {
            draft.message().extend_from_slice(&message);
            (Kind::Answer, payload)
        }
        Err(refusal) => match write(&refusal, draft.message()) {
            Ok(()) => (Kind::Refusal, Vec::new()),
            Err(_) => return lost(),
        },
    };
    let bytes = draft.message_bytes() + payload.iter().map(bytes::Bytes::len).sum::<usize>();
    if kind == Kind::Answer && bytes > index(answer_bytes_max) {
        tracing::error!(bytes, answer_bytes_max, "an answer is larger than its caller takes");
        return lost();
    }
    draft.finish(Head::bare(kind, call), payload).unwrap_or_else(|_| lost())
}

/// The work of a connection.
struct Work {
    serving: Serving,
    calls: Arc<Calls>,
    progress: Progress,
}

/// Calls of a connection that has ended, in whatever way, are told so.
impl Drop for Work {
    fn drop(&mut self) {
        self.calls.cancel_all();
    }
}

impl Work {
    /// Takes what arrives until the connection ends.
    async fn read<R: AsyncRead + Unpin>(&self, reader: &mut PacketReader<R>) -> ReadError {
        loop {
            match reader.next(|unchecked| self.expected(unchecked)).await {
                Ok(packet) => self.take(packet),
                Err(error) => return error,
            }
        }
    }

    /// Refuses what no caller sends. Takes the credit of calls, before memory is taken for them.
    fn expected(&self, unchecked: &Unchecked) -> Result<(), Malformed> {
        let (head, Lengths { message, payload }) = (&unchecked.head, unchecked.lengths);
        match head.kind {
            Kind::Call => {
                let bytes = charge(unchecked.lengths, head.answer_bytes_max);
                self.calls.begin(head.call, bytes, self.serving.credit)
            }
            Kind::Cancel | Kind::Ping if (message, payload) == (0, 0) => Ok(()),
            Kind::Cancel | Kind::Ping => Err(Malformed("a part that is too long")),
            Kind::Hello
            | Kind::Welcome
            | Kind::Unwelcome
            | Kind::Answer
            | Kind::Refusal
            | Kind::Lost
            | Kind::Pong => Err(Malformed("a packet that no caller sends")),
        }
    }

    fn take(&self, packet: Packet) {
        match packet.head.kind {
            Kind::Call => self.begin(packet),
            Kind::Cancel => self.calls.cancel(packet.head.call),
            Kind::Ping => self.pong(),
            Kind::Hello
            | Kind::Welcome
            | Kind::Unwelcome
            | Kind::Answer
            | Kind::Refusal
            | Kind::Lost
            | Kind::Pong => {}
        }
    }

    /// A caller that pings more often than it reads gets fewer answers.
    fn pong(&self) {
        let packet = Outgoing::bare(Kind::Pong, 0);
        drop(self.calls.queue.try_send(Queued { packet, counted: 0 }));
    }

    fn begin(&self, packet: Packet) {
        let Packet { head, message, payload } = packet;
        let call = Call { calls: Arc::clone(&self.calls), number: head.call, has_ended: false };
        let Some(service) = self.serving.services.get(&service_of(head.method)).map(Arc::clone)
        else {
            return call.end(Err(Refusal::UnknownMethod), 0);
        };
        let env = &self.serving.env;
        let left = Duration::from_millis(head.time_left_ms.into());
        let arrived = env.clock.monotonic();
        let incoming = Incoming {
            from: self.serving.from,
            method: head.method,
            message,
            payload,
            deadline: arrived + left,
            answer_bytes_max: head.answer_bytes_max,
        };
        let request = (head.request != [0; 16]).then(|| Uuid::from_bytes(head.request));
        let cancelled = self.calls.cancelled(head.call);
        let serving = serve(env.clone(), service, incoming, (call, cancelled));
        drop(env.tasks.spawn("call of a node", identified(request, serving)));
    }

    async fn wait_for_silence(&self) {
        let mut seen = None;
        loop {
            let moved = Some(self.progress.get());
            if moved == seen {
                return;
            }
            seen = moved;
            self.serving.env.clock.sleep(SILENCE_MAX).await;
        }
    }
}

async fn serve(
    env: Env,
    service: Arc<dyn Service>,
    incoming: Incoming,
    (call, cancelled): (Call, CancellationToken),
) {
    let answer_bytes_max = incoming.answer_bytes_max;
    // The task may have waited for a thread.
    let left = incoming.deadline.saturating_sub(env.clock.monotonic());
    let outcome = if cancelled.is_cancelled() {
        Err(Refusal::Cancelled)
    } else if left.is_zero() {
        Err(Refusal::Late)
    } else if service.is_read(incoming.method) {
        tokio::select! {
            biased;
            outcome = service.serve(incoming) => outcome,
            () = cancelled.cancelled() => Err(Refusal::Cancelled),
            () = env.clock.sleep(left) => Err(Refusal::Late),
        }
    } else {
        service.serve(incoming).await
    };
    call.end(outcome, answer_bytes_max);
}
