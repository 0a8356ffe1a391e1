//! Tokens.
//!
//! Source: RFC 7519 (JSON Web Token), RFC 7515 (compact form).

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::auth::Error;
use crate::auth::Role;
use crate::auth::bearer::keys::Algorithm;
use crate::auth::bearer::keys::KeySet;
use crate::types::Timestamp;

/// How far the clocks of issuer and server may be apart.
const LEEWAY: Duration = Duration::from_secs(5 * 60);
/// Bytes of a token; larger ones are not looked at.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Which values of a claim make which role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleMap {
    /// The claim: a text, several with spaces between, or a list of texts.
    pub claim: String,
    /// A value and the role it makes.
    pub values: Vec<(String, Role)>,
}

impl Default for RoleMap {
    /// The claim `roles` with the names Azure has for its roles, or the last word of each.
    fn default() -> Self {
        let roles = [
            ("Storage Blob Data Reader", Role::Reader),
            ("Storage Blob Data Contributor", Role::Contributor),
            ("Storage Blob Data Owner", Role::Owner),
            ("Reader", Role::Reader),
            ("Contributor", Role::Contributor),
            ("Owner", Role::Owner),
        ];
        let values = roles.map(|(name, role)| (name.to_owned(), role)).to_vec();
        Self { claim: "roles".to_owned(), values }
    }
}

/// An issuer whose tokens are believed.
#[derive(Clone, Debug)]
pub struct Issuer {
    /// The claim `iss` of its tokens, to the letter.
    pub name: String,
    /// Values of `aud` that mean this server; a slash at the end makes no difference.
    pub audiences: Vec<String>,
    /// Its keys.
    pub keys: KeySet,
    /// Its roles.
    pub roles: RoleMap,
}

/// Who a token speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// `oid`, or `sub` where there is none.
    pub object: String,
    /// `tid`, or the issuer where there is none.
    pub tenant: String,
    /// The highest of its roles; `None` may do nothing.
    pub role: Option<Role>,
}

/// Verifies a token in compact form.
///
/// # Errors
/// [`Error::Token`] says what is wrong.
pub fn verify_token(token: &str, issuers: &[Issuer], now: Timestamp) -> Result<Principal, Error> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err(refused("the token is too large"));
    }
    let mut parts = token.split('.');
    let (Some(head), Some(body), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(refused("the token is not a signed JSON Web Token"));
    };
    let (header, claims) = (json(head)?, json(body)?);
    let name = text(&claims, "iss").ok_or_else(|| refused("the token names no issuer"))?;
    let issuer = issuers.iter().find(|issuer| issuer.name == name);
    let issuer = issuer.ok_or_else(|| refused("the token's issuer is not one of this server"))?;
    let algorithm = match text(&header, "alg") {
        Some("RS256") => Algorithm::Rs256,
        Some("ES256") => Algorithm::Es256,
        Some(_) | None => return Err(refused("the token is signed with neither RS256 nor ES256")),
    };
    if header.get("crit").is_some() {
        return Err(refused("the token has critical extensions"));
    }
    let signature = URL_SAFE_NO_PAD
        .decode(signature)
        .map_err(|_| refused("the token's signature is not base64url"))?;
    let signed = token.get(..head.len() + 1 + body.len()).unwrap_or_default();
    if !issuer.keys.verify(text(&header, "kid"), algorithm, signed.as_bytes(), &signature) {
        return Err(refused("none of the issuer's keys made the token's signature"));
    }
    check_window(&claims, now)?;
    check_audience(&claims, issuer)?;
    principal(&claims, issuer)
}

fn check_window(claims: &Value, now: Timestamp) -> Result<(), Error> {
    let time = |name: &str| {
        let seconds = claims.get(name).and_then(Value::as_u64);
        seconds.map(|seconds| Timestamp::from_unix(Duration::from_secs(seconds)))
    };
    let expiry = time("exp").ok_or_else(|| refused("the token does not expire"))?;
    if expiry.plus(LEEWAY) <= now {
        return Err(refused(&format!("the token expired at {expiry}; it is {now}")));
    }
    match time("nbf") {
        Some(start) if start > now.plus(LEEWAY) => {
            Err(refused(&format!("the token is valid from {start}; it is {now}")))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_audience(claims: &Value, issuer: &Issuer) -> Result<(), Error> {
    let given = values(claims.get("aud"));
    let known = |audience: &&str| {
        let bare = audience.trim_end_matches('/');
        issuer.audiences.iter().any(|own| own.trim_end_matches('/') == bare)
    };
    if given.iter().any(known) { Ok(()) } else { Err(refused("the token is for another audience")) }
}

fn principal(claims: &Value, issuer: &Issuer) -> Result<Principal, Error> {
    let object = text(claims, "oid").or_else(|| text(claims, "sub"));
    let object = object.ok_or_else(|| refused("the token names nobody"))?;
    let tenant = text(claims, "tid").unwrap_or(&issuer.name);
    let given = claims.get(&issuer.roles.claim);
    let has = |value: &str| match given {
        // A scope is one text with spaces between its values; a role's name may have spaces itself.
        Some(Value::String(whole)) => whole == value || whole.split(' ').any(|word| word == value),
        other => values(other).contains(&value),
    };
    let roles = issuer.roles.values.iter().filter(|(value, _)| has(value)).map(|(_, role)| *role);
    Ok(Principal { object: object.to_owned(), tenant: tenant.to_owned(), role: roles.max() })
}

/// The issuer and the key a token claims to have, to look for a newer key set.
pub(crate) fn claimed_key(token: &str) -> Option<(String, Option<String>)> {
    let mut parts = token.split('.');
    let (header, claims) = (json(parts.next()?).ok()?, json(parts.next()?).ok()?);
    Some((text(&claims, "iss")?.to_owned(), text(&header, "kid").map(str::to_owned)))
}

fn values(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Vec::new()
        }
    }
}

fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn json(part: &str) -> Result<Value, Error> {
    let bytes = URL_SAFE_NO_PAD.decode(part).ok();
    let value = bytes.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    value
        .filter(Value::is_object)
        .ok_or_else(|| refused("the token is not a signed JSON Web Token"))
}

fn refused(detail: &str) -> Error {
    Error::Token { detail: detail.to_owned() }
}
