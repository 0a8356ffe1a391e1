//! All data writers of this front end.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::sync::Mutex;

use crate::capacity::Capacity;
use crate::capacity::ExtentIds;
use crate::env::Env;
use crate::env::Waits;
use crate::env::waiting;
use crate::frontend::encrypt::Encrypting;
use crate::frontend::md5_queue::Md5Queue;
use crate::frontend::write::budget::BodyBudget;
use crate::frontend::write::budget::BodyMemory;
use crate::frontend::write::budget::InMemory;
use crate::frontend::write::extent::ExtentWriter;
use crate::frontend::write::extent::WriterContext;
use crate::frontend::write::group_append::GroupAppenders;
use crate::frontend::write::join::join;
use crate::frontend::write::lane::Lane;
use crate::frontend::write::stored::Stored;
use crate::frontend::write::stream::StreamWriter;
use crate::index::InFlight;
use crate::protocol::model::Refusal;
use crate::types::AccountId;
use crate::types::PAGE_WINDOW_BYTES;
use crate::types::request::Stage;

/// Sizes of the write path.
#[derive(Clone, Copy, Debug)]
pub struct WriteConfig {
    /// Bodies up to this many bytes live in the index row. Default 4 KiB.
    pub inline_bytes_max: u64,
    /// Blocks up to this many bytes, staged or appended, live in the index row. Default 512 bytes.
    pub inline_part_bytes_max: u64,
    /// Bodies up to this many bytes are held in memory and share appends. Default 1 MiB.
    pub memory_bytes_max: u64,
    /// Open extents for large bodies; further concurrent bodies share them. Default 64.
    pub lanes: usize,
    /// An extent is sealed once it has grown past this. Default 256 MiB.
    pub extent_bytes_max: u64,
    /// Memory of the bodies of all running requests; beyond it requests get 503. Default 256 MiB.
    pub body_bytes_max: u64,
    /// How long a body held in memory may wait for its shared append to begin. Once the running
    /// append has taken half of that, more such bodies get 503. Default 2 s.
    pub queue_wait_max: Duration,
    /// How long a body may wait that arrives while less than an eighth of the queue is full.
    /// Default 15 s: a slow disk is not overload.
    pub queue_patience: Duration,
}

impl Default for WriteConfig {
    fn default() -> Self {
        Self {
            inline_bytes_max: 4 << 10,
            inline_part_bytes_max: 512,
            memory_bytes_max: 1 << 20,
            lanes: 64,
            extent_bytes_max: 256 << 20,
            body_bytes_max: 256 << 20,
            queue_wait_max: Duration::from_secs(2),
            queue_patience: Duration::from_secs(15),
        }
    }
}

/// Stores bodies; one per front end.
#[derive(Debug)]
pub struct WritePool {
    config: WriteConfig,
    shared: Arc<WriterContext>,
    small: GroupAppenders,
    lanes: Vec<Arc<Lane>>,
    budget: BodyBudget,
    md5_queue: Md5Queue,
}

impl WritePool {
    /// Starts the writers. They stop, and seal their extents, when the pool is dropped.
    #[must_use]
    pub fn start(
        config: WriteConfig,
        capacity: Arc<dyn Capacity>,
        ids: Arc<dyn ExtentIds>,
        inflight: InFlight,
        env: Env,
    ) -> Self {
        let extent_bytes_max = config.extent_bytes_max;
        let shared = Arc::new(WriterContext { capacity, ids, inflight, env, extent_bytes_max });
        let lane = || {
            let writer = Mutex::new(ExtentWriter::new(Arc::clone(&shared)));
            Arc::new(Lane { writer, users: AtomicUsize::new(0) })
        };
        let lanes = std::iter::repeat_with(lane).take(config.lanes.max(1)).collect();
        let budget = BodyBudget::new(config.body_bytes_max, Arc::clone(&shared.env.clock));
        let small = GroupAppenders::start(
            &shared,
            Waits::new(config.queue_wait_max, config.queue_patience),
        );
        Self { config, small, shared, lanes, budget, md5_queue: Md5Queue::new() }
    }

    /// Whether a body of this length is held in memory and passed to [`Self::store`].
    #[must_use]
    pub const fn fits_in_memory(&self, len: u64) -> bool {
        len <= self.config.memory_bytes_max
    }

    /// Bodies up to this many bytes are held in memory.
    pub(crate) const fn memory_bytes_max(&self) -> u64 {
        self.config.memory_bytes_max
    }

    /// Whole blobs up to this many bytes live in the row.
    pub(crate) const fn inline_bytes_max(&self) -> u64 {
        self.config.inline_bytes_max
    }

    /// Blocks up to this many bytes live in the row.
    pub(crate) const fn inline_part_bytes_max(&self) -> u64 {
        self.config.inline_part_bytes_max
    }

    /// Where the MD5 of bodies is computed.
    pub(crate) const fn md5_queue(&self) -> &Md5Queue {
        &self.md5_queue
    }

    /// Memory for bodies.
    pub(crate) const fn budget(&self) -> &BodyBudget {
        &self.budget
    }

    /// Stores a body that is in memory. Durable when it returns, except bytes that go into the row.
    ///
    /// # Errors
    /// `InsufficientStorage` when the disks are full, `InternalError` when they fail, `ServerBusy`
    /// when they are slow.
    pub async fn store(&self, pieces: Vec<Bytes>, len: u64) -> Result<Stored, Refusal> {
        self.store_within(InMemory::uncounted(pieces), len, self.config.inline_bytes_max).await
    }

    /// As [`Self::store`], with another limit for bytes that go into the row.
    ///
    /// # Errors
    /// As [`Self::store`].
    pub(crate) async fn store_within(
        &self,
        body: InMemory,
        len: u64,
        inline_max: u64,
    ) -> Result<Stored, Refusal> {
        if len <= inline_max {
            // Copied even if it is one piece: a slice would keep the whole read buffer of the
            // connection.
            let bytes = Bytes::copy_from_slice(&join(body.pieces));
            return Ok(Stored::inline(bytes, body.held));
        }
        // Pinned here: a future that is moved into another one takes its space twice.
        let appended = pin!(self.small.append(body));
        waiting(self.shared.env.clock.as_ref(), Stage::Journal, appended).await
    }

    /// Stores pages that begin at offset `start` of their blob. They are split at multiples of 64
    /// KiB of the blob into locations, so that overwriting a part frees that part's space.
    ///
    /// # Errors
    /// As [`Self::store`].
    pub async fn store_pages(&self, pieces: Vec<Bytes>, start: u64) -> Result<Stored, Refusal> {
        self.store_pages_under(InMemory::uncounted(pieces), start, None).await
    }

    /// As [`Self::store_pages`]; with `encrypting` each location is encrypted separately.
    ///
    /// # Errors
    /// As [`Self::store`].
    pub(crate) async fn store_pages_under(
        &self,
        InMemory { pieces, held }: InMemory,
        start: u64,
        encrypting: Option<&Encrypting>,
    ) -> Result<Stored, Refusal> {
        let mut whole = join(pieces);
        let pieces_of = |number, part: Bytes| match encrypting {
            Some(encrypting) => encrypting.part(number, &part),
            None => vec![part],
        };
        if whole.len() as u64 <= self.config.inline_bytes_max {
            return Ok(Stored::inline(Bytes::copy_from_slice(&join(pieces_of(0, whole))), held));
        }
        let mut parts = Vec::new();
        let mut room =
            usize::try_from(PAGE_WINDOW_BYTES - start % PAGE_WINDOW_BYTES).unwrap_or(usize::MAX);
        while !whole.is_empty() {
            let part = whole.split_to(room.min(whole.len()));
            let pieces = pieces_of(parts.len() as u64, part);
            parts.push(self.small.append(InMemory { pieces, held: Arc::clone(&held) }));
            room = usize::try_from(PAGE_WINDOW_BYTES).unwrap_or(usize::MAX);
        }
        drop(held);
        let (mut stored, mut failed) = (self.shared.stored(Vec::new(), Vec::new()), None);
        let parts = pin!(join_all(parts));
        let answers = waiting(self.shared.env.clock.as_ref(), Stage::Journal, parts);
        for answer in answers.await {
            match answer {
                Ok(mut part) => {
                    stored.locations.append(&mut part.locations);
                    stored.notes.append(&mut part.notes);
                }
                Err(error) => failed = Some(error),
            }
        }
        // Dropped on a failure, which frees the other parts.
        match failed {
            None => Ok(stored),
            Some(error) => Err(error),
        }
    }

    /// Begins a large body of an account in the least used lane. The first lanes are preferred, so
    /// that few extents stay open.
    #[must_use]
    pub fn stream(&self, account: AccountId) -> StreamWriter {
        self.stream_of(BodyMemory::of(account))
    }

    /// As [`Self::stream`], for a body whose memory is counted already.
    pub(crate) fn stream_of(&self, memory: Arc<BodyMemory>) -> StreamWriter {
        let lane = self
            .lanes
            .iter()
            .min_by_key(|lane| lane.users.load(Ordering::Relaxed))
            .expect("there is at least one lane");
        let budget = self.budget.clone();
        StreamWriter::new(Arc::clone(&self.shared), Arc::clone(lane), budget, memory)
    }
}
