//! Bearer tokens.
//!
//! Source: RFC 7519 (JSON Web Token), RFC 7515 (compact form).

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::auth::Entitlement;
use crate::auth::Error;
use crate::auth::Scope;
use crate::auth::TrustedIssuer;
use crate::auth::bearer::keys::Algorithm;
use crate::auth::bearer::keys::KeySet;
use crate::types::PrincipalKind;
use crate::types::Role;
use crate::types::RoleAssignment;
use crate::types::Timestamp;

/// The largest difference between the clocks of issuer and server.
const LEEWAY: Duration = Duration::from_secs(5 * 60);
/// The longest token in bytes. Longer ones are refused without being parsed.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// The last second of the year 9999. Tokens with a later time are refused.
const SECONDS_MAX: u64 = 253_402_300_799;
/// Claims that are one text with values separated by spaces (RFC 6749, section 3.3). No other claim
/// is split.
const SPLIT: [&str; 2] = ["scope", "scp"];

/// The values of a claim that stand for roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleMap {
    /// The claim: a text or a list of texts, each compared as a whole. Only `scope` and `scp` are
    /// split at spaces.
    pub claim: String,
    /// Values and their roles.
    pub values: Vec<(String, Role)>,
}

impl Default for RoleMap {
    /// The claim `roles` with Azure's names of roles, or their last words.
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

/// A trusted issuer, with the settings and keys to verify its tokens.
#[derive(Clone, Debug)]
pub struct Issuer {
    /// Its name, and where its claims of roles count.
    pub trusted: TrustedIssuer,
    /// Values of `aud` that stand for this server. A slash at the end is ignored.
    pub audiences: Vec<String>,
    /// Its keys.
    pub keys: KeySet,
    /// Its roles.
    pub roles: RoleMap,
    /// The claim with the groups of the token's subject.
    pub groups: String,
}

/// The principal of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The issuer.
    pub issuer: TrustedIssuer,
    /// The claim `oid`, or `sub` if there is no `oid`.
    pub object: String,
    /// The claim `tid`, or the issuer if there is no `tid`.
    pub tenant: String,
    /// The highest role that the token claims. It counts only in the accounts of the issuer.
    pub claimed: Option<Role>,
    /// Its groups.
    pub groups: Vec<String>,
}

impl Principal {
    /// Whether it has a role in the account, or in a container of it.
    #[must_use]
    pub fn has_a_role(&self, account: &str, assignments: &[RoleAssignment]) -> bool {
        let is_own = |role: &RoleAssignment| match role.kind {
            PrincipalKind::Subject => role.principal == self.object,
            PrincipalKind::Group => self.groups.contains(&role.principal),
        };
        let mut assigned = assignments.iter().filter(|role| role.issuer == self.issuer.name);
        self.claimed.is_some() && self.issuer.rules(account) || assigned.any(is_own)
    }

    /// Its role here: the highest of those that its token claims, if claims count here, and those
    /// assigned to it. `None` may do nothing.
    #[must_use]
    pub fn role(&self, scope: Scope<'_>) -> Option<Role> {
        let groups = self.roles_of_groups(scope).map(|(_, role)| role).max();
        self.claimed_in(scope).max(self.assigned(scope)).max(groups)
    }

    /// The entitlement of a principal to a user delegation key: the source of its highest role in
    /// the whole account, among the entitlements that a signature is compared with later. As in
    /// Azure, a role in a container does not suffice.
    #[must_use]
    pub fn entitlement<'a>(&'a self, scope: Scope<'a>) -> Option<Entitlement<'a>> {
        let scope = scope.whole_account();
        let own = |entitlement: &Entitlement<'_>| match entitlement {
            Entitlement::Subject { .. } => self.assigned(scope),
            Entitlement::Claims { role, .. } => self.claimed_in(scope).filter(|own| own == role),
            Entitlement::Group { name, .. } => {
                let of_group = self.roles_of_groups(scope).filter(|(group, _)| group == name);
                of_group.map(|(_, role)| role).max()
            }
        };
        // Of equal roles, the source that is checked most reliably when the key is used.
        let rank = |entitlement: &Entitlement<'_>| match entitlement {
            Entitlement::Group { .. } => 0,
            Entitlement::Claims { .. } => 1,
            Entitlement::Subject { .. } => 2,
        };
        let all = Entitlement::all(std::slice::from_ref(&self.issuer), scope);
        let held = all.filter_map(|one| own(&one).map(|role| ((role, rank(&one)), one)));
        held.max_by_key(|(worth, _)| *worth).map(|(_, entitlement)| entitlement)
    }

    fn claimed_in(&self, scope: Scope<'_>) -> Option<Role> {
        self.claimed.filter(|_| self.issuer.rules(scope.account))
    }

    fn assigned(&self, scope: Scope<'_>) -> Option<Role> {
        scope.of_subject(&self.issuer.name, &self.object)
    }

    fn roles_of_groups<'a>(&'a self, scope: Scope<'a>) -> impl Iterator<Item = (&'a str, Role)> {
        let all = scope.of_groups(&self.issuer.name);
        all.filter(|(group, _)| self.groups.iter().any(|own| own == group))
    }
}

/// Verifies a token in compact form.
///
/// # Errors
/// [`Error::Token`] says what is wrong. [`Error::Malformed`]: it is no JSON Web Token.
pub fn verify_token(token: &str, issuers: &[Issuer], now: Timestamp) -> Result<Principal, Error> {
    let Compact { head, body, signature } = Compact::split(token)?;
    let (header, claims) = (json(head)?, json(body)?);
    let name = text(&claims, "iss").ok_or_else(|| refused("the token names no issuer"))?;
    let issuer = issuers.iter().find(|issuer| issuer.trusted.name == name);
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

/// The parts of a token in compact form.
struct Compact<'a> {
    head: &'a str,
    body: &'a str,
    signature: &'a str,
}

impl<'a> Compact<'a> {
    fn split(token: &'a str) -> Result<Self, Error> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(refused("the token is too large"));
        }
        let mut parts = token.split('.');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(head), Some(body), Some(signature), None) => Ok(Self { head, body, signature }),
            (_, _, _, _) => Err(no_token()),
        }
    }
}

/// The claims of a token in compact form. Nothing is verified.
pub(super) fn claims_of(token: &str) -> Result<Value, Error> {
    let Compact { head, body, .. } = Compact::split(token)?;
    json(head)?;
    json(body)
}

pub(super) fn check_window(claims: &Value, now: Timestamp) -> Result<(), Error> {
    // A malformed time must not count as missing: a token with such an `nbf` would be valid
    // immediately.
    let time = |name: &str| {
        let Some(given) = claims.get(name) else { return Ok(None) };
        let seconds = given.as_u64().filter(|seconds| *seconds <= SECONDS_MAX);
        let seconds = seconds.ok_or_else(|| {
            refused(&format!("the token's {name} is not a time in whole seconds since 1970"))
        })?;
        Ok(Some(Timestamp::from_unix(Duration::from_secs(seconds))))
    };
    let expiry = time("exp")?.ok_or_else(|| refused("the token does not expire"))?;
    if expiry.plus(LEEWAY) <= now {
        return Err(refused(&format!("the token expired at {expiry}; it is {now}")));
    }
    match time("nbf")? {
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
    let tenant = text(claims, "tid").unwrap_or(&issuer.trusted.name);
    let given = claimed(claims, &issuer.roles.claim);
    let roles = issuer.roles.values.iter().filter(|(value, _)| given.contains(&value.as_str()));
    let groups = claimed(claims, &issuer.groups);
    Ok(Principal {
        issuer: issuer.trusted.clone(),
        object: object.to_owned(),
        tenant: tenant.to_owned(),
        claimed: roles.map(|(_, role)| *role).max(),
        groups: groups.into_iter().map(str::to_owned).collect(),
    })
}

/// The values of a claim. A text is one value even if it has spaces, because names of roles and
/// groups may have some: "Cost Center Owner" is not Owner.
fn claimed<'a>(claims: &'a Value, name: &str) -> Vec<&'a str> {
    match claims.get(name) {
        Some(Value::String(text)) if SPLIT.contains(&name) => {
            text.split(' ').filter(|word| !word.is_empty()).collect()
        }
        other => values(other),
    }
}

/// The key that a token names. It is not verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimedKey {
    /// The issuer.
    pub(crate) issuer: String,
    /// The id of the key.
    pub(crate) key: Option<String>,
}

/// The key that a token names, to find out whether a newer key set is needed.
pub(crate) fn claimed_key(token: &str) -> Option<ClaimedKey> {
    let mut parts = token.split('.');
    let (header, claims) = (json(parts.next()?).ok()?, json(parts.next()?).ok()?);
    let issuer = text(&claims, "iss")?.to_owned();
    Some(ClaimedKey { issuer, key: text(&header, "kid").map(str::to_owned) })
}

pub(super) fn values(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Vec::new()
        }
    }
}

pub(super) fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn json(part: &str) -> Result<Value, Error> {
    let bytes = URL_SAFE_NO_PAD.decode(part).ok();
    let value = bytes.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    value.filter(Value::is_object).ok_or_else(no_token)
}

/// The text is not a token at all, so another token would not help: it gets no challenge. Source:
/// recorded answers of the service.
fn no_token() -> Error {
    Error::Malformed { detail: "the token is not a signed JSON Web Token".to_owned() }
}

pub(super) fn refused(detail: &str) -> Error {
    Error::Token { detail: detail.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_that_cannot_be_read_refuse_the_token() {
        let now = Timestamp::from_unix(Duration::from_secs(1_000_000));
        let check = |exp: Value, nbf: Value| {
            let mut claims = json!({});
            for (name, value) in [("exp", exp), ("nbf", nbf)] {
                // Null stands for a claim that is not there.
                if !value.is_null() {
                    claims[name] = value;
                }
            }
            check_window(&claims, now).is_ok()
        };
        assert!(check(json!(1_000_100), json!(999_999)));
        assert!(check(json!(1_000_100), json!(null)));
        assert!(!check(json!(null), json!(null)), "no end");
        assert!(check(json!(SECONDS_MAX), json!(null)));
        for bad in [
            json!("1000100"),
            json!(-1),
            json!(1_000_100.5),
            json!(1e30),
            json!(u64::MAX),
            json!(SECONDS_MAX + 1),
            json!([1_000_100]),
            json!({}),
            json!(true),
        ] {
            assert!(!check(bad.clone(), json!(null)), "exp {bad}");
            assert!(!check(json!(1_000_100), bad.clone()), "nbf {bad}");
        }
        assert!(check_window(&json!({"exp": 1_000_100, "nbf": null}), now).is_err());
    }

    #[test]
    fn claims_are_compared_whole() {
        let has = |claim: &str, value: Value, wanted: &str| {
            claimed(&json!({ claim: value }), claim).contains(&wanted)
        };
        assert!(has("roles", json!("Owner"), "Owner"));
        assert!(!has("roles", json!("Cost Center Owner"), "Owner"));
        assert!(!has("roles", json!(["Cost Center Owner", "Owner of x"]), "Owner"));
        assert!(has("roles", json!(["x", "Owner"]), "Owner"));
        assert!(!has("roles", json!([["Owner"], {"Owner": "Owner"}, 1]), "Owner"));
        assert!(!has("roles", json!({"Owner": true}), "Owner"));
        for scope in SPLIT {
            assert!(has(scope, json!("a Owner b"), "Owner"));
            assert!(!has(scope, json!("aOwner"), "Owner"));
            assert!(!has(scope, json!(["a Owner b"]), "Owner"), "a list is not split");
        }
    }
}
