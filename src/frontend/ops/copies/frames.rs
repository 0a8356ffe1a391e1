//! Makes content of whole frames of a source: the bytes are read once for their checksums, and not
//! stored again.

use std::collections::VecDeque;

use crate::frontend::body::RequestBody;
use crate::frontend::ingest;
use crate::frontend::ingest::Checksums;
use crate::frontend::write::WritePool;
use crate::index::Frames;
use crate::index::NewContent;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::Upload;
use crate::types::Crc32cHasher;
use crate::types::Location;

/// Content that was read, and its checksums.
pub(super) struct Located {
    pub(super) content: NewContent,
    pub(super) checksums: Checksums,
}

/// Reads a body that lies in these frames, and checks the checksums that the client gave.
///
/// # Errors
/// Those of the body and of its checksums.
pub(super) async fn locate(
    pool: &WritePool,
    body: &mut RequestBody,
    frames: &[Frames],
    upload: &Upload,
    md5_wanted: bool,
) -> Result<Located, Refusal> {
    let mut summing = Summing::new(frames);
    let checksums =
        ingest::verify(pool, body, upload, md5_wanted, |piece| summing.update(piece)).await?;
    let locations = summing.finish().ok_or(Reason::InternalError)?;
    Ok(Located { content: NewContent::Shared(locations), checksums })
}

/// Computes the checksum of each run of frames.
struct Summing {
    /// Runs to come. The first one has begun.
    rest: VecDeque<Frames>,
    /// Bytes of the first run so far.
    len: u64,
    hasher: Crc32cHasher,
    done: Vec<Location>,
}

impl Summing {
    fn new(frames: &[Frames]) -> Self {
        let rest = frames.iter().copied().collect();
        Self { rest, len: 0, hasher: Crc32cHasher::default(), done: Vec::new() }
    }

    fn update(&mut self, mut piece: &[u8]) {
        while let Some(run) = self.rest.front().copied()
            && !piece.is_empty()
        {
            let wanted = usize::try_from(run.len.get() - self.len).unwrap_or(usize::MAX);
            let (own, rest) = piece.split_at(wanted.min(piece.len()));
            self.hasher.update(own);
            self.len += own.len() as u64;
            piece = rest;
            if self.len == run.len.get() {
                let crc = std::mem::take(&mut self.hasher).finish();
                let Frames { extent, offset, len } = run;
                self.done.push(Location { extent, offset, len, crc });
                self.rest.pop_front();
                self.len = 0;
            }
        }
    }

    /// The locations; `None` if bytes are missing.
    fn finish(self) -> Option<Vec<Location>> {
        self.rest.is_empty().then_some(self.done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ByteLen;
    use crate::types::Crc32c;
    use crate::types::ExtentId;
    use crate::types::ExtentOffset;

    #[test]
    fn each_run_has_the_checksum_of_its_own_bytes() {
        let run = |number: u64, len| Frames {
            extent: ExtentId::new(number),
            offset: ExtentOffset::new(number),
            len: ByteLen::new(len),
        };
        let bytes = b"0123456789";
        for step in 1..=bytes.len() {
            let mut summing = Summing::new(&[run(1, 3), run(2, 6), run(3, 1)]);
            bytes.chunks(step).for_each(|piece| summing.update(piece));
            let found = summing.finish().unwrap();
            let crcs: Vec<Crc32c> = found.iter().map(|location| location.crc).collect();
            assert_eq!(crcs, [&bytes[..3], &bytes[3..9], &bytes[9..]].map(Crc32c::of), "{step}");
        }
        let mut short = Summing::new(&[run(1, 3)]);
        short.update(b"01");
        assert_eq!(short.finish(), None);
    }
}
