//! Carries out one pending copy: fetches its source and commits how it ended.

use std::sync::Arc;
use std::time::Duration;

use crate::frontend::copies::Place;
use crate::frontend::copies::Running;
use crate::frontend::copy_failure;
use crate::frontend::ops::copies::pages;
use crate::frontend::ops::copies::pending::ends::PANICS_MAX;
use crate::frontend::ops::copies::pending::ends::account_of;
use crate::frontend::ops::copies::pending::ends::given_up;
use crate::frontend::ops::copies::pending::ends::link;
use crate::frontend::ops::copies::take;
use crate::frontend::ops::copies::take::Form;
use crate::frontend::ops::copies::take::Hold;
use crate::frontend::ops::copies::take::Wanted;
use crate::frontend::source;
use crate::frontend::source::FetchAccount;
use crate::frontend::source::Source;
use crate::frontend::state::FrontEnd;
use crate::index;
use crate::index::CopyEnd;
use crate::index::EndCopy;
use crate::index::PendingCopy;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::copy::ArchivedSource;
use crate::protocol::model::copy::CopyPurpose;
use crate::protocol::model::copy::CopySource;
use crate::protocol::model::copy::SourceConditions;
use crate::types::BlobKind;

/// The longest time that a copy may take, as on the service.
const TIME_MAX: Duration = Duration::from_secs(14 * 24 * 3_600);

/// A copy that has its bytes, or has failed permanently.
struct Outcome {
    end: CopyEnd,
    hold: Option<Hold>,
}

/// Carries out a copy, until another process may do so.
pub(super) async fn carry_out(
    front: &Arc<FrontEnd>,
    pending: &PendingCopy,
    place: Place,
    lost: impl Future<Output = ()>,
) {
    let (id, running) = (place.id, &place.running);
    let stopping = front.env.tasks.stopping();
    let fetching = async {
        if place.panics >= PANICS_MAX {
            return Err(given_up());
        }
        fetch(front, pending, running).await
    };
    let done = tokio::select! {
        biased;
        // The work row stays: the copy is carried out after the next start.
        () = stopping.cancelled() => return,
        () = running.abort.cancelled() => return,
        () = lost => return,
        done = fetching => done,
    };
    let Err(error) = settle(front, pending, done).await else {
        return front.copies.settled(id);
    };
    tracing::debug!(%id, %error, "the end of a copy was not committed; the copy is tried again");
    again_later(front, place).await;
}

/// Has a copy tried again after a pause, in which its place is free for others.
pub(super) async fn again_later(front: &FrontEnd, place: Place) {
    let pause = front.copies.pause(place.id, front.env.clock.monotonic());
    drop(place);
    tokio::select! {
        biased;
        () = front.env.tasks.stopping().cancelled_owned() => {}
        () = front.env.clock.sleep(pause) => front.copies.wake.notify_one(),
    }
}

/// Commits the outcome of a copy. On an error the copy is still pending.
async fn settle(
    front: &FrontEnd,
    pending: &PendingCopy,
    done: Result<Outcome, Refusal>,
) -> Result<(), index::Error> {
    let Outcome { end, hold } = match done {
        Ok(done) => done,
        Err(error) if error.reason == Reason::ServerBusy => return Err(index::Error::Overloaded),
        Err(error) => Outcome { end: CopyEnd::Failed(copy_failure::write(&error)), hold: None },
    };
    let end = EndCopy { blob: pending.blob.clone(), id: pending.job.id, end };
    match take::commit(&front.rows, None, Box::new(end), hold).await {
        // Aborted meanwhile, or deleted with its container.
        Ok(_)
        | Err(index::Error::Refused(
            index::Refused::NoPendingCopy
            | index::Refused::OtherCopy
            | index::Refused::BlobNotFound,
        )) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn fetch(
    front: &FrontEnd,
    pending: &PendingCopy,
    running: &Running,
) -> Result<Outcome, Refusal> {
    let job = &pending.job;
    let link = link(front, pending).ok_or(Reason::InternalError)?;
    let gone = || Refusal::new(Reason::CannotVerifyCopySource).status(409);
    let if_match = job.etag.clone();
    let conditions = SourceConditions { if_match, ..SourceConditions::default() };
    let source = CopySource {
        url: link.url.parse().map_err(|_| gone())?,
        authorization: link.authorization,
        key: None,
        conditions,
        range: None,
        md5: job.md5,
        crc64: job.crc64,
        purpose: CopyPurpose::Copy { sync: false },
        archived: ArchivedSource::Refused,
    };
    let by = FetchAccount { payer: account_of(pending), admitted: None };
    let mut fetched = source::open_outside(front, by, &source, TIME_MAX).await?;
    fetched.count = Some(Arc::clone(&running.copied));
    let page_blob = matches!(fetched.facts.kind, BlobKind::Page { .. });
    let found = Source::Outside(Box::new(fetched));
    let taken = if page_blob {
        pages::take(front, &pending.blob, found, None).await?
    } else {
        let wanted = Wanted { source: &source, form: Form::Blob, key: None };
        take::take(front, found, wanted).await?
    };
    let end = CopyEnd::Success { content: taken.content, crc64: taken.kept_crc64 };
    Ok(Outcome { end, hold: Some(taken.hold) })
}
