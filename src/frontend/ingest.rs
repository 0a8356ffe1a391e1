//! Receives a body: hashes it while it arrives, stores it by its size, and checks the length and
//! checksums that the client sent.

use std::sync::Arc;

use bytes::Bytes;

use crate::frontend::body::RequestBody;
use crate::frontend::encrypt::Encrypting;
use crate::frontend::md5_queue::BodyMd5;
use crate::frontend::md5_queue::Md5Queue;
use crate::frontend::write::BodyReservation;
use crate::frontend::write::InMemory;
use crate::frontend::write::Stored;
use crate::frontend::write::WritePool;
use crate::frontend::write::join::join;
use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::checksum::BodyChecksum;
use crate::protocol::model::operation::ChecksumClaim;
use crate::protocol::model::operation::Document;
use crate::protocol::model::operation::DocumentBody;
use crate::protocol::model::operation::Framing;
use crate::protocol::model::operation::Upload;
use crate::types::AUTHENTICATED_CHUNK_BYTES;
use crate::types::ChecksumAlgorithm;
use crate::types::ChecksumValue;
use crate::types::ChunkWriter;
use crate::types::ContentHasher;
use crate::types::Crc64;
use crate::types::Crc64Hasher;
use crate::types::Md5;

#[expect(clippy::cast_possible_truncation, reason = "16 KiB")]
const CHUNK: usize = AUTHENTICATED_CHUNK_BYTES as usize;

/// Stored content and its checksums.
#[derive(Debug)]
pub(crate) struct Ingested {
    pub(crate) stored: Stored,
    pub(crate) crc64: Crc64,
    /// Computed if it is wanted or the client sent one.
    pub(crate) md5: Option<Md5>,
    /// The checksum that the client names, if it names one.
    pub(crate) named: Option<ChecksumValue>,
}

impl Ingested {
    /// The CRC-64 in the row. Encrypted content has none: it would reveal information about the
    /// plain text, and the authentication tags of the chunks protect the content better.
    pub(crate) const fn kept_crc64(&self) -> Crc64 {
        if self.stored.is_encrypted() { Crc64::EMPTY } else { self.crc64 }
    }
}

/// The memory of a document, to be kept as long as the operation that was read from it.
pub(crate) type DocumentMemory = Arc<[BodyReservation]>;

/// The checksums of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checksums {
    pub(crate) crc64: Crc64,
    /// Computed if it is wanted or the client sent one.
    pub(crate) md5: Option<Md5>,
    /// The one that the request names.
    pub(crate) named: Option<ChecksumValue>,
}

/// How a body is received.
#[derive(Clone, Copy)]
struct IngestRules {
    md5_wanted: bool,
    /// Bodies up to this many bytes live in the row.
    inline_max: u64,
}

/// A body in memory, and its checksum.
struct WholeBody {
    content: InMemory,
    checksum: BodyChecksum,
}

struct Hashes<'a> {
    crc64: Crc64Hasher,
    md5: Option<BodyMd5<'a>>,
    /// Of a checksum that the request names, unless it is the CRC-64.
    named: Option<ContentHasher>,
}

impl<'a> Hashes<'a> {
    fn new(queue: &'a Md5Queue, upload: &Upload, md5_wanted: bool) -> Self {
        let md5 =
            (md5_wanted || upload.md5.is_some()).then(|| queue.begin(upload.framing.content_len()));
        let named =
            upload.checksums.wanted.filter(|wanted| *wanted != ChecksumAlgorithm::Crc64Nvme);
        Self { crc64: Crc64Hasher::default(), md5, named: named.map(ContentHasher::new) }
    }

    async fn update(&mut self, piece: &Bytes) -> Result<(), Refusal> {
        self.crc64.update(piece);
        if let Some(named) = &mut self.named {
            named.update(piece);
        }
        match &mut self.md5 {
            Some(md5) => md5.add(piece).await,
            None => Ok(()),
        }
    }

    /// Compares the checksums with those that the client sent. `trailer` is the checksum behind the
    /// content.
    async fn finish(
        self,
        upload: &Upload,
        trailer: Option<ChecksumValue>,
    ) -> Result<Checksums, Refusal> {
        let crc64 = self.crc64.finish();
        let md5 = match self.md5 {
            Some(md5) => Some(md5.finish().await?),
            None => None,
        };
        match (upload.crc64, upload.md5) {
            (Some(claimed), _) if claimed != crc64 => {
                return Err(Refusal::new(Reason::Crc64Mismatch)
                    .detail(Detail::ClaimedCrc64, claimed.to_base64())
                    .detail(Detail::ComputedCrc64, crc64.to_base64()));
            }
            (_, Some(claimed)) if Some(claimed) != md5 => {
                return Err(Refusal::new(Reason::Md5Mismatch)
                    .detail(Detail::ClaimedMd5, claimed.to_base64())
                    .detail(Detail::ComputedMd5, md5.map(Md5::to_base64).unwrap_or_default()));
            }
            _ => {}
        }
        let of_crc64 = || upload.checksums.wanted.map(|_| crc64.into());
        let named = self.named.map(ContentHasher::finish).or_else(of_crc64);
        check_named(upload.checksums.claim, named, trailer)?;
        Ok(Checksums { crc64, md5, named })
    }
}

/// Compares the checksum that the request names with its value in the head or trailer.
fn check_named(
    claim: ChecksumClaim,
    computed: Option<ChecksumValue>,
    trailer: Option<ChecksumValue>,
) -> Result<(), Refusal> {
    let claimed = match claim {
        ChecksumClaim::None if trailer.is_some() => {
            return Err(Refusal::new(Reason::IncompleteBody).message(
                "The body has a trailer with a checksum that the request does not announce.",
            ));
        }
        ChecksumClaim::None => return Ok(()),
        ChecksumClaim::Value(claimed) => claimed,
        ChecksumClaim::Trailer => trailer.ok_or_else(|| {
            Refusal::new(Reason::IncompleteBody)
                .message("The trailer with the checksum, which the request announces, is missing.")
        })?,
    };
    if computed == Some(claimed) { Ok(()) } else { Err(Reason::ChecksumMismatch.into()) }
}

/// A body that is being received: its bytes are counted and hashed.
struct Receiving<'a> {
    pool: &'a WritePool,
    body: &'a mut RequestBody,
    upload: &'a Upload,
    hashes: Hashes<'a>,
    came: u64,
}

/// The received part of a body.
struct Received {
    pieces: Vec<Bytes>,
    held: Vec<BodyReservation>,
    /// Whether the body has ended.
    whole: bool,
}

impl Received {
    fn in_memory(self) -> InMemory {
        InMemory { pieces: self.pieces, held: self.held.into() }
    }
}

impl<'a> Receiving<'a> {
    fn begin(
        pool: &'a WritePool,
        body: &'a mut RequestBody,
        upload: &'a Upload,
        md5_wanted: bool,
    ) -> Self {
        body.expect(upload.framing);
        let hashes = Hashes::new(pool.md5_queue(), upload, md5_wanted);
        Self { pool, body, upload, hashes, came: 0 }
    }

    /// The next piece; `None` at the end. The caller hashes it, after its memory is counted.
    ///
    /// # Errors
    /// Those of the body; `InvalidInput` when it has another length than its head says,
    /// `RequestBodyTooLarge` when one without a length is too long.
    async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        let framing = self.upload.framing;
        let Some(piece) = self.body.next().await? else {
            let missing = framing.content_len().is_some_and(|len| self.came < len);
            return if missing { Err(short()) } else { Ok(None) };
        };
        self.came = self.came.saturating_add(piece.len() as u64);
        if self.came > framing.len_max() {
            return Err(match framing {
                Framing::Known { .. } | Framing::Segmented { .. } => Reason::IncompleteBody.into(),
                Framing::Open { len_max } => Refusal::new(Reason::RequestBodyTooLarge)
                    .detail(Detail::Limit, len_max.to_string()),
            });
        }
        Ok(Some(piece))
    }

    /// Holds the body in memory, until it ends or more than `bytes_max` bytes have arrived.
    async fn collect(&mut self, bytes_max: u64) -> Result<Received, Refusal> {
        let (mut pieces, mut held) = (Vec::new(), Vec::new());
        while self.came <= bytes_max {
            let Some(piece) = self.next().await? else {
                return Ok(Received { pieces, held, whole: true });
            };
            held.push(self.pool.budget().take(self.body.memory(), piece.len())?);
            self.hashes.update(&piece).await?;
            pieces.push(piece);
        }
        Ok(Received { pieces, held, whole: false })
    }

    /// Compares the checksums with those that the client sent.
    async fn finish(self) -> Result<Checksums, Refusal> {
        let trailer = self.body.trailer_checksum()?;
        self.hashes.finish(self.upload, trailer).await
    }
}

/// Reads a body and stores its content durably. No row names the bytes yet: they are freed when the
/// result is dropped. Checksums are of the plain text; with `encrypting` the stored bytes are its
/// authenticated chunks.
pub(crate) async fn ingest(
    pool: &WritePool,
    body: &mut RequestBody,
    upload: &Upload,
    md5_wanted: bool,
    encrypting: Option<Encrypting>,
) -> Result<Ingested, Refusal> {
    let rules = IngestRules { md5_wanted, inline_max: pool.inline_bytes_max() };
    ingest_by(pool, body, upload, rules, encrypting).await
}

/// As [`ingest`], for a block of a blob. Fewer bytes live in the row, because the rows of many
/// blocks are written and read together.
pub(crate) async fn ingest_part(
    pool: &WritePool,
    body: &mut RequestBody,
    upload: &Upload,
    md5_wanted: bool,
    encrypting: Option<Encrypting>,
) -> Result<Ingested, Refusal> {
    let rules = IngestRules { md5_wanted, inline_max: pool.inline_part_bytes_max() };
    ingest_by(pool, body, upload, rules, encrypting).await
}

async fn ingest_by(
    pool: &WritePool,
    body: &mut RequestBody,
    upload: &Upload,
    rules: IngestRules,
    encrypting: Option<Encrypting>,
) -> Result<Ingested, Refusal> {
    let mut receiving = Receiving::begin(pool, body, upload, rules.md5_wanted);
    let mut begun = None;
    if upload.framing.content_len().is_none_or(|len| pool.fits_in_memory(len)) {
        let received = receiving.collect(pool.memory_bytes_max()).await?;
        if received.whole {
            return ingest_small(receiving, received.in_memory(), rules, encrypting).await;
        }
        begun = Some(received);
    }
    ingest_large(receiving, begun, encrypting).await
}

/// Stores content that is in memory.
async fn ingest_small(
    receiving: Receiving<'_>,
    mut content: InMemory,
    rules: IngestRules,
    encrypting: Option<Encrypting>,
) -> Result<Ingested, Refusal> {
    let (pool, len) = (receiving.pool, receiving.came);
    // Checked before anything is stored, so that an invalid body leaves no garbage.
    let Checksums { crc64, md5, named } = receiving.finish().await?;
    let nonce = encrypting.as_ref().map(Encrypting::nonce);
    if let Some(encrypting) = encrypting {
        let mut writer = encrypting.begin(len);
        content.pieces = content.pieces.iter().flat_map(|piece| writer.push(piece)).collect();
        content.pieces.extend(writer.finish());
    }
    let stored = pool.store_within(content, len, rules.inline_max).await?.under(nonce);
    Ok(Ingested { stored, crc64, md5, named })
}

/// Stores content as it arrives, after the pieces that were received before its length was known to
/// be large.
async fn ingest_large(
    mut receiving: Receiving<'_>,
    begun: Option<Received>,
    encrypting: Option<Encrypting>,
) -> Result<Ingested, Refusal> {
    let pool = receiving.pool;
    let nonce = encrypting.as_ref().map(Encrypting::nonce);
    let mut writer = match encrypting {
        None => None,
        Some(encrypting) => {
            Some(encrypting.begin(receiving.upload.framing.content_len().ok_or_else(unknown)?))
        }
    };
    // The memory of the chunk that is being filled.
    let _held = match writer {
        Some(_) => Some(pool.budget().take(receiving.body.memory(), CHUNK)?),
        None => None,
    };
    let mut stream = pool.stream_of(Arc::clone(receiving.body.memory()));
    if let Some(Received { pieces, held, .. }) = begun {
        for (piece, held) in pieces.into_iter().zip(held) {
            // The stream counts it from here on.
            drop(held);
            stream.push(piece).await?;
        }
    }
    while let Some(piece) = receiving.next().await? {
        match &mut writer {
            None => stream.push(piece.clone()).await?,
            Some(writer) => {
                for chunk in writer.push(&piece) {
                    stream.push(chunk).await?;
                }
            }
        }
        receiving.hashes.update(&piece).await?;
    }
    let Checksums { crc64, md5, named } = receiving.finish().await?;
    if let Some(last) = writer.as_mut().and_then(ChunkWriter::finish) {
        stream.push(last).await?;
    }
    let stored = stream.finish().await?.under(nonce);
    Ok(Ingested { stored, crc64, md5, named })
}

/// Each chunk of encrypted content is bound to the content's length, and pages to their range.
fn unknown() -> Refusal {
    Refusal::new(Reason::MissingContentLengthHeader)
        .message("Content of this kind needs its length ahead: send the body with Content-Length.")
}

/// Reads a body that is stored already, and checks its checksums. `see` gets each piece.
pub(crate) async fn verify(
    pool: &WritePool,
    body: &mut RequestBody,
    upload: &Upload,
    md5_wanted: bool,
    mut see: impl FnMut(&[u8]),
) -> Result<Checksums, Refusal> {
    let mut hashes = Hashes::new(pool.md5_queue(), upload, md5_wanted);
    while let Some(piece) = body.next().await? {
        hashes.update(&piece).await?;
        see(&piece);
    }
    hashes.finish(upload, None).await
}

/// Checks the CRC-64 that the client sent against that of bytes stored already.
pub(crate) fn check_crc64(upload: &Upload, known: Crc64) -> Result<(), Refusal> {
    match upload.crc64 {
        Some(claimed) if claimed != known => Err(Refusal::new(Reason::Crc64Mismatch)
            .detail(Detail::ClaimedCrc64, claimed.to_base64())
            .detail(Detail::ComputedCrc64, known.to_base64())),
        Some(_) | None => Ok(()),
    }
}

/// As [`ingest`], for pages that begin at offset `start` of their blob: at most 4 MiB, held in
/// memory.
pub(crate) async fn ingest_pages(
    pool: &WritePool,
    body: &mut RequestBody,
    upload: &Upload,
    start: u64,
    encrypting: Option<Encrypting>,
) -> Result<Ingested, Refusal> {
    let len = upload.framing.content_len().ok_or_else(unknown)?;
    let mut receiving = Receiving::begin(pool, body, upload, false);
    let content = receiving.collect(len).await?.in_memory();
    let Checksums { crc64, md5, named } = receiving.finish().await?;
    let nonce = encrypting.as_ref().map(Encrypting::nonce);
    let stored = pool.store_pages_under(content, start, encrypting.as_ref()).await?.under(nonce);
    Ok(Ingested { stored, crc64, md5, named })
}

/// Reads a document, such as a block list, checks its checksums and completes the operation with
/// it.
///
/// # Errors
/// Those of the body, of its checksums and of the document.
pub(crate) async fn read_document(
    pool: &WritePool,
    body: &mut RequestBody,
    DocumentBody { upload, decode }: DocumentBody,
    operation: &mut Operation,
) -> Result<DocumentMemory, Refusal> {
    let WholeBody { content, checksum } = read_whole(pool, body, &upload).await?;
    let bytes = join(content.pieces);
    decode(operation, &Document { bytes: &bytes, checksum })?;
    Ok(content.held)
}

/// Reads a body that must be empty, and checks its length and checksums.
pub(crate) async fn check_empty(
    pool: &WritePool,
    body: &mut RequestBody,
    upload: &Upload,
) -> Result<(), Refusal> {
    let whole = read_whole(pool, body, upload).await?;
    if whole.content.pieces.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(Reason::InvalidInput).detail(Detail::HeaderName, "Content-Length"))
}

async fn read_whole(
    pool: &WritePool,
    body: &mut RequestBody,
    upload: &Upload,
) -> Result<WholeBody, Refusal> {
    let mut receiving = Receiving::begin(pool, body, upload, false);
    let content = receiving.collect(upload.framing.len_max()).await?.in_memory();
    let Checksums { crc64, md5, .. } = receiving.finish().await?;
    Ok(WholeBody { content, checksum: BodyChecksum::new(crc64, md5) })
}

fn short() -> Refusal {
    Refusal::new(Reason::IncompleteBody).message("The request body is shorter than Content-Length.")
}
