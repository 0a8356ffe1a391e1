//! The action of a request, independent of dialects.
//!
//! An operation is one action (`frontend/access/actions.rs`). `needs.rs` says what permits an
//! action: permissions of a shared access signature, a role, public access. Policies of other
//! dialects map to the same actions.

/// The public access that an anonymous caller needs for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exposure {
    /// Blobs can be read.
    Blob,
    /// The container can be read and listed too.
    Container,
}

/// An action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask what kind of account it is.
    DescribeAccount,
    /// Read the settings of the account.
    ReadAccount,
    /// Change them.
    WriteAccount,
    /// List containers.
    ListContainers,
    /// Get a key that signs in the sender's name.
    DelegateKey,
    /// Send further requests in the body, each of which is permitted for itself.
    Batch,
    /// Read the properties and metadata of a container.
    ReadContainer,
    /// Change them, or act on its lease.
    WriteContainer,
    /// Break its lease.
    BreakContainerLease,
    /// Create a container.
    CreateContainer,
    /// Delete it.
    DeleteContainer,
    /// Read or set the access policies of a container.
    Policy,
    /// Read the settings of a container.
    ReadSettings,
    /// Change them.
    WriteSettings,
    /// Read or set the access control list of a blob.
    BlobPolicy,
    /// List the blobs of a container.
    ListBlobs {
        /// With their tags.
        tagged: bool,
    },
    /// List the uploads in parts of a container.
    ListUploads,
    /// List the parts of an upload.
    ListParts,
    /// Read a blob: content, properties, metadata, blocks, pages.
    ReadBlob,
    /// Write content, properties or metadata of a blob, or act on its lease.
    WriteBlob,
    /// Put Block.
    StageBlock,
    /// Break its lease.
    BreakBlobLease,
    /// Append to a blob.
    AppendBlob,
    /// Put a whole blob in a place that may be taken.
    PutBlob {
        /// With tags.
        tagged: bool,
        /// With a retention or a legal hold.
        locked: bool,
    },
    /// Take a snapshot of a blob.
    SnapshotBlob,
    /// Delete a blob or snapshots of it.
    DeleteBlob,
    /// Delete a version of a blob.
    DeleteVersion,
    /// Remove soft-deleted rows before they expire.
    PermanentDelete,
    /// Read the tags of a blob.
    ReadTags,
    /// Set them.
    WriteTags,
    /// Read what protects a version.
    ReadLock,
    /// Set or end a retention or a legal hold.
    WriteLock,
    /// Find blobs by their tags.
    FilterByTags,
}
