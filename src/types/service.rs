//! Properties of an account's Blob service, as Set Blob Service Properties takes them.

use serde::{Deserialize, Serialize};

/// Everything Get Blob Service Properties returns. Source: Set Blob Service Properties.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceProperties {
    /// Request logging.
    pub logging: Logging,
    /// Metrics by the hour.
    pub hour_metrics: ServiceMetrics,
    /// Metrics by the minute.
    pub minute_metrics: ServiceMetrics,
    /// At most 5.
    pub cors: Vec<CorsRule>,
    /// The version of requests that name none.
    pub default_version: Option<String>,
    /// Soft delete; days when enabled.
    pub delete_retention_days: Option<u32>,
    /// Static website.
    pub website: Option<Website>,
}

/// What of requests is logged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logging {
    /// Deletes.
    pub delete: bool,
    /// Reads.
    pub read: bool,
    /// Writes.
    pub write: bool,
    /// How many days logs are kept; `None` for ever.
    pub retention_days: Option<u32>,
}

/// Which metrics are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceMetrics {
    /// Whether at all.
    pub enabled: bool,
    /// Also by operation; said only when enabled.
    pub include_apis: Option<bool>,
    /// How many days they are kept; `None` for ever.
    pub retention_days: Option<u32>,
}

/// One rule of cross-origin requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorsRule {
    /// Comma-separated origins, or `*`.
    pub allowed_origins: String,
    /// Comma-separated methods.
    pub allowed_methods: String,
    /// Comma-separated request headers; a name may end in `*`.
    pub allowed_headers: String,
    /// Comma-separated response headers.
    pub exposed_headers: String,
    /// Seconds a browser may keep the answer to a preflight.
    pub max_age: u32,
}

/// A static website in `$web`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Website {
    /// Appended to a path that names a folder.
    pub index_document: Option<String>,
    /// Served with 404.
    pub error_document: Option<String>,
    /// Served for the root, whatever it asks for.
    pub default_index_path: Option<String>,
}
