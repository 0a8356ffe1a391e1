//! The length of a turn of work, and the bytes that are needed after it.

use std::ops::Range;

use crate::query::answer::Answer;
use crate::query::request::Fault;
use crate::query::request::Sink;
use crate::query::trouble::RECORD_TOO_LARGE;

/// Bytes of a record. The service's documents name no limit of their own.
pub(crate) const RECORD_MAX: usize = 4 << 20;
/// Bytes of input with units of evaluation (`eval::fuel`), or bytes of output, of one turn, about.
const WORK: u64 = 1 << 20;
/// Faults of one turn.
const FAULTS: usize = 1000;

/// The bytes that a reader needs to continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Want {
    Bytes(Range<u64>),
    /// Another turn.
    Turn,
    /// The blob ends here.
    Nothing,
}

/// How much a turn has done.
#[derive(Debug)]
pub(crate) struct Turn {
    output: usize,
    input: u64,
}

impl Turn {
    pub(crate) fn new(sink: &Sink) -> Self {
        Self { output: sink.data.len(), input: 0 }
    }

    /// Counts the work on `input` bytes, and the cost of the answer. Returns whether the turn is
    /// over.
    pub(crate) fn is_over(&mut self, input: usize, answer: &mut Answer, sink: &Sink) -> bool {
        self.input += input as u64 + answer.take_work();
        let output = sink.data.len().saturating_sub(self.output) as u64;
        self.input >= WORK || output >= WORK || sink.faults.len() >= FAULTS
    }
}

/// The fault of a record that begins here.
pub(crate) fn too_large(position: u64) -> Fault {
    let text = format!("A record is larger than {RECORD_MAX} bytes.");
    Fault::fatal(RECORD_TOO_LARGE, text, position)
}
