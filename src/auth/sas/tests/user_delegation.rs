//! Signatures by keys that users had, and those bound to one user.

use super::*;
use crate::auth::Principal;
use crate::auth::is_bound_to_user;
use crate::auth::mint_delegation;

#[test]
fn user_delegation_ends_with_its_key_and_lives_seven_days_at_most() {
    let key = |start: &str, expiry: &str| DelegationKey {
        object: "o".to_owned(),
        tenant: "t".to_owned(),
        start: start.to_owned(),
        expiry: expiry.to_owned(),
        version: "2022-11-02".to_owned(),
        delegated_tenant: String::new(),
    };
    let mint = |key: &DelegationKey, terms: &Terms| {
        let value = key.value(&secret(), &ENTITLED.text());
        mint_delegation(key, &keys(&[&value]), &CONTAINER, terms)
    };
    let good = key("2026-11-21T05:00:00Z", "2026-11-21T07:00:00Z");
    let query = mint(&good, &terms());
    settled(&query, "2026-11-21T06:00:00Z").unwrap();
    assert!(
        detail(settled(&query, "2026-11-21T08:00:00Z").unwrap_err()).contains("key time frame")
    );
    let early = key("2026-11-21T05:30:00Z", "2026-11-21T07:00:00Z");
    let early = settled(&mint(&early, &terms()), "2026-11-21T05:15:00Z").unwrap_err();
    assert!(detail(early).contains("key time frame"));

    let long = key("2026-11-21T05:00:00Z", "2026-11-28T05:00:01Z");
    assert!(
        detail(settled(&mint(&long, &terms()), "2026-11-21T06:00:00Z").unwrap_err())
            .contains("7 days")
    );
    let week = key("2026-11-21T05:00:00Z", "2026-11-28T05:00:00Z");
    let far = Terms { expiry: Some("2026-11-28T05:00:01Z".to_owned()), ..terms() };
    assert!(
        detail(settled(&mint(&week, &far), "2026-11-21T06:00:00Z").unwrap_err()).contains("7 days")
    );

    for (name, forged) in
        [("skoid=o", "skoid=p"), ("ske=2026-11-21T07", "ske=2026-11-21T08"), ("sktid=t", "sktid=u")]
    {
        let forged = query.replace("%3A", ":").replace(name, forged);
        assert!(
            detail(settled(&forged, "2026-11-21T06:00:00Z").unwrap_err()).contains("did not match"),
            "{name}"
        );
    }
}

#[test]
fn queries_are_bound_to_a_user_by_name() {
    for (query, bound) in [
        ("sduoid=a&sig=b", true),
        ("x=1&SIG=b&SduOid=a", true),
        ("sduoid=&sig=b", false),
        ("sduoid=a", false),
        ("sig=b", false),
        ("", false),
    ] {
        assert_eq!(is_bound_to_user(query), bound, "{query}");
    }
}

#[test]
fn secrets_have_one_length() {
    assert_eq!(DelegationSecret::stored(&[7; 32]), Some(DelegationSecret::new([7; 32])));
    for len in [0, 31, 33] {
        assert_eq!(DelegationSecret::stored(&vec![7; len]), None);
    }
}

/// A container signature bound to the user `u`, of `tenant` if it is not empty, by a key of
/// [`ENTITLED`].
fn bound_to_user(tenant: &str) -> String {
    let key = DelegationKey {
        object: "o".to_owned(),
        tenant: "t".to_owned(),
        start: "2026-11-21T05:00:00Z".to_owned(),
        expiry: "2026-11-21T09:00:00Z".to_owned(),
        version: "2026-02-06".to_owned(),
        delegated_tenant: tenant.to_owned(),
    };
    let mut fields = Fields::default();
    for (name, value) in [("sv", "2025-07-05"), ("sr", "c"), ("sp", "r"), ("sduoid", "u")] {
        fields.set(name, value);
    }
    fields.set("se", "2026-11-21T09:00:00Z");
    for name in ["skoid", "sktid", "skt", "ske", "sks", "skv", "skdutid"] {
        fields.set(name, key.word(name));
    }
    let subject = Subject {
        account: "acct",
        container: Some("c-1"),
        blob: None,
        time: "",
        headers: &HeaderMap::new(),
        query: "",
    };
    let text = string_to_sign(Form::Delegation, &fields, &subject).unwrap().unwrap();
    let value = key.value(&secret(), &ENTITLED.text());
    fields.set("sig", &keys(&[&value]).sign(text.as_bytes()));
    fields.query()
}

#[test]
fn issuer_does_not_speak_for_the_users_of_another() {
    let holds = |query: &str, issuer: &str, tenant: &str| {
        let user = Principal {
            issuer: TrustedIssuer { name: issuer.to_owned(), accounts: Vec::new() },
            object: "u".to_owned(),
            tenant: tenant.to_owned(),
            claimed: None,
            groups: Vec::new(),
        };
        let signature = verify(query, Some("c-1"), None).unwrap().unwrap();
        let at = Circumstances { user: Some(&user), ..at("2026-11-21T06:00:00Z") };
        signature.settle(None, &at).is_ok()
    };
    let (own, foreign) = (bound_to_user(""), bound_to_user("t2"));
    assert!(holds(&own, "issuer", "t"));
    assert!(!holds(&own, "https://other/t/v2.0", "t"), "another issuer's u");
    assert!(holds(&foreign, "https://other/t2/v2.0", "t2"));
    assert!(holds(&foreign, "issuer", "t2"));
    assert!(!holds(&foreign, "https://other/t3/v2.0", "t2"), "a tenant that is not its own");
    assert!(!holds(&foreign, "https://other/t2/v2.0", "t3"));
}
