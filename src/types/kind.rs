//! The three kinds of blobs.

use serde::{Deserialize, Serialize};

/// What a blob is, with what only its kind has; fixed when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlobKind {
    /// `BlockBlob`.
    Block,
    /// `AppendBlob`.
    Append {
        /// Appends so far; `x-ms-blob-committed-block-count`.
        blocks: u32,
        /// Takes no more.
        sealed: bool,
    },
    /// `PageBlob`.
    Page {
        /// `x-ms-blob-sequence-number`.
        sequence: u64,
    },
}

impl BlobKind {
    /// As it stands in `x-ms-blob-type`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Block => "BlockBlob",
            Self::Append { .. } => "AppendBlob",
            Self::Page { .. } => "PageBlob",
        }
    }
}

/// What Put Blob is to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NewKind {
    /// A block blob of the content that comes along.
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

/// Bytes of a page: ranges of page blobs begin and end between pages.
pub const PAGE_BYTES: u64 = 512;
/// Bytes of the windows of a page blob: what is stored of its pages is cut where they meet, so that
/// a location lies in one.
pub const PAGE_WINDOW_BYTES: u64 = 64 << 10;
/// Bytes a page blob may have: 8 TiB.
pub const PAGE_BLOB_BYTES_MAX: u64 = 8 << 40;
