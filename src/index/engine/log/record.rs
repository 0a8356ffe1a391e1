//! Records of a partition's log. Layout: `api-spec/log-record.md`.

#![deny(clippy::indexing_slicing)]

use bytes::{BufMut, Bytes, BytesMut};

use crate::index::engine::answers::KeptAnswer;
use crate::index::engine::codec;
use crate::index::rows::Family;
use crate::index::rows::RowBatch;
use crate::index::rows::RowChange;
use crate::types::Crc32c;
use crate::types::Sequence;
use crate::types::Timestamp;

/// Bytes before the body.
pub(crate) const HEADER_LEN: usize = 16;
const VERSION: u8 = 1;
const TOMBSTONE: u8 = 0x80;
/// First sequence, time, number of commits.
const BATCH_HEAD_LEN: usize = 20;

/// The kind of a record's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Commits.
    Batch,
    /// The partition's state at this point of the log.
    Manifest,
    /// Commits, and the answers to their writes.
    AnsweredBatch,
    /// The partition's state, and the answers to writes that may be sent again.
    AnsweredManifest,
}

impl Kind {
    const ALL: [Self; 4] =
        [Self::Batch, Self::Manifest, Self::AnsweredBatch, Self::AnsweredManifest];
}

/// The verified head of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The kind of the body.
    pub(crate) kind: Kind,
    /// Bytes of the body.
    pub(crate) body_len: u32,
    body_crc: u32,
}

impl Header {
    /// Decodes the head; `None` if it is damaged or of an unknown version.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let head = bytes.get(..HEADER_LEN)?;
        let (checked, mut crc) = head.split_at_checked(12)?;
        if codec::take_u32(&mut crc)? != Crc32c::of(checked).get() {
            return None;
        }
        let mut rest = checked;
        if codec::take_u8(&mut rest)? != VERSION {
            return None;
        }
        let number = codec::take_u8(&mut rest)?;
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == number)?;
        if codec::take(&mut rest, 2)? != [0, 0] {
            return None;
        }
        Some(Self {
            kind,
            body_len: codec::take_u32(&mut rest)?,
            body_crc: codec::take_u32(&mut rest)?,
        })
    }

    /// Whether the length and checksum of the head match this body.
    pub(crate) fn matches(&self, body: &[u8]) -> bool {
        codec::wide(body.len()) == u64::from(self.body_len)
            && Crc32c::of(body).get() == self.body_crc
    }
}

/// Encodes a record with this body; `None` if the body is 4 GiB or longer.
pub(crate) fn encode(kind: Kind, body: &[u8]) -> Option<Bytes> {
    let mut record = BytesMut::with_capacity(HEADER_LEN + body.len());
    record.put_bytes(0, HEADER_LEN);
    record.extend_from_slice(body);
    fill_header(kind, record)
}

/// Fills in the head of a record that already has its body.
fn fill_header(kind: Kind, mut record: BytesMut) -> Option<Bytes> {
    let (head, body) = record.split_at_mut_checked(HEADER_LEN)?;
    let mut fields = Vec::with_capacity(HEADER_LEN);
    fields.put_u8(VERSION);
    fields.put_u8(kind as u8);
    fields.put_u16_le(0);
    fields.put_u32_le(u32::try_from(body.len()).ok()?);
    fields.put_u32_le(Crc32c::of(body).get());
    let crc = Crc32c::of(&fields);
    fields.put_u32_le(crc.get());
    head.copy_from_slice(&fields);
    Some(record.freeze())
}

/// Builds one batch record: commits with consecutive sequence numbers.
#[derive(Debug)]
pub(crate) struct BatchBuilder {
    record: BytesMut,
    first: Sequence,
    commits: u32,
}

impl BatchBuilder {
    /// An empty batch whose first commit is number `first`, with room for rows of so many bytes.
    pub(crate) fn new(first: Sequence, bytes: usize) -> Self {
        let mut record = BytesMut::with_capacity(HEADER_LEN + BATCH_HEAD_LEN + bytes);
        record.put_bytes(0, HEADER_LEN + BATCH_HEAD_LEN);
        Self { record, first, commits: 0 }
    }

    /// Adds the next commit.
    pub(crate) fn push(&mut self, rows: &RowBatch) {
        self.begin(rows.changes.len());
        for RowChange { family, key, value } in &rows.changes {
            self.add(*family, key, value.as_ref());
        }
    }

    /// Begins the next commit. The caller then calls [`Self::add`] once for each of its `changes`.
    pub(crate) fn begin(&mut self, changes: usize) {
        self.commits += 1;
        codec::put_varint(&mut self.record, codec::wide(changes));
    }

    /// Adds a row of the commit. Without a value the row is removed.
    pub(crate) fn add(&mut self, family: Family, key: &[u8], value: Option<&Bytes>) {
        let tag = family as u8 | if value.is_none() { TOMBSTONE } else { 0 };
        self.record.put_u8(tag);
        codec::put_varint(&mut self.record, codec::wide(key.len()));
        self.record.extend_from_slice(key);
        if let Some(value) = value {
            codec::put_varint(&mut self.record, codec::wide(value.len()));
            self.record.extend_from_slice(value);
        }
    }

    /// Length of the record so far.
    pub(crate) fn bytes(&self) -> usize {
        self.record.len()
    }

    /// The number of the first commit.
    pub(crate) fn first(&self) -> Sequence {
        self.first
    }

    /// Commits so far.
    pub(crate) fn commits(&self) -> u32 {
        self.commits
    }

    /// Takes the finished record; `time` is that of the last commit. `None` if the record is 4 GiB
    /// or longer.
    pub(crate) fn finish(&mut self, time: Timestamp) -> Option<Bytes> {
        self.finish_with(time, &[])
    }

    /// As [`Self::finish`], with the answers to numbered writes among the commits.
    pub(crate) fn finish_with(&mut self, time: Timestamp, answers: &[KeptAnswer]) -> Option<Bytes> {
        let mut record = std::mem::take(&mut self.record);
        let kind = if answers.is_empty() {
            Kind::Batch
        } else {
            let encoded = postcard::to_stdvec(answers).ok()?;
            record.extend_from_slice(&encoded);
            record.put_u32_le(u32::try_from(encoded.len()).ok()?);
            Kind::AnsweredBatch
        };
        let mut head = Vec::with_capacity(BATCH_HEAD_LEN);
        head.put_u64_le(self.first.get());
        head.put_u64_le(time.ticks());
        head.put_u32_le(self.commits);
        record.get_mut(HEADER_LEN..HEADER_LEN + BATCH_HEAD_LEN)?.copy_from_slice(&head);
        fill_header(kind, record)
    }
}

/// A batch as read from a log; its rows are not yet decoded.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    /// The number of its first commit.
    pub(crate) first: Sequence,
    /// The time of its last commit.
    pub(crate) time: Timestamp,
    /// How many commits it has, at least one.
    pub(crate) commits: u32,
    /// The answers to numbered writes among its commits.
    pub(crate) answers: Vec<KeptAnswer>,
    rows: Bytes,
}

impl Batch {
    /// Decodes the body of a batch record; `None` if it is malformed.
    pub(crate) fn decode(body: &Bytes) -> Option<Self> {
        let mut rest = body.as_ref();
        let first = Sequence::new(codec::take_u64(&mut rest)?);
        let time = Timestamp::from_ticks(codec::take_u64(&mut rest)?);
        let commits = codec::take_u32(&mut rest)?;
        let fits = first.get().checked_add(u64::from(commits)).is_some();
        (commits > 0 && first.get() > 0 && fits).then(|| Self {
            first,
            time,
            commits,
            answers: Vec::new(),
            rows: body.slice_ref(rest),
        })
    }

    /// Decodes the body of a batch record with answers; `None` if it is malformed.
    pub(crate) fn decode_answered(body: &Bytes) -> Option<Self> {
        let (rest, mut len) = body.split_at_checked(body.len().checked_sub(4)?)?;
        let len = usize::try_from(codec::take_u32(&mut len)?).ok()?;
        let (rows, encoded) = rest.split_at_checked(rest.len().checked_sub(len)?)?;
        let Ok((answers, [])) = postcard::take_from_bytes(encoded) else { return None };
        Some(Self { answers, ..Self::decode(&body.slice_ref(rows))? })
    }

    /// The number of its last commit.
    pub(crate) fn last(&self) -> Sequence {
        self.first.plus(u64::from(self.commits) - 1)
    }

    /// Decodes the rows of each commit; `None` if they are malformed. Keys and values share the
    /// record's memory.
    pub(crate) fn rows(&self) -> Option<Vec<RowBatch>> {
        let mut rest = self.rows.as_ref();
        let mut commits = Vec::new();
        for _ in 0..self.commits {
            let count = codec::take_varint(&mut rest)?;
            let mut batch = RowBatch::default();
            for _ in 0..count {
                batch.changes.push(self.row(&mut rest)?);
            }
            commits.push(batch);
        }
        rest.is_empty().then_some(commits)
    }

    fn row(&self, rest: &mut &[u8]) -> Option<RowChange> {
        let tag = codec::take_u8(rest)?;
        let family = Family::from_number(tag & !TOMBSTONE)?;
        let len = codec::take_len(rest)?;
        let key = self.rows.slice_ref(codec::take(rest, len)?);
        if tag & TOMBSTONE != 0 {
            return Some(RowChange { family, key, value: None });
        }
        let len = codec::take_len(rest)?;
        let value = Some(self.rows.slice_ref(codec::take(rest, len)?));
        Some(RowChange { family, key, value })
    }
}
