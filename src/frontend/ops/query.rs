//! Query Blob Contents: reads the bytes of a blob that a query needs, and streams the records.
//!
//! A query works in short steps on the pool for blocking work, so that no request waits behind one.
//! Few steps of all queries run at a time. The memory of all queries together is bounded, and each
//! reserves its part when it begins.
//!
//! Source: "Query Blob Contents".

mod bytes;

use std::collections::VecDeque;
use std::sync::Arc;

use ::bytes::Bytes;
use tokio::sync::Semaphore;

use crate::env::Rand;
use crate::env::Tasks;
use crate::env::boxed;
use crate::env::working_on;
use crate::frontend::answers::AnswerMemory;
use crate::frontend::answers::Payer;
use crate::frontend::answers::Reservation;
use crate::frontend::body::BodyError;
use crate::frontend::body::Next;
use crate::frontend::body::Pull;
use crate::frontend::body::ResponseBody;
use crate::frontend::body::Source;
use crate::frontend::dialect::framing::QueryRecords;
use crate::frontend::facts;
use crate::frontend::facts::Seen;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::ops::Answer;
use crate::frontend::ops::Answered;
use crate::frontend::ops::content;
use crate::frontend::ops::content::Opened;
use crate::frontend::read;
use crate::frontend::read::Reading;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::query::Execution;
use crate::query::Fault;
use crate::query::Plan;
use crate::query::Request;
use crate::query::Sink;
use crate::query::Step;
use crate::types::BlobKind;
use crate::types::request;
use crate::types::request::CurrentRequest;

use self::bytes::Content;

/// The fewest result bytes that are sent together, except at the end of the query.
const RESULT_BYTES_MIN: usize = 64 << 10;
/// The most faults that are sent together.
const FAULTS_MAX: usize = 1024;
/// Bytes after which the progress is reported.
const PROGRESS_BYTES: u64 = 4 << 20;
/// The most steps of one visit to the pool.
const STEPS_MAX: usize = 8;

/// Query Blob Contents. `payer` is charged for the memory of the query.
pub(crate) async fn query(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    request: Request,
    payer: Payer,
) -> Answer {
    let Opened { blob, view, note, decrypting, tiers, versioning } =
        content::open(front, blob, None).await?;
    if view.record.kind != BlobKind::Block {
        return Err(Reason::InvalidBlobType.into());
    }
    let now = front.env.clock.now();
    if let Some(reads) = &front.last_access {
        reads.note(&blob, &view.record, now);
    }
    let seen = Seen { record: view.record.clone(), is_current: view.is_current, tiers };
    let facts = facts::of_version(front, seen, now, versioning);
    let len = facts.len;
    let millis = i64::try_from(now.since_unix().as_millis()).unwrap_or(i64::MAX);
    let plan = boxed(|| planned(front, request)).await?;
    let memory = AnswerMemory::new(&front.load.queries, payer);
    let execution = Box::new(Execution::new(plan, len, millis));
    let needed = execution.memory();
    let reserved = Some(memory.begin(needed).await?);
    let holding = Arc::clone(memory.holding());
    let reading = Reading { blob, view, note, decrypting, memory: None };
    let mut running = Running {
        execution: Some(execution),
        content: Content::new(read::source(front, reading), len),
        records: records(&*front.env.rand),
        reported: 0,
        len,
        has_result: false,
        turns: Arc::clone(&front.load.query_turns),
        tasks: front.env.tasks.clone(),
        request: request::current_whole(),
        memory,
        reserved,
        needed,
    };
    // The first record is a result, perhaps empty, as on the service: the Python client relies on
    // this.
    let mut first = running.next().await?;
    if !running.has_result {
        first.push_front(running.records.result(&[]));
    }
    first.push_front(running.records.begin());
    // A query that has ended keeps its memory until its last records are sent.
    let body = ResponseBody::open_ended(first, Box::new(running)).holding(Some(holding));
    Ok(Answered { reply: Reply::BlobQueried(facts), stream: Some(body) })
}

/// Parses the statement. A long one takes time, so it waits for a turn, as a step does.
async fn planned(front: &FrontEnd, request: Request) -> Result<Plan, Refusal> {
    let turn = Arc::clone(&front.load.query_turns).acquire_owned().await;
    let turn = turn.map_err(|_| Reason::ServerBusy)?;
    let plan = move || {
        let plan = Plan::new(request);
        drop(turn);
        plan
    };
    let planned = front.env.tasks.spawn_blocking("query plan", plan).await;
    let planned = planned.map_err(|_| Refusal::from(Reason::InternalError))?;
    planned.map_err(|fault| {
        let Fault { name, description, .. } = fault;
        Refusal::new(Reason::InvalidInput)
            .detail(Detail::Explanation, format!("{name}: {description}"))
    })
}

fn records(rand: &dyn Rand) -> QueryRecords {
    let (first, second) = (rand.next_u64().to_le_bytes(), rand.next_u64().to_le_bytes());
    let mut sync = [0; 16];
    sync[..8].copy_from_slice(&first);
    sync[8..].copy_from_slice(&second);
    QueryRecords::new(sync)
}

/// A query that runs.
struct Running {
    /// `None` once it has ended, and while it is in the pool.
    execution: Option<Box<Execution>>,
    content: Content,
    records: QueryRecords,
    /// Bytes scanned as the client knows.
    reported: u64,
    len: u64,
    /// Whether a result was among the last records.
    has_result: bool,
    turns: Arc<Semaphore>,
    tasks: Tasks,
    /// The request to which log lines and waits belong: the body is made after the head was sent.
    request: Option<CurrentRequest>,
    memory: AnswerMemory,
    /// The memory that it may hold; `None` only while it waits for more.
    reserved: Option<Reservation>,
    needed: u64,
}

/// The state of a query after a visit to the pool.
struct Visit {
    execution: Box<Execution>,
    sink: Sink,
    step: Step,
}

impl Running {
    const fn has_ended(&self) -> bool {
        self.execution.is_none()
    }

    /// The next records; none at the end.
    async fn next(&mut self) -> Result<VecDeque<Bytes>, Refusal> {
        let mut sink = Sink::default();
        while let Some(execution) = self.execution.take() {
            let (turns, tasks) = (Arc::clone(&self.turns), self.tasks.clone());
            let mut visit = visit((turns, tasks), execution, sink).await?;
            match visit.step {
                Step::Read(range) => visit.execution.feed(self.content.read(range).await?),
                Step::Continue => {}
                Step::Done => return Ok(self.last(&visit.sink)),
            }
            self.reserve(visit.execution.memory()).await?;
            let scanned = visit.execution.scanned();
            self.execution = Some(visit.execution);
            // Not before the metadata of a Parquet file is read, which may take 4 MiB: the head of
            // the answer follows the reservation of memory.
            let first = u64::from(self.reported == 0);
            let is_due = scanned - self.reported >= PROGRESS_BYTES * (1 + first);
            if is_due || is_enough(&visit.sink) {
                let mut out = self.sent(&visit.sink);
                if is_due {
                    self.reported = scanned;
                    out.push_back(self.records.progress(scanned, self.len));
                }
                return Ok(out);
            }
            sink = visit.sink;
        }
        Ok(VecDeque::new())
    }

    /// Reserves the memory that the query turns out to need. A Parquet file states it at its end,
    /// which is read before the head of the answer is sent. The old reservation is given back
    /// first, so that queries do not wait for each other.
    async fn reserve(&mut self, needed: u64) -> Result<(), Refusal> {
        if needed > self.needed {
            self.reserved = None;
            self.reserved = Some(self.memory.begin(needed).await?);
            self.needed = needed;
        }
        Ok(())
    }

    fn sent(&mut self, sink: &Sink) -> VecDeque<Bytes> {
        let mut out: VecDeque<_> =
            sink.faults.iter().map(|fault| self.records.error(fault)).collect();
        self.has_result = !sink.data.is_empty();
        if self.has_result {
            out.push_front(self.records.result(&sink.data));
        }
        out
    }

    /// The end of the answer: all needed bytes were scanned.
    fn last(&mut self, sink: &Sink) -> VecDeque<Bytes> {
        let mut out = self.sent(sink);
        out.push_back(self.records.progress(self.len, self.len));
        out.push_back(self.records.end(self.len));
        out
    }
}

/// Works on a query in the pool, until it needs bytes, or has enough to send.
async fn visit(
    (turns, tasks): (Arc<Semaphore>, Tasks),
    mut execution: Box<Execution>,
    mut sink: Sink,
) -> Result<Visit, Refusal> {
    let stopped = |_| Refusal::from(Reason::InternalError);
    let turn = turns.acquire_owned().await.map_err(|_| Reason::ServerBusy)?;
    let work = move || {
        let mut step = Step::Continue;
        for _ in 0..STEPS_MAX {
            step = execution.step(&mut sink);
            if step != Step::Continue || is_enough(&sink) {
                break;
            }
        }
        drop(turn);
        Visit { execution, sink, step }
    };
    tasks.spawn_blocking("query", work).await.map_err(stopped)
}

fn is_enough(sink: &Sink) -> bool {
    sink.data.len() >= RESULT_BYTES_MIN || sink.faults.len() >= FAULTS_MAX
}

impl Pull for Running {
    fn pull(mut self: Box<Self>) -> Next {
        let request = self.request.clone();
        let step = async move {
            if self.has_ended() {
                return None;
            }
            match self.next().await {
                Ok(pieces) => Some((Ok(pieces), self as Source)),
                Err(refusal) => {
                    let reason = refusal.reason.name().to_owned();
                    tracing::error!(%reason, "the answer of a query is cut short");
                    Some((Err(BodyError(reason)), self as Source))
                }
            }
        };
        boxed(|| working_on(request, step))
    }
}
