//! Properties of an account's Blob service.

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
    /// The version for requests that name none.
    pub default_version: Option<String>,
    /// Soft delete: the days of retention, if it is enabled.
    pub delete_retention_days: Option<u32>,
    /// Static website.
    pub website: Option<Website>,
}

/// Which requests are logged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logging {
    /// Deletes.
    pub delete: bool,
    /// Reads.
    pub read: bool,
    /// Writes.
    pub write: bool,
    /// How many days logs are kept; `None` means forever.
    pub retention_days: Option<u32>,
}

/// Which metrics are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceMetrics {
    /// Whether any are kept.
    pub enabled: bool,
    /// Whether there are metrics per operation. Only if metrics are enabled.
    pub include_apis: Option<bool>,
    /// How many days they are kept; `None` means forever.
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
    /// How many seconds a browser may cache the answer to a preflight request.
    pub max_age: u32,
}

/// A static website in `$web`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Website {
    /// Appended to a path that names a folder.
    pub index_document: Option<String>,
    /// Served with 404.
    pub error_document: Option<String>,
    /// Served for the root path.
    pub default_index_path: Option<String>,
}

/// A change of [`ServiceProperties`]. Fields that are `None` are not changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServicePropertiesChange {
    /// Request logging.
    pub logging: Option<Logging>,
    /// Metrics by the hour.
    pub hour_metrics: Option<ServiceMetrics>,
    /// Metrics by the minute.
    pub minute_metrics: Option<ServiceMetrics>,
    /// Replaces all rules; at most 5.
    pub cors: Option<Vec<CorsRule>>,
    /// The version for requests that name none; `Some(None)` removes it.
    pub default_version: Option<Option<String>>,
    /// Soft delete; `Some(None)` turns it off.
    pub delete_retention_days: Option<Option<u32>>,
    /// Whether soft-deleted rows may be removed before they expire.
    pub permanent_delete: Option<bool>,
    /// Static website; `Some(None)` turns it off.
    pub website: Option<Option<Website>>,
}

impl ServicePropertiesChange {
    /// Applies the change to `properties`. Those do not say whether permanent deletion is allowed.
    pub fn apply(&self, properties: &mut ServiceProperties) {
        fn set<T: Clone>(from: Option<&T>, to: &mut T) {
            if let Some(value) = from {
                *to = value.clone();
            }
        }
        set(self.logging.as_ref(), &mut properties.logging);
        set(self.hour_metrics.as_ref(), &mut properties.hour_metrics);
        set(self.minute_metrics.as_ref(), &mut properties.minute_metrics);
        set(self.cors.as_ref(), &mut properties.cors);
        set(self.default_version.as_ref(), &mut properties.default_version);
        set(self.delete_retention_days.as_ref(), &mut properties.delete_retention_days);
        set(self.website.as_ref(), &mut properties.website);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_leaves_alone_what_it_does_not_name() {
        let mut properties = ServiceProperties {
            cors: vec![CorsRule::default()],
            website: Some(Website::default()),
            ..ServiceProperties::default()
        };
        let logging = Logging { read: true, ..Logging::default() };
        let change = ServicePropertiesChange {
            logging: Some(logging.clone()),
            website: Some(None),
            ..ServicePropertiesChange::default()
        };
        change.apply(&mut properties);
        assert_eq!((properties.logging, properties.website), (logging, None));
        assert_eq!(properties.cors.len(), 1);
    }
}
