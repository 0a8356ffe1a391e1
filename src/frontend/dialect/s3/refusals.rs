//! Why the authentication of an S3 request fails, as refusals.

use crate::auth::S3Error;
use crate::auth::SessionError;
use crate::protocol::model::Cause;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;

/// The refusal of an access key that is not known.
pub(super) fn unknown_key(id: &str) -> Refusal {
    Refusal::new(Reason::UnknownAccessKey)
        .detail(Detail::AccessKeyId, id)
        .cause(Cause::Authentication("account"))
}

/// The refusal of a session token.
pub(super) fn from_session(error: SessionError) -> Refusal {
    let (reason, cause) = match error {
        SessionError::Invalid => (Reason::InvalidSessionToken, "token"),
        SessionError::Expired => (Reason::ExpiredSessionToken, "clock"),
    };
    Refusal::new(reason).cause(Cause::Authentication(cause))
}

/// The refusal of a signature or of its claims.
pub(super) fn from_s3(error: &S3Error) -> Refusal {
    use S3Error as E;
    match error {
        E::Unsupported { detail } => Refusal::new(Reason::InvalidHeaderValue)
            .message(format!("Unsupported authorization: {detail}."))
            .cause(Cause::Authentication("scheme")),
        E::SignedTwice => Refusal::new(Reason::InvalidHeaderValue)
            .message(
                "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, \
                 Signature query string parameter or the Authorization header should be specified",
            )
            .cause(Cause::Authentication("malformed")),
        E::MalformedHeader { detail } => {
            malformed(Reason::InvalidAuthenticationInfo, format!("Authorization: {detail}."))
        }
        E::MalformedQuery { detail } => {
            malformed(Reason::MalformedQueryAuthentication, detail.clone())
        }
        E::MissingField { name } => field(
            name,
            format!(
                "Bucket POST must contain a field named '{name}'.  If it is specified, please \
                 check the order of the fields."
            ),
        ),
        E::MalformedField { name, detail } => field(name, detail.clone()),
        E::IncompleteQuery => denied(
            "Query-string authentication requires the Signature, Expires and AWSAccessKeyId \
             parameters",
            "malformed",
        ),
        E::NoExpiry { text } => {
            denied(&format!("Invalid date (should be seconds since epoch): {text}"), "malformed")
        }
        E::NoDate => {
            denied("AWS authentication requires a valid Date or x-amz-date header", "malformed")
        }
        E::Skewed => {
            Refusal::new(Reason::RequestTimeTooSkewed).cause(Cause::Authentication("clock"))
        }
        E::Expired => denied("Request has expired", "clock"),
        E::NotYetValid => denied("Request is not yet valid", "clock"),
        E::UnsignedHeaders { names } => denied(
            &format!("There were headers present in the request which were not signed: {names}"),
            "refused",
        ),
        E::NoPayloadHash => malformed(
            Reason::MissingRequiredHeader,
            "Missing required header for this request: x-amz-content-sha256".to_owned(),
        ),
        E::BadPayloadHash => malformed(
            Reason::InvalidHeaderValue,
            "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, a STREAMING form, or a valid sha256 \
             value."
                .to_owned(),
        ),
        E::WrongSignature { string_to_sign, canonical_request } => {
            let refusal = Refusal::new(Reason::AuthenticationFailed)
                .detail(Detail::StringToSign, string_to_sign.as_str())
                .cause(Cause::Authentication("signature"));
            match canonical_request.is_empty() {
                true => refusal,
                false => refusal.detail(Detail::CanonicalRequest, canonical_request.as_str()),
            }
        }
    }
}

/// The refusal of a field of a form.
fn field(name: &str, message: String) -> Refusal {
    malformed(Reason::InvalidHeaderValue, message).detail(Detail::HeaderName, name)
}

fn malformed(reason: Reason, message: String) -> Refusal {
    Refusal::new(reason).message(message).cause(Cause::Authentication("malformed"))
}

fn denied(message: &str, cause: &'static str) -> Refusal {
    Refusal::new(Reason::AuthorizationFailure).message(message).cause(Cause::Authentication(cause))
}
