//! Concurrent changes by all clients: names that only one of them can create, and an append blob to
//! which all of them append.

use std::collections::BTreeMap;

use blockyard::types::Crc64;

use crate::answer::Answer;
use crate::answer::Done;
use crate::answer::More;
use crate::change::Change;
use crate::change::Demand;
use crate::change::TagDemand;
use crate::client::Client;
use crate::content::Body;
use crate::content::Segment;
use crate::draw::content;
use crate::index::key;
use crate::reads::Found;
use crate::reads::Seen;
use crate::requests;
use crate::requests::Given;
use crate::seeds::Violation;
use crate::state::Marks;

/// The append blob.
const LOG: &str = "contest/log";

/// Bytes of an append to it.
const RECORD: u64 = 24;

/// The result of an attempt to create a contested name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    Won,
    Unknown,
}

/// The known results of contests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contests {
    /// For each contested name, the attempts by the tag of their content, without those that lost.
    names: BTreeMap<String, BTreeMap<u64, Attempt>>,
    /// Appends to the log by tag, with their offset if it was answered.
    log: BTreeMap<u64, Option<u64>>,
    /// The end of the log according to the last answer.
    end: u64,
}

impl Client<'_> {
    /// Creates a contested name if it is absent. Exactly one client succeeds (I9).
    pub(crate) async fn contest(&self) -> Result<(), Violation> {
        let name = format!("contest/{}", self.session.draw.between(0, 3));
        let segment = Segment { id: None, tag: self.tag(), len: 100 };
        let bytes = content(segment.tag, segment.len);
        let crc64 = Crc64::of(&bytes);
        let Some(stored) = self.store(bytes).await? else { return Ok(()) };
        let marks = Marks { mark: segment.tag, ..Marks::default() };
        let change = Change::Make { body: Body::Blocks(vec![segment]), marks };
        let demand = Demand { tag: TagDemand::IfAbsent, lease: None };
        let given = Given::New(stored.content(), crc64);
        // The result is unknown until the answer, and a kill may come before it.
        self.note(&name, segment.tag, Some(Attempt::Unknown));
        let committing = stored.committing();
        let write = requests::request(key(&name), &change, demand, given);
        let attempt = match self.write(write).await? {
            Answer::Done(_) => Some(Attempt::Won),
            Answer::Unknown => Some(Attempt::Unknown),
            Answer::Refused | Answer::NotDone => None,
        };
        if attempt.is_none() {
            committing.refused();
        }
        self.note(&name, segment.tag, attempt);
        Ok(())
    }

    fn note(&self, name: &str, tag: u64, attempt: Option<Attempt>) {
        let mut model = self.session.model.borrow_mut();
        let attempts = model.contests.names.entry(name.to_owned()).or_default();
        match attempt {
            Some(attempt) => attempts.insert(tag, attempt),
            None => attempts.remove(&tag),
        };
    }

    /// Appends to the log, mostly at its expected end. Creates it first.
    pub(crate) async fn log(&self) -> Result<(), Violation> {
        let draw = self.session.draw;
        let end = self.session.model.borrow().contests.end;
        if end == 0 {
            let body = Body::Appended { segments: Vec::new(), sealed: false };
            let change = Change::Make { body, marks: Marks::default() };
            let demand = Demand { tag: TagDemand::IfAbsent, lease: None };
            self.write(requests::request(key(LOG), &change, demand, Given::Nothing)).await?;
        }
        let segment = Segment { id: None, tag: self.tag(), len: RECORD };
        let bytes = content(segment.tag, segment.len);
        let crc64 = Crc64::of(&bytes);
        let Some(stored) = self.store(bytes).await? else { return Ok(()) };
        let position = draw.percent(60).then_some(end);
        let change = Change::Append { segment, position, len_max: None };
        let given = Given::New(stored.content(), crc64);
        let write = requests::request(key(LOG), &change, Demand::default(), given);
        self.session.model.borrow_mut().contests.log.insert(segment.tag, None);
        let answer = self.write(write).await?;
        let contests = &mut self.session.model.borrow_mut().contests;
        match answer {
            Answer::Done(Done { more: More::Appended { offset, .. }, .. }) => {
                if position.is_some_and(|position| position != offset) {
                    return Err(format!("appended at {offset}, wanted {position:?}"));
                }
                contests.log.insert(segment.tag, Some(offset));
                contests.end = contests.end.max(offset + RECORD);
            }
            Answer::Refused | Answer::NotDone => {
                contests.log.remove(&segment.tag);
                // Another client was faster, or an append with an unknown outcome arrived.
                contests.end = end + RECORD;
            }
            Answer::Unknown => {}
            Answer::Done(other) => return Err(format!("unexpected answer {other:?}")),
        }
        Ok(())
    }

    pub(crate) async fn check_contests(&self) -> Result<(), Violation> {
        let contests = self.session.model.borrow().contests.clone();
        for (name, attempts) in &contests.names {
            let won: Vec<u64> = attempts
                .iter()
                .filter(|(_, attempt)| **attempt == Attempt::Won)
                .map(|(tag, _)| *tag)
                .collect();
            if won.len() > 1 {
                return Err(format!("{name} was created {} times", won.len()));
            }
            let found = match self.read(name, None, None).await? {
                Seen::Value(Found::Bytes { bytes, .. }) => Some(bytes),
                Seen::Value(_) | Seen::Excused => None,
            };
            let allowed = match won.first() {
                Some(tag) => found == Some(content(*tag, 100)),
                None => {
                    found.is_none_or(|bytes| attempts.keys().any(|tag| bytes == content(*tag, 100)))
                }
            };
            if !allowed {
                return Err(format!(
                    "{name} holds what nobody, or a loser, put there: {attempts:?}"
                ));
            }
        }
        self.check_log(&contests).await
    }

    /// Checks the log: every answered append is at its offset, every other append is there at most
    /// once, and there is nothing else.
    async fn check_log(&self, contests: &Contests) -> Result<(), Violation> {
        let bytes = match self.read(LOG, None, None).await? {
            Seen::Value(Found::Bytes { bytes, .. }) => bytes,
            Seen::Value(_) | Seen::Excused => bytes::Bytes::new(),
        };
        let record = usize::try_from(RECORD).unwrap();
        let mut open: BTreeMap<u64, Option<u64>> = contests.log.clone();
        for (at, bytes) in (0u64..).step_by(record).zip(bytes.chunks(record)) {
            let tag = open.iter().find(|(tag, known)| {
                known.is_none_or(|known| known == at) && content(**tag, RECORD) == bytes
            });
            let Some(tag) = tag.map(|(tag, _)| *tag) else {
                return Err(format!("the log holds at {at} what does not belong there: {open:?}"));
            };
            open.remove(&tag);
        }
        open.retain(|_, known| known.is_some());
        if open.is_empty() { Ok(()) } else { Err(format!("the log lost {open:?}")) }
    }
}
