//! Shared access signatures, access policies and tokens that are malformed, forged, stale or not
//! enough.

use blockyard::auth::AccountKeys;
use blockyard::auth::Target;
use blockyard::auth::Terms;
use blockyard::auth::mint_account;
use blockyard::auth::mint_service;

use crate::bad_input::Case;
use crate::bad_input::case;
use crate::server::ACCOUNT;
use crate::server::KEY;
use crate::server::OTHER_ACCOUNT;
use crate::server::OTHER_KEY;
use crate::wire::Message;
use crate::wire::Sign;

const FAILED: &str = "AuthenticationFailed";
const PERMISSION: &str = "AuthorizationPermissionMismatch";
const FAR: &str = "2090-01-01T00:00:00Z";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = unsigned();
    cases.extend(malformed());
    cases.extend(forged());
    cases.extend(not_enough());
    cases.extend(policies());
    cases.extend(delegation_keys());
    cases
}

fn keys(key: &str) -> AccountKeys {
    AccountKeys::new(&[key]).unwrap()
}

fn terms(permissions: &str) -> Terms {
    Terms { permissions: permissions.to_owned(), expiry: Some(FAR.to_owned()), ..Terms::default() }
}

fn for_container(terms: &Terms) -> String {
    let target = Target { account: ACCOUNT, container: "con1", blob: None, snapshot: None };
    mint_service(&keys(KEY), &target, terms)
}

/// A request without a signature in its head.
fn bare(line: &str) -> Message {
    Message { sign: Sign::Not, ..Message::new(line) }
}

fn read(query: &str) -> Message {
    bare(&format!("GET /acct1/con1/blob?{query}"))
}

fn unsigned() -> Vec<Case> {
    let none = "NoAuthenticationInformation";
    let lines = [
        ("read", "GET /acct1/con1/blob"),
        ("write", "PUT /acct1/con1/blob"),
        ("delete", "DELETE /acct1/con1/blob"),
        ("list", "GET /acct1/con1?restype=container&comp=list"),
        ("container", "GET /acct1/con1?restype=container"),
        ("policies", "GET /acct1/con1?restype=container&comp=acl"),
        ("account", "GET /acct1/?comp=list"),
        ("what is not there", "GET /acct1/nothing/here"),
        ("nonsense", "GET /acct1/con1/blob?comp=nonsense"),
        ("a signature without sig", "GET /acct1/con1/blob?sv=2022-11-02&sr=b&sp=r"),
    ];
    let with = |(name, line)| {
        let message = bare(line).header("x-ms-version: 2022-11-02");
        case(&format!("unsigned: {name}"), message, 401, none)
    };
    let mut cases: Vec<Case> = lines.into_iter().map(with).collect();
    let old = bare("GET /acct1/con1/blob").header("x-ms-version: 2019-07-07");
    cases.push(case("unsigned: of an old version", old, 404, "ResourceNotFound"));
    cases
}

fn malformed() -> Vec<Case> {
    let queries = [
        ("no version", "sr=b&sp=r&se=2090-01-01&sig=AAAA"),
        ("empty version", "sv=&sr=b&sp=r&se=2090-01-01&sig=AAAA"),
        ("version of words", "sv=newest&sr=b&sp=r&se=2090-01-01&sig=AAAA"),
        ("version before signatures", "sv=2009-09-19&sr=b&sp=r&se=2090-01-01&sig=AAAA"),
        ("no resource", "sv=2022-11-02&sp=r&se=2090-01-01&sig=AAAA"),
        ("unknown resource", "sv=2022-11-02&sr=x&sp=r&se=2090-01-01&sig=AAAA"),
        ("snapshot without one", "sv=2022-11-02&sr=bs&sp=r&se=2090-01-01&sig=AAAA"),
        ("empty signature", "sv=2022-11-02&sr=b&sp=r&se=2090-01-01&sig="),
        ("signature not base64", "sv=2022-11-02&sr=b&sp=r&se=2090-01-01&sig=!!!!"),
        (
            "signature of zeros",
            "sv=2022-11-02&sr=b&sp=r&se=2090-01-01&sig=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA%3D",
        ),
        ("resource twice", "sv=2022-11-02&sr=b&sr=c&sp=r&se=2090-01-01&sig=AAAA"),
        ("signature twice", "sv=2022-11-02&sr=b&sp=r&se=2090-01-01&sig=AAAA&sig=AAAA"),
        ("not UTF-8", "sv=2022-11-02&sr=b&sp=%FF&se=2090-01-01&sig=AAAA"),
        ("account form, too old", "sv=2012-02-12&ss=b&srt=o&sp=r&se=2090-01-01&sig=AAAA"),
        ("delegation form, too old", "sv=2017-11-09&sr=b&skoid=a&sp=r&se=2090-01-01&sig=AAAA"),
    ];
    queries.map(|(name, query)| case(&format!("sas: {name}"), read(query), 403, FAILED)).into()
}

fn forged() -> Vec<Case> {
    let good = for_container(&terms("r"));
    let other_key = mint_service(
        &keys(OTHER_KEY),
        &Target { account: ACCOUNT, container: "con1", blob: None, snapshot: None },
        &terms("r"),
    );
    let other_account = mint_service(
        &keys(OTHER_KEY),
        &Target { account: OTHER_ACCOUNT, container: "con1", blob: None, snapshot: None },
        &terms("r"),
    );
    let other_blob = mint_service(
        &keys(KEY),
        &Target { account: ACCOUNT, container: "con1", blob: Some("other"), snapshot: None },
        &terms("r"),
    );
    let queries = [
        ("more permissions", good.replace("sp=r", "sp=rwd")),
        ("a later end", good.replace("se=2090", "se=2091")),
        ("another kind of resource", good.replace("sr=c", "sr=b")),
        ("an address added", format!("{good}&sip=1.2.3.4")),
        ("headers added", format!("{good}&rsct=text%2Fhtml")),
        ("a policy added", format!("{good}&si=p")),
        ("another key", other_key),
        ("another account", other_account),
        ("another blob", other_blob),
        ("expired", for_container(&Terms { expiry: Some("2020-01-01".into()), ..terms("r") })),
        ("not begun", for_container(&Terms { start: Some(FAR.into()), ..terms("r") })),
        ("endless", for_container(&Terms { expiry: None, ..terms("r") })),
        ("end of words", for_container(&Terms { expiry: Some("soon".into()), ..terms("r") })),
        ("no permissions", for_container(&terms(""))),
        ("unknown permission", for_container(&terms("rz"))),
        (
            "address of words",
            for_container(&Terms { addresses: Some("here".into()), ..terms("r") }),
        ),
        ("no such policy", for_container(&Terms { policy: Some("p".into()), ..Terms::default() })),
    ];
    let signed =
        |(name, query): (&str, String)| case(&format!("sas: {name}"), read(&query), 403, FAILED);
    queries.into_iter().map(signed).collect()
}

fn not_enough() -> Vec<Case> {
    let with = |line: &str, query: &str| {
        let sign = if line.contains('?') { '&' } else { '?' };
        bare(&format!("{line}{sign}{query}")).header("x-ms-blob-type: BlockBlob")
    };
    let account = |types: &str, permissions: &str| {
        mint_account(&keys(KEY), ACCOUNT, types, &terms(permissions))
    };
    let elsewhere = for_container(&Terms { addresses: Some("10.0.0.1".into()), ..terms("r") });
    let secure = for_container(&Terms { https_only: true, ..terms("r") });
    let (blob, list) = ("/acct1/con1/blob", "/acct1/con1?restype=container&comp=list");
    let whole = "/acct1/con1?restype=container";
    let read_only = for_container(&terms("r"));
    let all = for_container(&terms("racwdl"));
    let kind = "AuthorizationResourceTypeMismatch";
    let never = "AuthorizationFailure";
    let row =
        |name: &str, message: Message, code| case(&format!("sas: {name}"), message, 403, code);
    vec![
        row("from elsewhere", read(&elsewhere), "AuthorizationSourceIPMismatch"),
        row("https only", read(&secure), "AuthorizationProtocolMismatch"),
        row("write with read", with(&format!("PUT {blob}"), &read_only), PERMISSION),
        row("delete with read", with(&format!("DELETE {blob}"), &read_only), PERMISSION),
        row("list with read", with(&format!("GET {list}"), &read_only), PERMISSION),
        row("read with list", read(&for_container(&terms("l"))), PERMISSION),
        row(
            "replace with create",
            with(&format!("PUT {blob}"), &for_container(&terms("c"))),
            "UnauthorizedBlobOverwrite",
        ),
        row("container's properties", with(&format!("GET {whole}"), &all), never),
        row("container deleted", with(&format!("DELETE {whole}"), &all), never),
        row(
            "container's metadata",
            with("PUT /acct1/con1?restype=container&comp=metadata", &all),
            never,
        ),
        row(
            "container's policies",
            with("GET /acct1/con1?restype=container&comp=acl", &all),
            never,
        ),
        row(
            "policies by account",
            with("GET /acct1/con1?restype=container&comp=acl", &account("sco", "racwdl")),
            never,
        ),
        row("list of the account", with("GET /acct1/?comp=list", &all), FAILED),
        row("blob by service", with(&format!("GET {blob}"), &account("s", "r")), kind),
        row("blob by container", with(&format!("GET {blob}"), &account("sc", "r")), kind),
        row("container by blob", with(&format!("GET {list}"), &account("so", "l")), kind),
        row("account by container", with("GET /acct1/?comp=list", &account("co", "l")), kind),
        row(
            "container made with delete",
            with("PUT /acct1/con9?restype=container", &account("sco", "rdl")),
            PERMISSION,
        ),
        row(
            "delegation key",
            with("POST /acct1/?restype=service&comp=userdelegationkey", &account("sco", "racwdl"))
                .body("<KeyInfo/>"),
            FAILED,
        ),
    ]
}

fn policies() -> Vec<Case> {
    let acl = "PUT /acct1/con1?restype=container&comp=acl";
    let with = |id: &str, fields: &str| {
        format!(
            "<SignedIdentifier><Id>{id}</Id><AccessPolicy>{fields}</AccessPolicy></SignedIdentifier>"
        )
    };
    let six: String = (0..6).map(|n| with(&n.to_string(), "")).collect();
    let bodies = [
        ("six", six, "InvalidXmlDocument"),
        ("long id", with(&"i".repeat(65), ""), "InvalidXmlNodeValue"),
        ("empty id", with("", ""), "InvalidXmlNodeValue"),
        ("one id twice", with("a", "") + &with("a", ""), "InvalidXmlNodeValue"),
        (
            "no id",
            "<SignedIdentifier><AccessPolicy/></SignedIdentifier>".to_owned(),
            "MissingRequiredXmlNode",
        ),
        ("start of words", with("a", "<Start>soon</Start>"), "InvalidXmlNodeValue"),
        ("expiry of words", with("a", "<Expiry>never</Expiry>"), "InvalidXmlNodeValue"),
        ("unknown permission", with("a", "<Permission>q</Permission>"), "InvalidXmlNodeValue"),
        ("unknown field", with("a", "<Owner>me</Owner>"), "UnsupportedXmlNode"),
        ("not closed", "<SignedIdentifier>".to_owned(), "InvalidXmlDocument"),
    ];
    let row = |(name, inside, code): (&str, String, &'static str)| {
        let body = format!("<SignedIdentifiers>{inside}</SignedIdentifiers>");
        case(&format!("policies: {name}"), Message::new(acl).body(body), 400, code)
    };
    bodies.into_iter().map(row).chain(policy_requests()).collect()
}

/// Requests for policies that are refused for other reasons than their body's fields.
fn policy_requests() -> Vec<Case> {
    let acl = "PUT /acct1/con1?restype=container&comp=acl";
    let message = |name: &str, message: Message, status, code| {
        case(&format!("policies: {name}"), message, status, code)
    };
    vec![
        message(
            "another document",
            Message::new(acl).body("<BlockList/>"),
            400,
            "InvalidXmlDocument",
        ),
        message(
            "too large",
            Message::new(acl).body(vec![b' '; 70_000]),
            413,
            "RequestBodyTooLarge",
        ),
        message(
            "access of words",
            Message::new(acl).header("x-ms-blob-public-access: all"),
            400,
            "InvalidHeaderValue",
        ),
        message(
            "tags as condition",
            Message::new(acl).header("if-match: *"),
            400,
            "ConditionHeadersNotSupported",
        ),
        message(
            "deleted",
            Message::new("DELETE /acct1/con1?restype=container&comp=acl"),
            405,
            "UnsupportedHttpVerb",
        ),
        message(
            "no container",
            Message::new("GET /acct1/con9?restype=container&comp=acl"),
            404,
            "ContainerNotFound",
        ),
        message(
            "no lease",
            Message::new("GET /acct1/con1?restype=container&comp=acl")
                .header("x-ms-lease-id: 5f6b2f9a-7c1d-4f6e-8a90-0123456789ab"),
            412,
            "LeaseNotPresentWithContainerOperation",
        ),
    ]
}

fn delegation_keys() -> Vec<Case> {
    let ask = |token: &str| {
        let line = "POST /acct1/?restype=service&comp=userdelegationkey";
        let sign = Sign::Text(token.to_owned());
        Message { sign, ..Message::new(line) }.body("<KeyInfo/>")
    };
    let info = "InvalidAuthenticationInfo";
    let keyed =
        Message::new("POST /acct1/?restype=service&comp=userdelegationkey").body("<KeyInfo/>");
    let got = Message::new("GET /acct1/?restype=service&comp=userdelegationkey");
    vec![
        case("delegation key: with a key", keyed, 403, FAILED),
        case("delegation key: by GET", got, 405, "UnsupportedHttpVerb"),
        case("delegation key: token of dots", ask("Bearer a.b.c"), 400, info),
        case("delegation key: empty token", ask("Bearer "), 400, info),
        case(
            "delegation key: long token",
            ask(&format!("Bearer {}", "a".repeat(20_000))),
            401,
            info,
        ),
        case(
            "delegation key: no issuer",
            ask("Bearer eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJodHRwczovL2EifQ.AAAA"),
            401,
            info,
        ),
    ]
}
