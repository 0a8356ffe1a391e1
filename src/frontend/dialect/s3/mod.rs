//! S3 at the front end: recognises its requests, reads their addresses and identifies their
//! senders.
//!
//! `sender.rs` identifies the sender, `admit.rs` checks permission. `body.rs` verifies signed
//! bodies, `forms.rs` reads forms of browsers, `sts.rs` answers the token service. `refusals.rs`
//! maps errors of signatures to refusals.
//!
//! A request is in S3's dialect if its host is an S3 host, if it has an S3 signature in the head or
//! the query, if it is a form for a bucket, or if it arrives at the listener of S3.

pub(in crate::frontend) mod admit;
pub(in crate::frontend) mod body;
pub(in crate::frontend) mod forms;
mod refusals;
mod sender;
pub(in crate::frontend) mod sts;

use http::HeaderValue;
use http::header::AUTHORIZATION;
use http::header::HOST;
use http::request::Parts;

use crate::auth::SignedS3Request;
use crate::auth::SignedService;
use crate::auth::claim;
use crate::frontend::accounts::AccessKeys;
use crate::frontend::errors;
use crate::protocol::model::Address;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::s3;
use crate::protocol::s3::address::S3Address;
use crate::protocol::s3::form;
use crate::protocol::s3::form::PostForm;
use crate::types::AccountName;
use crate::types::BlobName;
use crate::types::ContainerName;
use crate::types::NameError;

/// How S3 requests are recognised, and defaults for omitted values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Settings {
    /// Domains `D` for which `s3.D`, `BUCKET.s3.D`, `s3.ACCOUNT.D` and `BUCKET.s3.ACCOUNT.D` are
    /// hosts of S3; lower case, no port.
    pub domains: Vec<String>,
    /// The account of unsigned requests whose host names no account.
    pub account: Option<AccountName>,
    /// The region of buckets that were created without one.
    pub region: String,
    /// The accounts of access keys of users.
    pub access_keys: AccessKeys,
}

impl Default for S3Settings {
    /// No hosts, no account, the region of S3 itself.
    fn default() -> Self {
        let (domains, region) = (Vec::new(), "us-east-1".to_owned());
        Self { domains, account: None, region, access_keys: AccessKeys::default() }
    }
}

/// First words of `Authorization` that only S3 has.
const SCHEMES: [&[u8]; 2] = [b"AWS4-", b"AWS "];

impl S3Settings {
    /// Whether a request speaks S3.
    pub(super) fn recognises(&self, head: &Parts) -> bool {
        if let Some(value) = head.headers.get(AUTHORIZATION) {
            if SCHEMES.iter().any(|scheme| value.as_bytes().starts_with(scheme)) {
                return true;
            }
        } else if head.uri.query().is_some_and(is_presigned) || is_path_style_form(head) {
            return true;
        }
        self.is_token_call(head) || self.names(host(head))
    }

    /// Whether a request calls the token service. The host of a bucket has none.
    pub(super) fn is_token_call(&self, head: &Parts) -> bool {
        let has_bucket = || {
            let named = s3::address::address(host(head), "/", &self.domains);
            named.is_ok_and(|named| named.bucket.is_some())
        };
        s3::sts::is_call(head) && !has_bucket()
    }

    /// Whether a host, with or without its port, is one of S3.
    pub(super) fn names(&self, host: &str) -> bool {
        s3::address::is_s3_host(host, &self.domains)
    }

    /// Whether a request announces a form for the bucket that its URL names.
    pub(super) fn has_form(&self, head: &Parts) -> bool {
        let named = || s3::address::address(host(head), head.uri.path(), &self.domains).ok();
        form::announces(head)
            && named().is_some_and(|named| named.bucket.is_some() && named.key.is_none())
    }

    /// The account, bucket and key that the URL names.
    ///
    /// # Errors
    /// `InvalidInput` for a request of Azure Blob; those of [`s3::address::address`];
    /// `InvalidResourceName` for a bucket that cannot exist,
    /// `OutOfRangeInput` for a key that is too long; those of the authorization that names the
    /// account.
    pub(super) fn address(&self, head: &Parts) -> Result<Address, Refusal> {
        if speaks_blob(head) {
            return Err(Refusal::new(Reason::InvalidInput).message(
                "This address serves S3. Azure Blob is served at the port of --blob-listen, under \
                 other host names than s3.DOMAIN.",
            ));
        }
        let host = host(head);
        let named = s3::address::address(host, head.uri.path(), &self.domains)?;
        let container = named.bucket.as_deref().map(bucket_name).transpose()?;
        // The key of a form is in a field.
        let key = named.key.as_deref().or_else(|| form::of(head).map(PostForm::key));
        let blob = key.map(key_name).transpose()?;
        let account = self.account_of(head, &named)?;
        Ok(Address {
            account,
            secondary: false,
            container,
            blob,
            blob_as_sent: None,
            endpoint: format!("{host}/"),
        })
    }

    /// The account that the host names, else that of the access key.
    fn account_of(&self, head: &Parts, named: &S3Address) -> Result<AccountName, Refusal> {
        if let Some(account) = &named.account {
            return AccountName::new(account).map_err(|_| Reason::InvalidUri.into());
        }
        let signed = self.signed_for(head, named);
        let claim = claim(&signed).map_err(|error| refusals::from_s3(&error))?;
        match claim {
            Some(claim) => match claim.session_token(&signed) {
                Some(token) => sender::account_of_token(&token),
                None => self.account_of_key(claim.access_key_id()),
            },
            None => self.account.clone().ok_or_else(|| {
                Refusal::new(Reason::NoAuthenticationInformation).message(
                    "The request is not signed, and neither its host nor this server's \
                     configuration says whose bucket it means.",
                )
            }),
        }
    }

    /// The account of an access key: its root has the account's name as id.
    ///
    /// # Errors
    /// `UnknownAccessKey`; `ServerBusy` while some accounts are not read.
    fn account_of_key(&self, id: &str) -> Result<AccountName, Refusal> {
        if let Ok(name) = AccountName::new(id) {
            return Ok(name);
        }
        let owner = self.access_keys.find(id).map_err(|unread| errors::unread_key(&unread))?;
        owner.ok_or_else(|| refusals::unknown_key(id))
    }

    /// The parts of a request that its signature covers.
    fn signed<'a>(&self, head: &'a Parts, named: &'a S3Address) -> SignedS3Request<'a> {
        SignedS3Request {
            method: &head.method,
            path: head.uri.path(),
            query: head.uri.query(),
            headers: &head.headers,
            host: host(head),
            bucket: named.bucket.as_deref().filter(|_| named.is_virtual_hosted),
            form: form::of(head).map(forms::signed),
            service: SignedService::S3,
        }
    }

    /// The same, for the service that the request calls. The hash of the body is not known yet.
    fn signed_for<'a>(&self, head: &'a Parts, named: &'a S3Address) -> SignedS3Request<'a> {
        let service = match self.is_token_call(head) {
            true => SignedService::TokenService { body: [0; 32] },
            false => SignedService::S3,
        };
        SignedS3Request { service, ..self.signed(head, named) }
    }
}

/// The host of a request; the URL's own authority, if it has one, wins over `Host`.
fn host(head: &Parts) -> &str {
    let named = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    head.uri.authority().map(http::uri::Authority::as_str).or(named).unwrap_or("")
}

/// Whether a request is a form for a bucket that its path names. No request of Azure is a form.
fn is_path_style_form(head: &Parts) -> bool {
    let bucket = head.uri.path().trim_matches('/');
    form::announces(head) && !bucket.is_empty() && !bucket.contains('/')
}

/// Whether a query has the parameters of a presigned URL of either version.
fn is_presigned(query: &str) -> bool {
    let has = |wanted: &str| {
        let names =
            query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name));
        names.into_iter().any(|name| name == wanted)
    };
    has("X-Amz-Algorithm") || has("X-Amz-Signature") || has("AWSAccessKeyId") && has("Signature")
}

/// Names of `$` containers are Azure's own.
fn bucket_name(text: &str) -> Result<ContainerName, Refusal> {
    let name = ContainerName::new(text).ok().filter(|name| !name.as_str().starts_with('$'));
    name.ok_or_else(|| Reason::InvalidResourceName.into())
}

fn key_name(text: &str) -> Result<BlobName, Refusal> {
    BlobName::new(text).map_err(|error| match error {
        NameError::Length => Reason::OutOfRangeInput.into(),
        NameError::Invalid => Refusal::from(Reason::InvalidUri).message("A key holds no NUL."),
    })
}

/// Whether a request to an address of S3 is one of Azure Blob.
fn speaks_blob(head: &Parts) -> bool {
    let authorization = head.headers.get(AUTHORIZATION).map_or(&b""[..], HeaderValue::as_bytes);
    head.headers.contains_key("x-ms-version") || authorization.starts_with(b"SharedKey")
}
