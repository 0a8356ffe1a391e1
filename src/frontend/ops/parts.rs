//! Reads of one of the parts in which a blob was uploaded.

use crate::frontend::answers::Payer;
use crate::frontend::errors;
use crate::frontend::errors::Busy;
use crate::frontend::errors::Subject;
use crate::frontend::lookup;
use crate::frontend::lookup::BlobTarget;
use crate::frontend::ops::Answer;
use crate::frontend::ops::Answered;
use crate::frontend::ops::content;
use crate::frontend::ops::content::WantedBytes;
use crate::frontend::state::FrontEnd;
use crate::index::PartRange;
use crate::index::ReadPart;
use crate::protocol::model::Reason;
use crate::protocol::model::Reply;
use crate::types::ByteRange;
use crate::types::EtagMatch;
use crate::types::PartNumber;

/// How often the part is looked up again because the blob was changed before it was read.
const TRIES: usize = 4;

/// A part that is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedPart {
    pub(crate) number: PartNumber,
    /// Whether only the head of the answer is wanted.
    pub(crate) is_head: bool,
}

/// Reads a part. It is looked up first; the read then requires that the blob is unchanged.
pub(crate) async fn get(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    wanted: WantedPart,
    payer: Payer,
) -> Answer {
    let BlobTarget { account, path, precondition } = blob;
    let target = |precondition| BlobTarget { account, path: path.clone(), precondition };
    for _ in 0..TRIES {
        let located = target(precondition.clone()).locate(&front.rows).await?;
        let read = ReadPart {
            key: located.blob.key,
            revision: located.blob.revision,
            guard: lookup::guard(located.precondition),
            number: wanted.number,
        };
        let found = front.rows.router.ask(read).await;
        let PartRange { range, parts, etag } =
            found.map_err(|error| errors::from_index(&error, Subject::Blob))?;
        let mut same = precondition.clone();
        same.conditions.if_match = Some(EtagMatch::Tags(vec![Some(etag)]));
        let last = range.end.checked_sub(1).filter(|last| *last >= range.start);
        let bytes = last.and_then(|last| ByteRange::new(range.start, Some(last)));
        match read_bytes(front, target(same), (wanted, bytes), payer).await {
            Err(error) if error.reason == Reason::ConditionNotMet => {}
            answer => {
                let Answered { reply, stream } = answer?;
                return Ok(Answered { reply: Reply::Part(Box::new(reply), parts), stream });
            }
        }
    }
    Err(errors::busy(Busy::Index))
}

async fn read_bytes(
    front: &FrontEnd,
    blob: BlobTarget<'_>,
    (wanted, range): (WantedPart, Option<ByteRange>),
    payer: Payer,
) -> Answer {
    if !wanted.is_head {
        return content::get(front, blob, WantedBytes { range, checksum: None }, payer).await;
    }
    let facts = content::facts(front, blob).await?;
    let reply = match range.and_then(|range| range.within(facts.len)) {
        Some(range) => Reply::Blob { facts, range: Some(range), checksum: None },
        None => Reply::BlobProperties(facts),
    };
    Ok(reply.into())
}
