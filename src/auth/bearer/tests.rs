//! Tokens of a real library, and forgeries.

use serde_json::Value;

use crate::auth::Error;
use crate::auth::Issuer;
use crate::auth::KeySet;
use crate::auth::KeySetError;
use crate::auth::Principal;
use crate::auth::RoleMap;
use crate::auth::TrustedIssuer;
use crate::auth::verify_token;
use crate::types::Role;
use crate::types::Timestamp;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../api-spec/vectors/tokens.json")).unwrap()
}

fn trusted(name: &str) -> TrustedIssuer {
    TrustedIssuer { name: name.to_owned(), accounts: Vec::new() }
}

fn issuers(vectors: &Value) -> Vec<Issuer> {
    let issuer = Issuer {
        trusted: trusted("https://issuer.example/tenant-1/v2.0"),
        audiences: vec!["https://storage.azure.com".to_owned()],
        keys: KeySet::parse(&vectors["jwks"].to_string()).unwrap(),
        roles: RoleMap::default(),
        groups: "groups".to_owned(),
    };
    let other = Issuer { trusted: trusted("https://other.example"), ..issuer.clone() };
    vec![other, issuer]
}

fn verify(vectors: &Value, token: &str) -> Result<Principal, Error> {
    let now = Timestamp::from_iso("2026-11-21T07:40:00Z").unwrap();
    verify_token(token, &issuers(vectors), now)
}

#[test]
fn tokens_of_a_real_library_are_accepted() {
    let vectors = vectors();
    let good = vectors["good"].as_object().unwrap();
    assert!(good.len() >= 5);
    for (name, token) in good {
        let principal = verify(&vectors, token.as_str().unwrap()).expect(name);
        let (object, tenant) = match name.as_str() {
            "no tid" => ("s", "https://issuer.example/tenant-1/v2.0"),
            _ => ("11111111-2222-3333-4444-555555555555", "tenant-1"),
        };
        assert_eq!(
            (principal.object.as_str(), principal.tenant.as_str()),
            (object, tenant),
            "{name}"
        );
        assert_eq!(principal.claimed, Some(Role::Contributor), "{name}");
    }
}

#[test]
fn forged_stale_and_foreign_tokens_are_refused() {
    let vectors = vectors();
    let bad = vectors["bad"].as_object().unwrap();
    assert!(bad.len() >= 17);
    for (name, case) in bad {
        let verified = verify(&vectors, case["token"].as_str().unwrap());
        let Err(Error::Token { detail } | Error::Malformed { detail }) = verified else {
            panic!("{name} was let in");
        };
        assert!(detail.contains(case["detail"].as_str().unwrap()), "{name}: {detail}");
    }
    assert!(verify(&vectors, "").is_err());
    assert!(verify(&vectors, &"a.".repeat(20_000)).is_err());
}

#[test]
fn every_flipped_character_of_a_token_is_refused() {
    let vectors = vectors();
    for name in ["rs256", "es256"] {
        let token = vectors["good"][name].as_str().unwrap();
        // The last character of each part carries bits that decoding drops or refuses; the others
        // all count.
        for at in (0..token.len() - 1).step_by(7) {
            let mut forged = token.as_bytes().to_vec();
            if forged[at] == b'.' {
                continue;
            }
            forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            assert!(verify(&vectors, &forged).is_err(), "{name} at {at}");
        }
    }
}

#[test]
fn highest_role_counts() {
    let vectors = vectors();
    let expected = [
        ("reader", Some(Role::Reader)),
        ("owner", Some(Role::Owner)),
        ("none", None),
        // One text is one value: "a Reader b" is no role.
        ("text", None),
    ];
    for (name, role) in expected {
        let token = vectors["roles"][name].as_str().unwrap();
        assert_eq!(verify(&vectors, token).unwrap().claimed, role, "{name}");
    }
}

#[test]
fn key_sets_without_a_usable_key_are_refused() {
    for text in ["", "[]", "{}", "{\"keys\":1}"] {
        assert!(matches!(KeySet::parse(text), Err(KeySetError::Shape(_))), "{text}");
    }
    for text in [
        "{\"keys\":[]}",
        "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"}]}",
        "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"AQAB\"}]}",
        "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"AQ\",\"y\":\"AQ\"}]}",
        "{\"keys\":[{\"kty\":\"RSA\",\"use\":\"enc\",\"n\":\"AQAB\",\"e\":\"AQAB\"}]}",
    ] {
        assert_eq!(KeySet::parse(text).unwrap_err(), KeySetError::Empty, "{text}");
    }
}
