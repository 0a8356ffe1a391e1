//! Shared access signatures against those of the real SDKs, and forgeries.

mod forgeries;
mod user_delegation;

use std::net::IpAddr;
use std::net::Ipv4Addr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::HeaderValue;
use serde_json::Value;

use crate::auth::AccountKeys;
use crate::auth::Circumstances;
use crate::auth::DelegationKey;
use crate::auth::DelegationSecret;
use crate::auth::Entitlement;
use crate::auth::Error;
use crate::auth::Grant;
use crate::auth::Overrides;
use crate::auth::Policy;
use crate::auth::Reach;
use crate::auth::SasPermissions;
use crate::auth::SasRequest;
use crate::auth::Scope;
use crate::auth::Signature;
use crate::auth::Signers;
use crate::auth::Target;
use crate::auth::Terms;
use crate::auth::TrustedIssuer;
use crate::auth::mint_account;
use crate::auth::mint_service;
use crate::auth::sas::delegation;
use crate::auth::sas::delegation::SignedText;
use crate::auth::sas::fields::Fields;
use crate::auth::sas::layout::Form;
use crate::auth::sas::layout::Subject;
use crate::auth::sas::layout::string_to_sign;
use crate::types::Timestamp;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const OTHER_KEY: &str = "ZGlmZmVyZW50IGtleSwgbG9uZyBlbm91Z2ggdG8gYmUgb25l";

fn keys(texts: &[&str]) -> AccountKeys {
    AccountKeys::new(texts).unwrap()
}

fn secret() -> DelegationSecret {
    DelegationSecret::new(std::array::from_fn(|i| u8::try_from(i).unwrap()))
}

fn time(text: &str) -> Timestamp {
    Timestamp::from_iso(text).unwrap()
}

fn at(now: &str) -> Circumstances<'static> {
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    Circumstances { now: time(now), peer, secure: false, user: None }
}

const ENTITLED: Entitlement<'static> = Entitlement::Subject { issuer: "issuer" };

fn trusted() -> TrustedIssuer {
    TrustedIssuer { name: "issuer".to_owned(), accounts: Vec::new() }
}

fn signers<'a>(
    keys: &'a AccountKeys,
    secret: &'a DelegationSecret,
    issuers: &'a [TrustedIssuer],
) -> Signers<'a> {
    let scope = Scope { account: "acct", container: None, assignments: &[] };
    Signers { keys, delegation: Some(secret), issuers, scope }
}

/// The query of a vector; of one by a user delegation key, which was derived for a contributor of
/// no issuer in particular, the signature is verified and put in the place of one by a key of
/// [`ENTITLED`] over the same text.
fn entitled(request: &SasRequest<'_>) -> String {
    let fields = Fields::read(request.query).unwrap().unwrap();
    if fields.get("skoid").is_none() {
        return request.query.to_owned();
    }
    let subject = Subject {
        account: request.account,
        container: request.container,
        blob: request.blob,
        time: "",
        headers: request.headers,
        query: request.query,
    };
    let text = string_to_sign(Form::Delegation, &fields, &subject).unwrap().unwrap();
    let word = |name: &str| fields.text(name);
    let signature = STANDARD.decode(fields.text("sig")).unwrap();
    let signed = SignedText { text: text.as_bytes(), signature: &signature };
    let is_old = delegation::signed(&secret(), "contributor", word, &signed);
    assert!(is_old, "{}", request.query);
    let key = DelegationKey {
        object: word("skoid").to_owned(),
        tenant: word("sktid").to_owned(),
        start: word("skt").to_owned(),
        expiry: word("ske").to_owned(),
        version: word("skv").to_owned(),
        delegated_tenant: word("skdutid").to_owned(),
    };
    let value = key.value(&secret(), &ENTITLED.text());
    let signed = keys(&[&value]).sign(text.as_bytes());
    let (head, _) = request.query.rsplit_once("sig=").unwrap();
    let tail = request.query.rsplit_once("sig=").unwrap().1.split_once('&').map_or("", |(_, t)| t);
    format!("{head}sig={}&{tail}", signed.replace('+', "%2B"))
}

/// Verifies a query for a URL below the account `acct`, keys [`OTHER_KEY`] and [`KEY`].
fn verify(
    query: &str,
    container: Option<&str>,
    blob: Option<&str>,
) -> Result<Option<Signature>, Error> {
    let headers = HeaderMap::new();
    let request = SasRequest { query, headers: &headers, account: "acct", container, blob };
    let keys = keys(&[OTHER_KEY, KEY]);
    Signature::verify(&request, &signers(&keys, &secret(), &[trusted()]))
}

fn terms() -> Terms {
    Terms {
        permissions: "rl".to_owned(),
        start: Some("2026-11-21T05:00:00Z".to_owned()),
        expiry: Some("2026-11-21T09:00:00Z".to_owned()),
        ..Terms::default()
    }
}

const CONTAINER: Target<'static> =
    Target { account: "acct", container: "c-1", blob: None, snapshot: None };

fn detail(error: Error) -> String {
    let Error::Refused { detail } = error else { panic!("{error:?}") };
    detail
}

fn settled(query: &str, now: &str) -> Result<Grant, Error> {
    verify(query, Some("c-1"), None)?.unwrap().settle(None, &at(now))
}

#[test]
fn signatures_of_every_python_sdk_are_accepted_and_bound_to_what_they_name() {
    let text = include_str!("../../../api-spec/vectors/sas.json");
    let vectors: Value = serde_json::from_str(text).unwrap();
    let account = vectors["account"].as_str().unwrap();
    let keys = keys(&[vectors["key"].as_str().unwrap()]);
    let mut headers = HeaderMap::new();
    headers.insert("x-ms-client", HeaderValue::from_static("one"));
    headers.insert("x-ms-other", HeaderValue::from_static("two"));
    let signatures = vectors["signatures"].as_array().unwrap();
    assert!(signatures.len() > 75, "{}", signatures.len());
    for vector in signatures {
        let name = format!("{} {}", vector["sdk"], vector["name"]);
        let request = SasRequest {
            query: vector["query"].as_str().unwrap(),
            headers: &headers,
            account,
            container: vector["container"].as_str(),
            blob: vector["blob"].as_str(),
        };
        let (secret, trusted) = (secret(), [trusted()]);
        let signers = signers(&keys, &secret, &trusted);
        let query = entitled(&request);
        let request = SasRequest { query: &query, ..request };
        let signature = Signature::verify(&request, &signers).expect(&name).expect(&name);
        let policy = Policy {
            expiry: Some(time("2026-11-21T09:00:00Z")),
            permissions: Some(SasPermissions::of("r")),
            start: None,
        };
        let policy = signature.policy().map(|_| policy);
        signature.settle(policy.as_ref(), &at("2026-11-21T06:00:00Z")).expect(&name);
        if signature.policy().is_none() {
            for now in ["2026-11-21T09:00:00Z", "2026-11-23T00:00:00Z"] {
                let late = signature.settle(None, &at(now)).expect_err(&name);
                assert!(detail(late).contains("time frame"), "{name}");
            }
        }
        let elsewhere = SasRequest { account: "devstoreaccount2", ..request };
        assert!(Signature::verify(&elsewhere, &signers).is_err(), "{name}");
        if request.container.is_some() {
            let elsewhere = SasRequest { container: Some("cont-2"), ..request };
            assert!(Signature::verify(&elsewhere, &signers).is_err(), "{name}");
            let account_url = SasRequest { container: None, blob: None, ..request };
            assert!(Signature::verify(&account_url, &signers).is_err(), "{name}");
        }
        for name_of in ["sp=", "se=", "sv=", "srt=", "sr=", "skoid=", "sip=", "rsct="] {
            let Some(at) = request.query.find(name_of) else { continue };
            let mut forged = request.query.to_owned();
            forged.insert(at + name_of.len(), 'r');
            let forged = SasRequest { query: &forged, ..request };
            assert!(Signature::verify(&forged, &signers).is_err(), "{name} {name_of}");
        }
    }
}

#[test]
fn oldest_string_to_sign_is_the_documented_one() {
    let text =
        "sv=2012-02-12&st=2009-02-09&se=2009-02-10&sr=c&sp=r&si=YWJjZGVmZw%3d%3d&sig=AA%3d%3d";
    let fields = Fields::read(text).unwrap().unwrap();
    let headers = HeaderMap::new();
    let subject = Subject {
        account: "myaccount",
        container: Some("pictures"),
        blob: Some("profile.jpg"),
        time: "",
        headers: &headers,
        query: "",
    };
    assert_eq!(
        string_to_sign(Form::Service, &fields, &subject).unwrap().unwrap(),
        "r\n2009-02-09\n2009-02-10\n/myaccount/pictures\nYWJjZGVmZw==\n2012-02-12"
    );
}

#[test]
fn minted_signatures_are_accepted() {
    let keys = keys(&[KEY]);
    let query = mint_account(&keys, "acct", "sco", &terms());
    let grant = settled(&query, "2026-11-21T06:00:00Z").unwrap();
    let reach = Reach::Account { blob: true, service: true, container: true, object: true };
    assert_eq!((grant.reach, grant.permissions), (reach, SasPermissions::of("rl")));

    let overrides =
        Overrides { content_type: Some("text/html; x=ä".to_owned()), ..Overrides::default() };
    let terms = Terms { overrides: overrides.clone(), ..terms() };
    let blob = Target { blob: Some("dir/ä +%.txt"), ..CONTAINER };
    let snapshot = Target { snapshot: Some("2026-11-21T05:01:02.1234567Z"), ..blob };
    for (target, container) in [(CONTAINER, true), (blob, false), (snapshot, false)] {
        let query = mint_service(&keys, &target, &terms);
        let signature = verify(&query, Some("c-1"), target.blob).unwrap().unwrap();
        let grant = signature.settle(None, &at("2026-11-21T06:00:00Z")).unwrap();
        assert_eq!(grant.reach, Reach::Resource { container });
        assert_eq!(grant.overrides, overrides);
        assert!(verify(&query, Some("c-1"), Some("other")).is_err() || container);
    }
}

#[test]
fn signature_of_a_snapshot_is_not_one_of_another_or_of_the_blob() {
    let target =
        Target { blob: Some("b"), snapshot: Some("2026-11-21T05:01:02.1234567Z"), ..CONTAINER };
    let query = mint_service(&keys(&[KEY]), &target, &terms());
    assert!(verify(&query, Some("c-1"), Some("b")).is_ok());
    let other = query.replace("1234567Z", "1234568Z");
    assert!(detail(verify(&other, Some("c-1"), Some("b")).unwrap_err()).contains("did not match"));
    let (_, base) = query.split_once('&').unwrap();
    assert!(detail(verify(base, Some("c-1"), Some("b")).unwrap_err()).contains("snapshot"));
}

#[test]
fn window_holds_its_start_and_not_its_end() {
    let query = mint_service(&keys(&[KEY]), &CONTAINER, &terms());
    for (now, inside) in [
        ("2026-11-21T04:59:59.9999999Z", false),
        ("2026-11-21T05:00:00Z", true),
        ("2026-11-21T08:59:59.9999999Z", true),
        ("2026-11-21T09:00:00Z", false),
    ] {
        assert_eq!(settled(&query, now).is_ok(), inside, "{now}");
    }
}

#[test]
fn addresses_and_protocol_are_those_of_the_signature() {
    let mint = |terms: &Terms| mint_service(&keys(&[KEY]), &CONTAINER, terms);
    let elsewhere = Terms { addresses: Some("10.0.0.1-10.0.0.9".to_owned()), ..terms() };
    let refused = settled(&mint(&elsewhere), "2026-11-21T06:00:00Z").unwrap_err();
    assert_eq!(refused, Error::SourceAddress { address: IpAddr::V4(Ipv4Addr::LOCALHOST) });
    let here = Terms { addresses: Some("127.0.0.1".to_owned()), ..terms() };
    settled(&mint(&here), "2026-11-21T06:00:00Z").unwrap();

    let query = mint(&Terms { https_only: true, ..terms() });
    assert_eq!(settled(&query, "2026-11-21T06:00:00Z").unwrap_err(), Error::Protocol);
    let signature = verify(&query, Some("c-1"), None).unwrap().unwrap();
    let secure = Circumstances { secure: true, ..at("2026-11-21T06:00:00Z") };
    signature.settle(None, &secure).unwrap();
}

#[test]
fn stored_policy_fills_what_the_signature_leaves_open_and_nothing_else() {
    let expiry = time("2026-11-21T09:00:00Z");
    let full =
        Policy { start: None, expiry: Some(expiry), permissions: Some(SasPermissions::of("r")) };
    let bare = Terms { policy: Some("p".to_owned()), ..Terms::default() };
    let query = mint_service(&keys(&[KEY]), &CONTAINER, &bare);
    let signature = verify(&query, Some("c-1"), None).unwrap().unwrap();
    assert_eq!(signature.policy(), Some("p"));
    let now = at("2026-11-21T06:00:00Z");
    assert_eq!(signature.settle(Some(&full), &now).unwrap().permissions, SasPermissions::of("r"));
    assert!(detail(signature.settle(None, &now).unwrap_err()).contains("no access policy"));
    let open = Policy { start: None, expiry: Some(expiry), permissions: None };
    assert!(
        detail(signature.settle(Some(&open), &now).unwrap_err()).starts_with("sp is mandatory")
    );
    let endless = Policy { start: None, expiry: None, permissions: Some(SasPermissions::of("r")) };
    assert!(
        detail(signature.settle(Some(&endless), &now).unwrap_err()).starts_with("se is mandatory")
    );
    let late = Policy {
        start: Some(expiry),
        expiry: Some(expiry),
        permissions: Some(SasPermissions::of("r")),
    };
    assert!(detail(signature.settle(Some(&late), &now).unwrap_err()).contains("time frame"));

    let both = Terms { policy: Some("p".to_owned()), ..terms() };
    let query = mint_service(&keys(&[KEY]), &CONTAINER, &both);
    let signature = verify(&query, Some("c-1"), None).unwrap().unwrap();
    assert!(detail(signature.settle(Some(&full), &now).unwrap_err()).contains("not both"));
    signature.settle(Some(&Policy::default()), &now).unwrap();
}

#[test]
fn encryption_scope_is_signed_since_2020_12_06() {
    let signed = |version: &str, scope: &str| {
        let mut fields = Fields::default();
        for (name, value) in [("sv", version), ("sr", "c"), ("sp", "r"), ("ses", scope)] {
            fields.set(name, value);
        }
        fields.set("se", "2026-11-21T09:00:00Z");
        let subject = Subject {
            account: "acct",
            container: Some("c-1"),
            blob: None,
            time: "",
            headers: &HeaderMap::new(),
            query: "",
        };
        let text = string_to_sign(Form::Service, &fields, &subject).unwrap().unwrap();
        fields.set("sig", &keys(&[KEY]).sign(text.as_bytes()));
        fields.query()
    };
    let grants = |query: &str| settled(query, "2026-11-21T06:00:00Z").unwrap().encryption_scope;
    let query = signed("2020-12-06", "scope-1");
    assert_eq!(grants(&query).as_deref(), Some("scope-1"));
    assert!(settled(&query.replace("scope-1", "scope-2"), "2026-11-21T06:00:00Z").is_err());
    assert!(settled(&query.replace("ses=scope-1&", ""), "2026-11-21T06:00:00Z").is_err());
    assert_eq!(grants(&signed("2020-12-06", "$account-encryption-key")), None);
    assert_eq!(grants(&signed("2020-10-02", "scope-1")), None, "not signed, so not believed");
    assert!(settled(&signed("2020-12-06", "no scope"), "2026-11-21T06:00:00Z").is_err());
}
