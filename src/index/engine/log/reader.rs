//! Reads the records of one log extent.

#![deny(clippy::indexing_slicing)]

use bytes::{Bytes, BytesMut};

use crate::capacity::{Capacity, LogFrame};
use crate::index::api::Error;
use crate::index::engine::failure;
use crate::index::engine::log::manifest::Manifest;
use crate::index::engine::log::record::{Batch, HEADER_LEN, Header, Kind};
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// A decoded record.
#[derive(Debug)]
pub(crate) enum Record {
    /// Commits.
    Batch(Batch),
    /// State.
    Manifest(Manifest),
}

/// Walks an extent's records in order.
#[derive(Debug)]
pub(crate) struct LogReader<'a> {
    capacity: &'a dyn Capacity,
    extent: ExtentId,
    offset: u64,
    /// The valid end of the extent, if the next extent has a link to it. An incomplete record
    /// before that end is damage, not a torn tail.
    end: Option<u64>,
}

impl<'a> LogReader<'a> {
    /// Reads `extent` from its beginning to `end`.
    pub(crate) fn new(capacity: &'a dyn Capacity, extent: ExtentId, end: Option<u64>) -> Self {
        Self { capacity, extent, offset: 0, end }
    }

    /// The offset after the last record that was read. At the end of the extent a link may point
    /// here.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next record; `None` at the end. A record whose last frames are missing at the end of the
    /// extent was never acknowledged. It is a torn tail and is ignored.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for anything else that is not a whole record, [`Error::Unavailable`].
    pub(crate) async fn next(&mut self) -> Result<Option<Record>, Error> {
        let Some(first) = self.frame(self.offset).await? else {
            return match self.end {
                Some(end) if end != self.offset => Err(self.damaged("ends before its link")),
                Some(_) | None => Ok(None),
            };
        };
        let mut at = first.next.get();
        let mut bytes = Joined::One(first.payload);
        let header = loop {
            if bytes.len() >= HEADER_LEN {
                break Header::decode(bytes.as_ref())
                    .ok_or_else(|| self.damaged("a record's head is damaged"))?;
            }
            let Some(next) = self.more(&mut bytes, at).await? else { return self.torn() };
            at = next;
        };
        let whole = usize::try_from(header.body_len)
            .ok()
            .and_then(|body| body.checked_add(HEADER_LEN))
            .ok_or_else(|| self.damaged("a record is longer than memory"))?;
        while bytes.len() < whole {
            let Some(next) = self.more(&mut bytes, at).await? else { return self.torn() };
            at = next;
        }
        if bytes.len() > whole {
            return Err(self.damaged("a record ends inside a frame"));
        }
        let body = bytes.freeze().slice(HEADER_LEN..);
        let record = self.decode(&header, &body)?;
        self.offset = at;
        Ok(Some(record))
    }

    fn decode(&self, header: &Header, body: &Bytes) -> Result<Record, Error> {
        if !header.matches(body) {
            return Err(self.damaged("a record does not match its checksum"));
        }
        let record = match header.kind {
            Kind::Batch => Batch::decode(body).map(Record::Batch),
            Kind::AnsweredBatch => Batch::decode_answered(body).map(Record::Batch),
            Kind::Manifest => Manifest::decode(body).map(Record::Manifest),
            Kind::AnsweredManifest => Manifest::decode_answered(body).map(Record::Manifest),
        };
        record.ok_or_else(|| self.damaged("a record is malformed"))
    }

    async fn more(&self, bytes: &mut Joined, at: u64) -> Result<Option<u64>, Error> {
        let Some(frame) = self.frame(at).await? else { return Ok(None) };
        bytes.push(&frame.payload);
        Ok(Some(frame.next.get()))
    }

    /// The frame at `offset` and where the next one is; `None` at the end.
    async fn frame(&self, offset: u64) -> Result<Option<LogFrame>, Error> {
        if self.end.is_some_and(|end| offset >= end) {
            return Ok(None);
        }
        let offset = ExtentOffset::new(offset);
        let frame = self.capacity.next_frame(self.extent, offset).await;
        frame.map_err(|error| failure::read(&error))
    }

    fn torn(&self) -> Result<Option<Record>, Error> {
        if self.end.is_some() {
            return Err(self.damaged("a record is cut short before the link"));
        }
        tracing::warn!(
            extent = %self.extent, offset = self.offset,
            "the torn tail of a log is ignored"
        );
        Ok(None)
    }

    fn damaged(&self, what: &str) -> Error {
        Error::damaged_rows(format!("log extent {} at {}: {what}", self.extent, self.offset))
    }
}

/// The bytes of a record. Most records fit in one frame and are not copied.
enum Joined {
    One(Bytes),
    Many(BytesMut),
}

impl Joined {
    fn len(&self) -> usize {
        self.as_ref().len()
    }

    fn as_ref(&self) -> &[u8] {
        match self {
            Self::One(bytes) => bytes,
            Self::Many(bytes) => bytes,
        }
    }

    fn push(&mut self, frame: &Bytes) {
        match self {
            Self::One(first) => {
                let mut joined = BytesMut::with_capacity(2 * (first.len() + frame.len()));
                joined.extend_from_slice(first);
                joined.extend_from_slice(frame);
                *self = Self::Many(joined);
            }
            Self::Many(joined) => joined.extend_from_slice(frame),
        }
    }

    fn freeze(self) -> Bytes {
        match self {
            Self::One(bytes) => bytes,
            Self::Many(bytes) => bytes.freeze(),
        }
    }
}
