//! Verifies a shared access signature: first who signed it, then whether it is valid for the
//! request.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;

use crate::auth::AccountKeys;
use crate::auth::Authority;
use crate::auth::DelegationSecret;
use crate::auth::Entitlement;
use crate::auth::Error;
use crate::auth::Grant;
use crate::auth::Overrides;
use crate::auth::Principal;
use crate::auth::Reach;
use crate::auth::SasPermissions;
use crate::auth::Scope;
use crate::auth::TrustedIssuer;
use crate::auth::sas::delegation;
use crate::auth::sas::delegation::SignedText;
use crate::auth::sas::fields::Fields;
use crate::auth::sas::layout;
use crate::auth::sas::layout::Form;
use crate::auth::sas::layout::Subject;
use crate::auth::sas::layout::string_to_sign;
use crate::auth::sas::network;
use crate::auth::sas::network::AddressRange;
use crate::types::Timestamp;

/// The version in which accounts without a hierarchical namespace have signatures of directories.
const DIRECTORY_SINCE: &str = "2026-06-06";
/// The version from which on `c` permits Put Block.
const CREATE_STAGES_SINCE: &str = "2026-04-06";
/// The version that binds signatures to users.
const USER_SINCE: &str = "2025-07-05";
/// Bytes of an HMAC-SHA256.
const SIGNATURE_BYTES: usize = 32;
/// The longest string-to-sign shown to the client, bytes.
const DETAIL_BYTES_MAX: usize = 8 * 1024;

/// A request that carries a signature in its query, names decoded.
#[derive(Clone, Copy, Debug)]
pub struct SasRequest<'a> {
    /// The query without its `?`, still percent-encoded.
    pub query: &'a str,
    /// All headers.
    pub headers: &'a HeaderMap,
    /// The account the URL names, without `-secondary`.
    pub account: &'a str,
    /// The container the URL names.
    pub container: Option<&'a str>,
    /// The blob the URL names.
    pub blob: Option<&'a str>,
}

/// The keys that may have signed.
#[derive(Clone, Copy, Debug)]
pub struct Signers<'a> {
    /// The account's keys.
    pub keys: &'a AccountKeys,
    /// The secret that user delegation keys are derived from. Without it there are none.
    pub delegation: Option<&'a DelegationSecret>,
    /// The trusted token issuers. Only their principals hold user delegation keys.
    pub issuers: &'a [TrustedIssuer],
    /// The resource of the URL, and the present roles there.
    pub scope: Scope<'a>,
}

impl<'a> Signers<'a> {
    /// The entitlement of the holder of the user delegation key that signed; `None` when no key
    /// that may exist now did.
    fn entitled(&self, fields: &Fields, signed: &SignedText<'_>) -> Option<Entitlement<'a>> {
        let secret = self.delegation?;
        if signed.signature.len() != SIGNATURE_BYTES {
            return None;
        }
        Entitlement::all(self.issuers, self.scope).find(|entitlement| {
            let entitled = entitlement.text();
            delegation::signed(secret, &entitled, |name| fields.text(name), signed)
        })
    }
}

/// The circumstances of a request.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// The time of the server.
    pub now: Timestamp,
    /// The client's address.
    pub peer: IpAddr,
    /// Whether the request came over TLS.
    pub secure: bool,
    /// The principal of a token that was sent with the signature.
    pub user: Option<&'a Principal>,
}

/// Whether a query has a signature that is bound to a user. A token of that user must be sent with
/// it.
#[must_use]
pub fn is_bound_to_user(query: &str) -> bool {
    let names = |wanted: &str| {
        query.split('&').any(|piece| {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            name.eq_ignore_ascii_case(wanted) && !value.is_empty()
        })
    };
    names("sig") && names("sduoid")
}

/// A stored access policy of the container. The signature must have the fields that it leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// When it begins.
    pub start: Option<Timestamp>,
    /// When it ends.
    pub expiry: Option<Timestamp>,
    /// Its permissions.
    pub permissions: Option<SasPermissions>,
}

/// A signature that one of the account's keys made. [`Signature::settle`] checks whether it is
/// valid.
#[derive(Clone, Debug)]
pub struct Signature {
    form: Form,
    fields: Fields,
    authority: Authority,
    /// The issuer of the holder of the user delegation key that made it.
    issuer: Option<String>,
    /// The directory of one with `sr=d`.
    directory: Option<String>,
}

/// The signer.
struct Signer {
    authority: Authority,
    issuer: Option<String>,
}

/// The holder of a user delegation key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delegator<'a> {
    /// The issuer of the holder's tokens.
    pub issuer: &'a str,
    /// The issuer's name for the holder.
    pub subject: &'a str,
}

impl Signature {
    /// Reads a query and verifies the signature in it; `None` for a query without one.
    ///
    /// # Errors
    /// [`Error::Refused`]: a parameter is malformed, missing or duplicate, or no key of the account
    /// signed it.
    pub fn verify(request: &SasRequest<'_>, signers: &Signers<'_>) -> Result<Option<Self>, Error> {
        let Some(fields) = Fields::read(request.query)? else { return Ok(None) };
        check_version(fields.required("sv")?)?;
        let form = form(&fields)?;
        let subject = Subject {
            account: request.account,
            container: request.container,
            blob: request.blob,
            time: &time(fields.text("sr"), request.query)?,
            headers: request.headers,
            query: request.query,
        };
        let text = string_to_sign(form, &fields, &subject)?.ok_or_else(|| {
            Error::sas(format!("sv={} has no signatures of this kind.", fields.text("sv")))
        })?;
        // A plus that the client did not escape was decoded to a space. Base64 has no spaces.
        let signature = STANDARD.decode(fields.required("sig")?.replace(' ', "+"));
        let signature = signature.map_err(|_| Error::sas("sig is not base64.".to_owned()))?;
        let signed = match form {
            Form::Account | Form::Service => {
                let by_key = signers.keys.verify(text.as_bytes(), &signature);
                by_key.then_some(Signer { authority: Authority::Key, issuer: None })
            }
            Form::Delegation => {
                let signed = SignedText { text: text.as_bytes(), signature: &signature };
                signers.entitled(&fields, &signed).map(|by| {
                    let role = by.role(fields.text("skoid"), signers.scope);
                    let issuer = Some(by.issuer().to_owned());
                    Signer { authority: Authority::Holder(role), issuer }
                })
            }
        };
        let Some(Signer { authority, issuer }) = signed else {
            let shown = text.as_bytes().get(..DETAIL_BYTES_MAX).unwrap_or(text.as_bytes());
            let shown = String::from_utf8_lossy(shown);
            return Err(Error::sas(format!(
                "Signature did not match. String to sign used was {shown}"
            )));
        };
        let directory = match fields.text("sr") {
            // Without the directory it would reach the whole container.
            "d" => Some(layout::directory(&fields, &subject).ok_or_else(|| mandatory("sdd"))?),
            _ => None,
        };
        Ok(Some(Self { form, fields, authority, issuer, directory }))
    }

    /// The name of the stored access policy that it refers to.
    #[must_use]
    pub fn policy(&self) -> Option<&str> {
        let id = self.fields.get("si").filter(|id| !id.is_empty())?;
        (self.form == Form::Service).then_some(id)
    }

    /// The holder of the user delegation key that made it; `None` when a key of the account did.
    #[must_use]
    pub fn delegator(&self) -> Option<Delegator<'_>> {
        let issuer = self.issuer.as_deref()?;
        Some(Delegator { issuer, subject: self.fields.text("skoid") })
    }

    /// Checks that the signature is valid for a request, and returns its permissions. `policy` is
    /// the container's policy with the name [`Signature::policy`].
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::SourceAddress`], [`Error::Protocol`].
    pub fn settle(&self, policy: Option<&Policy>, at: &Circumstances<'_>) -> Result<Grant, Error> {
        let merged = self.merge(policy)?;
        let permissions = merged.permissions.ok_or_else(|| mandatory("sp"))?;
        let expiry = merged.expiry.ok_or_else(|| mandatory("se"))?;
        check_window(merged.start, expiry, at.now)?;
        if self.form == Form::Delegation {
            delegation::check(|name| self.fields.text(name), expiry, at.now)?;
            self.check_user(at.user)?;
        }
        self.check_network(at)?;
        Ok(Grant {
            reach: self.reach()?,
            permissions,
            authority: self.authority,
            overrides: self.overrides(),
            encryption_scope: self.encryption_scope()?,
            directory: self.directory.clone(),
            stages_with_create: self.fields.text("sv") >= CREATE_STAGES_SINCE,
        })
    }

    /// Checks that a user delegation signature may be used by this user.
    fn check_user(&self, user: Option<&Principal>) -> Result<(), Error> {
        // It requires a check of the access control lists of files for that user; saoid does not.
        if !self.fields.text("suoid").is_empty() {
            let detail = "suoid is for accounts with a hierarchical namespace.";
            return Err(Error::sas(detail.to_owned()));
        }
        let wanted = self.fields.text("sduoid");
        if wanted.is_empty() {
            return Ok(());
        }
        if self.fields.text("sv") < USER_SINCE {
            return Err(Error::sas(format!("sduoid is signed since sv={USER_SINCE} only.")));
        }
        let user = user.ok_or_else(|| {
            Error::sas(
                "The signature is bound to a user (sduoid), whose token is missing.".to_owned(),
            )
        })?;
        let tenant = self.fields.text("skdutid");
        let same_issuer = self.issuer.as_deref() == Some(user.issuer.name.as_str());
        let from_there = if tenant.is_empty() {
            same_issuer
        } else {
            // An issuer can write any tenant into its tokens. One that did not issue the key is
            // trusted for its own tenant only.
            user.tenant == tenant && (same_issuer || speaks_for(&user.issuer.name, tenant))
        };
        if user.object != wanted || !from_there {
            return Err(Error::sas(
                "The token is not of the user the signature is bound to.".to_owned(),
            ));
        }
        Ok(())
    }

    /// The fields of the signature and of the policy together. No field may be in both.
    fn merge(&self, policy: Option<&Policy>) -> Result<Policy, Error> {
        let own = Policy {
            start: self.time("st")?,
            expiry: self.time("se")?,
            permissions: self.permissions()?,
        };
        if self.policy().is_none() {
            return Ok(own);
        }
        let stored = policy.ok_or_else(|| {
            Error::sas("The container has no access policy of the name in si.".to_owned())
        })?;
        let twice = (own.start.is_some() && stored.start.is_some())
            || (own.expiry.is_some() && stored.expiry.is_some())
            || (own.permissions.is_some() && stored.permissions.is_some());
        if twice {
            let detail = "Access policy fields can be associated with signature or SAS identifier but not both.";
            return Err(Error::sas(detail.to_owned()));
        }
        Ok(Policy {
            start: own.start.or(stored.start),
            expiry: own.expiry.or(stored.expiry),
            permissions: own.permissions.or(stored.permissions),
        })
    }

    fn permissions(&self) -> Result<Option<SasPermissions>, Error> {
        let text = self.fields.text("sp");
        if text.is_empty() {
            return Ok(None);
        }
        let permissions = SasPermissions::parse(text);
        permissions
            .map(Some)
            .ok_or_else(|| Error::sas(format!("sp={text} has a letter that is no permission.")))
    }

    fn time(&self, name: &str) -> Result<Option<Timestamp>, Error> {
        let text = self.fields.text(name);
        if text.is_empty() {
            return Ok(None);
        }
        let time = Timestamp::from_iso(text);
        time.map(Some)
            .ok_or_else(|| Error::sas(format!("{name}={text} is not a time in ISO 8601 form.")))
    }

    fn check_network(&self, at: &Circumstances<'_>) -> Result<(), Error> {
        let addresses = self.fields.text("sip");
        if !addresses.is_empty() {
            let range = AddressRange::parse(addresses).ok_or_else(|| {
                Error::sas(format!("sip={addresses} is neither an address nor a range."))
            })?;
            if !range.contains(at.peer) {
                return Err(Error::SourceAddress { address: at.peer.to_canonical() });
            }
        }
        let protocols = self.fields.text("spr");
        if !protocols.is_empty() {
            let plain = network::allows_http(protocols).ok_or_else(|| {
                Error::sas(format!("spr={protocols} is neither https nor https,http."))
            })?;
            if !plain && !at.secure {
                return Err(Error::Protocol);
            }
        }
        Ok(())
    }

    fn reach(&self) -> Result<Reach, Error> {
        if self.form != Form::Account {
            return Ok(match self.fields.text("sr") {
                "d" => Reach::Directory,
                kind => Reach::Resource { container: kind == "c" },
            });
        }
        let services = self.fields.required("ss")?;
        let types = self.fields.required("srt")?;
        let known = |text: &str, letters: &str| text.chars().all(|c| letters.contains(c));
        if !known(services, "bqtf") {
            return Err(Error::sas(format!("ss={services} has a letter that is no service.")));
        }
        if !known(types, "sco") {
            return Err(Error::sas(format!("srt={types} has a letter that is no resource type.")));
        }
        Ok(Reach::Account {
            blob: services.contains('b'),
            service: types.contains('s'),
            container: types.contains('c'),
            object: types.contains('o'),
        })
    }

    /// The encryption scope it signs. The account's own is none.
    fn encryption_scope(&self) -> Result<Option<String>, Error> {
        let scope = self.fields.text("ses");
        if scope.is_empty() || !self.signs("ses") || scope == "$account-encryption-key" {
            return Ok(None);
        }
        let plain = scope.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !plain || !(3..=63).contains(&scope.len()) {
            return Err(Error::sas(format!("ses={scope} is not the name of an encryption scope.")));
        }
        Ok(Some(scope.to_owned()))
    }

    /// Whether it signs a parameter. A holder of the signature may have added other parameters.
    fn signs(&self, parameter: &str) -> bool {
        layout::signs(self.form, self.fields.text("sv"), parameter)
    }

    fn overrides(&self) -> Overrides {
        let signed = |name: &str| self.fields.get(name).filter(|_| self.signs(name));
        let value = |name: &str| signed(name).filter(|v| !v.is_empty()).map(str::to_owned);
        Overrides {
            cache_control: value("rscc"),
            content_disposition: value("rscd"),
            content_encoding: value("rsce"),
            content_language: value("rscl"),
            content_type: value("rsct"),
            expires: None,
        }
    }
}

/// Whether a tenant is the issuer's own: its name, or a part of it, as of Microsoft Entra's.
fn speaks_for(issuer: &str, tenant: &str) -> bool {
    issuer == tenant || issuer.split('/').any(|part| part == tenant)
}

fn form(fields: &Fields) -> Result<Form, Error> {
    if fields.get("ss").is_some() || fields.get("srt").is_some() {
        return Ok(Form::Account);
    }
    let form = if fields.get("skoid").is_some() { Form::Delegation } else { Form::Service };
    match fields.required("sr")? {
        "c" | "b" | "bs" | "bv" => Ok(form),
        "d" if form == Form::Delegation && fields.text("sv") >= DIRECTORY_SINCE => {
            let depth = fields.text("sdd").parse::<u32>();
            if depth.is_ok_and(|depth| depth > 0) { Ok(form) } else { Err(mandatory("sdd")) }
        }
        "d" => Err(Error::sas(format!(
            "sr=d is for user delegation signatures since sv={DIRECTORY_SINCE}, or for accounts \
             with a hierarchical namespace."
        ))),
        other => Err(Error::sas(format!("sr={other} is not c, b, bs, bv or d."))),
    }
}

/// `YYYY-MM-DD`: the layouts compare versions as texts.
fn check_version(text: &str) -> Result<(), Error> {
    if text.len() == 10 && Timestamp::from_iso(text).is_some() {
        return Ok(());
    }
    Err(Error::sas(format!("sv={text} is not a version of the form YYYY-MM-DD.")))
}

/// The snapshot or version a signature of one is about: it stands in the URL's own parameter.
fn time(kind: &str, query: &str) -> Result<String, Error> {
    let wanted = match kind {
        "bs" => "snapshot",
        "bv" => "versionid",
        _ => return Ok(String::new()),
    };
    let mut pairs = query.split('&').map(|piece| piece.split_once('=').unwrap_or((piece, "")));
    let found = pairs.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    let (_, value) =
        found.ok_or_else(|| Error::sas(format!("sr={kind} needs the parameter {wanted}.")))?;
    Ok(percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned())
}

fn mandatory(name: &str) -> Error {
    Error::sas(format!("{name} is mandatory. Cannot be empty."))
}

fn check_window(start: Option<Timestamp>, expiry: Timestamp, now: Timestamp) -> Result<(), Error> {
    if start.is_none_or(|start| start <= now) && now < expiry {
        return Ok(());
    }
    let start = start.map_or_else(String::new, |start| start.to_string());
    Err(Error::sas(format!(
        "Signature not valid in the specified time frame: Start [{start}] - Expiry [{expiry}] - Current [{now}]"
    )))
}
