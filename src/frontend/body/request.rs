//! Request bodies. While the next piece of a client's body is awaited, the body is watched
//! (`answers/`). The body of another server is watched too, and has a deadline and a minimum rate.
//! A blob of this store has an idle limit.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http_body::Body;
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::env::Env;
use crate::frontend::admission::UNKNOWN_ACCOUNT;
use crate::frontend::answers::Flows;
use crate::frontend::answers::UploadResources;
use crate::frontend::answers::Watch;
use crate::frontend::body::ResponseBody;
use crate::frontend::dialect::framing::Decoder;
use crate::frontend::errors;
use crate::frontend::errors::Busy;
use crate::frontend::source::MinimumRate;
use crate::frontend::write::BodyMemory;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::Framing;
use crate::types::AccountId;
use crate::types::ChecksumValue;

/// The most bytes of an unwanted body that are read and dropped.
const DRAIN_BYTES_MAX: u64 = 64 << 20;
/// How long an unwanted body is read.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// Where a body comes from.
enum Origin {
    /// The client's connection.
    Client(Incoming),
    /// A blob of this store.
    Inside(Box<ResponseBody>),
    /// Another server.
    Outside {
        /// Its answer.
        body: Incoming,
        /// When all of it must have arrived, by the monotonic clock.
        deadline: Duration,
    },
}

impl Origin {
    async fn frame(&mut self) -> Option<Result<Frame<Bytes>, String>> {
        match self {
            Self::Client(body) | Self::Outside { body, .. } => {
                body.frame().await.map(|frame| frame.map_err(|error| error.to_string()))
            }
            Self::Inside(body) => {
                body.frame().await.map(|frame| frame.map_err(|error| error.to_string()))
            }
        }
    }

    /// The refusal if the watch cuts the body. The body of a copy source is cut only if other
    /// accounts need its memory.
    fn cut(&self) -> Refusal {
        match self {
            Self::Client(_) | Self::Inside(_) => self.broken(true),
            Self::Outside { .. } => errors::busy(Busy::SlowSource).message(
                "The copy source sends slowly, and others need what the copy holds; try again.",
            ),
        }
    }

    /// The refusal when the body ended early, stalled or was too slow.
    fn broken(&self, stalled: bool) -> Refusal {
        match self {
            Self::Client(_) if stalled => Reason::RequestTimeout.into(),
            Self::Client(_) => Refusal::new(Reason::IncompleteBody)
                .message("The request body ended early or its framing is broken."),
            Self::Inside(_) | Self::Outside { .. } => Refusal::new(Reason::CannotVerifyCopySource)
                .status(500)
                .message("The answer of the copy source ended early; try again."),
        }
    }
}

/// The time that another server has for its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceTime {
    /// The longest wait for a piece.
    pub(crate) idle: Duration,
    /// When all of the answer must have arrived, by the monotonic clock.
    pub(crate) deadline: Duration,
}

/// A request body. A client that sends it too slowly, or stalls for too long, is cut off.
pub struct RequestBody {
    origin: Origin,
    /// Whether its end was read.
    ended: bool,
    /// The longest wait for a piece of a body, unless a client is watched.
    idle: Duration,
    /// The register that watches it while its next piece is awaited.
    uploads: Option<Arc<Flows>>,
    /// Set when its next piece is first awaited.
    watch: Option<Watch>,
    received: u64,
    /// How long bytes of a watched body were waited for.
    waited: Duration,
    /// Another counter of the received bytes.
    count: Option<Arc<AtomicU64>>,
    /// The minimum rate of the sender.
    pace: Option<MinimumRate>,
    env: Env,
    /// The account whose share of memory it uses.
    payer: AccountId,
    /// The memory that it holds; set when it first takes memory or is first awaited.
    memory: Option<Arc<BodyMemory>>,
    /// The account whose admission its request holds.
    admitted: Option<AccountId>,
    /// Takes the content out of the body.
    decoder: Option<Decoder>,
    /// Bytes of the body that the decoder has not seen.
    undecoded: Bytes,
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").field("idle", &self.idle).finish_non_exhaustive()
    }
}

impl RequestBody {
    /// A client's body, watched by `uploads`.
    #[must_use]
    pub(crate) fn new(incoming: Incoming, uploads: &Arc<Flows>, env: Env) -> Self {
        let uploads = Some(Arc::clone(uploads));
        Self { uploads, ..Self::unwanted(incoming, env) }
    }

    /// A client's body that is only read to be dropped.
    #[must_use]
    pub(crate) const fn unwanted(incoming: Incoming, env: Env) -> Self {
        Self::of(Origin::Client(incoming), DRAIN_TIME_MAX, env)
    }

    /// A blob of this store in the place of a client's body.
    #[must_use]
    pub fn of_source(body: ResponseBody, idle: Duration, env: Env) -> Self {
        Self::of(Origin::Inside(Box::new(body)), idle, env)
    }

    /// No body.
    #[must_use]
    pub fn empty(env: Env) -> Self {
        Self::of_source(ResponseBody::full(Bytes::new()), DRAIN_TIME_MAX, env)
    }

    /// Another server's answer in the place of a client's body. `uploads` watches whether it holds
    /// resources that other accounts need, but not its rate.
    #[must_use]
    pub(crate) fn of_outside(
        body: Incoming,
        uploads: &Arc<Flows>,
        time: SourceTime,
        env: Env,
    ) -> Self {
        let uploads = Some(Arc::clone(uploads));
        let origin = Origin::Outside { body, deadline: time.deadline };
        Self { uploads, ..Self::of(origin, time.idle, env) }
    }

    const fn of(origin: Origin, idle: Duration, env: Env) -> Self {
        Self {
            origin,
            ended: false,
            idle,
            uploads: None,
            watch: None,
            received: 0,
            waited: Duration::ZERO,
            count: None,
            pace: None,
            env,
            payer: UNKNOWN_ACCOUNT,
            memory: None,
            admitted: None,
            decoder: None,
            undecoded: Bytes::new(),
        }
    }

    /// Also counts the received bytes in `count`.
    #[must_use]
    pub fn counted(self, count: Option<Arc<AtomicU64>>) -> Self {
        Self { count, ..self }
    }

    /// Holds the body of another server to a minimum rate.
    #[must_use]
    pub(crate) fn paced(self, pace: MinimumRate) -> Self {
        Self { pace: Some(pace), ..self }
    }

    /// Sets how the content is framed in the body: from here on [`Self::next`] returns only the
    /// content.
    pub fn expect(&mut self, framing: Framing) {
        if let Some(decoder) = Decoder::of(framing) {
            self.decoder = Some(decoder);
        }
    }

    /// Extracts the content from the body with this decoder, whatever [`Self::expect`] says.
    pub(crate) fn decode(&mut self, decoder: Decoder) {
        self.decoder = Some(decoder);
    }

    /// Gives back the last bytes that were read: they come next. From here on the body is watched
    /// and charged again.
    pub(crate) fn give_back(&mut self, bytes: Bytes) {
        self.undecoded = bytes;
        (self.watch, self.memory, self.admitted) = (None, None, None);
    }

    /// The next piece of content; `None` at the end. Cancel safe.
    ///
    /// # Errors
    /// `RequestTimeout` (408) when the client stalls or is too slow, `InvalidInput` when the
    /// connection or its framing broke, `Crc64Mismatch` when its content was changed.
    /// `CannotVerifyCopySource` when a copy source broke off or is too slow, `ServerBusy` when the
    /// copy gives way to others.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            if let Some(decoder) = &mut self.decoder
                && let Some(content) = decoder.next(&mut self.undecoded)?
            {
                return Ok(Some(content));
            }
            let piece = self.next_undecoded().await?;
            match (&mut self.decoder, piece) {
                (None, piece) => return Ok(piece),
                (Some(_), Some(piece)) => self.undecoded = piece,
                (Some(decoder), None) => return decoder.finish().map(|()| None),
            }
        }
    }

    /// The next piece, undecoded.
    async fn next_undecoded(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            let since = self.pace.is_some().then(|| self.env.clock.monotonic());
            let frame = match &self.uploads {
                Some(_) => self.watched().await?,
                None => self.timed().await?,
            };
            match frame {
                None => {
                    self.ended = true;
                    self.watch = None;
                    return Ok(None);
                }
                Some(Err(error)) => {
                    tracing::debug!(%error, "the request body broke off");
                    return Err(self.origin.broken(false));
                }
                // Trailers are not used. An empty piece is not progress: the wait continues.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => {
                        self.count(data.len() as u64, since)?;
                        return Ok(Some(data));
                    }
                    Ok(_) | Err(_) => self.wait(),
                },
            }
        }
    }

    /// The next frame of a body that is not watched.
    async fn timed(&mut self) -> Result<Option<Result<Frame<Bytes>, String>>, Refusal> {
        let idle = self.idle;
        tokio::select! {
            biased;
            frame = self.origin.frame() => Ok(frame),
            () = self.env.clock.sleep(idle) => Err(self.origin.broken(true)),
        }
    }

    /// The next frame of a body that is watched while it is waited for. A frame that has arrived
    /// already needs neither a timer nor a clock read.
    async fn watched(&mut self) -> Result<Option<Result<Frame<Bytes>, String>>, Refusal> {
        let is_waiting = self.watch.as_ref().is_some_and(|watch| watch.flow().is_outstanding());
        if !is_waiting && let Some(frame) = self.origin.frame().now_or_never() {
            return Ok(frame);
        }
        self.wait();
        let begun = self.env.clock.monotonic();
        let patience = self.patience();
        let cut = async {
            match &self.watch {
                Some(watch) => watch.flow().until_cut_off().await,
                None => std::future::pending().await,
            }
        };
        let late = async {
            match patience {
                Some(patience) => self.env.clock.sleep(patience).await,
                None => std::future::pending().await,
            }
        };
        let error = tokio::select! {
            biased;
            () = cut => self.origin.cut(),
            frame = self.origin.frame() => {
                self.waited += self.env.clock.monotonic().saturating_sub(begun);
                return Ok(frame);
            }
            () = late => self.origin.broken(true),
        };
        self.waited += self.env.clock.monotonic().saturating_sub(begun);
        self.watch = None;
        Err(error)
    }

    /// Notes that the body is waited for, if it is watched.
    fn wait(&mut self) {
        let Some(uploads) = &self.uploads else { return };
        let memory = self.memory.get_or_insert_with(|| BodyMemory::of(self.payer));
        let is_copy = matches!(self.origin, Origin::Outside { .. });
        let watch = self.watch.get_or_insert_with(|| {
            let memory = Arc::clone(memory);
            uploads.upload(UploadResources { admitted: self.admitted, memory, is_copy })
        });
        watch.flow().offer(self.env.clock.monotonic());
    }

    /// Counts a piece that arrived. `since` is when the wait for it began, for a body with a
    /// minimum rate.
    fn count(&mut self, bytes: u64, since: Option<Duration>) -> Result<(), Refusal> {
        self.received += bytes;
        if let Some(watch) = &self.watch {
            let flow = watch.flow();
            match flow.is_outstanding() {
                true => flow.took(bytes, self.env.clock.monotonic()),
                false => flow.took_more(bytes),
            }
        }
        if let (Some(pace), Some(since)) = (&mut self.pace, since) {
            let waited = self.env.clock.monotonic().saturating_sub(since);
            if !pace.received(bytes, waited) {
                return Err(too_slow());
            }
        }
        if let Some(count) = &self.count {
            count.store(self.received, Ordering::Relaxed);
        }
        Ok(())
    }

    /// A checksum that stood behind the content. It is known when the body has ended.
    ///
    /// # Errors
    /// `ChecksumMismatch` when it is malformed.
    pub(crate) fn trailer_checksum(&self) -> Result<Option<ChecksumValue>, Refusal> {
        self.decoder.as_ref().map_or(Ok(None), Decoder::trailer_checksum)
    }

    /// How long bytes of the body were waited for, if it is watched.
    pub(crate) const fn waited(&self) -> Duration {
        self.waited
    }

    /// Bytes read so far.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Whether the client may still send bytes of the body, which are not read.
    pub(crate) fn is_unread(&self) -> bool {
        matches!(&self.origin, Origin::Client(body) if !self.ended && !body.is_end_stream())
    }

    /// How long the next piece of another server's body is waited for.
    fn patience(&self) -> Option<Duration> {
        let Origin::Outside { deadline, .. } = &self.origin else { return None };
        Some(self.idle.min(deadline.saturating_sub(self.env.clock.monotonic())))
    }

    /// Charges its memory to an account.
    pub(crate) const fn pay(&mut self, account: AccountId) {
        self.payer = account;
    }

    /// Notes that its request holds an admission of this account.
    pub(crate) const fn admitted(&mut self, account: AccountId) {
        self.admitted = Some(account);
    }

    /// The account whose admission its request holds.
    pub(crate) const fn admitted_for(&self) -> Option<AccountId> {
        self.admitted
    }

    /// The memory that it holds.
    pub(crate) fn memory(&mut self) -> &Arc<BodyMemory> {
        self.memory.get_or_insert_with(|| BodyMemory::of(self.payer))
    }

    /// As [`Self::drain`], but in a task of its own, so that the answer need not wait for it.
    pub fn drain_in_background(&mut self) {
        self.watch = None;
        let gone = Origin::Inside(Box::new(ResponseBody::full(Bytes::new())));
        match std::mem::replace(&mut self.origin, gone) {
            Origin::Client(body) if !body.is_end_stream() => {
                let mut rest = Self::unwanted(body, self.env.clone());
                drop(self.env.tasks.spawn_part("refused body", async move { rest.drain().await }));
            }
            Origin::Client(_) | Origin::Inside(_) | Origin::Outside { .. } => {}
        }
    }

    /// Reads and drops the rest of the body, within limits, so that a client that is still sending
    /// receives the answer instead of a reset.
    pub async fn drain(&mut self) {
        // Draining has limits of its own.
        (self.uploads, self.watch, self.idle) = (None, None, DRAIN_TIME_MAX);
        let clock = Arc::clone(&self.env.clock);
        let drained = async {
            let mut left = DRAIN_BYTES_MAX;
            while let Ok(Some(piece)) = self.next_undecoded().await {
                match left.checked_sub(piece.len() as u64) {
                    Some(rest) => left = rest,
                    None => return,
                }
            }
        };
        tokio::select! {
            biased;
            () = drained => {}
            () = clock.sleep(DRAIN_TIME_MAX) => {}
        }
    }
}

/// The refusal when a copy source is slower than the minimum rate.
fn too_slow() -> Refusal {
    Refusal::new(Reason::CannotVerifyCopySource).status(500).message(
        "The copy source sends too slowly and was given up; see --copy-source-bytes-per-second-min.",
    )
}

#[cfg(test)]
mod tests;
