//! Measures how fast a client takes its answers and sends its uploads.
//!
//! Only time in which bytes are ready and the client does not take them counts; the time of the
//! server's disks does not count. While bytes are ready, the client must take some within the stall
//! time, and in each stall time as many bytes as the minimum rate demands.
//!
//! An upload is measured likewise: the client is offered space for bytes, and takes it when it
//! sends them. Only time in which the server waits for the client counts. `docs/overload.md` names
//! an exception over HTTP/2.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::Weak;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Notify;

use crate::frontend::admission::Pass;
use crate::frontend::answers::MemoryUse;
use crate::frontend::answers::Payer;
use crate::frontend::answers::memory_use::MemoryId;
use crate::frontend::write::BodyMemory;
use crate::types::AccountId;

/// When this many streams of a connection are cut within [`STREAMS_CUT_IN`], the connection is cut
/// too: a client that stalls this often is not merely slow.
const STREAMS_CUT_MAX: u32 = 16;
/// The time in which cut streams are counted.
const STREAMS_CUT_IN: Duration = Duration::from_secs(60);

/// How fast a client must take an answer, or send an upload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StallLimits {
    /// The longest time in which it may take nothing.
    pub(crate) stall: Duration,
    /// Bytes per second that it must take; 0 for no minimum.
    pub(crate) rate_min: u64,
    /// Taking fewer bytes does not count as progress while others need its resources.
    pub(crate) note: u64,
}

impl Default for StallLimits {
    fn default() -> Self {
        Self { stall: Duration::from_secs(60), rate_min: 1024, note: 1 }
    }
}

impl StallLimits {
    /// Bytes that must be taken in each stall time.
    fn quota(&self) -> u64 {
        self.rate_min.saturating_mul(self.stall.as_secs().max(1))
    }
}

/// Why an answer or an upload is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CutOffReason {
    /// Nothing was taken for the stall time.
    Stalled,
    /// Bytes were taken more slowly than the minimum rate.
    Slow,
    /// No progress was made for some seconds, and others need the resources of the answer or
    /// upload.
    Contention,
}

impl CutOffReason {
    /// As metrics name it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Stalled => "stalled",
            Self::Slow => "slow",
            Self::Contention => "in_the_way",
        }
    }
}

/// The resources of an answer that others may need.
#[derive(Debug, Default)]
struct Holds {
    /// Its place among the requests in progress.
    pass: Weak<Pass>,
    /// Its memory.
    memory: Vec<Weak<MemoryUse>>,
}

/// The resources of an upload that others may need.
#[derive(Debug)]
pub(crate) struct UploadResources {
    /// The account for which it has a place among the requests.
    pub(crate) admitted: Option<AccountId>,
    /// Its memory.
    pub(crate) memory: Arc<BodyMemory>,
    /// Whether another server sends it, for a copy. It is held to a rate elsewhere.
    pub(crate) is_copy: bool,
}

/// Time waited and bytes taken at some earlier moment.
#[derive(Debug, Default)]
struct Mark {
    waited: AtomicU64,
    taken: AtomicU64,
}

/// Bytes taken, and time for which the client let bytes wait.
#[derive(Clone, Copy, Debug)]
struct Progress {
    taken: u64,
    waited: Duration,
}

/// The progress of the answer of one HTTP/2 stream, of all answers of a connection, or of one
/// upload. Times are monotonic milliseconds.
#[derive(Debug)]
pub(crate) struct Flow {
    /// The time, plus one, since which bytes are ready and the client takes none; 0 while no bytes
    /// are ready.
    since: AtomicU64,
    /// How long the client let bytes wait, without the current wait.
    waited: AtomicU64,
    /// Bytes that the client took.
    taken: AtomicU64,
    /// The last full quota.
    quota: Mark,
    /// The last progress of note.
    note: Mark,
    /// The resources of this answer that others may need.
    holds: Mutex<Holds>,
    /// The same of an upload.
    upload: Option<UploadResources>,
    cut: Notify,
    is_cut_off: AtomicBool,
    /// The stream's connection; `None` for a connection or an upload.
    connection: Option<Arc<Self>>,
    /// For a connection: how many of its streams were cut for a fault of their client, and since
    /// when they are counted.
    streams_cut_off: AtomicU32,
    streams_cut_since: AtomicU64,
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Flow {
    fn new(connection: Option<Arc<Self>>, upload: Option<UploadResources>) -> Self {
        Self {
            since: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            quota: Mark::default(),
            note: Mark::default(),
            holds: Mutex::default(),
            upload,
            cut: Notify::new(),
            is_cut_off: AtomicBool::new(false),
            connection,
            streams_cut_off: AtomicU32::new(0),
            streams_cut_since: AtomicU64::new(0),
        }
    }

    /// Bytes are ready for the client; nothing changes if some were ready already.
    pub(crate) fn offer(&self, now: Duration) {
        let since = millis(now).saturating_add(1);
        // Only the task that serves the answer stores here, so there is no race.
        if self.since.load(Ordering::Relaxed) == 0 {
            self.since.store(since, Ordering::Relaxed);
        }
    }

    /// The client took `bytes`, and no bytes are ready until the next offer.
    pub(crate) fn took(&self, bytes: u64, now: Duration) {
        let since = self.since.swap(0, Ordering::Relaxed);
        if since == 0 && bytes == 0 {
            return;
        }
        let waited = if since == 0 { 0 } else { millis(now).saturating_sub(since - 1) };
        self.waited.fetch_add(waited, Ordering::Relaxed);
        self.taken.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The client took bytes and did not let them wait.
    pub(crate) fn took_more(&self, bytes: u64) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Records the resources that it holds until an answer has been sent. The memory of a stream
    /// counts for its connection too: the connection may still buffer the end of an answer when the
    /// stream ends.
    pub(crate) fn hold(&self, pass: Option<&Arc<Pass>>, memory: Option<&Arc<MemoryUse>>) {
        let mut holds = self.holds();
        holds.pass = pass.map(Arc::downgrade).unwrap_or_default();
        holds.memory.retain(|other| other.strong_count() > 0);
        holds.memory.extend(memory.map(Arc::downgrade));
        drop(holds);
        if let Some(connection) = &self.connection
            && memory.is_some()
        {
            connection.hold(None, memory);
        }
    }

    /// The account for which it has a place among the requests; `None` when it has none.
    pub(crate) fn pass(&self) -> Option<AccountId> {
        self.holds().pass.upgrade().map(|pass| pass.account())
    }

    /// The payers of what it holds of a memory.
    pub(super) fn payers(&self, of: MemoryId) -> Vec<Payer> {
        let holds = self.holds();
        let memory = holds.memory.iter().filter_map(Weak::upgrade);
        memory
            .filter(|memory| memory.of() == of && memory.bytes() > 0)
            .map(|memory| memory.payer())
            .collect()
    }

    /// Its resources, if it is an upload.
    pub(crate) const fn upload(&self) -> Option<&UploadResources> {
        self.upload.as_ref()
    }

    fn holds(&self) -> MutexGuard<'_, Holds> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether bytes are ready for its client.
    pub(crate) fn is_outstanding(&self) -> bool {
        self.since.load(Ordering::Relaxed) != 0
    }

    /// How long bytes have been ready and none were taken; `None` when no bytes are ready.
    pub(super) fn still(&self, now: Duration) -> Option<Duration> {
        let since = self.since.load(Ordering::Relaxed).checked_sub(1)?;
        Some(Duration::from_millis(millis(now).saturating_sub(since)))
    }

    /// How long bytes have been ready since the last progress; `None` when none are ready.
    pub(crate) fn stood(&self, now: Duration) -> Option<Duration> {
        let still = self.still(now)?;
        Some(self.since(&self.note).waited + still)
    }

    /// The progress since a mark, without the current wait.
    fn since(&self, mark: &Mark) -> Progress {
        let since = |now: &AtomicU64, then: &AtomicU64| {
            now.load(Ordering::Relaxed).saturating_sub(then.load(Ordering::Relaxed))
        };
        let waited = since(&self.waited, &mark.waited);
        Progress { taken: since(&self.taken, &mark.taken), waited: Duration::from_millis(waited) }
    }

    /// Only the watch calls it.
    fn set(&self, mark: &Mark) {
        mark.waited.store(self.waited.load(Ordering::Relaxed), Ordering::Relaxed);
        mark.taken.store(self.taken.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Checks its client against these limits, and returns the fault, if any; a copy source has
    /// other limits. Begins the next quota when one is complete, and marks progress.
    pub(crate) fn judge(&self, limits: StallLimits, now: Duration) -> Option<CutOffReason> {
        if self.since(&self.note).taken >= limits.note {
            self.set(&self.note);
        }
        if self.upload.as_ref().is_some_and(|upload| upload.is_copy) {
            return None;
        }
        let still = self.still(now).unwrap_or_default();
        if !still.is_zero() && still >= limits.stall {
            return Some(CutOffReason::Stalled);
        }
        let Progress { taken, waited } = self.since(&self.quota);
        if taken >= limits.quota() {
            self.set(&self.quota);
            return None;
        }
        (waited + still >= limits.stall && !still.is_zero()).then_some(CutOffReason::Slow)
    }

    /// Ends it. Returns `false` if that was done already. After [`STREAMS_CUT_MAX`] cut streams
    /// within [`STREAMS_CUT_IN`] the connection ends too; streams that were cut as
    /// [`CutOffReason::Contention`] do not count.
    pub(crate) fn cut_off(&self, fault: CutOffReason, now: Duration) -> bool {
        if self.is_cut_off.swap(true, Ordering::SeqCst) {
            return false;
        }
        self.cut.notify_one();
        if let Some(connection) = &self.connection
            && fault != CutOffReason::Contention
            && connection.stream_was_cut_off(now) >= STREAMS_CUT_MAX
        {
            connection.cut_off(fault, now);
        }
        true
    }

    /// Counts a cut stream, and returns how many were cut in this period. Only the watch calls it.
    fn stream_was_cut_off(&self, now: Duration) -> u32 {
        let since = Duration::from_millis(self.streams_cut_since.load(Ordering::Relaxed));
        if now.saturating_sub(since) >= STREAMS_CUT_IN {
            self.streams_cut_since.store(millis(now), Ordering::Relaxed);
            self.streams_cut_off.store(0, Ordering::Relaxed);
        }
        self.streams_cut_off.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns when it is cut. For one waiter; cancel safe.
    pub(crate) async fn until_cut_off(&self) {
        while !self.is_cut_off.load(Ordering::SeqCst) {
            self.cut.notified().await;
        }
    }
}

/// All watched answers and connections, or all watched uploads.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    all: Mutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    next: u64,
    flows: HashMap<u64, Arc<Flow>>,
}

/// A flow that is watched until this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    number: u64,
    flow: Arc<Flow>,
    flows: Arc<Flows>,
}

impl Flows {
    /// Watches a connection.
    pub(crate) fn connection(self: &Arc<Self>) -> Watch {
        self.watch(Flow::new(None, None))
    }

    /// Watches a stream of a connection.
    pub(crate) fn stream(self: &Arc<Self>, connection: &Arc<Flow>) -> Watch {
        self.watch(Flow::new(Some(Arc::clone(connection)), None))
    }

    /// Watches an upload, whose body its client is to send.
    pub(crate) fn upload(self: &Arc<Self>, upload: UploadResources) -> Watch {
        self.watch(Flow::new(None, Some(upload)))
    }

    fn watch(self: &Arc<Self>, flow: Flow) -> Watch {
        let flow = Arc::new(flow);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let number = all.next;
        all.next += 1;
        all.flows.insert(number, Arc::clone(&flow));
        Watch { number, flow, flows: Arc::clone(self) }
    }

    /// The flows for which `what` returns a value, with that value.
    pub(crate) fn find<T>(&self, what: impl Fn(&Flow) -> Option<T>) -> Vec<(Arc<Flow>, T)> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.flows.values().filter_map(|flow| Some((Arc::clone(flow), what(flow)?)));
        found.collect()
    }
}

impl Watch {
    /// The watched flow.
    pub(crate) const fn flow(&self) -> &Arc<Flow> {
        &self.flow
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut all = self.flows.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.flows.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: StallLimits =
        StallLimits { stall: Duration::from_secs(60), rate_min: 1024, note: 100 };

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn client_that_takes_nothing_is_found_after_the_stall_time() {
        let flow = Flow::new(None, None);
        assert_eq!(flow.judge(LIMITS, at(1_000)), None, "it has nothing to take");
        flow.offer(at(1_000));
        flow.offer(at(1_030));
        assert_eq!(flow.judge(LIMITS, at(1_059)), None);
        assert_eq!(flow.still(at(1_059)), Some(at(59)));
        assert_eq!(flow.judge(LIMITS, at(1_060)), Some(CutOffReason::Stalled));
        flow.took(1 << 20, at(1_060));
        assert_eq!(flow.judge(LIMITS, at(2_000)), None);
    }

    #[test]
    fn client_that_takes_a_byte_now_and_then_is_too_slow() {
        let flow = Flow::new(None, None);
        let mut now = 0;
        while flow.judge(LIMITS, at(now)).is_none() {
            flow.took(1, at(now));
            flow.offer(at(now));
            now += 10;
            assert!(now < 100, "it takes a byte in ten seconds");
        }
        assert_eq!((flow.judge(LIMITS, at(now)), now), (Some(CutOffReason::Slow), 60));
        let free = StallLimits { rate_min: 0, ..LIMITS };
        assert_eq!(flow.judge(free, at(now)), None);
    }

    #[test]
    fn client_at_twice_the_minimum_rate_is_never_cut_and_neither_is_one_that_waits_for_us() {
        let flow = Flow::new(None, None);
        for now in (0..10_000).step_by(8) {
            flow.took(16 << 10, at(now));
            flow.offer(at(now));
            assert_eq!(flow.judge(LIMITS, at(now + 7)), None, "at {now}");
        }
        let flow = Flow::new(None, None);
        for now in (0..10_000).step_by(100) {
            flow.offer(at(now));
            flow.took(1, at(now));
            assert_eq!(flow.judge(LIMITS, at(now + 99)), None, "at {now}");
        }
    }

    #[test]
    fn only_progress_of_note_ends_the_time_for_which_it_stood() {
        let flow = Flow::new(None, None);
        for now in 1_000..1_005 {
            flow.offer(at(now));
            assert_eq!(flow.judge(LIMITS, at(now)), None);
            flow.took(10, at(now + 1));
        }
        assert_eq!(flow.stood(at(2_000)), None, "it has nothing to take");
        flow.offer(at(2_000));
        assert_eq!(flow.stood(at(2_001)), Some(at(6)));
        flow.took(50, at(2_001));
        assert_eq!(flow.judge(LIMITS, at(2_001)), None);
        flow.offer(at(3_000));
        assert_eq!(flow.stood(at(3_002)), Some(at(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn connection_whose_streams_are_cut_again_and_again_is_cut() {
        let flows = Arc::new(Flows::default());
        let connection = flows.connection();
        let is_cut = || connection.flow.is_cut_off.load(Ordering::SeqCst);
        for number in 0..STREAMS_CUT_MAX * 2 {
            let stream = flows.stream(connection.flow());
            assert!(stream.flow.cut_off(CutOffReason::Contention, at(1_000)));
            assert!(
                !stream.flow.cut_off(CutOffReason::Contention, at(1_000)),
                "it is done already"
            );
            stream.flow.until_cut_off().await;
            flows
                .stream(connection.flow())
                .flow
                .cut_off(CutOffReason::Slow, at(1_000 + u64::from(number) * 5));
            assert!(!is_cut(), "after {number}: it is not often, or for others' sake");
        }
        for number in 0..STREAMS_CUT_MAX {
            assert!(!is_cut(), "after {number}");
            flows.stream(connection.flow()).flow.cut_off(CutOffReason::Stalled, at(2_000));
        }
        connection.flow.until_cut_off().await;
        assert_eq!(flows.find(|_| Some(())).len(), 1);
        drop(connection);
        assert!(flows.find(|_| Some(())).is_empty());
    }
}
