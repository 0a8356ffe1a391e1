//! The answers to numbered writes, which a partition keeps until their senders need them no more
//! (ADR 0049, 0058). The record of a batch has the answers of its writes, and manifests have all
//! that are kept. So every later owner of a key gives a repeated write the same answer.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;

use crate::index::api::Error;
use crate::index::api::Refused;
use crate::index::api::WriteId;
use crate::index::api::WriteReply;
use crate::index::api::WriterSessions;
use crate::rpc::NodeIdentity;

/// The most bytes of answers kept for one process. With more, its numbered writes are refused until
/// it has settled some. Answers have some 20 bytes, and most writes are settled within a second.
const BYTES_MAX: usize = 4 << 20;
/// Bytes of memory that an answer takes beside its own.
const OVERHEAD: usize = 64;

/// The answer to one numbered write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptAnswer {
    pub(crate) process: NodeIdentity,
    pub(crate) number: u64,
    /// Lower numbers of this process are settled.
    pub(crate) settled: u64,
    /// `Result<WriteReply, Refused>` in postcard.
    pub(crate) answer: Bytes,
}

impl KeptAnswer {
    /// The answer to a write; `None` if it is not final: then the write may be carried out later.
    pub(crate) fn of(id: &WriteId, reply: &Result<WriteReply, Error>) -> Option<Self> {
        let answer: Result<&WriteReply, &Refused> = match reply {
            Ok(reply) => Ok(reply),
            Err(Error::Refused(refused)) => Err(refused),
            Err(
                Error::WrongPartition
                | Error::Overloaded
                | Error::Full(_)
                | Error::Corrupt(_)
                | Error::Unavailable(_)
                | Error::NoAnswer(_),
            ) => return None,
        };
        let answer = Bytes::from(postcard::to_stdvec(&answer).ok()?);
        let WriteId { process, number, settled, .. } = *id;
        Some(Self { process, number, settled, answer })
    }

    /// The answer to a repetition.
    pub(crate) fn reply(&self) -> Result<WriteReply, Error> {
        reply_of(&self.answer)
    }
}

fn reply_of(answer: &[u8]) -> Result<WriteReply, Error> {
    match postcard::from_bytes::<Result<WriteReply, Refused>>(answer) {
        Ok(answer) => answer.map_err(Error::Refused),
        // It was kept by another release.
        Err(_) => Err(Error::NoAnswer("the answer that was kept cannot be read".into())),
    }
}

/// What is known about a numbered write that arrives.
#[derive(Debug)]
pub(crate) enum Known {
    /// Nothing: it is to be carried out.
    Nothing,
    /// It has this answer. It is not carried out again.
    Answered(Result<WriteReply, Error>),
    /// It is settled. Whether it was carried out is not known any more.
    Settled,
    /// It is not known, and no further answer can be kept now.
    TooMany,
}

/// The error of an attempt that was certainly not carried out. For a write without a number it is
/// `error`. After [`Error::Unavailable`] a numbered one would be sent again, since that means an
/// unknown outcome.
pub(crate) fn not_carried_out(id: Option<WriteId>, error: Error) -> Error {
    match (id, error) {
        (Some(_), Error::Unavailable(why)) => {
            tracing::debug!(why, "a numbered write is refused");
            Error::Overloaded
        }
        (_, error) => error,
    }
}

/// What is kept for one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OfProcess {
    settled: u64,
    answers: BTreeMap<u64, Bytes>,
    /// The memory of the answers.
    bytes: usize,
}

/// The kept answers of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answers {
    kept: BTreeMap<NodeIdentity, OfProcess>,
}

impl Answers {
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The processes for which something is kept.
    #[cfg(test)]
    pub(crate) fn processes(&self) -> Vec<NodeIdentity> {
        self.kept.keys().copied().collect()
    }

    /// Looks a write up, and forgets what is settled.
    pub(crate) fn look_up(&mut self, id: &WriteId) -> Known {
        self.settle(id.process, id.settled);
        let Some(of) = self.kept.get(&id.process) else { return Known::Nothing };
        if id.number < of.settled {
            return Known::Settled;
        }
        match of.answers.get(&id.number) {
            Some(answer) => Known::Answered(reply_of(answer)),
            None if of.bytes >= BYTES_MAX => Known::TooMany,
            None => Known::Nothing,
        }
    }

    /// Keeps an answer that is durable.
    pub(crate) fn keep(&mut self, kept: KeptAnswer) {
        let KeptAnswer { process, number, settled, answer } = kept;
        self.settle(process, settled);
        let of = self.kept.entry(process).or_default();
        if number >= of.settled {
            of.bytes += weight(&answer);
            let before = of.answers.insert(number, answer);
            of.bytes -= before.as_ref().map_or(0, weight);
        }
    }

    /// What several partitions have kept, which become one.
    pub(crate) fn of_all<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        parts.for_each(|part| all.join(part));
        all
    }

    /// Keeps also what another partition has kept: the two become one.
    fn join(&mut self, other: &Self) {
        for (process, OfProcess { settled, answers, .. }) in &other.kept {
            self.settle(*process, *settled);
            for (number, answer) in answers {
                let (process, settled) = (*process, *settled);
                self.keep(KeptAnswer { process, number: *number, settled, answer: answer.clone() });
            }
        }
    }

    /// Forgets the processes that have ended.
    pub(crate) fn forget_ended(&mut self, sessions: &dyn WriterSessions) {
        self.kept.retain(|process, _| !sessions.has_ended(*process));
    }

    fn settle(&mut self, process: NodeIdentity, below: u64) {
        // A process that has settled nothing needs no entry.
        if below == 0 {
            return;
        }
        let of = self.kept.entry(process).or_default();
        if below > of.settled {
            of.settled = below;
            let open = of.answers.split_off(&below);
            of.bytes -= of.answers.values().map(weight).sum::<usize>();
            of.answers = open;
        }
    }
}

fn weight(answer: &Bytes) -> usize {
    answer.len() + OVERHEAD
}

impl Serialize for OfProcess {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.settled, &self.answers).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for OfProcess {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (settled, answers) = <(u64, BTreeMap<u64, Bytes>)>::deserialize(deserializer)?;
        let bytes = answers.values().map(weight).sum();
        Ok(Self { settled, answers, bytes })
    }
}
