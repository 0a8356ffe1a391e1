//! Heads and bodies as clients read them.

mod lists;

use http::Request;
use http::Response;
use http::request::Parts;

use crate::protocol::azure::Addressing;
use crate::protocol::azure::Context;
use crate::protocol::azure::RequestEcho;
use crate::protocol::azure::ServiceVersion;
use crate::protocol::azure::address;
use crate::protocol::azure::errors::error_row;
use crate::protocol::azure::parse;
use crate::protocol::azure::render;
use crate::protocol::azure::render_error;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::Reply;
use crate::protocol::model::checksum::BodyChecksum;
use crate::protocol::model::checksum::WrittenChecksums;
use crate::protocol::model::list_reply::BlobItem;
use crate::protocol::model::list_reply::BlobListing;
use crate::protocol::model::reply::BlobFacts;
use crate::protocol::model::reply::Change;
use crate::protocol::model::reply::ContainerFacts;
use crate::protocol::model::reply::Deletion;
use crate::protocol::model::reply::LeaseFacts;
use crate::protocol::model::reply::TierFacts;
use crate::types::AccessTier;
use crate::types::AccountKind;
use crate::types::AccountType;
use crate::types::BlobProperties;
use crate::types::ContentEtag;
use crate::types::Crc64;
use crate::types::Encryption;
use crate::types::EncryptionScope;
use crate::types::Etag;
use crate::types::LeaseState;
use crate::types::Md5;
use crate::types::Metadata;
use crate::types::PublicAccess;
use crate::types::Revision;
use crate::types::Sku;
use crate::types::TierState;
use crate::types::Timestamp;

/// 2026-11-21T05:00:00.1234567Z
const NOW: Timestamp = Timestamp::from_ticks(639_308_340_001_234_567);

fn head(method: &str, url: &str) -> Parts {
    let request = Request::builder()
        .method(method)
        .uri(url)
        .header("x-ms-version", "2021-02-12")
        .header("x-ms-client-request-id", "client-1");
    request.body(()).unwrap().into_parts().0
}

fn echo(method: &str, url: &str) -> RequestEcho {
    RequestEcho::new(&head(method, url), "request-1".to_owned(), NOW)
}

fn list_echo(url: &str) -> RequestEcho {
    let head = head("GET", url);
    let mut echo = RequestEcho::new(&head, "request-1".to_owned(), NOW);
    let at = address(&head.method, &head.uri, Some("h:1"), &Addressing::default()).unwrap();
    let parsed = parse(&head, &at, &Context::from_head(&head).unwrap()).unwrap();
    echo.operation(parsed.operation(), &at, "http");
    echo
}

fn change() -> Change {
    Change { etag: Etag::parse("0x8DE1").unwrap(), last_modified: NOW, version: None }
}

fn facts() -> BlobFacts {
    BlobFacts {
        properties: BlobProperties {
            content_language: Some("de".to_owned()),
            content_md5: Some(Md5::of(b"x")).into(),
            ..BlobProperties::default()
        },
        metadata: Metadata::new(vec![("k".to_owned(), "a<b&c".to_owned())]).unwrap(),
        encryption: None,
        ..BlobFacts::new(change(), NOW, 100)
    }
}

fn text<B: AsRef<[u8]>>(response: &Response<B>) -> &str {
    std::str::from_utf8(response.body().as_ref()).unwrap()
}

fn get<'a, B>(response: &'a Response<B>, name: &str) -> &'a str {
    response.headers().get(name).map_or("(none)", |value| value.to_str().unwrap())
}

#[test]
fn every_answer_echoes_the_request() {
    let error = render_error(&Reason::BlobNotFound.into(), &echo("GET", "/a/b/c"));
    let reply = render(&Reply::BlobDeleted(Deletion::default()), &echo("DELETE", "/a/b/c"));
    for response in [error, reply] {
        assert_eq!(get(&response, "x-ms-version"), "2021-02-12");
        assert_eq!(get(&response, "x-ms-client-request-id"), "client-1");
        assert_eq!(get(&response, "x-ms-request-id"), "request-1");
        assert_eq!(get(&response, "date"), "Sat, 21 Nov 2026 05:00:00 GMT");
        assert!(get(&response, "server").starts_with("Blockyard/"));
    }
}

#[test]
fn an_echo_is_made_from_a_malformed_head_too() {
    let mut head = head("GET", "/a/b/c");
    head.headers.insert("x-ms-version", "garbage".parse().unwrap());
    let echo = RequestEcho::new(&head, "r".to_owned(), NOW);
    let response = render_error(&Reason::InvalidHeaderValue.into(), &echo);
    assert_eq!(get(&response, "x-ms-client-request-id"), "client-1");
    assert_eq!(get(&response, "x-ms-version"), "2026-10-06");
}

#[test]
fn errors_carry_code_message_and_details() {
    let error = Refusal::new(Reason::InvalidHeaderValue)
        .message("a < b")
        .detail(Detail::HeaderName, "x\u{1}\u{fffe}y&")
        .detail(Detail::RetryAfter, "1");
    let response = render_error(&error, &echo("GET", "/a/b/c"));
    assert_eq!(response.status(), 400);
    assert_eq!(get(&response, "x-ms-error-code"), "InvalidHeaderValue");
    assert_eq!(get(&response, "retry-after"), "1");
    assert_eq!(get(&response, "content-type"), "application/xml");
    assert_eq!(
        text(&response),
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>InvalidHeaderValue</Code>\
         <Message>a &lt; b\nRequestId:request-1\nTime:2026-11-21T05:00:00.1234567Z</Message>\
         <HeaderName>xy&amp;</HeaderName></Error>"
    );
}

#[test]
fn errors_without_a_body_keep_their_code() {
    let missing = render_error(&Reason::BlobNotFound.into(), &echo("HEAD", "/a/b/c"));
    assert_eq!((missing.status().as_u16(), text(&missing)), (404, ""));
    assert_eq!(get(&missing, "x-ms-error-code"), "BlobNotFound");
    let same = render_error(&Reason::NotModified.into(), &echo("GET", "/a/b/c"));
    assert_eq!((same.status().as_u16(), text(&same)), (304, ""));
    assert_eq!(get(&same, "x-ms-error-code"), "ConditionNotMet");
}

#[test]
fn every_row_of_the_error_table_renders() {
    for code in Reason::ALL {
        let response = render_error(&(*code).into(), &echo("GET", "/a/b/c"));
        assert_eq!(response.status().as_u16(), error_row(*code).status);
        assert_eq!(text(&response).is_empty(), error_row(*code).status == 304, "{code:?}");
    }
}

#[test]
fn whole_and_partial_blobs_name_their_checksums_differently() {
    let whole = Reply::Blob { facts: Box::new(facts()), range: None, checksum: None };
    let whole = render(&whole, &echo("GET", "/a/b/c"));
    let md5 = Md5::of(b"x").to_base64();
    assert_eq!(whole.status(), 200);
    assert_eq!(get(&whole, "content-length"), "100");
    assert_eq!(get(&whole, "content-md5"), md5);
    assert_eq!(get(&whole, "content-range"), "(none)");
    assert_eq!(get(&whole, "content-type"), "application/octet-stream");
    assert_eq!(get(&whole, "content-language"), "de");
    assert_eq!(get(&whole, "etag"), "\"0x8DE1\"");
    assert_eq!(get(&whole, "last-modified"), "Sat, 21 Nov 2026 05:00:00 GMT");
    assert_eq!(get(&whole, "accept-ranges"), "bytes");
    assert_eq!(get(&whole, "x-ms-blob-type"), "BlockBlob");
    assert_eq!(get(&whole, "x-ms-lease-status"), "unlocked");
    assert_eq!(get(&whole, "x-ms-server-encrypted"), "true");
    assert_eq!(get(&whole, "x-ms-meta-k"), "a<b&c");

    let crc64 = Crc64::of(b"y");
    let part = Reply::Blob {
        facts: Box::new(facts()),
        range: Some(10..30),
        checksum: Some(BodyChecksum::Crc64(crc64)),
    };
    let part = render(&part, &echo("GET", "/a/b/c"));
    assert_eq!(part.status(), 206);
    assert_eq!(get(&part, "content-length"), "20");
    assert_eq!(get(&part, "content-range"), "bytes 10-29/100");
    assert_eq!(get(&part, "content-md5"), "(none)");
    assert_eq!(get(&part, "x-ms-blob-content-md5"), md5);
    assert_eq!(get(&part, "x-ms-content-crc64"), crc64.to_base64());
}

#[test]
fn properties_show_the_tier_and_the_length_without_a_body() {
    let reply = render(&Reply::BlobProperties(Box::new(facts())), &echo("HEAD", "/a/b/c"));
    assert_eq!(get(&reply, "content-length"), "100");
    assert_eq!(get(&reply, "x-ms-access-tier"), "Hot");
    assert_eq!(get(&reply, "x-ms-creation-time"), "Sat, 21 Nov 2026 05:00:00 GMT");
    assert_eq!(text(&reply), "");
}

#[test]
fn tier_of_a_page_blob_shows_whether_it_was_given() {
    let page = |state: Option<&TierState>| {
        let tier = Some(TierFacts::of_page_blob(1 << 40, state));
        let reply = Reply::BlobProperties(Box::new(BlobFacts { tier, ..facts() }));
        let reply = render(&reply, &echo("HEAD", "/a/b/c"));
        let shown =
            |name| reply.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let names =
            ["x-ms-access-tier", "x-ms-access-tier-inferred", "x-ms-access-tier-change-time"];
        names.map(shown)
    };
    let inferred = [Some("P30".to_owned()), Some("true".to_owned()), None];
    assert_eq!(page(None), inferred);
    assert_eq!(
        page(Some(&TierState::new(AccessTier::Hot, NOW))),
        inferred,
        "from an earlier release"
    );
    let given = TierState::new(AccessTier::P40, NOW);
    assert_eq!(page(Some(&given)), [Some("P40".to_owned()), None, None]);
}

#[test]
fn a_smart_tier_shows_the_tier_below_it() {
    let smart = |tier: AccessTier| {
        let tier = Some(TierFacts::at(NOW, Some(&TierState::new(tier, NOW))));
        let facts = BlobFacts { tier, ..facts() };
        let head = render(&Reply::BlobProperties(Box::new(facts.clone())), &echo("HEAD", "/a/b/c"));
        let shown = head.headers().get("x-ms-smart-access-tier").cloned();
        let (name, revision) = ("n".to_owned(), Revision::Current);
        let items = vec![BlobItem::Blob { name, revision, facts: Box::new(facts) }];
        let listing = Reply::Blobs(BlobListing { items, ..BlobListing::default() });
        let list = render(&listing, &list_echo("/acct/con?restype=container&comp=list"));
        (shown.map(|value| value.to_str().unwrap().to_owned()), text(&list).to_owned())
    };
    let (head, list) = smart(AccessTier::Smart);
    assert_eq!(head.as_deref(), Some("Hot"));
    assert!(list.contains("<AccessTier>Smart</AccessTier><SmartAccessTier>Hot</SmartAccessTier>"));
    let (head, list) = smart(AccessTier::Cool);
    assert_eq!(head, None);
    assert!(!list.contains("SmartAccessTier"), "{list}");
}

#[test]
fn account_information_has_kind_and_sku() {
    let account = AccountType::new(Sku::PremiumLrs, AccountKind::BlockBlobStorage).unwrap();
    let reply = render(&Reply::AccountInformation(account), &echo("GET", "/a"));
    assert_eq!(get(&reply, "x-ms-sku-name"), "Premium_LRS");
    assert_eq!(get(&reply, "x-ms-account-kind"), "BlockBlobStorage");
}

#[test]
fn statuses_are_the_documented_ones() {
    let md5 = BodyChecksum::Md5(Md5::of(b""));
    let written = WrittenChecksums { crc64: Crc64::EMPTY, md5: None };
    let put = Reply::BlobPut {
        change: change(),
        checksums: Some(written),
        content_etag: ContentEtag::md5(Md5::of(b"")),
        checksum: Crc64::EMPTY.into(),
    };
    let cases = [
        (Reply::AccountInformation(AccountType::default()), 200),
        (Reply::ContainerCreated(change()), 201),
        (Reply::ContainerKept(change()), 201),
        (Reply::ContainerChanged(change()), 200),
        (Reply::ContainerDeleted, 202),
        (put, 201),
        (Reply::BlockPut(written), 201),
        (Reply::BlockListPut(change(), md5), 201),
        (Reply::BlobMetadata(Box::new(facts())), 200),
        (Reply::BlobPropertiesSet(change()), 200),
        (Reply::BlobMetadataSet(change()), 200),
        (Reply::BlobDeleted(Deletion::default()), 202),
    ];
    for (reply, status) in cases {
        let response = render(&reply, &echo("PUT", "/a/b/c"));
        assert_eq!(response.status(), status, "{reply:?}");
        assert_eq!(text(&response), "", "{reply:?}");
    }
}

#[test]
fn versions_before_2026_10_06_have_only_the_md5_of_the_request() {
    let at = |version: &'static str| {
        let mut echo = echo("PUT", "/a/b/c?comp=block");
        echo.version = ServiceVersion::parse(version).unwrap();
        echo
    };
    let names = |reply: &Reply, version| {
        let response = render(reply, &at(version));
        let has = |name: &str| response.headers().contains_key(name);
        (has("content-md5"), has("x-ms-content-crc64"))
    };
    let both = WrittenChecksums { crc64: Crc64::EMPTY, md5: Some(Md5::of(b"")) };
    let block = Reply::BlockPut(both);
    assert_eq!(names(&block, "2026-06-06"), (true, false));
    assert_eq!(names(&block, "2026-10-06"), (true, true));
    let plain = Reply::BlockPut(WrittenChecksums { md5: None, ..both });
    assert_eq!(names(&plain, "2021-08-06"), (false, true));
    let blob = Reply::BlobPut {
        change: change(),
        checksums: Some(both),
        content_etag: ContentEtag::md5(Md5::of(b"")),
        checksum: Crc64::EMPTY.into(),
    };
    assert_eq!(names(&blob, "2021-08-06"), (true, true), "Put Blob has both in each version");
}

#[test]
fn containers_show_access_and_fixed_facts() {
    let facts = ContainerFacts {
        has_object_lock: false,
        deleted: None,
        created: Timestamp::ZERO,
        owner: None,
        region: None,
        change: change(),
        metadata: Metadata::default(),
        public_access: PublicAccess::Blob,
        lease: LeaseFacts { state: LeaseState::Leased, infinite: true },
        encryption_scope: None,
    };
    let response = render(&Reply::Container(facts), &echo("GET", "/a/b?restype=container"));
    assert_eq!(get(&response, "x-ms-blob-public-access"), "blob");
    assert_eq!(get(&response, "x-ms-has-immutability-policy"), "false");
    assert_eq!(get(&response, "x-ms-has-legal-hold"), "false");
    assert_eq!(get(&response, "x-ms-lease-status"), "locked");
    assert_eq!(get(&response, "x-ms-lease-state"), "leased");
    assert_eq!(get(&response, "x-ms-lease-duration"), "infinite");
    assert_eq!(get(&response, "x-ms-default-encryption-scope"), "$account-encryption-key");
}

#[test]
fn last_access_is_shown_where_it_is_known() {
    let read = BlobFacts { last_access: Some(NOW), ..facts() };
    for (facts, expected) in [(facts(), None), (read, Some(NOW.to_string()))] {
        let properties = Reply::BlobProperties(Box::new(facts.clone()));
        let whole = Reply::Blob { facts: Box::new(facts.clone()), range: None, checksum: None };
        for reply in [properties, whole] {
            let response = render(&reply, &echo("GET", "/a/b/c"));
            let shown = response.headers().get("x-ms-last-access-time");
            assert_eq!(shown.map(|value| value.to_str().unwrap().to_owned()), expected);
        }
        let items = vec![BlobItem::Blob {
            name: "a".to_owned(),
            revision: Revision::Current,
            facts: Box::new(facts),
        }];
        let listing = Reply::Blobs(BlobListing { items, ..BlobListing::default() });
        let response = render(&listing, &list_echo("/acct/con?restype=container&comp=list"));
        let element = expected.map(|time| format!("<LastAccessTime>{time}</LastAccessTime>"));
        match element {
            Some(element) => assert!(text(&response).contains(&element), "{}", text(&response)),
            None => assert!(!text(&response).contains("LastAccess"), "{}", text(&response)),
        }
    }
}

#[test]
fn encryption_is_shown_and_hides_metadata() {
    let hash = "CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=";
    let by_key = BlobFacts { encryption: Some(Encryption::Customer([9; 32])), ..facts() };
    let scope = Encryption::Scope("s-1".to_owned());
    let by_scope = BlobFacts { encryption: Some(scope.clone()), ..facts() };
    let item = |facts: &BlobFacts| BlobItem::Blob {
        name: "a".to_owned(),
        revision: Revision::Current,
        facts: Box::new(facts.clone()),
    };
    let items = vec![item(&by_key), item(&by_scope)];
    let listing = BlobListing { items, ..BlobListing::default() };
    let echo = list_echo("/acct/con?restype=container&comp=list&include=metadata");
    let response = render(&Reply::Blobs(listing), &echo);
    let (first, second) = text(&response).split_once("</Blob>").unwrap();
    assert!(
        first.contains(&format!("<CustomerProvidedKeySha256>{hash}</CustomerProvidedKeySha256>"))
    );
    assert!(first.contains("<Metadata Encrypted=\"true\"/>"), "{first}");
    assert!(second.contains("<EncryptionScope>s-1</EncryptionScope>"), "{second}");
    assert!(second.contains("<Metadata><k>"), "{second}");
    let response = render(&Reply::BlobProperties(Box::new(by_key)), &echo);
    assert_eq!(get(&response, "x-ms-encryption-key-sha256"), hash);
    let made = Reply::Encrypted(Box::new(Reply::BlobMetadataSet(change())), scope);
    let response = render(&made, &echo);
    assert_eq!(get(&response, "x-ms-encryption-scope"), "s-1");
    assert_eq!(get(&response, "x-ms-request-server-encrypted"), "true");
}

#[test]
fn header_values_that_cannot_be_sent_are_left_out() {
    let mut facts = facts();
    facts.properties.content_type = Some("a\nb".to_owned());
    let reply = Reply::Blob { facts: Box::new(facts), range: None, checksum: None };
    let response = render(&reply, &echo("GET", "/a/b/c"));
    assert_eq!(get(&response, "content-type"), "(none)");
}
