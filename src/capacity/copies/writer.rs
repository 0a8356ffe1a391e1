//! The writer of an extent with copies.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use thiserror::Error as ThisError;

use super::Members;
use crate::capacity::Appended;
use crate::capacity::CopyId;
use crate::capacity::Durability;
use crate::capacity::Encoded;
use crate::capacity::Error;
use crate::capacity::FramedAppend;
use crate::capacity::Member;
use crate::capacity::Payload;
use crate::env::Clock;
use crate::types::Epoch;
use crate::types::ExtentOffset;

/// Why an extent takes no more appends of this writer. Roll to an extent of other members, append
/// there what was not answered, and settle this extent.
#[derive(Clone, Debug, ThisError)]
#[error("a member refused an append or did not answer: {error}")]
pub struct GivenUp {
    /// The place of the member in the list of members; `None` if the extent was given up before.
    pub member: Option<usize>,
    /// What it answered.
    pub error: Error,
}

impl GivenUp {
    fn before(copy: CopyId) -> Self {
        Self { member: None, error: Error::Sealed { extent: copy.extent } }
    }

    fn by(member: usize, error: Error) -> Self {
        Self { member: Some(member), error }
    }
}

/// The one writer of an extent.
#[derive(Debug)]
pub struct CopyWriter {
    copy: CopyId,
    epoch: Epoch,
    members: Members,
    /// Where the extent ends: all members have synced the bytes before.
    end: ExtentOffset,
    /// Where the bytes end that were made durable.
    flushed: ExtentOffset,
    given_up: bool,
    /// Whether all copies are sealed at the end.
    is_sealed: bool,
    /// Measures the silence of members.
    clock: Option<Arc<dyn Clock>>,
}

/// A member that has not answered for so long does not count as there: the extent is given up.
const SILENCE_MAX: Duration = Duration::from_millis(500);
/// A disk is given this many bytes of unsynced appends a second beside that.
const SYNCED_PER_SECOND: u64 = 8 << 20;

impl CopyWriter {
    /// The writer of a new extent. The first append creates the copies.
    #[must_use]
    pub const fn new(copy: CopyId, epoch: Epoch, members: Members) -> Self {
        let (end, flushed) = (ExtentOffset::START, ExtentOffset::START);
        let (given_up, is_sealed, clock) = (false, false, None);
        Self { copy, epoch, members, end, flushed, given_up, is_sealed, clock }
    }

    /// Gives the extent up when a member has been silent for 500 ms. Without a clock it waits for
    /// as long as the calls of its members do.
    #[must_use]
    pub fn giving_up_by(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Where the bytes that were answered end.
    #[must_use]
    pub const fn end(&self) -> ExtentOffset {
        self.end
    }

    /// Appends payloads, none of them empty. All members have synced them when this returns.
    ///
    /// # Errors
    /// [`GivenUp`]: some members may have the bytes. Every later append fails too.
    pub async fn append(&mut self, payloads: Vec<Payload>) -> Result<Appended, GivenUp> {
        self.append_with(payloads, Durability::Durable).await
    }

    /// As [`Self::append`]. If the append is deferred, all members have the bytes when this
    /// returns, and [`Self::flush`] makes them durable.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub async fn append_with(
        &mut self,
        payloads: Vec<Payload>,
        durability: Durability,
    ) -> Result<Appended, GivenUp> {
        if payloads.is_empty() && !self.given_up && !self.is_sealed {
            return Ok(Appended { locations: Vec::new(), end: self.end });
        }
        self.begin()?;
        let Encoded { append, appended } =
            FramedAppend::encode(self.copy, self.epoch, self.end, payloads);
        let append = FramedAppend { durability, ..append };
        self.call_all(|member| {
            let append = append.clone();
            async move { member.append(append).await }
        })
        .await?;
        self.given_up = false;
        self.end = appended.end;
        if durability == Durability::Durable {
            self.flushed = appended.end;
        }
        Ok(appended)
    }

    /// Makes everything that was appended durable on all members. So is everything in an extent
    /// that was sealed.
    ///
    /// # Errors
    /// [`GivenUp`]: bytes whose append was deferred may be lost.
    pub async fn flush(&mut self) -> Result<(), GivenUp> {
        if self.is_sealed {
            return Ok(());
        }
        self.begin()?;
        let (CopyId { extent, .. }, epoch, end) = (self.copy, self.epoch, self.end);
        // An extent without an append has no copies.
        if end > ExtentOffset::START {
            let flush =
                |member: Arc<dyn Member>| async move { member.flush(extent, epoch, end).await };
            self.call_all(flush).await?;
        }
        self.given_up = false;
        self.flushed = end;
        Ok(())
    }

    /// Seals the copies of an extent of which every append was answered. Such a seal needs no
    /// record: all members end alike. An extent without an append has no copies. It takes no
    /// appends after that.
    ///
    /// # Errors
    /// [`GivenUp`]: settle the extent.
    pub async fn seal(&mut self) -> Result<ExtentOffset, GivenUp> {
        if self.is_sealed {
            return Ok(self.end);
        }
        self.begin()?;
        let (CopyId { extent, .. }, epoch, end) = (self.copy, self.epoch, self.end);
        if end > ExtentOffset::START {
            let seal =
                |member: Arc<dyn Member>| async move { member.seal_at(extent, epoch, end).await };
            self.call_all(seal).await?;
        }
        self.is_sealed = true;
        Ok(end)
    }

    /// Counts the extent as given up until the call has ended well: a call that is cancelled has an
    /// unknown outcome.
    fn begin(&mut self) -> Result<(), GivenUp> {
        if std::mem::replace(&mut self.given_up, true) {
            return Err(GivenUp::before(self.copy));
        }
        Ok(())
    }

    /// Makes a call to all members at once.
    async fn call_all<T, F>(&self, call: impl Fn(Arc<dyn Member>) -> F) -> Result<(), GivenUp>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let calls = self.members.iter().map(|member| self.unless_silent(call(Arc::clone(member))));
        let answers = join_all(calls).await;
        let failed = answers.into_iter().enumerate().filter_map(|(member, answer)| {
            let error = answer.err()?;
            Some(GivenUp::by(member, error))
        });
        // That somebody else owns the extent says more than that a member is away.
        let is_fenced = |given_up: &GivenUp| matches!(given_up.error, Error::Fenced { .. });
        match failed.min_by_key(|given_up| !is_fenced(given_up)) {
            Some(given_up) => Err(given_up),
            None => Ok(()),
        }
    }

    async fn unless_silent<T>(
        &self,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let Some(clock) = &self.clock else { return call.await };
        let unsynced = Duration::from_secs((self.end - self.flushed) / SYNCED_PER_SECOND);
        tokio::select! {
            biased;
            answer = call => answer,
            () = clock.sleep(SILENCE_MAX + unsynced) => {
                let reason = "it has been silent for too long".to_owned();
                Err(Error::NoAnswer { reason })
            }
        }
    }
}
