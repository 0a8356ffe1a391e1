//! A partition in memory: [`Objects`] over a map of rows, without an engine. For tests here and in
//! `reclaim`.

use std::collections::BTreeMap;
use std::ops::Bound;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt;

use crate::index::api::Error;
use crate::index::api::Read;
use crate::index::api::ReadReply;
use crate::index::api::Write;
use crate::index::api::WriteReply;
use crate::index::api::is_answer;
use crate::index::objects::Objects;
use crate::index::rows::Family;
use crate::index::rows::Machine;
use crate::index::rows::Row;
use crate::index::rows::RowBatch;
use crate::index::rows::RowChange;
use crate::index::rows::Rows;
use crate::index::rows::Scanned;
use crate::types::KeyRange;
use crate::types::Timestamp;

/// Rows of one partition.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// The rows.
    pub(crate) rows: BTreeMap<(Family, Bytes), Bytes>,
    /// The partition's keys.
    pub(crate) range: KeyRange,
}

#[async_trait]
impl Rows for Memory {
    async fn get(&self, family: Family, key: &[u8]) -> Result<Option<Bytes>, Error> {
        Ok(self.rows.get(&(family, Bytes::copy_from_slice(key))).cloned())
    }

    async fn scan(
        &self,
        family: Family,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
    ) -> Result<Scanned, Error> {
        let from = from.max(self.range.low().as_bytes());
        let low = Bound::Included((family, Bytes::copy_from_slice(from)));
        let within =
            |key: &Bytes| self.range.contains(key) && to.is_none_or(|to| key.as_ref() < to);
        let rows = self.rows.range((low, Bound::Unbounded));
        let rows: Vec<Row> = rows
            .take_while(|((f, key), _)| *f == family && within(key))
            .take(limit)
            .map(|((_, key), value)| Row { key: key.clone(), value: value.clone() })
            .collect();
        let is_more = rows.len() == limit;
        let next = rows.last().filter(|_| is_more);
        let next = next.map(|row| [row.key.as_ref(), &[0]].concat().into());
        Ok(Scanned { rows, next })
    }
}

/// A partition that commits each write immediately.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    /// Its rows.
    pub(crate) memory: Memory,
    /// The time of the last write.
    pub(crate) now: Timestamp,
}

impl Partition {
    /// An empty partition.
    pub(crate) fn new(range: KeyRange) -> Self {
        let memory = Memory { rows: BTreeMap::new(), range };
        Self { memory, now: Timestamp::from_ticks(639_000_000_000_000_000) }
    }

    /// Carries out a write, one tick after the previous one.
    pub(crate) fn write(&mut self, write: &Write) -> Result<WriteReply, Error> {
        self.write_weighed(write).map(|(reply, _)| reply)
    }

    /// As [`Self::write`]. Also returns the number of bytes of changed rows.
    pub(crate) fn write_weighed(&mut self, write: &Write) -> Result<(WriteReply, usize), Error> {
        let mut weight = 0;
        self.now = self.now.next();
        let mut batch = RowBatch::default();
        let reply = Objects
            .evaluate(&self.memory, write, self.now, &mut batch)
            .now_or_never()
            .expect("rows in memory never wait")?;
        assert!(is_answer(write, reply.clone()), "{write:?} answers {reply:?}");
        for RowChange { family, key, value } in batch.changes {
            assert!(self.memory.range.contains(&key), "row outside of the partition");
            weight += key.len() + value.as_ref().map_or(0, Bytes::len);
            match value {
                Some(value) => self.memory.rows.insert((family, key), value),
                None => self.memory.rows.remove(&(family, key)),
            };
        }
        Ok((reply, weight))
    }

    /// Answers a read.
    pub(crate) fn read(&self, read: &Read) -> Result<ReadReply, Error> {
        Objects
            .answer(&self.memory, &self.memory.range, read, self.now)
            .now_or_never()
            .expect("rows in memory never wait")
    }
}
