//! The requests of the driver, independent of the protocol.

use bytes::Bytes;

/// One request.
#[derive(Debug, Clone)]
pub enum Call {
    /// Look whether the container exists.
    ProbeContainer,
    /// Make the container.
    CreateContainer {
        /// Whether an existing container is also a success.
        may_exist: bool,
    },
    /// Delete the container. A bucket must be empty.
    DeleteContainer,
    /// Write a whole blob.
    Put {
        /// Blob name.
        name: String,
        /// Its bytes.
        body: Bytes,
        /// Whether the signature covers the SHA-256 of the bytes, where the protocol has that.
        signed: bool,
    },
    /// Read a blob or a part of it; the answer must be exactly `expect`.
    Get {
        /// Blob name.
        name: String,
        /// The first byte, if only `expect.len()` bytes from there are read.
        from: Option<usize>,
        /// The expected bytes.
        expect: Bytes,
    },
    /// Read the properties of a blob.
    Head {
        /// Blob name.
        name: String,
    },
    /// Delete a blob.
    Delete {
        /// Blob name.
        name: String,
    },
    /// One page of names.
    List {
        /// The prefix of the names.
        prefix: String,
        /// The most names in the page.
        limit: u32,
        /// The marker of the last page.
        marker: Option<String>,
    },
    /// Begin a blob in blocks (S3: a multipart upload; Azure needs no request for it).
    StartUpload {
        /// Blob name.
        name: String,
    },
    /// Stage one block.
    Stage {
        /// Blob name.
        name: String,
        /// What `StartUpload` answered; empty for Azure.
        upload: String,
        /// Number of the block, from 1.
        number: u32,
        /// Its bytes.
        body: Bytes,
    },
    /// Make the blob of the staged blocks.
    Commit {
        /// Blob name.
        name: String,
        /// What `StartUpload` answered; empty for Azure.
        upload: String,
        /// What `Stage` answered, in order; empty strings for Azure.
        tags: Vec<String>,
    },
    /// One page of names of blobs that were begun in blocks and not committed.
    Unfinished {
        /// The prefix of the names.
        prefix: String,
    },
    /// Drop the parts of an upload (S3 only; a blob of Azure is written and deleted).
    Abort {
        /// Blob name.
        name: String,
        /// The id of the upload.
        upload: String,
    },
}
