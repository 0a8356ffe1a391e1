//! Agreement on the end of an extent that its writer gave up, or whose writer is dead.
//!
//! The steps are those of ADR 0050, and their order matters:
//! 1. fence the members, so that no late append is answered;
//! 2. the greatest end of a copy that is not incomplete counts: it is at or after every answered
//!    byte, because all members had synced what was answered;
//! 3. *level*: give every copy that was reached the bytes up to that end;
//! 4. record the end. If an end was recorded before, that one counts;
//! 5. seal all copies there.
//!
//! Without step 3 the disk with the longest copy could be lost after step 4, and no copy would
//! reach the recorded end.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use thiserror::Error as ThisError;

use super::Members;
use super::pull::Source;
use super::pull::pull;
use crate::capacity::CopyId;
use crate::capacity::Error;
use crate::capacity::ExtentState;
use crate::capacity::Member;
use crate::env::Clock;
use crate::types::Epoch;
use crate::types::ExtentId;
use crate::types::ExtentOffset;

/// Where the end of an extent that did not end cleanly is recorded. The first record of an extent
/// wins.
#[async_trait]
pub trait EndRecord: Send + Sync + Debug {
    /// What is recorded.
    ///
    /// # Errors
    /// Why the record could not be read.
    async fn recorded(&self, extent: ExtentId) -> Result<Recorded, String>;

    /// Records this end, unless there is a record. Returns the recorded end.
    ///
    /// # Errors
    /// Why it is not known whether an end was recorded.
    async fn record(&self, extent: ExtentId, end: ExtentOffset) -> Result<ExtentOffset, String>;
}

/// What is recorded of an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The end, if there is one.
    pub end: Option<ExtentOffset>,
    /// How many members the extent has.
    pub members: usize,
    /// Whether the extent has other members than those that its writer wrote to. Then a member
    /// without a copy does not show that nothing was answered.
    pub members_changed: bool,
}

/// Why an extent has no agreed end yet. Try again when more members are there.
#[derive(Clone, Debug, ThisError)]
pub enum Unsettled {
    /// No member was reached that may say where the extent ends.
    #[error("no complete copy of the extent was reached")]
    NoWitness,
    /// The copies that were reached could not be made equal.
    #[error("a copy could not be completed: {0}")]
    NotLevel(Error),
    /// The record was not read or written.
    #[error("the end could not be recorded: {0}")]
    NotRecorded(String),
    /// No copy that was reached has all bytes up to the recorded end.
    #[error("no copy that was reached has all bytes up to {end}")]
    Short {
        /// The recorded end.
        end: ExtentOffset,
    },
}

/// A settled extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// Where the extent ends.
    pub end: ExtentOffset,
    /// How many copies are sealed there. Others are sealed when their nodes are back.
    pub sealed: usize,
}

/// A member that was reached and fenced.
#[derive(Clone, Debug)]
struct Reached {
    member: Arc<dyn Member>,
    end: ExtentOffset,
    sealed: bool,
    incomplete: bool,
}

/// How long members are waited for after the first one has answered. One that is silent has its
/// copy sealed when it is back.
const OTHERS_WAIT: Duration = Duration::from_secs(1);

/// Which members an agreement waits for.
#[derive(Clone, Copy, Debug)]
pub struct Patience<'a> {
    /// Measures the time: no member is waited for longer than a second after the first answer.
    pub clock: &'a dyn Clock,
    /// The first members of the list, which are expected to answer. The others failed lately.
    pub expected: usize,
    /// How many answers suffice when all expected members have answered or failed.
    pub enough: usize,
}

/// An agreement on the end of an extent.
#[derive(Clone, Copy, Debug)]
pub struct Settling<'a> {
    /// The extent.
    pub copy: CopyId,
    /// Above the writer's.
    pub epoch: Epoch,
    /// Where the end is recorded.
    pub record: &'a dyn EndRecord,
    /// Without it, all members are waited for until their calls end.
    pub patience: Option<Patience<'a>>,
}

/// As [`Settling::run`], which waits for all members.
#[cfg(test)]
pub(super) async fn settle(
    members: &Members,
    copy: CopyId,
    epoch: Epoch,
    record: &dyn EndRecord,
) -> Result<Settlement, Unsettled> {
    Settling { copy, epoch, record, patience: None }.run(members).await
}

impl Settling<'_> {
    /// Agrees on the end and seals the copies that can be reached. May be repeated, also
    /// concurrently.
    ///
    /// # Errors
    /// [`Unsettled`]; nothing that was answered is lost.
    pub async fn run(&self, members: &Members) -> Result<Settlement, Unsettled> {
        let Self { copy, epoch, record, patience } = *self;
        let recorded = record.recorded(copy.extent).await.map_err(Unsettled::NotRecorded)?;
        let reached = reach(members, copy, epoch, patience).await;
        agree(reached, (copy, epoch), (recorded, record)).await
    }
}

async fn agree(
    mut reached: Vec<Reached>,
    (copy, epoch): (CopyId, Epoch),
    (recorded, record): (Recorded, &dyn EndRecord),
) -> Result<Settlement, Unsettled> {
    let sealed = reached.iter().find(|one| one.sealed).map(|one| one.end);
    let are_all_sealed = reached.len() >= recorded.members && reached.iter().all(|one| one.sealed);
    let end = match (recorded.end, sealed) {
        (Some(end), _) => end,
        (None, Some(end)) if are_all_sealed => end,
        // A seal that not all members have got: those that have it may be lost, and the others
        // would agree on another end.
        (None, Some(end)) => {
            record.record(copy.extent, end).await.map_err(Unsettled::NotRecorded)?
        }
        (None, None) => {
            let greatest = greatest_end(&reached, recorded).ok_or(Unsettled::NoWitness)?;
            level(&mut reached, copy, epoch, greatest).await.map_err(Unsettled::NotLevel)?;
            // From here on the disk of the longest copy may be lost.
            record.record(copy.extent, greatest).await.map_err(Unsettled::NotRecorded)?
        }
    };
    if !reached.iter().any(|one| one.end >= end) {
        return Err(Unsettled::Short { end });
    }
    seal(reached, copy, epoch, end).await
}

/// The greatest end of the copies that may decide where the extent ends.
fn greatest_end(reached: &[Reached], recorded: Recorded) -> Option<ExtentOffset> {
    // The fence has created a copy where there was none. Of the first members it shows that nothing
    // was answered, because all of them must have what was. Of a new member it shows nothing.
    let is_new = |end| end == ExtentOffset::START && recorded.members_changed;
    let is_witness = |one: &&Reached| !one.incomplete && !is_new(one.end);
    let witnesses = reached.iter().filter(is_witness);
    // All of them had synced what was answered.
    let decided = witnesses.map(|one| one.end).max();
    // Frames of one body are synced together. If all machines lose their power before that, every
    // copy may have a hole. Then no member is left that may know better, and what was answered was
    // synced by each of them.
    let all_reached = reached.len() >= recorded.members;
    if decided.is_some() || recorded.members_changed || !all_reached {
        return decided;
    }
    tracing::error!("all copies of an extent are incomplete; it ends at the longest one");
    reached.iter().map(|one| one.end).max()
}

/// Fences all members that can be reached.
async fn reach(
    members: &Members,
    copy: CopyId,
    epoch: Epoch,
    patience: Option<Patience<'_>>,
) -> Vec<Reached> {
    let fenced = members
        .iter()
        .enumerate()
        .map(|(at, member)| async move { (at, fence(Arc::clone(member), copy, epoch).await) });
    let mut answers: FuturesUnordered<_> = fenced.collect();
    let mut reached = Vec::new();
    let mut expected = patience.map_or(members.len(), |patience| patience.expected);
    let expects = |at: usize| usize::from(patience.is_none_or(|patience| at < patience.expected));
    while let Some((at, answer)) = answers.next().await {
        expected -= expects(at);
        reached.extend(answer);
        if !reached.is_empty() {
            break;
        }
    }
    let Some(Patience { clock, enough, .. }) = patience else {
        while let Some((_, answer)) = answers.next().await {
            reached.extend(answer);
        }
        return reached;
    };
    let others = async {
        while expected > 0 || reached.len() < enough {
            let Some((at, answer)) = answers.next().await else { break };
            expected -= expects(at);
            reached.extend(answer);
        }
    };
    tokio::select! {
        biased;
        () = others => {}
        () = clock.sleep(OTHERS_WAIT) => {}
    }
    reached
}

/// Fences one member; `None` if it fails.
async fn fence(member: Arc<dyn Member>, copy: CopyId, epoch: Epoch) -> Option<Reached> {
    let end = member.fence(copy, epoch).await.ok()?;
    let info = member.copy(copy.extent).await.ok()??;
    let sealed = info.state == ExtentState::Sealed;
    // Another settler may have cut and sealed the copy since the fence.
    let end = if sealed { info.end } else { end };
    Some(Reached { member, end, sealed, incomplete: info.incomplete })
}

/// Gives every copy that was reached the bytes up to `end`, which one of them has.
async fn level(
    reached: &mut [Reached],
    copy: CopyId,
    epoch: Epoch,
    end: ExtentOffset,
) -> Result<(), Error> {
    // What an incomplete copy has up to its end is sound.
    let has_all = |one: &&Reached| one.end >= end;
    let sources: Vec<_> = reached.iter().filter(has_all).map(|one| one.member.clone()).collect();
    let mut result = Ok(());
    for one in reached.iter_mut().filter(|one| one.end < end) {
        match pull_from_any(&*one.member, copy, epoch, (&sources, end)).await {
            Ok(()) => one.end = end,
            Err(error) => result = result.and(Err(error)),
        }
    }
    result
}

/// Pulls from the first source that can give everything.
async fn pull_from_any(
    to: &dyn Member,
    copy: CopyId,
    epoch: Epoch,
    (sources, end): (&[Arc<dyn Member>], ExtentOffset),
) -> Result<(), Error> {
    let mut result = Err(Error::NoSuchExtent { extent: copy.extent });
    for source in sources {
        result = pull(to, copy, epoch, Source { member: &**source, end }).await;
        if result.is_ok() {
            break;
        }
    }
    result
}

/// Seals the copies that were reached. Shorter ones get what they lack first. A copy that cannot is
/// left for the next time.
async fn seal(
    mut reached: Vec<Reached>,
    copy: CopyId,
    epoch: Epoch,
    end: ExtentOffset,
) -> Result<Settlement, Unsettled> {
    let levelled = level(&mut reached, copy, epoch, end).await;
    let complete = reached.iter().filter(|one| one.end >= end);
    let calls = complete.map(|one| one.member.seal_at(copy.extent, epoch, end));
    let sealed = join_all(calls).await.iter().filter(|answer| answer.is_ok()).count();
    match levelled {
        Err(error) if sealed == 0 => Err(Unsettled::NotLevel(error)),
        _ => Ok(Settlement { end, sealed }),
    }
}
