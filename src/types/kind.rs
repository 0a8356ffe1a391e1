//! The three kinds of blobs.

use serde::{Deserialize, Serialize};

/// The kind of a blob, with the fields that only this kind has. The kind is fixed when the blob is
/// made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlobKind {
    /// `BlockBlob`.
    Block,
    /// `AppendBlob`.
    Append {
        /// Number of appends; `x-ms-blob-committed-block-count`.
        blocks: u32,
        /// Whether it is sealed: it takes no more appends.
        sealed: bool,
    },
    /// `PageBlob`.
    Page {
        /// `x-ms-blob-sequence-number`.
        sequence: u64,
    },
}

impl BlobKind {
    /// Its value in `x-ms-blob-type`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Block => "BlockBlob",
            Self::Append { .. } => "AppendBlob",
            Self::Page { .. } => "PageBlob",
        }
    }
}

/// The kind of blob that Put Blob makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NewKind {
    /// A block blob with the content of the request.
    #[default]
    Block,
    /// An empty append blob.
    Append,
    /// A page blob of zeros.
    Page {
        /// `x-ms-blob-content-length`, a multiple of 512.
        len: u64,
        /// `x-ms-blob-sequence-number`.
        sequence: u64,
    },
}

/// Bytes of a page. Ranges of page blobs begin and end at page borders.
pub const PAGE_BYTES: u64 = 512;
/// Bytes of a window of a page blob. Stored pages are split at borders of windows, so that each
/// location lies in one window.
pub const PAGE_WINDOW_BYTES: u64 = 64 << 10;
/// The most bytes of a page blob: 8 TiB.
pub const PAGE_BLOB_BYTES_MAX: u64 = 8 << 40;
