//! Who has which role where, and what signatures by user delegation keys are worth later.

use std::net::IpAddr;
use std::net::Ipv4Addr;

use http::HeaderMap;

use crate::auth::AccountKeys;
use crate::auth::Authority;
use crate::auth::Circumstances;
use crate::auth::DelegationKey;
use crate::auth::DelegationSecret;
use crate::auth::Entitlement;
use crate::auth::Error;
use crate::auth::Grant;
use crate::auth::Principal;
use crate::auth::SasRequest;
use crate::auth::Scope;
use crate::auth::Signature;
use crate::auth::Signers;
use crate::auth::Target;
use crate::auth::Terms;
use crate::auth::TrustedIssuer;
use crate::auth::delegator::GROUPS_MAX;
use crate::auth::mint_delegation;
use crate::types::ContainerName;
use crate::types::PrincipalKind;
use crate::types::Role;
use crate::types::RoleAssignment;
use crate::types::Timestamp;

fn issuer(name: &str, accounts: &[&str]) -> TrustedIssuer {
    let accounts = accounts.iter().map(|account| (*account).to_owned()).collect();
    TrustedIssuer { name: name.to_owned(), accounts }
}

/// Somebody of the issuer `a`, which rules the account `own`, with a token that claims Contributor
/// and the group `g`.
fn somebody() -> Principal {
    Principal {
        issuer: issuer("a", &["own"]),
        object: "s".to_owned(),
        tenant: "t".to_owned(),
        claimed: Some(Role::Contributor),
        groups: vec!["g".to_owned()],
    }
}

fn assigned(issuer: &str, principal: &str, role: Role) -> RoleAssignment {
    let kind = PrincipalKind::Subject;
    let (issuer, principal) = (issuer.to_owned(), principal.to_owned());
    RoleAssignment { issuer, kind, principal, role, container: None }
}

fn of_group(name: &str, role: Role) -> RoleAssignment {
    RoleAssignment { kind: PrincipalKind::Group, ..assigned("a", name, role) }
}

fn inside(container: &str, assignment: RoleAssignment) -> RoleAssignment {
    RoleAssignment { container: Some(ContainerName::new(container).unwrap()), ..assignment }
}

const fn scope<'a>(
    account: &'a str,
    container: Option<&'a str>,
    assignments: &'a [RoleAssignment],
) -> Scope<'a> {
    Scope { account, container, assignments }
}

#[test]
fn claimed_roles_hold_in_the_issuers_own_accounts_alone() {
    let who = somebody();
    assert_eq!(who.role(scope("own", None, &[])), Some(Role::Contributor));
    assert_eq!(who.role(scope("own", Some("c-1"), &[])), Some(Role::Contributor));
    assert_eq!(who.role(scope("other", None, &[])), None);
    assert_eq!(who.entitlement(scope("other", None, &[])), None);
}

#[test]
fn assignments_are_of_one_issuer_one_principal_and_one_place() {
    let who = somebody();
    let role = |assignment: RoleAssignment, container| {
        who.role(scope("other", container, std::slice::from_ref(&assignment)))
    };
    assert_eq!(role(assigned("a", "s", Role::Reader), None), Some(Role::Reader));
    assert_eq!(role(assigned("b", "s", Role::Reader), None), None, "another issuer's s");
    assert_eq!(role(assigned("a", "S", Role::Reader), None), None, "compared as a whole");
    assert_eq!(role(assigned("a", "g", Role::Reader), None), None, "a group is no subject");
    assert_eq!(role(of_group("g", Role::Owner), None), Some(Role::Owner));
    assert_eq!(role(of_group("s", Role::Owner), None), None, "a subject is no group");
    let only = inside("c-1", assigned("a", "s", Role::Owner));
    assert_eq!(role(only.clone(), Some("c-1")), Some(Role::Owner));
    assert_eq!(role(only.clone(), Some("c-11")), None);
    assert_eq!(role(only, None), None, "the account is not in the container");
}

#[test]
fn highest_role_counts_and_a_key_stands_on_it() {
    let who = somebody();
    let roles = [assigned("a", "s", Role::Reader), of_group("g", Role::Owner)];
    assert_eq!(who.role(scope("own", None, &roles)), Some(Role::Owner));
    let group = Entitlement::Group { issuer: "a", name: "g" };
    assert_eq!(who.entitlement(scope("own", None, &roles)), Some(group));
    let claims = Entitlement::Claims { issuer: "a", role: Role::Contributor };
    assert_eq!(who.entitlement(scope("own", None, &roles[..1])), Some(claims));
    let subject = Entitlement::Subject { issuer: "a" };
    assert_eq!(who.entitlement(scope("other", None, &roles[..1])), Some(subject));
    let only = [inside("c-1", assigned("a", "s", Role::Owner))];
    assert_eq!(who.entitlement(scope("other", Some("c-1"), &only)), None);
}

#[test]
fn no_two_entitlements_have_the_same_text() {
    let all = [
        Entitlement::Subject { issuer: "a" },
        Entitlement::Subject { issuer: "a 0 " },
        Entitlement::Group { issuer: "a", name: "" },
        Entitlement::Group { issuer: "a", name: "owner" },
        Entitlement::Group { issuer: "a 5 owner", name: "" },
        Entitlement::Claims { issuer: "a", role: Role::Owner },
        Entitlement::Claims { issuer: "a", role: Role::Reader },
    ];
    for (at, one) in all.iter().enumerate() {
        for other in &all[at + 1..] {
            assert_ne!(one.text(), other.text());
        }
    }
}

fn secret() -> DelegationSecret {
    DelegationSecret::new([7; DelegationSecret::BYTES])
}

/// A container signature by a user delegation key of `s`.
fn sas(entitlement: Entitlement<'_>) -> String {
    let key = DelegationKey {
        object: "s".to_owned(),
        tenant: "t".to_owned(),
        start: "2026-11-21T05:00:00Z".to_owned(),
        expiry: "2026-11-21T07:00:00Z".to_owned(),
        version: "2026-02-06".to_owned(),
        delegated_tenant: String::new(),
    };
    let value = key.value(&secret(), &entitlement.text());
    let terms = Terms {
        permissions: "rw".to_owned(),
        expiry: Some("2026-11-21T07:00:00Z".to_owned()),
        ..Terms::default()
    };
    let target = Target { account: "acct", container: "c-1", blob: None, snapshot: None };
    mint_delegation(&key, &AccountKeys::new(&[value]).unwrap(), &target, &terms)
}

/// What a signature grants in the container `c-1` of `acct` while these issuers are trusted and
/// these roles are given.
fn used(
    query: &str,
    issuers: &[TrustedIssuer],
    assignments: &[RoleAssignment],
) -> Result<Grant, Error> {
    let headers = HeaderMap::new();
    let request = SasRequest {
        query,
        headers: &headers,
        account: "acct",
        container: Some("c-1"),
        blob: None,
    };
    let (keys, secret) =
        (AccountKeys::new(&["AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="]).unwrap(), secret());
    let scope = scope("acct", Some("c-1"), assignments);
    let signers = Signers { keys: &keys, delegation: Some(&secret), issuers, scope };
    let signature = Signature::verify(&request, &signers)?.expect("there is one");
    let now = Timestamp::from_iso("2026-11-21T06:00:00Z").unwrap();
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    signature.settle(None, &Circumstances { now, peer, secure: false, user: None })
}

#[test]
fn delegation_is_worth_what_its_holder_may_do_when_it_is_used() {
    let (a, b) = (issuer("a", &[]), issuer("b", &["acct"]));
    let query = sas(Entitlement::Subject { issuer: "a" });
    let role = |issuers: &[TrustedIssuer], roles: &[RoleAssignment]| {
        used(&query, issuers, roles).map(|grant| grant.authority)
    };
    let both = [a, b.clone()];
    let reader = assigned("a", "s", Role::Reader);
    let holder = |role| Ok(Authority::Holder(role));
    assert_eq!(role(&both, std::slice::from_ref(&reader)), holder(Some(Role::Reader)));
    let more = [reader, inside("c-1", assigned("a", "s", Role::Owner))];
    assert_eq!(role(&both, &more), holder(Some(Role::Owner)));
    assert_eq!(role(&both, &[]), holder(None), "revoked");
    assert_eq!(role(&both, &[assigned("b", "s", Role::Owner)]), holder(None), "another's s");
    assert!(role(&[b], &more).is_err(), "its issuer is trusted no more");
}

#[test]
fn delegation_by_claims_and_groups_ends_with_them() {
    let claims = sas(Entitlement::Claims { issuer: "a", role: Role::Contributor });
    let (rules, rules_not) = ([issuer("a", &["acct"])], [issuer("a", &["other"])]);
    let granted = used(&claims, &rules, &[]).unwrap();
    assert_eq!(granted.authority, Authority::Holder(Some(Role::Contributor)));
    assert!(used(&claims, &rules_not, &[]).is_err());

    let group = sas(Entitlement::Group { issuer: "a", name: "g" });
    let granted = used(&group, &rules_not, &[of_group("g", Role::Reader)]).unwrap();
    assert_eq!(granted.authority, Authority::Holder(Some(Role::Reader)));
    assert!(used(&group, &rules_not, &[]).is_err());
    assert!(used(&group, &rules_not, &[of_group("h", Role::Owner)]).is_err());
}

/// The sender of forged signatures cannot increase the work that each of them causes.
#[test]
fn signature_is_held_against_a_bounded_number_of_keys() {
    let issuers = [issuer("a", &["acct"]), issuer("b", &[])];
    let names: Vec<String> = (0..500).map(|number| format!("group{number}")).collect();
    let twice = [Role::Reader, Role::Owner];
    let roles: Vec<RoleAssignment> =
        names.iter().flat_map(|name| twice.map(|role| of_group(name, role))).collect();
    let candidates: Vec<_> = Entitlement::all(&issuers, scope("acct", None, &roles)).collect();
    assert!(candidates.len() <= 2 * 36, "{} keys are tried", candidates.len());
    let mut distinct: Vec<String> = candidates.iter().map(|one| one.text()).collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), candidates.len(), "none is tried twice");
    // Which keys are given out and which are taken is one rule: a key is never refused from its
    // first use on.
    for number in [0, GROUPS_MAX - 1, GROUPS_MAX, 499] {
        let groups = vec![names[number].clone()];
        let who = Principal { claimed: None, groups, ..somebody() };
        let given = who.entitlement(scope("acct", None, &roles));
        assert_eq!(given.is_some(), number < GROUPS_MAX, "{number}");
        let query = sas(Entitlement::Group { issuer: "a", name: &names[number] });
        assert_eq!(used(&query, &issuers, &roles).is_ok(), given.is_some(), "{number}");
    }
    // One group of many that is among them is taken, even when another has a higher role.
    let groups = vec![names[3].clone(), names[400].clone()];
    let who = Principal { claimed: None, groups, ..somebody() };
    let given = who.entitlement(scope("acct", None, &roles));
    assert_eq!(given, Some(Entitlement::Group { issuer: "a", name: &names[3] }));
}
