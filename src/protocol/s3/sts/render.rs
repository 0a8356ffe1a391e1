//! Documents of the token service.

use bytes::Bytes;
use http::Response;
use zeroize::Zeroizing;

use crate::protocol::s3::sts::StsError;
use crate::protocol::wire::escape;
use crate::protocol::wire::head::Head;
use crate::types::Timestamp;

/// The name space of every document.
const NAMESPACE: &str = "https://sts.amazonaws.com/doc/2011-06-15/";

/// The parts of a request that its answer repeats.
#[derive(Clone, Debug)]
pub struct StsEcho {
    /// The request's id.
    pub request_id: String,
    /// The time of the answer.
    pub time: Timestamp,
}

/// The identity that signs a call or holds temporary keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The account number.
    pub account: String,
    /// The name in IAM's form.
    pub arn: String,
    /// The unique id.
    pub id: String,
}

/// Temporary keys.
#[derive(Clone)]
pub struct Credentials {
    /// The id.
    pub access_key_id: String,
    /// The secret.
    pub secret: Zeroizing<String>,
    /// The session token.
    pub token: String,
    /// When they end.
    pub expires: Timestamp,
}

impl std::fmt::Debug for Credentials {
    /// Never shows secret and token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({})", self.access_key_id)
    }
}

/// The answer to a call.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Of `AssumeRole`.
    Assumed(Identity, Credentials),
    /// Of `AssumeRoleWithWebIdentity`, with the subject of the token and its issuer.
    AssumedWithWebIdentity(Identity, Credentials, [String; 2]),
    /// Of `GetCallerIdentity`.
    Caller(Identity),
}

/// Writes an answer.
#[must_use]
pub fn render(answer: &Answer, echo: &StsEcho) -> Response<Bytes> {
    let mut out = String::with_capacity(1024);
    let name = match answer {
        Answer::Assumed(..) => "AssumeRole",
        Answer::AssumedWithWebIdentity(..) => "AssumeRoleWithWebIdentity",
        Answer::Caller(_) => "GetCallerIdentity",
    };
    out.push_str(&format!("<{name}Response xmlns=\"{NAMESPACE}\"><{name}Result>"));
    match answer {
        Answer::Assumed(identity, credentials) => assumed(&mut out, identity, credentials),
        Answer::AssumedWithWebIdentity(identity, credentials, [subject, issuer]) => {
            escape::referenced(&mut out, "SubjectFromWebIdentityToken", subject);
            escape::referenced(&mut out, "Provider", issuer);
            assumed(&mut out, identity, credentials);
        }
        Answer::Caller(identity) => {
            escape::element(&mut out, "Arn", &identity.arn);
            escape::element(&mut out, "UserId", &identity.id);
            escape::element(&mut out, "Account", &identity.account);
        }
    }
    out.push_str(&format!("</{name}Result><ResponseMetadata>"));
    escape::element(&mut out, "RequestId", &echo.request_id);
    out.push_str(&format!("</ResponseMetadata></{name}Response>"));
    // The document contains secrets, so caches must not keep it.
    head(200, echo).fixed("cache-control", "no-store").xml(out)
}

fn assumed(out: &mut String, identity: &Identity, credentials: &Credentials) {
    out.push_str("<AssumedRoleUser>");
    escape::element(out, "Arn", &identity.arn);
    escape::element(out, "AssumedRoleId", &identity.id);
    out.push_str("</AssumedRoleUser><Credentials>");
    escape::element(out, "AccessKeyId", &credentials.access_key_id);
    escape::element(out, "SecretAccessKey", &credentials.secret);
    escape::element(out, "SessionToken", &credentials.token);
    escape::plain(out, "Expiration", credentials.expires.to_iso_seconds());
    out.push_str("</Credentials>");
}

/// Writes a refusal.
#[must_use]
pub fn error(error: &StsError, echo: &StsEcho) -> Response<Bytes> {
    let mut out = format!("<ErrorResponse xmlns=\"{NAMESPACE}\"><Error>");
    escape::element(&mut out, "Type", if error.status < 500 { "Sender" } else { "Receiver" });
    escape::element(&mut out, "Code", error.code);
    escape::referenced(&mut out, "Message", &error.message);
    out.push_str("</Error>");
    escape::element(&mut out, "RequestId", &echo.request_id);
    out.push_str("</ErrorResponse>");
    head(error.status, echo).fixed("x-amz-error-code", error.code).xml(out)
}

fn head(status: u16, echo: &StsEcho) -> Head {
    Head::new(status)
        .set("x-amzn-requestid", &echo.request_id)
        .set("x-amz-request-id", &echo.request_id)
        .shown("date", echo.time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo() -> StsEcho {
        StsEcho { request_id: "id".to_owned(), time: Timestamp::ZERO }
    }

    #[test]
    fn documents_have_the_form_of_the_token_service() {
        let identity =
            Identity { account: "1".to_owned(), arn: "arn:a&b".to_owned(), id: "x:n".to_owned() };
        let caller = render(&Answer::Caller(identity.clone()), &echo());
        let text = String::from_utf8(caller.body().to_vec()).unwrap();
        assert_eq!(
            text,
            "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
             <GetCallerIdentityResult><Arn>arn:a&amp;b</Arn><UserId>x:n</UserId><Account>1</Account>\
             </GetCallerIdentityResult><ResponseMetadata><RequestId>id</RequestId></ResponseMetadata>\
             </GetCallerIdentityResponse>"
        );
        let credentials = Credentials {
            access_key_id: "BT".to_owned(),
            secret: Zeroizing::new("s3cret".to_owned()),
            token: "t0ken".to_owned(),
            expires: Timestamp::from_iso("2026-11-22T17:00:00Z").unwrap(),
        };
        assert!(!format!("{credentials:?}").contains("s3cret"));
        let assumed = render(&Answer::Assumed(identity, credentials), &echo());
        let text = String::from_utf8(assumed.body().to_vec()).unwrap();
        assert!(text.contains("<SecretAccessKey>s3cret</SecretAccessKey>"), "{text}");
        assert!(text.contains("<Expiration>2026-11-22T17:00:00Z</Expiration>"), "{text}");
        assert_eq!(assumed.headers()["cache-control"], "no-store");
    }

    #[test]
    fn refusals_have_the_form_of_the_token_service() {
        let refused = error(&StsError::invalid("a < b"), &echo());
        assert_eq!(refused.status(), 400);
        let text = String::from_utf8(refused.body().to_vec()).unwrap();
        assert!(text.contains("<Error><Type>Sender</Type><Code>ValidationError</Code><Message>a &lt; b</Message></Error>"), "{text}");
    }
}
