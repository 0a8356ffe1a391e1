//! Reads and verifies the bytes of blobs.

use crate::index::check::BlobCheck;
use crate::index::objects::values::Content;
use crate::index::objects::values::StoredBytes;
use crate::types::Crc32cHasher;
use crate::types::Crc64;
use crate::types::Crc64Hasher;
use crate::types::Location;

/// Payload bytes of one read.
const READ_BYTES: u64 = 1024 * 1024;

impl BlobCheck<'_> {
    /// Reads bytes and compares their checksums.
    pub(super) async fn content(&mut self, content: &Content, crc64: Crc64) {
        let mut hasher = Crc64Hasher::default();
        match content.stored_bytes() {
            StoredBytes::Inline(bytes) => {
                hasher.update(bytes);
                self.report.bytes += content.len();
            }
            StoredBytes::Locations(locations) => {
                let mut is_whole = true;
                for location in locations {
                    self.live.insert((location.extent, location.offset));
                    if let Err(what) = self.location(location, &mut hasher).await {
                        self.problem(what);
                        is_whole = false;
                    }
                }
                if !is_whole {
                    return;
                }
            }
        }
        if content.nonce().is_some() {
            // The CRC-64 is that of the plain text, which cannot be computed without the key, or is
            // not stored. The checksums of the locations matched.
            self.report.encrypted_bytes += content.len();
        } else if hasher.finish() != crc64 {
            self.problem("bytes differ from their CRC-64");
        }
    }

    pub(super) async fn location(
        &mut self,
        location: &Location,
        hasher: &mut Crc64Hasher,
    ) -> Result<(), String> {
        let read = self.read(location, hasher).await;
        if read.is_err() {
            self.damaged.insert(location.extent);
        }
        read
    }

    async fn read(&mut self, location: &Location, hasher: &mut Crc64Hasher) -> Result<(), String> {
        let mut crc = Crc32cHasher::default();
        let mut at = 0;
        while at < location.len.get() {
            let end = location.len.get().min(at + READ_BYTES);
            let pieces = self.capacity.read(location, at..end).await.map_err(|e| e.to_string())?;
            let mut read = 0;
            for piece in pieces {
                crc.update(&piece);
                hasher.update(&piece);
                read += u64::try_from(piece.len()).unwrap_or(u64::MAX);
            }
            if read != end - at {
                return Err(format!(
                    "extent {} returned {read} bytes at {}",
                    location.extent, location.offset
                ));
            }
            self.report.bytes += read;
            at = end;
        }
        self.report.locations += 1;
        if crc.finish() == location.crc {
            return Ok(());
        }
        Err(format!(
            "extent {} at {}: bytes differ from their CRC-32C",
            location.extent, location.offset
        ))
    }
}
