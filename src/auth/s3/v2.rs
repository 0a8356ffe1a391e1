//! Signature version 2, in `Authorization` and in the query. It covers no body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::auth::s3::DATE_WINDOW_SECONDS;
use crate::auth::s3::error::S3Error;
use crate::auth::s3::payload::Payload;
use crate::auth::s3::request::SignedS3Request;
use crate::auth::s3::request::Verified;
use crate::auth::s3::request::parameter;
use crate::auth::s3::resource::string_to_sign;
use crate::auth::s3::secrets::S3Secrets;
use crate::auth::s3::shown;
use crate::auth::s3::unhex;
use crate::auth::s3::v4::time_of;
use crate::types::Timestamp;

/// The signature of a request.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    access_key_id: String,
    signature: Vec<u8>,
    /// The end of a presigned URL, in seconds since 1970; as it is signed.
    expires: Option<String>,
}

impl Claim {
    /// Reads `Authorization` behind its first word: `ACCESS_KEY_ID:SIGNATURE`.
    pub(super) fn of_header(rest: &str) -> Result<Self, S3Error> {
        let (id, signature) = rest
            .rsplit_once(':')
            .filter(|(id, _)| !id.is_empty())
            .ok_or_else(|| S3Error::header("it is not of the form AWS ACCESS_KEY_ID:SIGNATURE"))?;
        let signature = STANDARD
            .decode(signature)
            .map_err(|_| S3Error::header("the signature is not base64"))?;
        Ok(Self { access_key_id: id.to_owned(), signature, expires: None })
    }

    /// Reads the query of a presigned URL.
    pub(super) fn of_query(request: &SignedS3Request<'_>) -> Result<Self, S3Error> {
        let field = |name: &str| {
            let value = parameter(request, name).filter(|value| !value.is_empty());
            value.ok_or(S3Error::IncompleteQuery)
        };
        let raw = raw_parameter(request, "Signature").unwrap_or_default();
        // A plus that was not escaped is part of the signature.
        let text = percent_encoding::percent_decode_str(raw).decode_utf8_lossy();
        let signature = STANDARD
            .decode(text.as_bytes())
            .map_err(|_| S3Error::query("the signature is not base64"))?;
        let expires = field("Expires")?;
        Ok(Self { access_key_id: field("AWSAccessKeyId")?, signature, expires: Some(expires) })
    }

    pub(super) fn access_key_id(&self) -> &str {
        &self.access_key_id
    }

    pub(super) const fn is_presigned(&self) -> bool {
        self.expires.is_some()
    }

    /// As [`super::claim::Claim::verify`].
    pub(super) fn verify(
        &self,
        request: &SignedS3Request<'_>,
        secrets: &S3Secrets,
        now: Timestamp,
    ) -> Result<Verified, S3Error> {
        self.check_time(request, now)?;
        let hash = request.headers.get("x-amz-content-sha256").map(http::HeaderValue::as_bytes);
        if hash.is_some_and(|hash| hash.starts_with(b"STREAMING-")) {
            let detail = "a body in chunks is signed with version 4".to_owned();
            return Err(S3Error::Unsupported { detail });
        }
        let text = string_to_sign(request, self.expires.as_deref());
        if secrets.verify_v2(&text, &self.signature) {
            // Clients need not state the hash. One that is stated is signed, as every header of S3.
            let hash = hash.and_then(|hash| unhex(std::str::from_utf8(hash).ok()?));
            let payload = hash.map_or(Payload::Unsigned, Payload::Sha256);
            return Ok(Verified { payload });
        }
        Err(S3Error::WrongSignature {
            string_to_sign: shown(&text),
            canonical_request: String::new(),
        })
    }

    fn check_time(&self, request: &SignedS3Request<'_>, now: Timestamp) -> Result<(), S3Error> {
        if let Some(expires) = &self.expires {
            let seconds: u64 =
                expires.parse().map_err(|_| S3Error::NoExpiry { text: expires.clone() })?;
            return if now.since_unix().as_secs() > seconds {
                Err(S3Error::Expired)
            } else {
                Ok(())
            };
        }
        let date = request.headers.get("x-amz-date").or_else(|| request.headers.get("date"));
        let date = date.and_then(|date| date.to_str().ok()).map(str::trim);
        let (_, signed_at) = date.and_then(time_of).ok_or(S3Error::NoDate)?;
        let skew = signed_at.since(now).max(now.since(signed_at));
        if skew.as_secs() > DATE_WINDOW_SECONDS { Err(S3Error::Skewed) } else { Ok(()) }
    }
}

fn raw_parameter<'a>(request: &SignedS3Request<'a>, name: &str) -> Option<&'a str> {
    let pieces = request.query.unwrap_or("").split('&');
    pieces.filter_map(|piece| piece.split_once('=')).find(|(raw, _)| *raw == name).map(|(_, v)| v)
}
