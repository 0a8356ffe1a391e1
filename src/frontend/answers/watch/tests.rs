use futures_util::FutureExt;

use super::*;
use crate::env::SimClock;
use crate::frontend::admission::ANONYMOUS;
use crate::frontend::answers::AnswerMemory;
use crate::frontend::answers::Payer;
use crate::frontend::answers::Reservation;
use crate::frontend::answers::UploadResources;
use crate::frontend::answers::Watch;
use crate::frontend::write::BodyMemory;
use crate::frontend::write::BodyReservation;
use crate::types::AccountId;

const MIB: u64 = 1 << 20;
const A: AccountId = AccountId::new(1);
const B: AccountId = AccountId::new(2);
const LATER: Duration = Duration::from_secs(6);

struct Bed {
    flows: Arc<Flows>,
    gate: Arc<Gate>,
    answers: Arc<AnswerBudget>,
    queries: Arc<AnswerBudget>,
    bodies: BodyBudget,
    clock: Arc<dyn Clock>,
}

fn bed() -> Bed {
    let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
    let gate = Gate::new(16, Arc::clone(&clock));
    let bodies = BodyBudget::new(8 * MIB, Arc::clone(&clock));
    let answers = AnswerBudget::new(8 * MIB, Arc::clone(&clock));
    let queries = AnswerBudget::new(8 * MIB, Arc::clone(&clock));
    Bed { flows: Arc::default(), gate, answers, queries, bodies, clock }
}

impl Bed {
    /// A connection whose client takes nothing.
    fn stalled(&self) -> Watch {
        let watch = self.flows.connection();
        watch.flow().offer(Duration::ZERO);
        watch
    }

    fn memory(&self, account: AccountId, known: bool) -> AnswerMemory {
        let peer = "192.0.2.1".parse().unwrap();
        AnswerMemory::new(&self.answers, Payer { account, peer, known })
    }

    /// One that holds memory.
    fn holding(&self, account: AccountId, known: bool, bytes: u64) -> (Watch, Reservation) {
        let (watch, memory) = (self.stalled(), self.memory(account, known));
        let reservation = memory.try_take(bytes).unwrap();
        watch.flow().hold(None, Some(memory.holding()));
        (watch, reservation)
    }

    fn cut(&self) -> Vec<Arc<Flow>> {
        contended_answers(&self.flows, &self.gate, [&self.answers, &self.queries], LATER)
    }

    /// An upload of about a MiB, whose client is waited for.
    fn upload(&self, account: AccountId, since: Duration) -> (Watch, BodyReservation) {
        let memory = BodyMemory::of(account);
        let held = self.bodies.take(&memory, 1_000_000).unwrap();
        let watch =
            self.flows.upload(UploadResources { admitted: Some(account), memory, is_copy: false });
        watch.flow().offer(since);
        (watch, held)
    }

    fn uploads_cut(&self) -> Vec<Arc<Flow>> {
        contended_uploads(&self.flows, &self.gate, &self.bodies, LATER)
    }

    fn is_cut_alone(&self, watch: &Watch) -> bool {
        let cut = self.cut();
        cut.len() == 1 && Arc::ptr_eq(&cut[0], watch.flow())
    }
}

#[tokio::test(start_paused = true)]
async fn while_nothing_is_short_nothing_is_in_the_way() {
    let bed = bed();
    let _holds = bed.holding(A, true, 5 * MIB);
    assert!(bed.cut().is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_holds_none_of_what_is_short_is_not_cut() {
    let bed = bed();
    let _idle = bed.stalled();
    let memory = bed.memory(A, true);
    let all = memory.try_take(8 * MIB).unwrap();
    let asks = bed.memory(B, true);
    let mut waits = Box::pin(asks.wait(MIB));
    assert!(waits.as_mut().now_or_never().is_none());
    assert!(bed.cut().is_empty(), "it would not help who waits");
    let holder = bed.stalled();
    holder.flow().hold(None, Some(memory.holding()));
    assert!(bed.is_cut_alone(&holder));
    drop(all);
    assert!(bed.cut().is_empty(), "it holds nothing any more");
}

#[tokio::test]
async fn memory_of_queries_is_not_that_of_answers() {
    let bed = bed();
    let (answer, _held) = bed.holding(A, true, MIB);
    let watch = bed.stalled();
    let payer = Payer { account: B, peer: "192.0.2.1".parse().unwrap(), known: true };
    let memory = AnswerMemory::new(&bed.queries, payer);
    let _query = memory.try_take(8 * MIB).unwrap();
    watch.flow().hold(None, Some(memory.holding()));
    let other = AnswerMemory::new(&bed.queries, Payer { account: A, ..payer });
    let waiting = other.begin(MIB);
    tokio::pin!(waiting);
    assert!(futures_util::poll!(waiting.as_mut()).is_pending());
    assert!(bed.is_cut_alone(&watch), "the query is in the way, the answer is not");
    drop(answer);
}

#[tokio::test(start_paused = true)]
async fn who_has_more_than_its_share_is_cut_first() {
    let bed = bed();
    let (below, _little) = bed.holding(B, true, MIB);
    below.flow().took(0, Duration::ZERO);
    // It stands still for longer than the other.
    below.flow().offer(Duration::ZERO);
    let (above, _much) = bed.holding(A, true, 5 * MIB);
    above.flow().took(0, Duration::ZERO);
    above.flow().offer(Duration::from_secs(1));
    let _rest = bed.memory(B, true).try_take(2 * MIB).unwrap();
    let asks = bed.memory(B, true);
    let mut waits = Box::pin(asks.wait(MIB));
    assert!(waits.as_mut().now_or_never().is_none());
    assert!(bed.is_cut_alone(&above));
}

#[tokio::test(start_paused = true)]
async fn who_is_known_is_not_cut_for_those_who_are_not() {
    let bed = bed();
    let (_known, _first) = bed.holding(A, true, MIB);
    let (open, _second) = bed.holding(A, false, 6 * MIB);
    let asks = bed.memory(B, false);
    let mut waits = Box::pin(asks.wait(MIB));
    assert!(waits.as_mut().now_or_never().is_none());
    assert!(bed.is_cut_alone(&open));
}

#[tokio::test(start_paused = true)]
async fn memory_of_a_stream_that_ended_is_its_connections() {
    let bed = bed();
    let connection = bed.stalled();
    let memory = bed.memory(A, true);
    let _buffered = memory.try_take(8 * MIB).unwrap();
    let stream = bed.flows.stream(connection.flow());
    stream.flow().hold(None, Some(memory.holding()));
    drop(stream);
    let asks = bed.memory(B, true);
    let mut waits = Box::pin(asks.wait(MIB));
    assert!(waits.as_mut().now_or_never().is_none());
    assert!(bed.is_cut_alone(&connection));
}

#[tokio::test(start_paused = true)]
async fn for_want_of_room_among_requests_only_those_are_cut_that_have_such_room() {
    let bed = bed();
    let (_memory, _held) = bed.holding(A, true, MIB);
    let mut passes = Vec::new();
    for number in 0..12 {
        let mut pass = bed.gate.enter(A).await.unwrap();
        if number < 11 {
            pass.open().unwrap();
        }
        passes.push(Arc::new(pass));
    }
    let (open, known) = (bed.stalled(), bed.stalled());
    open.flow().hold(Some(&passes[0]), None);
    known.flow().hold(Some(&passes[11]), None);
    assert_eq!(open.flow().pass(), Some(ANONYMOUS));
    assert!(bed.is_cut_alone(&open), "what is short is what anybody may have");
    passes.remove(0);
    assert!(bed.cut().is_empty(), "its pass was given back");
}

#[tokio::test(start_paused = true)]
async fn upload_in_the_way_is_one_above_its_share_that_brings_nothing_of_note() {
    let bed = bed();
    let (at, limits) =
        (Duration::from_millis, StallLimits { note: 1_000, ..StallLimits::default() });
    let uploads: Vec<_> = (0..7).map(|number| bed.upload(A, at(number * 100))).collect();
    let _own = bed.upload(B, Duration::ZERO);
    for (number, bytes) in [(0, 1_000), (1, 999)] {
        let flow = uploads[number].0.flow();
        flow.took(bytes, at(5_000));
        flow.judge(limits, at(5_000));
        flow.offer(at(5_000));
    }
    bed.clock.sleep(LATER).await;
    assert!(bed.uploads_cut().is_empty(), "nobody was refused");
    let body = BodyMemory::of(A);
    assert!(bed.bodies.take(&body, 1_000_000).is_err());
    assert!(bed.uploads_cut().is_empty(), "who was refused has more than its share");
    let body = BodyMemory::of(B);
    assert!(bed.bodies.take(&body, 1_000_000).is_err());
    let cut = bed.uploads_cut();
    // A quarter of those that stand: of all but the first.
    let oldest = [&uploads[1], &uploads[2]].map(|(watch, _)| watch.flow());
    assert_eq!(cut.len(), 2);
    assert!(cut.iter().zip(oldest).all(|(cut, oldest)| Arc::ptr_eq(cut, oldest)));
    let (watched, held): (Vec<_>, Vec<_>) = uploads.into_iter().unzip();
    drop(held);
    assert!(bed.uploads_cut().is_empty(), "none of {} holds anything any more", watched.len());
}

#[tokio::test(start_paused = true)]
async fn uploads_of_an_account_alone_are_not_in_the_way_of_requests() {
    let bed = bed();
    let mut passes = Vec::new();
    for _ in 0..14 {
        passes.push(bed.gate.enter(A).await.unwrap());
    }
    let uploads: Vec<_> = (0..4).map(|_| bed.upload(A, Duration::ZERO)).collect();
    bed.clock.sleep(LATER).await;
    assert!(bed.uploads_cut().is_empty(), "it is alone");
    passes.extend([bed.gate.enter(B).await.unwrap(), bed.gate.enter(B).await.unwrap()]);
    assert!(bed.gate.enter(A).await.is_err());
    assert!(bed.uploads_cut().is_empty(), "whoever is below its share got a place");
    assert!(bed.gate.enter(B).await.is_err());
    assert_eq!(bed.uploads_cut().len(), 1, "of {} uploads", uploads.len());
}
