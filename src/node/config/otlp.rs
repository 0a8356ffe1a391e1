//! The settings of spans for a collector.

use http::Uri;

use crate::frontend::spans::Ratio;

use super::error::ConfigError;

/// Where spans of requests are sent, and of which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpConfig {
    /// The URL of the collector, to which `/v1/traces` is added.
    pub endpoint: String,
    /// The part of requests without a `traceparent` that have a span. Default all.
    pub sample: Ratio,
}

impl OtlpConfig {
    /// Fills in defaults and checks; none without an endpoint.
    ///
    /// # Errors
    /// [`ConfigError`] for a text that is not a URL of http or https, and for a ratio without a
    /// collector.
    pub(super) fn new(
        endpoint: Option<String>,
        sample: Option<Ratio>,
    ) -> Result<Option<Self>, ConfigError> {
        let Some(endpoint) = endpoint else {
            return if sample.is_some() { Err(ConfigError::OtlpSample) } else { Ok(None) };
        };
        let is_url = endpoint.parse().is_ok_and(|url: Uri| {
            let authority = url.authority().map_or("@", |authority| authority.as_str());
            matches!(url.scheme_str(), Some("http" | "https"))
                && !authority.contains('@')
                && url.query().is_none()
        });
        if !is_url {
            return Err(ConfigError::OtlpEndpoint);
        }
        Ok(Some(Self { endpoint, sample: sample.unwrap_or(Ratio::ALL) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(endpoint: Option<&str>, sample: Option<&str>) -> Result<Option<OtlpConfig>, String> {
        let sample = sample.map(|text| text.parse().unwrap());
        let read = OtlpConfig::new(endpoint.map(str::to_owned), sample);
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn collectors_are_urls() {
        assert_eq!(read(None, None), Ok(None));
        for url in ["http://127.0.0.1:4318", "https://collector.example/otlp/"] {
            let config = read(Some(url), Some("0.5")).unwrap().unwrap();
            assert_eq!((config.endpoint.as_str(), config.sample.to_string()), (url, "0.5".into()));
        }
        for wrong in
            ["", "127.0.0.1:4318", "ftp://a", "http://", "http://u:secret@h", "http://h?key=secret"]
        {
            let refused = read(Some(wrong), None).unwrap_err();
            assert!(
                refused.contains("--otlp-endpoint") && !refused.contains("secret"),
                "{refused}"
            );
        }
        assert!(read(None, Some("1")).unwrap_err().contains("--otlp-endpoint"));
    }
}
