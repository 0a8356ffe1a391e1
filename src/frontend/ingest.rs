//! Receives a body: hashes it while it arrives, stores it by its size, and checks the length and
//! checksums that the client gave.

use std::sync::Arc;

use crate::frontend::body::RequestBody;
use crate::frontend::encrypt::Encrypting;
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
use crate::protocol::model::operation::Document;
use crate::protocol::model::operation::DocumentBody;
use crate::protocol::model::operation::Upload;
use crate::types::AUTHENTICATED_CHUNK_BYTES;
use crate::types::ChunkWriter;
use crate::types::Crc64;
use crate::types::Crc64Hasher;
use crate::types::Md5;
use crate::types::Md5Hasher;

#[expect(clippy::cast_possible_truncation, reason = "16 KiB")]
const CHUNK: usize = AUTHENTICATED_CHUNK_BYTES as usize;

/// Stored content and its checksums.
#[derive(Debug)]
pub(crate) struct Ingested {
    pub(crate) stored: Stored,
    pub(crate) crc64: Crc64,
    /// Computed when it is wanted or the client gave one.
    pub(crate) md5: Option<Md5>,
}

impl Ingested {
    /// The CRC-64 in the row. Encrypted content has none: it would reveal something of the plain
    /// text, and the authentication tags of the chunks protect the content better.
    pub(crate) const fn kept_crc64(&self) -> Crc64 {
        if self.stored.is_encrypted() { Crc64::EMPTY } else { self.crc64 }
    }
}

/// The memory of a document, to be kept as long as the operation that was read from it.
pub(crate) type DocumentMemory = Arc<[BodyReservation]>;

/// The checksums of a body.
#[derive(Clone, Copy)]
struct Checksums {
    crc64: Crc64,
    md5: Option<Md5>,
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

struct Hashes {
    crc64: Crc64Hasher,
    md5: Option<Md5Hasher>,
}

impl Hashes {
    fn new(upload: &Upload, md5_wanted: bool) -> Self {
        let md5 = (md5_wanted || upload.md5.is_some()).then(Md5Hasher::default);
        Self { crc64: Crc64Hasher::default(), md5 }
    }

    fn update(&mut self, bytes: &[u8]) {
        self.crc64.update(bytes);
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
    }

    /// Compares the checksums with those that the client gave.
    fn finish(self, upload: &Upload) -> Result<Checksums, Refusal> {
        let crc64 = self.crc64.finish();
        let md5 = self.md5.map(Md5Hasher::finish);
        match (upload.crc64, upload.md5) {
            (Some(claimed), _) if claimed != crc64 => Err(Refusal::new(Reason::Crc64Mismatch)
                .detail(Detail::ClaimedCrc64, claimed.to_base64())
                .detail(Detail::ComputedCrc64, crc64.to_base64())),
            (_, Some(claimed)) if Some(claimed) != md5 => Err(Refusal::new(Reason::Md5Mismatch)
                .detail(Detail::ClaimedMd5, claimed.to_base64())
                .detail(Detail::ComputedMd5, md5.map(Md5::to_base64).unwrap_or_default())),
            _ => Ok(Checksums { crc64, md5 }),
        }
    }
}

/// Reads exactly `upload.len` bytes and stores them durably. No row names them yet: they are freed
/// when the result is dropped. Checksums are of the plain text; with `encrypting` the stored bytes
/// are its authenticated chunks.
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
    encrypting: Option<Encrypting>,
) -> Result<Ingested, Refusal> {
    let rules = IngestRules { md5_wanted: false, inline_max: pool.inline_part_bytes_max() };
    ingest_by(pool, body, upload, rules, encrypting).await
}

async fn ingest_by(
    pool: &WritePool,
    body: &mut RequestBody,
    upload: &Upload,
    rules: IngestRules,
    encrypting: Option<Encrypting>,
) -> Result<Ingested, Refusal> {
    body.expect(upload);
    let mut hashes = Hashes::new(upload, rules.md5_wanted);
    let nonce = encrypting.as_ref().map(Encrypting::nonce);
    let mut writer = encrypting.map(|encrypting| encrypting.begin(upload.len));
    if pool.fits_in_memory(upload.len) {
        let mut content = collect(pool, body, upload.len, &mut hashes).await?;
        // Checked before anything is stored, so that a wrong body leaves no garbage.
        let Checksums { crc64, md5 } = hashes.finish(upload)?;
        if let Some(writer) = &mut writer {
            content.pieces = content.pieces.iter().flat_map(|piece| writer.push(piece)).collect();
            content.pieces.extend(writer.finish());
        }
        let stored = pool.store_within(content, upload.len, rules.inline_max).await?.under(nonce);
        return Ok(Ingested { stored, crc64, md5 });
    }
    // The memory of the chunk that is being filled.
    let _held = match writer {
        Some(_) => Some(pool.budget().take(body.memory(), CHUNK)?),
        None => None,
    };
    let mut stream = pool.stream_of(Arc::clone(body.memory()));
    let mut left = upload.len;
    while let Some(piece) = body.next().await? {
        left = left.checked_sub(piece.len() as u64).ok_or(Reason::InvalidInput)?;
        hashes.update(&piece);
        let Some(writer) = &mut writer else {
            stream.push(piece).await?;
            continue;
        };
        for chunk in writer.push(&piece) {
            stream.push(chunk).await?;
        }
    }
    if left > 0 {
        return Err(short());
    }
    let Checksums { crc64, md5 } = hashes.finish(upload)?;
    if let Some(last) = writer.as_mut().and_then(ChunkWriter::finish) {
        stream.push(last).await?;
    }
    let stored = stream.finish().await?.under(nonce);
    Ok(Ingested { stored, crc64, md5 })
}

/// Reads a body that is stored already, checks its checksums, and returns its MD5.
pub(crate) async fn verify(body: &mut RequestBody, upload: &Upload) -> Result<Md5, Refusal> {
    let mut hashes = Hashes::new(upload, true);
    while let Some(piece) = body.next().await? {
        hashes.update(&piece);
    }
    hashes.finish(upload)?.md5.ok_or_else(|| Reason::InternalError.into())
}

/// Checks the CRC-64 that the client gave against that of bytes stored already.
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
    body.expect(upload);
    let mut hashes = Hashes::new(upload, false);
    let content = collect(pool, body, upload.len, &mut hashes).await?;
    let Checksums { crc64, md5 } = hashes.finish(upload)?;
    let nonce = encrypting.as_ref().map(Encrypting::nonce);
    let stored = pool.store_pages_under(content, start, encrypting.as_ref()).await?.under(nonce);
    Ok(Ingested { stored, crc64, md5 })
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
    read_whole(pool, body, upload).await.map(drop)
}

async fn read_whole(
    pool: &WritePool,
    body: &mut RequestBody,
    upload: &Upload,
) -> Result<WholeBody, Refusal> {
    body.expect(upload);
    let mut hashes = Hashes::new(upload, false);
    let content = collect(pool, body, upload.len, &mut hashes).await?;
    let Checksums { crc64, md5 } = hashes.finish(upload)?;
    Ok(WholeBody { content, checksum: BodyChecksum::new(crc64, md5) })
}

async fn collect(
    pool: &WritePool,
    body: &mut RequestBody,
    len: u64,
    hashes: &mut Hashes,
) -> Result<InMemory, Refusal> {
    let mut pieces = Vec::new();
    let mut held = Vec::new();
    let mut left = len;
    while let Some(piece) = body.next().await? {
        left = left.checked_sub(piece.len() as u64).ok_or(Reason::InvalidInput)?;
        held.push(pool.budget().take(body.memory(), piece.len())?);
        hashes.update(&piece);
        pieces.push(piece);
    }
    if left > 0 { Err(short()) } else { Ok(InMemory { pieces, held: held.into() }) }
}

fn short() -> Refusal {
    Refusal::new(Reason::InvalidInput).message("The request body is shorter than Content-Length.")
}
