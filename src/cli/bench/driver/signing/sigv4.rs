//! AWS Signature Version 4 for S3, path-style.
//!
//! The payload hash is `UNSIGNED-PAYLOAD` in all workloads but `sha4k`: neither side computes
//! SHA-256 over the body. This is the cheapest form for a server, so its figures do not include
//! hashing.

use http::HeaderMap;
use http::Method;
use sha2::Digest;
use sha2::Sha256;

use super::hmac_sha256;

/// Credentials and region of an S3 endpoint.
pub struct SigV4 {
    /// Access key id.
    pub access_key: String,
    /// Secret access key.
    pub secret: String,
    /// Session token of temporary credentials.
    pub token: Option<String>,
    /// Region named in the credential scope.
    pub region: String,
}

impl std::fmt::Debug for SigV4 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigV4({} in {})", self.access_key, self.region)
    }
}

/// The value of `x-amz-content-sha256` in a request whose signature does not cover the body.
pub const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

impl SigV4 {
    /// The value of `Authorization` for a request whose other headers are complete.
    ///
    /// `path` is the path as sent, `query` the pairs with values already percent-encoded, `stamp`
    /// the value of `x-amz-date` (`YYYYMMDDTHHMMSSZ`). `host` and every `x-amz-*` header are
    /// signed.
    pub fn authorization(
        &self,
        method: &Method,
        path: &str,
        query: &[(&str, String)],
        headers: &HeaderMap,
        stamp: &str,
    ) -> String {
        let mut signed: Vec<(&str, &str)> = headers
            .iter()
            .filter(|(name, _)| name.as_str() == "host" || name.as_str().starts_with("x-amz-"))
            .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?.trim())))
            .collect();
        signed.sort_unstable();
        let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let lines: String =
            signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let mut pairs: Vec<String> = query.iter().map(|(n, v)| format!("{n}={v}")).collect();
        pairs.sort_unstable();
        let payload = headers.get("x-amz-content-sha256").and_then(|value| value.to_str().ok());
        let payload = payload.unwrap_or(UNSIGNED);
        let canonical =
            format!("{method}\n{path}\n{}\n{lines}\n{names}\n{payload}", pairs.join("&"));
        let day = stamp.get(..8).unwrap_or(stamp);
        let scope = format!("{day}/{}/s3/aws4_request", self.region);
        let digest = hex(&Sha256::digest(canonical.as_bytes()));
        let text = format!("AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}");
        let signature = hex(&hmac_sha256(&self.signing_key(day), text.as_bytes()));
        format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
            self.access_key
        )
    }

    fn signing_key(&self, day: &str) -> [u8; 32] {
        let date = hmac_sha256(format!("AWS4{}", self.secret).as_bytes(), day.as_bytes());
        let region = hmac_sha256(&date, self.region.as_bytes());
        let service = hmac_sha256(&region, b"s3");
        hmac_sha256(&service, b"aws4_request")
    }
}

/// `x-amz-date` for a time in whole seconds since 1970: `YYYYMMDDTHHMMSSZ`.
pub fn stamp(unix_seconds: u64) -> String {
    let (days, rest) = (unix_seconds / 86_400, unix_seconds % 86_400);
    // Days counted from 0000-03-01, so that the leap day ends its year (Gregorian era of 400
    // years).
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// The value of `x-amz-content-sha256` in a request whose signature covers `body`.
pub fn payload_hash(body: &[u8]) -> String {
    hex(&Sha256::digest(body))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
