//! Signature version 4, in `Authorization` and in the query.

use ring::digest;

use crate::auth::s3::DATE_WINDOW_SECONDS;
use crate::auth::s3::canonical::canonical_request;
use crate::auth::s3::chunks::ChunkVerifier;
use crate::auth::s3::error::S3Error;
use crate::auth::s3::hex;
use crate::auth::s3::payload::Form;
use crate::auth::s3::payload::Payload;
use crate::auth::s3::request::SignedS3Request;
use crate::auth::s3::request::SignedService;
use crate::auth::s3::request::Verified;
use crate::auth::s3::request::parameter;
use crate::auth::s3::secrets::S3Secrets;
use crate::auth::s3::secrets::Scope;
use crate::auth::s3::shown;
use crate::auth::s3::unhex;
use crate::types::Timestamp;

pub(super) const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const PAYLOAD_HASH: &str = "x-amz-content-sha256";
/// The longest life of a presigned URL, seconds: a week.
const EXPIRES_MAX: i64 = 604_800;
/// The longest region, bytes: any is accepted, but the derived key is kept with it.
const REGION_BYTES_MAX: usize = 64;

/// The signature of a request.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    access_key_id: String,
    scope: Scope,
    /// The signed headers, in lower case, separated by semicolons.
    names: String,
    signature: [u8; 32],
    /// `YYYYMMDDThhmmssZ`, as it is signed.
    time: String,
    signed_at: Timestamp,
    /// Seconds for which a presigned URL is good; `None` for a signature in the head.
    expires: Option<u64>,
}

impl Claim {
    /// Reads `Authorization` behind its first word.
    pub(super) fn of_header(request: &SignedS3Request<'_>, rest: &str) -> Result<Self, S3Error> {
        let field = |name: &str| {
            let fields = rest.split(',').map(str::trim);
            let found = fields.filter_map(|field| field.split_once('='));
            let mut found = found.filter(|(found, _)| *found == name).map(|(_, value)| value);
            let value = found.next().filter(|value| !value.is_empty());
            value.ok_or_else(|| S3Error::header(format!("it has no {name}")))
        };
        let (credential, names) = (field("Credential")?, field("SignedHeaders")?);
        let signature = field("Signature")?;
        let (access_key_id, scope) =
            credential_of(request.service, credential).map_err(S3Error::header)?;
        let date = header(request, "x-amz-date").or_else(|| header(request, "date"));
        let (time, signed_at) = date.and_then(time_of).ok_or(S3Error::NoDate)?;
        if !time.starts_with(&scope.date) {
            let detail = "the date of the credential is not that of the request";
            return Err(S3Error::header(detail));
        }
        let claim = Self {
            access_key_id,
            scope,
            names: names.to_owned(),
            signature: unhex(signature).ok_or_else(|| {
                S3Error::header("the signature is not 64 lower-case hexadecimal digits")
            })?,
            time,
            signed_at,
            expires: None,
        };
        check_names(&claim.names).map_err(S3Error::header)?;
        Ok(claim)
    }

    /// Reads the query of a presigned URL.
    pub(super) fn of_query(request: &SignedS3Request<'_>) -> Result<Self, S3Error> {
        let field = |name: &str| {
            let value = parameter(request, name).filter(|value| !value.is_empty());
            value.ok_or_else(|| S3Error::query(format!("the query has no {name}")))
        };
        if field("X-Amz-Algorithm")? != ALGORITHM {
            let detail = format!("X-Amz-Algorithm only supports {ALGORITHM}");
            return Err(S3Error::query(detail));
        }
        let (access_key_id, scope) =
            credential_of(request.service, &field("X-Amz-Credential")?).map_err(S3Error::query)?;
        let (time, signed_at) = time_of(&field("X-Amz-Date")?)
            .ok_or_else(|| S3Error::query("X-Amz-Date is not of the form YYYYMMDDThhmmssZ"))?;
        if !time.starts_with(&scope.date) {
            return Err(S3Error::query("the date of the credential is not that of X-Amz-Date"));
        }
        let expires = expires_of(&field("X-Amz-Expires")?)?;
        let names = field("X-Amz-SignedHeaders")?;
        check_names(&names).map_err(S3Error::query)?;
        let signature = unhex(&field("X-Amz-Signature")?).ok_or_else(|| {
            S3Error::query("X-Amz-Signature is not 64 lower-case hexadecimal digits")
        })?;
        Ok(Self { access_key_id, scope, names, signature, time, signed_at, expires: Some(expires) })
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
        self.check_time(now)?;
        let (line, form) = self.payload(request)?;
        self.check_signed(request)?;
        let without = self.is_presigned().then_some("X-Amz-Signature");
        let canonical = canonical_request(request, &self.names, &line, without);
        let hash = hex(digest::digest(&digest::SHA256, &canonical).as_ref());
        let (time, scope) = (&self.time, self.scope.to_string());
        let text = format!("{ALGORITHM}\n{time}\n{scope}\n{hash}");
        let key = secrets.verify_v4(&self.scope, text.as_bytes(), &self.signature);
        let key = key.ok_or_else(|| S3Error::WrongSignature {
            string_to_sign: text.clone(),
            canonical_request: shown(&canonical),
        })?;
        let payload = match form {
            Form::Unsigned => Payload::Unsigned,
            Form::Sha256(sha256) => Payload::Sha256(sha256),
            Form::UnsignedChunks => Payload::Chunks { verifier: None, trailers: true },
            Form::SignedChunks { trailers } => {
                let verifier = ChunkVerifier::new(key, time, &scope, &self.signature);
                Payload::Chunks { verifier: Some(Box::new(verifier)), trailers }
            }
        };
        Ok(Verified { payload })
    }

    fn check_time(&self, now: Timestamp) -> Result<(), S3Error> {
        let (early, late) = (self.signed_at.since(now), now.since(self.signed_at));
        match self.expires {
            Some(_) if early.as_secs() > DATE_WINDOW_SECONDS => Err(S3Error::NotYetValid),
            Some(expires) if late.as_secs() >= expires => Err(S3Error::Expired),
            Some(_) => Ok(()),
            None if early.max(late).as_secs() > DATE_WINDOW_SECONDS => Err(S3Error::Skewed),
            None => Ok(()),
        }
    }

    /// The line about the body, and its parsed claim.
    fn payload(&self, request: &SignedS3Request<'_>) -> Result<(String, Form), S3Error> {
        if let SignedService::TokenService { body } = request.service {
            return Ok((hex(&body), Form::Unsigned));
        }
        let stated = header(request, PAYLOAD_HASH).map(str::to_owned);
        let stated = match (stated, self.is_presigned()) {
            (Some(stated), _) => stated,
            (None, false) => return Err(S3Error::NoPayloadHash),
            (None, true) => parameter(request, "X-Amz-Content-Sha256")
                .unwrap_or_else(|| "UNSIGNED-PAYLOAD".to_owned()),
        };
        let form = Form::parse(&stated)?;
        Ok((stated, form))
    }

    /// The host must be signed, and so must every header that changes the meaning of the request.
    fn check_signed(&self, request: &SignedS3Request<'_>) -> Result<(), S3Error> {
        let is_signed = |name: &str| self.names.split(';').any(|signed| signed == name);
        let mut unsigned: Vec<&str> = Vec::new();
        if !is_signed("host") {
            unsigned.push("host");
        }
        let names = request.headers.keys().map(http::HeaderName::as_str);
        unsigned.extend(names.filter(|name| {
            // Of a presigned URL the hash of the body is signed by its own line.
            let is_covered = self.is_presigned() && *name == PAYLOAD_HASH;
            name.starts_with("x-amz-") && !is_covered && !is_signed(name)
        }));
        if unsigned.is_empty() {
            return Ok(());
        }
        Err(S3Error::UnsignedHeaders { names: unsigned.join(", ") })
    }
}

fn header<'a>(request: &SignedS3Request<'a>, name: &str) -> Option<&'a str> {
    request.headers.get(name)?.to_str().ok().map(str::trim)
}

/// `ACCESS_KEY_ID/YYYYMMDD/REGION/SERVICE/aws4_request`.
pub(super) fn credential_of(service: SignedService, text: &str) -> Result<(String, Scope), String> {
    let wanted = service.name();
    let malformed =
        || "the credential is not of the form KEY/YYYYMMDD/REGION/SERVICE/aws4_request".to_owned();
    let mut parts = text.rsplitn(5, '/');
    let mut next = || parts.next().filter(|part| !part.is_empty()).ok_or_else(malformed);
    let (end, service, region, date) = (next()?, next()?, next()?, next()?);
    let access_key_id = next()?;
    if end != "aws4_request" {
        return Err("the credential does not end in aws4_request".to_owned());
    }
    if service != wanted {
        return Err(format!("the credential is for the service '{service}', not for '{wanted}'"));
    }
    if region.len() > REGION_BYTES_MAX {
        return Err(format!("a region has at most {REGION_BYTES_MAX} bytes"));
    }
    if date.len() != 8 || !date.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(malformed());
    }
    let (date, region, service) = (date.to_owned(), region.to_owned(), service.to_owned());
    Ok((access_key_id.to_owned(), Scope { date, region, service }))
}

/// Names of headers in lower case, each once.
fn check_names(names: &str) -> Result<(), String> {
    let mut seen = std::collections::BTreeSet::new();
    let is_plain = |name: &str| {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase();
        !name.is_empty() && name.bytes().all(is_plain)
    };
    if names.split(';').all(|name| is_plain(name) && seen.insert(name)) {
        return Ok(());
    }
    Err("the signed headers are not names in lower case, separated by semicolons".to_owned())
}

fn expires_of(text: &str) -> Result<u64, S3Error> {
    let seconds: i64 =
        text.parse().map_err(|_| S3Error::query("X-Amz-Expires should be a number"))?;
    if seconds > EXPIRES_MAX {
        return Err(S3Error::query(format!(
            "X-Amz-Expires must be less than a week (in seconds); that is, the given \
             X-Amz-Expires must be less than {EXPIRES_MAX} seconds"
        )));
    }
    u64::try_from(seconds).map_err(|_| S3Error::query("X-Amz-Expires must be non-negative"))
}

/// Zones that are that of HTTP dates, in the words of RFC 5322.
const ZONES: [&str; 3] = [" +0000", " -0000", " UTC"];

/// A date of the form `YYYYMMDDThhmmssZ`, or an HTTP date; in the first form, and as a time.
pub(super) fn time_of(text: &str) -> Option<(String, Timestamp)> {
    if let Some(time) = basic_time(text) {
        return Some((text.to_owned(), time));
    }
    let zoned = ZONES.iter().find_map(|zone| text.strip_suffix(zone));
    let zoned = zoned.map(|time| format!("{time} GMT"));
    let time = httpdate::parse_http_date(zoned.as_deref().unwrap_or(text)).ok()?;
    let time = Timestamp::from_unix(time.duration_since(std::time::UNIX_EPOCH).ok()?);
    Some((time.to_iso_seconds().replace(['-', ':'], ""), time))
}

fn basic_time(text: &str) -> Option<Timestamp> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    if date.len() != 8 || clock.len() != 6 {
        return None;
    }
    let (year, month, day) = (date.get(..4)?, date.get(4..6)?, date.get(6..)?);
    let (hour, minute, second) = (clock.get(..2)?, clock.get(2..4)?, clock.get(4..)?);
    Timestamp::from_iso(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}
