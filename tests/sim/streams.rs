//! Slow readers. They look a blob up, then read it piece by piece while it is overwritten, deleted,
//! copied and reclaimed. They can read the version that they found to its end, unchanged (I6, I10).

use std::cell::Cell;
use std::time::Duration;

use blockyard::index::BlobRecord;
use blockyard::index::BlobView;
use blockyard::index::Piece;
use blockyard::index::inflight::ReadNote;
use blockyard::types::BlobKind;
use blockyard::types::ByteRange;
use blockyard::types::Crc64;
use blockyard::types::PAGE_BYTES;

use crate::change::Demand;
use crate::change::TagDemand;
use crate::client::Client;
use crate::draw::WORD_STEP;
use crate::index::CLIENTS;
use crate::index::NAMES;
use crate::index::SHARED;
use crate::index::shared_name;
use crate::model::Blob;
use crate::requests::is_refusal;
use crate::rig::Failing;
use crate::seeds::Violation;
use crate::state::State;
use crate::watch::Hold;
use crate::when::When;

/// Bytes read at a time.
const STEP: u64 = 24 << 10;

/// How a stream ended.
enum End {
    Whole(Vec<u8>),
    /// The rest could not be looked up, because the blob was replaced or because of the session's
    /// fault.
    Short,
}

impl Client<'_> {
    /// Reads blobs of all clients slowly, one after the other, until it is `over`.
    pub(crate) async fn stream(self, over: &Cell<bool>) -> Result<(), Violation> {
        let draw = self.session.streams;
        while !over.get() && !self.session.is_down() {
            self.stack.env.clock.sleep(Duration::from_millis(draw.between(1, 100))).await;
            let name = self.wanted();
            self.stream_one(&name)
                .await
                .map_err(|why| format!("a slow reader of {name}: {why}"))?;
        }
        Ok(())
    }

    /// Chooses a blob, mostly one that is being changed.
    fn wanted(&self) -> String {
        let draw = self.session.streams;
        let changing = self.session.model.borrow().changing();
        match draw.one(&changing).filter(|_| draw.percent(80)) {
            Some(name) => name.clone(),
            None => match draw.between(0, CLIENTS) {
                CLIENTS => shared_name(draw.between(0, SHARED - 1)),
                client => format!("{client}/{}", draw.between(0, NAMES - 1)),
            },
        }
    }

    async fn stream_one(&self, name: &str) -> Result<(), Violation> {
        // The note is kept to the end, as in a response.
        let mut reading = self.stack.inflight.read(self.stack.env.clock.monotonic());
        let before = self.now();
        let ticket = self.with_blob(name, Blob::look);
        let view = match self.view(name, None, None, Demand::default()).await {
            Ok(view) => view,
            Err(error) => {
                self.with_blob(name, |blob| blob.looked_away(ticket))?;
                if !is_refusal(&error) {
                    self.excuse::<()>(Failing::of_rows(&error), &error)?;
                }
                return Ok(());
            }
        };
        let record = view.record.clone();
        // The version that was seen must survive, even if the power fails now.
        let (seen, when) = (record.clone(), When { from: before, to: self.now() });
        let fits = move |state: &mut State| {
            state.committed.as_mut().is_some_and(|committed| committed.see(&seen, when))
        };
        self.with_blob(name, |blob| blob.seen_by(ticket, &format!("{record:?}"), fits))?;
        reading.names(view.pieces.iter().filter_map(Piece::extent));
        let held = self.stack.watch.hold(&*self.stack.capacity, &view.pieces);
        if self.with_blob(name, |blob| blob.is_changing()) && self.session.streams.percent(50) {
            // Longer than a stalled sync.
            let long = self.session.streams.between(1, 6_000);
            self.stack.env.clock.sleep(Duration::from_millis(long)).await;
        }
        let pulled = self.pull(name, *view, (reading, held)).await?;
        if let Some(why) = self.stack.watch.broken() {
            return Err(why);
        }
        match pulled {
            End::Whole(bytes) => {
                self.session.counts.add("blobs streamed", 1);
                if self.likely(name).committed.is_none_or(|now| now.etag != Some(record.etag)) {
                    self.session.counts.add("blobs streamed while they changed", 1);
                }
                is_of(&record, &bytes)
            }
            End::Short => Ok(()),
        }
    }

    async fn pull(
        &self,
        name: &str,
        mut view: BlobView,
        (mut reading, mut held): (ReadNote, Hold),
    ) -> Result<End, Violation> {
        let record = view.record.clone();
        let mut bytes = Vec::new();
        loop {
            for piece in std::mem::take(&mut view.pieces) {
                let (location, range) = match piece {
                    Piece::Inline(inline) => {
                        bytes.extend_from_slice(&inline);
                        continue;
                    }
                    Piece::Zeros(len) => {
                        bytes.resize(bytes.len() + usize::try_from(len).unwrap(), 0);
                        continue;
                    }
                    Piece::Stored { location, range } => (location, range),
                    Piece::Encrypted { .. } | Piece::Authenticated { .. } => {
                        panic!("no request came with a key")
                    }
                };
                let mut at = range.start;
                while at < range.end {
                    self.pause().await;
                    let end = range.end.min(at + STEP);
                    match self.stack.capacity.read(&location, at..end).await {
                        Ok(parts) => bytes.extend_from_slice(&parts.concat()),
                        Err(error) => {
                            let what = format!("at {} of {record:?}: {error}", bytes.len());
                            self.excuse::<()>(Failing::Bytes, &what)?;
                            return Ok(End::Short);
                        }
                    }
                    at = end;
                }
            }
            if view.pieces_end >= view.range.end {
                return Ok(End::Whole(bytes));
            }
            let rest = ByteRange::new(view.pieces_end, Some(view.range.end - 1));
            let same = Demand { tag: TagDemand::IfMatch(record.etag), lease: None };
            reading.looks_up();
            match self.view(name, None, rest, same).await {
                Ok(more) => {
                    reading.names(more.pieces.iter().filter_map(Piece::extent));
                    (view.pieces, view.pieces_end) = (more.pieces, more.pieces_end);
                    drop(std::mem::replace(
                        &mut held,
                        self.stack.watch.hold(&*self.stack.capacity, &view.pieces),
                    ));
                }
                Err(error) if is_refusal(&error) => return Ok(End::Short),
                Err(error) => {
                    self.excuse::<()>(Failing::of_rows(&error), &error)?;
                    return Ok(End::Short);
                }
            }
        }
    }

    /// Pauses as a client may between two reads; mostly not at all.
    async fn pause(&self) {
        let draw = self.session.streams;
        let longest = match draw.between(0, 19) {
            0..=9 => return,
            10..=15 => 40,
            _ => 400,
        };
        self.stack.env.clock.sleep(Duration::from_millis(draw.between(1, longest))).await;
    }
}

/// Checks that these are the bytes of the version that was found. Pages may be of later versions,
/// but each page is of one write.
fn is_of(record: &BlobRecord, bytes: &[u8]) -> Result<(), Violation> {
    if bytes.len() as u64 != record.len {
        return Err(format!("{} bytes of {record:?}", bytes.len()));
    }
    let right = match record.kind {
        BlobKind::Block | BlobKind::Append { .. } => Crc64::of(bytes) == record.crc64,
        BlobKind::Page { .. } => {
            bytes.chunks(usize::try_from(PAGE_BYTES).unwrap()).all(is_page_of_one_write)
        }
    };
    if right { Ok(()) } else { Err(format!("other bytes than those of {record:?}")) }
}

/// Whether a page is zeros, or a part of a content of [`crate::draw::content`].
fn is_page_of_one_write(page: &[u8]) -> bool {
    let words: Vec<u64> =
        page.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    page.iter().all(|byte| *byte == 0)
        || words.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == WORD_STEP)
}
