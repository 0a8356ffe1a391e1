//! Settable properties of blobs and containers.

use serde::{Deserialize, Serialize};

use crate::types::ContentMd5;

/// The public access of a container: what may be read without credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PublicAccess {
    /// No anonymous caller.
    Private,
    /// Anyone may read blobs.
    Blob,
    /// Anyone may read blobs and list them.
    Container,
}

/// The settable system properties of a blob. `None` means that it was never set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobProperties {
    /// `Content-Type`. If it was never set, replies have the default of their dialect. An empty one
    /// was removed: Azure's replies then have none.
    pub content_type: Option<String>,
    /// `Content-Encoding`.
    pub content_encoding: Option<String>,
    /// `Content-Language`.
    pub content_language: Option<String>,
    /// `Content-Disposition`.
    pub content_disposition: Option<String>,
    /// `Cache-Control`.
    pub cache_control: Option<String>,
    /// `Content-MD5`, as computed by Put Blob or given by the client for a block list.
    pub content_md5: ContentMd5,
}

impl BlobProperties {
    /// These as properties that replace all those of a blob: a content type that they do not name
    /// is removed. Source: "Set Blob Properties".
    #[must_use]
    pub fn replacing(self) -> Self {
        Self { content_type: Some(self.content_type.unwrap_or_default()), ..self }
    }
}
