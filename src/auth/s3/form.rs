//! Forms of browsers, which sign their policy: versions 4 and 2. The policy says what else the form
//! must be; its dialect checks that, once the signature is verified.
//!
//! Source: S3, "Authenticating Requests in Browser-Based Uploads Using POST (AWS Signature
//! Version 4)".

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::auth::s3::error::S3Error;
use crate::auth::s3::payload::Payload;
use crate::auth::s3::request::SignedForm;
use crate::auth::s3::request::SignedService;
use crate::auth::s3::request::Verified;
use crate::auth::s3::secrets::S3Secrets;
use crate::auth::s3::secrets::Scope;
use crate::auth::s3::shown;
use crate::auth::s3::unhex;
use crate::auth::s3::v4::ALGORITHM;
use crate::auth::s3::v4::credential_of;
use crate::auth::s3::v4::time_of;

const POLICY: &str = "policy";
const ALGORITHM_FIELD: &str = "X-Amz-Algorithm";
const CREDENTIAL: &str = "X-Amz-Credential";
const DATE: &str = "X-Amz-Date";
const SIGNATURE: &str = "X-Amz-Signature";
const ACCESS_KEY_V2: &str = "AWSAccessKeyId";
const SIGNATURE_V2: &str = "Signature";

/// The signature of a form.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    access_key_id: String,
    /// The policy in base64, which is the signed text.
    policy: String,
    proof: Proof,
}

#[derive(Clone, Debug)]
enum Proof {
    V4 { scope: Scope, signature: [u8; 32] },
    V2 { signature: Vec<u8> },
}

impl Claim {
    /// Reads the fields of a form; `None` when it is not signed.
    pub(super) fn of(form: &SignedForm<'_>) -> Result<Option<Self>, S3Error> {
        let of_v4 = [form.algorithm, form.credential, form.date, form.signature];
        let of_v2 = [form.access_key_id, form.signature_v2];
        let is_signed = |fields: &[Option<&str>]| fields.iter().any(Option::is_some);
        let claim = match (is_signed(&of_v4), is_signed(&of_v2)) {
            (false, false) => return Ok(None),
            (true, true) => return Err(S3Error::SignedTwice),
            (true, false) => Self::v4(form)?,
            (false, true) => Self::v2(form)?,
        };
        Ok(Some(claim))
    }

    fn v4(form: &SignedForm<'_>) -> Result<Self, S3Error> {
        let policy = needed(POLICY, form.policy)?;
        let algorithm = needed(ALGORITHM_FIELD, form.algorithm)?;
        let credential = needed(CREDENTIAL, form.credential)?;
        let date = needed(DATE, form.date)?;
        let signature = needed(SIGNATURE, form.signature)?;
        if algorithm != ALGORITHM {
            let detail = format!("{ALGORITHM_FIELD} only supports {ALGORITHM}");
            return Err(S3Error::field(ALGORITHM_FIELD, detail));
        }
        let (access_key_id, scope) = credential_of(SignedService::S3, credential)
            .map_err(|detail| S3Error::field(CREDENTIAL, detail))?;
        let (time, _) = time_of(date).filter(|(time, _)| time == date).ok_or_else(|| {
            S3Error::field(DATE, "X-Amz-Date must be formatted via ISO8601 Long format")
        })?;
        if !time.starts_with(&scope.date) {
            let detail = "the date of the credential is not that of X-Amz-Date";
            return Err(S3Error::field(CREDENTIAL, detail));
        }
        let signature = unhex(signature).ok_or_else(|| {
            let detail = "the signature is not 64 lower-case hexadecimal digits";
            S3Error::field(SIGNATURE, detail)
        })?;
        let proof = Proof::V4 { scope, signature };
        Ok(Self { access_key_id, policy: policy.to_owned(), proof })
    }

    fn v2(form: &SignedForm<'_>) -> Result<Self, S3Error> {
        let policy = needed(POLICY, form.policy)?;
        let access_key_id = needed(ACCESS_KEY_V2, form.access_key_id)?.to_owned();
        let signature = STANDARD
            .decode(needed(SIGNATURE_V2, form.signature_v2)?)
            .map_err(|_| S3Error::field(SIGNATURE_V2, "the signature is not base64"))?;
        Ok(Self { access_key_id, policy: policy.to_owned(), proof: Proof::V2 { signature } })
    }

    pub(super) fn access_key_id(&self) -> &str {
        &self.access_key_id
    }

    /// As [`super::claim::Claim::verify`]. The end of the policy is the only time that counts.
    pub(super) fn verify(&self, secrets: &S3Secrets) -> Result<Verified, S3Error> {
        let text = self.policy.as_bytes();
        let is_signed = match &self.proof {
            Proof::V4 { scope, signature } => secrets.verify_v4(scope, text, signature).is_some(),
            Proof::V2 { signature } => secrets.verify_v2(text, signature),
        };
        if is_signed {
            return Ok(Verified { payload: Payload::Unsigned });
        }
        let (string_to_sign, canonical_request) = (shown(text), String::new());
        Err(S3Error::WrongSignature { string_to_sign, canonical_request })
    }
}

fn needed<'a>(name: &'static str, value: Option<&'a str>) -> Result<&'a str, S3Error> {
    value.map(str::trim).filter(|value| !value.is_empty()).ok_or(S3Error::MissingField { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "Example: Browser-Based Upload using HTTP POST (Using AWS Signature Version 4)".
    const POLICY_TEXT: &str = concat!(
        "eyAiZXhwaXJhdGlvbiI6ICIyMDE1LTEyLTMwVDEyOjAwOjAwLjAwMFoiLA0KICAiY29uZGl0aW9ucyI6IFsNCiAgICB7",
        "ImJ1Y2tldCI6ICJzaWd2NGV4YW1wbGVidWNrZXQifSwNCiAgICBbInN0YXJ0cy13aXRoIiwgIiRrZXkiLCAidXNlci91",
        "c2VyMS8iXSwNCiAgICB7ImFjbCI6ICJwdWJsaWMtcmVhZCJ9LA0KICAgIHsic3VjY2Vzc19hY3Rpb25fcmVkaXJlY3Qi",
        "OiAiaHR0cDovL3NpZ3Y0ZXhhbXBsZWJ1Y2tldC5zMy5hbWF6b25hd3MuY29tL3N1Y2Nlc3NmdWxfdXBsb2FkLmh0bWwi",
        "fSwNCiAgICBbInN0YXJ0cy13aXRoIiwgIiRDb250ZW50LVR5cGUiLCAiaW1hZ2UvIl0sDQogICAgeyJ4LWFtei1tZXRh",
        "LXV1aWQiOiAiMTQzNjUxMjM2NTEyNzQifSwNCiAgICB7IngtYW16LXNlcnZlci1zaWRlLWVuY3J5cHRpb24iOiAiQUVT",
        "MjU2In0sDQogICAgWyJzdGFydHMtd2l0aCIsICIkeC1hbXotbWV0YS10YWciLCAiIl0sDQoNCiAgICB7IngtYW16LWNy",
        "ZWRlbnRpYWwiOiAiQUtJQUlPU0ZPRE5ON0VYQU1QTEUvMjAxNTEyMjkvdXMtZWFzdC0xL3MzL2F3czRfcmVxdWVzdCJ9",
        "LA0KICAgIHsieC1hbXotYWxnb3JpdGhtIjogIkFXUzQtSE1BQy1TSEEyNTYifSwNCiAgICB7IngtYW16LWRhdGUiOiAi",
        "MjAxNTEyMjlUMDAwMDAwWiIgfQ0KICBdDQp9"
    );

    fn example() -> SignedForm<'static> {
        SignedForm {
            policy: Some(POLICY_TEXT),
            algorithm: Some("AWS4-HMAC-SHA256"),
            credential: Some("AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request"),
            date: Some("20151229T000000Z"),
            signature: Some("8afdbf4008c03f22c2cd3cdb72e4afbb1f6a588f3255ac628749a66d7f09699e"),
            access_key_id: None,
            signature_v2: None,
        }
    }

    fn verified(form: &SignedForm<'_>) -> Result<Verified, S3Error> {
        let secrets = S3Secrets::new(&["wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"]);
        let claim = Claim::of(form)?.expect("it is signed");
        assert_eq!(claim.access_key_id(), "AKIAIOSFODNN7EXAMPLE");
        claim.verify(&secrets)
    }

    #[test]
    fn example_of_the_documentation() {
        assert!(verified(&example()).is_ok());
        let form = SignedForm { policy: POLICY_TEXT.get(4..), ..example() };
        assert!(matches!(verified(&form), Err(S3Error::WrongSignature { .. })));
        let other = "AKIAIOSFODNN7EXAMPLE/20151229/eu-west-1/s3/aws4_request";
        let form = SignedForm { credential: Some(other), ..example() };
        assert!(matches!(verified(&form), Err(S3Error::WrongSignature { .. })));
    }

    #[test]
    fn version_2_signs_the_policy_too() {
        let key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key.as_bytes());
        let signature = STANDARD.encode(ring::hmac::sign(&key, b"cG9saWN5"));
        let form = SignedForm {
            policy: Some("cG9saWN5"),
            access_key_id: Some("AKIAIOSFODNN7EXAMPLE"),
            signature_v2: Some(&signature),
            ..SignedForm::default()
        };
        assert!(verified(&form).is_ok());
        let form = SignedForm { policy: Some("cG9saWN6"), ..form };
        assert!(matches!(verified(&form), Err(S3Error::WrongSignature { .. })));
        let form = SignedForm { signature_v2: Some("*"), ..form };
        assert!(matches!(verified(&form), Err(S3Error::MalformedField { name: SIGNATURE_V2, .. })));
    }

    #[test]
    fn fields_are_all_or_none() {
        assert!(Claim::of(&SignedForm::default()).unwrap().is_none());
        assert!(
            Claim::of(&SignedForm { policy: Some("p"), ..SignedForm::default() })
                .unwrap()
                .is_none()
        );
        let all = example();
        for (form, missing) in [
            (SignedForm { policy: None, ..all }, POLICY),
            (SignedForm { algorithm: None, credential: None, ..all }, ALGORITHM_FIELD),
            (SignedForm { credential: None, ..all }, CREDENTIAL),
            (SignedForm { date: None, ..all }, DATE),
            (SignedForm { signature: Some(" "), ..all }, SIGNATURE),
            (
                SignedForm { policy: Some("p"), signature_v2: Some("s"), ..SignedForm::default() },
                ACCESS_KEY_V2,
            ),
            (
                SignedForm { policy: Some("p"), access_key_id: Some("a"), ..SignedForm::default() },
                SIGNATURE_V2,
            ),
        ] {
            assert_eq!(Claim::of(&form).unwrap_err(), S3Error::MissingField { name: missing });
        }
        let form = SignedForm { signature_v2: Some("s"), ..all };
        assert_eq!(Claim::of(&form).unwrap_err(), S3Error::SignedTwice);
    }

    #[test]
    fn malformed_fields_are_named() {
        let all = example();
        for (form, wrong) in [
            (SignedForm { algorithm: Some("AWS4-HMAC-SHA1"), ..all }, ALGORITHM_FIELD),
            (SignedForm { credential: Some("AKIA/us-east-1/s3/aws4_request"), ..all }, CREDENTIAL),
            (
                SignedForm { credential: Some("A/20151228/us-east-1/s3/aws4_request"), ..all },
                CREDENTIAL,
            ),
            (
                SignedForm { credential: Some("A/20151229/us-east-1/ec2/aws4_request"), ..all },
                CREDENTIAL,
            ),
            (SignedForm { date: Some("2015-12-29T00:00:00Z"), ..all }, DATE),
            (SignedForm { signature: Some("8AFD"), ..all }, SIGNATURE),
        ] {
            let error = Claim::of(&form).unwrap_err();
            assert!(
                matches!(error, S3Error::MalformedField { name, .. } if name == wrong),
                "{error}"
            );
        }
    }
}
