//! One client: it changes and reads its own blobs, one request at a time, and competes with the
//! others for contested names.
//!
//! Here: how a change is sent and its answer compared. `changes.rs` and `copies.rs` choose changes,
//! `reads.rs` and `search.rs` check reads, and `contests.rs` has contested names.

use std::time::Duration;

use blockyard::frontend::write::Stored;
use blockyard::index::CopiedContent;
use blockyard::index::Damage;
use blockyard::index::Error;
use blockyard::index::Write;
use blockyard::index::inflight::CopyNote;
use blockyard::protocol;
use blockyard::protocol::model::Reason;
use blockyard::types::AccountId;
use blockyard::types::Crc64;
use blockyard::types::LeaseAction;
use blockyard::types::Timestamp;
use bytes::Bytes;

use crate::answer::Answer;
use crate::change::Change;
use crate::change::Demand;
use crate::change::Scope;
use crate::content::Body;
use crate::content::Segment;
use crate::draw::content;
use crate::index::Session;
use crate::index::key;
use crate::model::Blob;
use crate::requests;
use crate::requests::Given;
use crate::rig::Failing;
use crate::seeds::Violation;
use crate::stack::Stack;
use crate::state::Marks;
use crate::state::State;

/// How far commit times may be ahead of the clock, since each is later than the one before.
pub(crate) const AHEAD: Duration = Duration::from_millis(10);

/// A client.
pub(crate) struct Client<'a> {
    pub(crate) number: u64,
    pub(crate) stack: &'a Stack,
    pub(crate) session: &'a Session<'a>,
}

/// The bytes of a change.
pub(crate) enum Payload {
    Nothing,
    Bytes(Bytes),
    /// The bytes of pages, and the offset of the first.
    Pages(u64, Bytes),
    /// Content that a copy shares.
    Copied(CopiedContent, Crc64, CopyNote),
}

impl Client<'_> {
    pub(crate) async fn run(self, steps: u64) -> Result<(), Violation> {
        for _ in 0..steps {
            if self.session.is_down() {
                break;
            }
            self.step().await?;
        }
        Ok(())
    }

    pub(crate) fn tag(&self) -> u64 {
        self.session.model.borrow_mut().tag()
    }

    pub(crate) fn with_blob<T>(&self, name: &str, work: impl FnOnce(&mut Blob) -> T) -> T {
        let mut model = self.session.model.borrow_mut();
        work(model.blobs.entry(name.to_owned()).or_default())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.stack.env.clock.now()
    }

    /// A time that no commit so far exceeds.
    fn latest(&self) -> Timestamp {
        self.now().max(self.session.model.borrow().latest).plus(AHEAD)
    }

    /// Sends a change and compares the answer with the reference model.
    pub(crate) async fn change(
        &self,
        name: &str,
        change: Change,
        demand: Demand,
        payload: Payload,
    ) -> Result<Option<Answer>, Violation> {
        if self.with_blob(name, |blob| blob.is_blurred()) {
            return Ok(None);
        }
        let now = self.now();
        let ticket = self.with_blob(name, |blob| blob.ask(change.clone(), demand, now));
        let answer = self.send(name, &change, demand, payload).await?;
        self.session.counts.add(answer.name(), 1);
        if matches!(answer, Answer::Done(_)) {
            self.session.counts.add(change.name(), 1);
        }
        if answer == Answer::NotDone {
            // The disk is full or overloaded; that may pass.
            self.stack.env.clock.sleep(Duration::from_millis(20)).await;
        }
        let latest = self.latest();
        let fits = self.with_blob(name, |blob| blob.answer(ticket, answer, latest));
        fits.map_err(|why| format!("{name}: {why}"))?;
        Ok(Some(answer))
    }

    async fn send(
        &self,
        name: &str,
        change: &Change,
        demand: Demand,
        payload: Payload,
    ) -> Result<Answer, Violation> {
        let request = |given| requests::request(key(name), change, demand, given);
        let (bytes, pages) = match payload {
            Payload::Nothing => return self.write(request(Given::Nothing)).await,
            Payload::Copied(content, crc64, note) => {
                let answer = self.write(request(Given::Copied(content, crc64))).await;
                drop(note);
                return answer;
            }
            Payload::Bytes(bytes) => (bytes, None),
            Payload::Pages(start, bytes) => (bytes, Some(start)),
        };
        let crc64 = Crc64::of(&bytes);
        let stored = match pages {
            Some(start) => {
                let stored = self.stack.pool.store_pages(vec![bytes], start).await;
                self.stored(stored)?
            }
            None => self.store(bytes).await?,
        };
        let Some(stored) = stored else { return Ok(Answer::NotDone) };
        let write = request(Given::New(stored.content(), crc64));
        let committing = stored.committing();
        let answer = self.write(write).await?;
        if !matches!(answer, Answer::Done(_) | Answer::Unknown) {
            committing.refused();
        }
        Ok(answer)
    }

    /// Stores the bytes before the row, as the front end does. `None` if they cannot be stored and
    /// that is excused.
    pub(crate) async fn store(&self, bytes: Bytes) -> Result<Option<Stored>, Violation> {
        let len = bytes.len() as u64;
        if self.stack.pool.fits_in_memory(len) {
            return self.stored(self.stack.pool.store(vec![bytes], len).await);
        }
        let cut = usize::try_from(self.session.draw.between(0, len)).unwrap();
        let streamed = async {
            let mut writer = self.stack.pool.stream(AccountId::new(1));
            writer.push(bytes.slice(..cut)).await?;
            writer.push(bytes.slice(cut..)).await?;
            writer.finish().await
        };
        self.stored(streamed.await)
    }

    /// Judges the result of storing a body, as [`Self::write`] judges a change. The disks of a
    /// history are small and may be full in any session.
    fn stored(
        &self,
        stored: Result<Stored, protocol::model::Refusal>,
    ) -> Result<Option<Stored>, Violation> {
        let error = match stored {
            Ok(stored) => return Ok(Some(stored)),
            Err(error) => error,
        };
        if error.reason == Reason::InsufficientStorage {
            self.session.counts.add("bodies refused as full", 1);
        } else if error.reason == Reason::ServerBusy {
            self.session.counts.add("bodies refused as overload", 1);
        } else if !self.excused(Failing::Writes) {
            return Err(format!("storing with {:?}: {error:?}", self.session.plan));
        }
        Ok(None)
    }

    pub(crate) async fn write(&self, write: Write) -> Result<Answer, Violation> {
        match self.stack.router.write(write).await {
            Ok(reply) => match requests::done(&reply) {
                Some(done) => Ok(Answer::Done(done)),
                None => Err(format!("unexpected answer {reply:?}")),
            },
            Err(error) if requests::is_refusal(&error) => Ok(Answer::Refused),
            Err(Error::Full(_)) => Ok(Answer::NotDone),
            Err(Error::Overloaded) => {
                self.session.counts.add("writes refused as overload", 1);
                Ok(Answer::NotDone)
            }
            Err(Error::Corrupt(Damage::Quarantined(_))) if self.excused(Failing::Quarantined) => {
                Ok(Answer::NotDone)
            }
            Err(Error::Unavailable(_)) if self.excused(Failing::Writes) => Ok(Answer::Unknown),
            Err(error) => Err(format!("write with {:?}: {error}", self.session.plan)),
        }
    }

    /// Whether the faults of this session excuse this failure. A failure without such a fault is a
    /// violation.
    pub(crate) fn excused(&self, failing: Failing) -> bool {
        let trouble = self.session.plan.trouble;
        // A disk that failed during the start is out of service. Bytes on it are not served.
        let lacks_a_disk = trouble.costs_a_disk(&self.session.sims) && !self.stack.is_whole();
        self.session.is_down() || lacks_a_disk || self.session.excuses(failing)
    }

    /// Whether a small blob of this name, which is stored inline, can be written and deleted.
    pub(crate) async fn can_write(&self, name: &str) -> Result<bool, Violation> {
        let segment = Segment { id: None, tag: self.tag(), len: 8_000 };
        let bytes = content(segment.tag, segment.len);
        let make = Change::Make { body: Body::Blocks(vec![segment]), marks: Marks::default() };
        let delete = Change::Delete { scope: Scope::Blob };
        for (change, payload) in [(make, Payload::Bytes(bytes)), (delete, Payload::Nothing)] {
            let answer = self.change(name, change, Demand::default(), payload).await?;
            if !matches!(answer, Some(Answer::Done(_))) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Deletes every blob of every client, with retries.
    pub(crate) async fn delete_all(&self) -> Result<(), Violation> {
        let names: Vec<String> = self.session.model.borrow().blobs.keys().cloned().collect();
        for name in names {
            for _ in 0..20 {
                let known = self.with_blob(&name, |blob| blob.known().cloned());
                if known.is_some_and(|state| state == State::default()) {
                    break;
                }
                // A lease prevents the deletion. Staged blocks are deleted with a blob, so an empty
                // block list makes one.
                let action = LeaseAction::Break { period: Some(Duration::ZERO) };
                let marks = Marks { mark: self.tag(), ..Marks::default() };
                for change in [
                    Change::Lease { action },
                    Change::Commit { list: Vec::new(), marks },
                    Change::Delete { scope: Scope::WithSnapshots },
                ] {
                    self.change(&name, change, Demand::default(), Payload::Nothing).await?;
                }
            }
        }
        Ok(())
    }
}
