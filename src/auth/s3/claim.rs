//! The signature and access key that a request claims, not yet verified.

use http::header::AUTHORIZATION;

use crate::auth::s3::error::S3Error;
use crate::auth::s3::form;
use crate::auth::s3::request::SignedS3Request;
use crate::auth::s3::request::SignedService;
use crate::auth::s3::request::Verified;
use crate::auth::s3::request::parameter;
use crate::auth::s3::secrets::S3Secrets;
use crate::auth::s3::v2;
use crate::auth::s3::v4;
use crate::types::Timestamp;

/// The header of a session token.
const SESSION_TOKEN: &str = "x-amz-security-token";

/// The signature and access key that a request claims.
#[derive(Clone, Debug)]
pub struct Claim(Version);

#[derive(Clone, Debug)]
enum Version {
    V4(v4::Claim),
    V2(v2::Claim),
    Form(form::Claim),
}

/// Reads the signature and access key that a request claims; `None` when it says nothing.
///
/// # Errors
/// [`S3Error`]: it cannot be read.
pub fn claim(request: &SignedS3Request<'_>) -> Result<Option<Claim>, S3Error> {
    let presigned = has(request, "X-Amz-Algorithm");
    let presigned_v2 = has(request, "Signature") && has(request, "AWSAccessKeyId");
    let mut values = request.headers.get_all(AUTHORIZATION).iter();
    let header = values.next();
    let ways = [presigned, presigned_v2, header.is_some(), values.next().is_some()];
    if ways.into_iter().filter(|way| *way).count() > 1 {
        return Err(S3Error::SignedTwice);
    }
    if let Some(signed) = &request.form {
        // The policy of a form determines its permissions. A signature of its request would say
        // nothing.
        if ways.contains(&true) {
            return Err(S3Error::SignedTwice);
        }
        return Ok(form::Claim::of(signed)?.map(|claim| Claim(Version::Form(claim))));
    }
    if presigned {
        return v4::Claim::of_query(request).map(|claim| Some(Claim(Version::V4(claim))));
    }
    if presigned_v2 && request.service == SignedService::S3 {
        return v2::Claim::of_query(request).map(|claim| Some(Claim(Version::V2(claim))));
    }
    let Some(header) = header else { return Ok(None) };
    let text = header.to_str().map_err(|_| S3Error::header("it is not plain ASCII"))?.trim();
    let (scheme, rest) = text.split_once(' ').unwrap_or((text, ""));
    match scheme {
        "AWS4-HMAC-SHA256" => {
            v4::Claim::of_header(request, rest.trim()).map(|claim| Some(Claim(Version::V4(claim))))
        }
        // The token service has version 4 alone.
        "AWS" if request.service != SignedService::S3 => {
            Err(S3Error::Unsupported { detail: "version 2".to_owned() })
        }
        "AWS" => v2::Claim::of_header(rest.trim()).map(|claim| Some(Claim(Version::V2(claim)))),
        _ => Err(S3Error::Unsupported { detail: "the authorization type".to_owned() }),
    }
}

impl Claim {
    /// The id of the key that signed.
    #[must_use]
    pub fn access_key_id(&self) -> &str {
        match &self.0 {
            Version::V4(claim) => claim.access_key_id(),
            Version::V2(claim) => claim.access_key_id(),
            Version::Form(claim) => claim.access_key_id(),
        }
    }

    /// Whether the query is signed: only then may it override headers of the answer.
    #[must_use]
    pub const fn is_presigned(&self) -> bool {
        match &self.0 {
            Version::V4(claim) => claim.is_presigned(),
            Version::V2(claim) => claim.is_presigned(),
            Version::Form(_) => false,
        }
    }

    /// The session token that comes with temporary keys: where the signature is.
    #[must_use]
    pub fn session_token(&self, request: &SignedS3Request<'_>) -> Option<String> {
        let header = request.headers.get(SESSION_TOKEN);
        let header = header.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let in_query = || {
            // Version 2 has the name of the header.
            let names = ["X-Amz-Security-Token", SESSION_TOKEN];
            let is_presigned = self.is_presigned();
            names.into_iter().filter(|_| is_presigned).find_map(|name| parameter(request, name))
        };
        let token = header.or_else(in_query)?.trim().to_owned();
        Some(token).filter(|token| !token.is_empty())
    }

    /// Verifies the claim with the secrets of its access key.
    ///
    /// # Errors
    /// [`S3Error`]: dates first, then what has to be signed, then the signature.
    pub fn verify(
        &self,
        request: &SignedS3Request<'_>,
        secrets: &S3Secrets,
        now: Timestamp,
    ) -> Result<Verified, S3Error> {
        match &self.0 {
            Version::V4(claim) => claim.verify(request, secrets, now),
            Version::V2(claim) => claim.verify(request, secrets, now),
            Version::Form(claim) => claim.verify(secrets),
        }
    }
}

fn has(request: &SignedS3Request<'_>, name: &str) -> bool {
    parameter(request, name).is_some()
}
