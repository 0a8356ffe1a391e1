//! Commands about accounts, their keys and roles.

use super::*;
use crate::admin::account_store::NamedType;
use crate::admin::account_store::NewAccount;
use crate::types::Sku;

#[tokio::test]
async fn an_account_is_made_in_one_commit() {
    let served = serve();
    let (store, index) = accounts_on(&served.env).await;
    let before = index.writes.load(Ordering::Relaxed);
    let account_type = NamedType { sku: Some(Sku::PremiumLrs), kind: None };
    let new = NewAccount { anonymous: true, account_type, ..NewAccount::default() };
    let made = store.create("fresh", new).await.unwrap();
    assert_eq!(index.writes.load(Ordering::Relaxed) - before, 1, "a crash leaves no half of it");
    let shown = store.show("fresh", true).await.unwrap();
    assert_eq!((shown.sku.as_str(), shown.anonymous, &shown), ("Premium_LRS", true, &made));
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn accounts_are_made_shown_rotated_and_deleted() {
    let served = serve();
    served.ready().await;
    let (status, made) = served.command("POST", "/admin/accounts", r#"{"name":"fresh"}"#).await;
    assert_eq!(status, 201, "{made}");
    assert_eq!(made["keys"].as_array().unwrap().len(), 2);
    assert_eq!(made["endpoints"][1], "https://127.0.0.1:10000/fresh");
    let (status, again) = served.command("POST", "/admin/accounts", r#"{"name":"fresh"}"#).await;
    assert_eq!((status, again["error"]["code"].as_str()), (409, Some("AccountExists")));
    let (_, list) = served.command("GET", "/admin/accounts", "").await;
    assert_eq!(list["unread"], serde_json::json!([]));
    let shown: Vec<_> = list["accounts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| (a["name"].clone(), a["keys_from"].clone()))
        .collect();
    assert_eq!(
        shown,
        [("configured".into(), "configuration".into()), ("fresh".into(), "store".into())]
    );
    assert!(!list.to_string().contains(made["keys"][0].as_str().unwrap()), "no keys in a list");

    let rotate = r#"{"key":"key2"}"#;
    let (_, rotated) = served.command("POST", "/admin/accounts/fresh/rotate", rotate).await;
    assert_eq!(rotated["keys"][0], made["keys"][0]);
    assert_ne!(rotated["keys"][1], made["keys"][1]);
    let (_, shown) = served.command("GET", "/admin/accounts/fresh?keys=true", "").await;
    assert_eq!(shown, rotated);
    let (_, changed) =
        served.command("PATCH", "/admin/accounts/fresh", r#"{"anonymous":false}"#).await;
    assert_eq!((changed["anonymous"].as_bool(), changed.get("keys")), (Some(false), None));
    for on in [true, false] {
        let body = format!(r#"{{"versioning":{on}}}"#);
        let (_, changed) = served.command("PATCH", "/admin/accounts/fresh", &body).await;
        assert_eq!(changed["versioning"].as_bool(), Some(on));
    }
    let (status, _) = served.command("PATCH", "/admin/accounts/fresh", "{}").await;
    assert_eq!(status, 400);

    let (status, _) = served.ask("DELETE", "/admin/accounts/fresh", &token(), "").await;
    assert_eq!(status, 204);
    let (status, gone) = served.command("GET", "/admin/accounts/fresh", "").await;
    assert_eq!((status, gone["error"]["code"].as_str()), (404, Some("NoSuchAccount")));
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn kind_and_sku_are_given_shown_and_kept_while_there_are_containers() {
    let served = serve();
    let control = served.ready().await;
    let of = |account: &serde_json::Value| {
        let text = |field: &str| account[field].as_str().unwrap_or_default().to_owned();
        (text("kind"), text("sku"))
    };
    let pair = |kind: &str, sku: &str| (kind.to_owned(), sku.to_owned());
    let (_, made) = served.command("POST", "/admin/accounts", r#"{"name":"plain"}"#).await;
    assert_eq!(of(&made), pair("StorageV2", "Standard_LRS"));
    let body = r#"{"name":"disks","sku":"premium_lrs"}"#;
    let (status, made) = served.command("POST", "/admin/accounts", body).await;
    assert_eq!((status, of(&made)), (201, pair("StorageV2", "Premium_LRS")));
    let (_, list) = served.command("GET", "/admin/accounts", "").await;
    let shown = list["accounts"].as_array().unwrap().iter().find(|one| one["name"] == "disks");
    assert_eq!(shown.map(of), Some(pair("StorageV2", "Premium_LRS")));

    for (body, said) in [
        (r#"{"name":"none","kind":"BlockBlobStorage"}"#, "Premium_LRS, Premium_ZRS"),
        (r#"{"name":"none","sku":"Premium_LRS","kind":"BlobStorage"}"#, "Standard_RAGRS"),
        (r#"{"name":"none","sku":"Ultra"}"#, "Standard_ZRS"),
        (r#"{"name":"none","kind":"FileStorage"}"#, "BlobStorage"),
    ] {
        let (status, refused) = served.command("POST", "/admin/accounts", body).await;
        assert_eq!((status, refused["error"]["code"].as_str()), (400, Some("Invalid")), "{body}");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains(said), "{message}");
    }
    let (status, _) = served.command("GET", "/admin/accounts/none", "").await;
    assert_eq!(status, 404, "nothing was made");

    let path = "/admin/accounts/plain";
    let change = |body: &'static str| served.command("PATCH", path, body);
    let (_, changed) = change(r#"{"sku":"Premium_ZRS","kind":"BlockBlobStorage"}"#).await;
    assert_eq!(of(&changed), pair("BlockBlobStorage", "Premium_ZRS"));
    let (_, changed) = change(r#"{"sku":"Standard_GRS","kind":"StorageV2"}"#).await;
    assert_eq!(of(&changed), pair("StorageV2", "Standard_GRS"));
    control.accounts.add_container("plain", "box").await;
    let (status, refused) = change(r#"{"sku":"Premium_LRS"}"#).await;
    assert_eq!((status, refused["error"]["code"].as_str()), (409, Some("OtherTiers")));
    let (_, changed) = change(r#"{"sku":"Standard_RAGRS","kind":"BlobStorage"}"#).await;
    assert_eq!(of(&changed), pair("BlobStorage", "Standard_RAGRS"), "it has the same tiers");
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn roles_are_given_listed_and_taken_back() {
    let served = serve();
    let control = served.ready().await;
    let (_, made) = served.command("POST", "/admin/accounts", r#"{"name":"fresh"}"#).await;
    assert_eq!(made["anonymous"], false, "a new account is closed");
    let path = "/admin/accounts/fresh/grants";
    let body = |role: &str, more: &str| {
        format!(r#"{{"role":"{role}","kind":"subject","principal":"s"{more}}}"#)
    };
    let issuer = r#","issuer":"https://i""#;
    let whole = body("reader", issuer);
    let (status, given) = served.command("POST", path, &whole).await;
    assert_eq!((status, given["role"].as_str()), (200, Some("reader")), "{given}");
    served.command("POST", path, &whole).await;
    let within = body("Storage Blob Data Owner", &format!(r#"{issuer},"container":"photos""#));
    served.command("POST", path, &within).await;
    let group = whole.replace("subject", "group");
    served.command("POST", path, &group).await;
    let shown = |list: &serde_json::Value| {
        let rows = list.as_array().unwrap().iter();
        rows.map(|row| format!("{} {} {}", row["role"], row["kind"], row["container"])).collect()
    };
    let (_, list) = served.command("GET", path, "").await;
    let rows: Vec<String> = shown(&list);
    assert_eq!(
        rows,
        [
            "\"reader\" \"subject\" null",
            "\"owner\" \"subject\" \"photos\"",
            "\"reader\" \"group\" null"
        ]
    );
    assert_eq!(control.accounts.served_assignments("fresh"), 3, "the front end knows them");

    for (body, status, code) in [
        (body("reader", ""), 400, "Invalid"),
        (body("reader", r#","issuer":"https://k""#), 400, "Invalid"),
        (body("admin", issuer), 400, "Invalid"),
        (body("reader", &format!(r#"{issuer},"container":"No""#)), 400, "Invalid"),
        (body("reader", issuer).replace(r#""s""#, r#""""#), 400, "Invalid"),
        (body("reader", &format!(r#"{issuer},"more":1"#)), 400, "Invalid"),
    ] {
        let (found, refused) = served.command("POST", path, &body).await;
        assert_eq!((found, refused["error"]["code"].as_str()), (status, Some(code)), "{body}");
    }
    let revoke = "/admin/accounts/fresh/grants/revoke";
    let (status, _) = served.command("POST", revoke, &whole).await;
    assert_eq!(status, 200);
    let (status, gone) = served.command("POST", revoke, &whole).await;
    assert_eq!((status, gone["error"]["code"].as_str()), (404, Some("NoSuchGrant")));
    assert_eq!(control.accounts.served_assignments("fresh"), 2);
    let (status, _) = served.command("GET", "/admin/accounts/nobody/grants", "").await;
    assert_eq!(status, 404);
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn deleted_account_gets_no_container_by_a_request_let_in_before() {
    let served = serve();
    let control = served.ready().await;
    served.command("POST", "/admin/accounts", r#"{"name":"fresh"}"#).await;
    assert!(!control.accounts.add_container_late("fresh", "photos").await);
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn accounts_with_data_or_of_the_configuration_are_kept() {
    let served = serve();
    let control = served.ready().await;
    served.command("POST", "/admin/accounts", r#"{"name":"fresh"}"#).await;
    control.accounts.add_container("fresh", "photos").await;
    let (status, kept) = served.command("DELETE", "/admin/accounts/fresh", "").await;
    assert_eq!((status, kept["error"]["code"].as_str()), (409, Some("AccountNotEmpty")));
    assert!(kept["error"]["message"].as_str().unwrap().contains("photos"), "{kept}");
    let (_, shown) = served.command("GET", "/admin/accounts/fresh", "").await;
    assert_eq!(shown["keys_from"], "store", "it is served again");
    let (status, _) = served.ask("DELETE", "/admin/accounts/fresh?force=true", &token(), "").await;
    assert_eq!(status, 204);

    for (method, path) in
        [("DELETE", "/admin/accounts/configured"), ("POST", "/admin/accounts/configured/rotate")]
    {
        let (status, kept) = served.command(method, path, r#"{"key":"key1"}"#).await;
        assert_eq!((status, kept["error"]["code"].as_str()), (409, Some("AccountConfigured")));
    }
    let (status, _) = served.command("POST", "/admin/accounts", r#"{"name":"Not A Name"}"#).await;
    assert_eq!(status, 400);
    for weak in ["c2hvcnQ=", crate::auth::DEVELOPMENT_KEY] {
        let body = format!(r#"{{"name":"weak","key1":"{weak}"}}"#);
        let (status, refused) = served.command("POST", "/admin/accounts", &body).await;
        assert_eq!(status, 400, "{refused}");
    }
    served.env.tasks.shutdown().await;
}

#[tokio::test]
async fn containers_deleted_with_their_account_have_lines_of_their_own() {
    let kept = Kept::new();
    let served = serve_with_log(kept.log());
    let control = served.ready().await;
    served.command("POST", "/admin/accounts", r#"{"name":"fresh"}"#).await;
    for (name, id) in [("photos", 1), ("films", 2)] {
        control.accounts.add_container_as("fresh", name, id).await;
    }
    served.command("DELETE", "/admin/accounts/fresh", "").await;
    assert_eq!(kept.changes().len(), 1, "what is refused deletes nothing");
    let (status, _) = served.ask("DELETE", "/admin/accounts/fresh?force=true", &token(), "").await;
    assert_eq!(status, 204);
    let logged = kept.changes();
    let field = |line: &serde_json::Value, name: &str| line[name].as_str().unwrap().to_owned();
    let of: Vec<_> =
        logged.iter().map(|line| (field(line, "of"), field(line, "operation"))).collect();
    let deleted = ("container".to_owned(), "DeleteContainer".to_owned());
    let last = ("account".to_owned(), "DeleteAccount".to_owned());
    assert_eq!(of, [deleted.clone(), deleted, last]);
    let names: Vec<_> = logged[..2].iter().map(|line| field(line, "resource")).collect();
    assert_eq!(names, ["films", "photos"]);
    for line in &logged {
        assert_eq!(line["account"], "fresh");
        assert_eq!(line["principal"]["kind"], "admin_token");
        assert_eq!(line["request_id"], logged[2]["request_id"], "by which command");
    }
    served.env.tasks.shutdown().await;
}
