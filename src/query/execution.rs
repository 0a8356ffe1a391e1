//! A plan over the bytes of a blob.

use bytes::Bytes;

use crate::query::answer::Answer;
use crate::query::plan::Format;
use crate::query::plan::Plan;
use crate::query::reader::Reader;
use crate::query::reader::turn::Want;
use crate::query::request::Fault;
use crate::query::request::Sink;
use crate::query::request::Step;

/// Bytes that every execution may hold: what it reads, the longest record twice, what it makes.
const MEMORY: u64 = 32 << 20;

/// A plan over the bytes of a blob.
#[derive(Debug)]
pub struct Execution {
    /// Nothing after the end, or if the plan could not be begun.
    running: Option<(Answer, Reader)>,
    failed: Option<Fault>,
    scanned: u64,
    length: u64,
}

impl Execution {
    /// The plan over a blob of this length. `now_unix_millis` is what `UTCNOW` returns.
    pub fn new(plan: Plan, length: u64, now_unix_millis: i64) -> Self {
        let begun = Answer::new(&plan, now_unix_millis);
        let Plan { statement, format, .. } = plan;
        let reader = match format {
            Format::Delimited { dialect, has_headers } => {
                Reader::delimited(&statement, dialect, has_headers, length)
            }
            Format::Json { separator } => Reader::json(&statement, &separator, length),
            Format::Parquet => Reader::parquet(length),
        };
        match begun {
            Ok(answer) => {
                Self { running: Some((answer, reader)), failed: None, scanned: 0, length }
            }
            Err(fault) => Self { running: None, failed: Some(fault), scanned: 0, length },
        }
    }

    /// Works on the bytes that were fed, at most about 1 MiB of them.
    ///
    /// [`Step::Read`] asks for bytes of the blob. Fewer of them may be fed, but not none: then the
    /// blob is taken to end there.
    pub fn step(&mut self, sink: &mut Sink) -> Step {
        if let Some(fault) = self.failed.take() {
            sink.faults.push(fault);
        }
        let Some((answer, reader)) = &mut self.running else { return Step::Done };
        let result = if answer.is_full() { Ok(Want::Nothing) } else { reader.work(answer, sink) };
        let result = match result {
            Ok(Want::Bytes(range)) => return Step::Read(range),
            Ok(Want::Turn) => return Step::Continue,
            Ok(Want::Nothing) => answer.finish(&reader.names(), sink),
            Err(fault) => Err(fault),
        };
        if let Err(fault) = result {
            sink.faults.push(fault);
            answer.end_early(sink);
        }
        self.running = None;
        Step::Done
    }

    /// Takes the bytes that the last step requested.
    #[expect(clippy::needless_pass_by_value, reason = "the caller is done with them")]
    pub fn feed(&mut self, bytes: Bytes) {
        self.scanned += bytes.len() as u64;
        if let Some((_, reader)) = &mut self.running {
            reader.feed(&bytes);
        }
    }

    /// Bytes that it may hold from now on. It grows at most once, when the metadata of a Parquet
    /// file is read, before anything is in the sink.
    pub fn memory(&self) -> u64 {
        let columns = self.running.as_ref().map_or(0, |(_, reader)| reader.memory());
        MEMORY + columns
    }

    /// Bytes of the blob that were read so far; never more than it has, though parts of a damaged
    /// file may be read twice.
    pub fn scanned(&self) -> u64 {
        self.scanned.min(self.length)
    }
}
