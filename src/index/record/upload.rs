//! The records of an upload that has parts of its own, and of one that was completed.

use serde::Deserialize;
use serde::Serialize;

use crate::index::record::BlobFields;
use crate::index::record::BlobRecord;
use crate::index::record::UnknownFields;
use crate::index::record::tagged;
use crate::index::record::tagged::Field;
use crate::index::record::tagged::Tag;
use crate::index::record::tagged::Tagged;
use crate::index::record::tagged::TailError;
use crate::index::record::tagged::Writer;
use crate::index::record::upgrade::Upgrade;
use crate::types::Timestamp;
use crate::types::UploadChecksum;

const CHECKSUM: Tag = Tag::required(1);
const INITIATOR: Tag = Tag::optional(2);

/// An upload: what describes the blob that it will make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadRecord {
    /// The blob, without bytes. It was created when the upload was started.
    pub blob: BlobRecord,
    /// The tagged fields, if it has any.
    #[serde(with = "tagged::tail")]
    pub fields: Option<Box<UploadFields>>,
}

impl UploadRecord {
    /// When it was started.
    #[must_use]
    pub const fn started(&self) -> Timestamp {
        self.blob.created
    }

    /// The checksum that is kept of the content, if the request that started it named one.
    #[must_use]
    pub fn checksum(&self) -> Option<UploadChecksum> {
        self.fields.as_ref()?.checksum
    }
}

/// The tagged fields of an upload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UploadFields {
    /// The checksum that is kept of the content.
    pub checksum: Option<UploadChecksum>,
    /// The canonical id of the user that started it; `None` means the account's root user.
    pub initiator: Option<String>,
    /// Fields of later releases.
    pub unknown: UnknownFields,
}

impl Tagged for UploadFields {
    fn write(&self, out: &mut Writer) {
        out.some(CHECKSUM, self.checksum.as_ref());
        out.some(INITIATOR, self.initiator.as_ref());
    }

    fn read(&mut self, field: &Field<'_>) -> Result<bool, TailError> {
        match field.tag {
            CHECKSUM => self.checksum = field.some()?,
            INITIATOR => self.initiator = field.some()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn unknown(&self) -> &UnknownFields {
        &self.unknown
    }

    fn unknown_mut(&mut self) -> &mut UnknownFields {
        &mut self.unknown
    }
}

impl Upgrade for UploadRecord {
    /// The version of blobs: an upload begins with the record of one.
    const VERSION: u8 = BlobRecord::VERSION;

    fn earlier(_version: u8, _bytes: &[u8]) -> Option<postcard::Result<(Self, &[u8])>> {
        None
    }

    fn fault(bytes: &[u8]) -> String {
        match postcard::take_from_bytes::<BlobRecord>(bytes) {
            Ok(_) => tagged::fault::<BlobRecord, UploadFields>(bytes),
            Err(_) => BlobRecord::fault(bytes),
        }
    }
}

/// A completed upload, as long as it is remembered: the answer of the completion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedRecord {
    /// The time of the commit, of which the blob's ETag is made.
    pub completed: Timestamp,
    /// The content tag and the checksums of the blob.
    #[serde(with = "tagged::tail")]
    pub fields: Option<Box<BlobFields>>,
}

impl Upgrade for CompletedRecord {
    const VERSION: u8 = 1;

    fn earlier(_version: u8, _bytes: &[u8]) -> Option<postcard::Result<(Self, &[u8])>> {
        None
    }

    fn fault(bytes: &[u8]) -> String {
        tagged::fault::<Timestamp, BlobFields>(bytes)
    }
}
