//! The writer of an extent with copies.

use std::sync::Arc;

use futures_util::future::join_all;
use thiserror::Error as ThisError;

use super::Members;
use crate::capacity::Appended;
use crate::capacity::CopyId;
use crate::capacity::Encoded;
use crate::capacity::Error;
use crate::capacity::FramedAppend;
use crate::capacity::Payload;
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
    given_up: bool,
}

impl CopyWriter {
    /// The writer of a new extent. The first append creates the copies.
    #[must_use]
    pub const fn new(copy: CopyId, epoch: Epoch, members: Members) -> Self {
        Self { copy, epoch, members, end: ExtentOffset::START, given_up: false }
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
        if payloads.is_empty() && !self.given_up {
            return Ok(Appended { locations: Vec::new(), end: self.end });
        }
        if self.given_up {
            return Err(GivenUp::before(self.copy));
        }
        // A cancelled append has an unknown outcome.
        self.given_up = true;
        let Encoded { append, appended } =
            FramedAppend::encode(self.copy, self.epoch, self.end, payloads);
        let calls = self.members.iter().map(|member| member.append(append.clone()));
        for (member, answer) in join_all(calls).await.into_iter().enumerate() {
            answer.map_err(|error| GivenUp::by(member, error))?;
        }
        self.given_up = false;
        self.end = appended.end;
        Ok(appended)
    }

    /// Seals the copies of an extent of which every append was answered. Such a seal needs no
    /// record: all members end alike. An extent without an append has no copies.
    ///
    /// # Errors
    /// [`GivenUp`]: settle the extent.
    pub async fn seal(self) -> Result<ExtentOffset, GivenUp> {
        let Self { copy, epoch, members, end, given_up } = self;
        if given_up {
            return Err(GivenUp::before(copy));
        }
        let sealed = |member: Arc<dyn super::Member>| async move {
            member.seal_at(copy.extent, epoch, end).await
        };
        if end > ExtentOffset::START {
            let calls = members.into_iter().map(sealed);
            for (member, answer) in join_all(calls).await.into_iter().enumerate() {
                answer.map_err(|error| GivenUp::by(member, error))?;
            }
        }
        Ok(end)
    }
}
