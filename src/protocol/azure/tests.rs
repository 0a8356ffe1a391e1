//! Addresses, contexts and operations, by table.

mod parameters;

use http::Request;
use http::request::Parts;

use crate::protocol::azure::Addressing;
use crate::protocol::azure::Context;
use crate::protocol::azure::ServiceVersion;
use crate::protocol::azure::address;
use crate::protocol::azure::errors;
use crate::protocol::azure::names;
use crate::protocol::azure::parse;
use crate::protocol::model::Address;
use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::BlockListKind;
use crate::protocol::model::operation::ContentOperation;
use crate::protocol::model::operation::Framing;
use crate::protocol::model::operation::RangeChecksum;
use crate::types::AccessTier;
use crate::types::ByteRange;
use crate::types::DeleteScope;
use crate::types::Etag;
use crate::types::EtagMatch;
use crate::types::PublicAccess;
use crate::types::Timestamp;

/// `METHOD URL` and `Name: value` lines.
fn head(line: &str, headers: &[&str]) -> Parts {
    let (method, url) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(url);
    for header in headers {
        let (name, value) = header.split_once(':').unwrap();
        request = request.header(name.trim(), value.trim());
    }
    request.body(()).unwrap().into_parts().0
}

fn located(line: &str, host: &str) -> Result<Address, Refusal> {
    let head = head(line, &[]);
    let addressing = Addressing { domains: vec!["localhost".into(), "store.example".into()] };
    address(&head.method, &head.uri, Some(host), &addressing)
}

fn operation(line: &str, headers: &[&str]) -> Result<Operation, Refusal> {
    let head = head(line, headers);
    let context = Context::from_head(&head)?;
    let address = address(&head.method, &head.uri, Some("127.0.0.1:1"), &Addressing::default())?;
    parse(&head, &address, &context).map(|parsed| *parsed.into_parts().0)
}

fn refused(line: &str, headers: &[&str]) -> Reason {
    operation(line, headers).map(|done| panic!("{line} {headers:?}: {done:?}")).unwrap_err().reason
}

#[test]
fn addresses_are_read_in_every_style() {
    let cases = [
        ("/acct", "127.0.0.1:1", "acct||", "127.0.0.1:1/acct/"),
        ("/acct/", "127.0.0.1", "acct||", "127.0.0.1/acct/"),
        ("/acct/con?restype=container", "[::1]:9", "acct|con|", "[::1]:9/acct/"),
        ("/acct/con/?comp=list", "h", "acct|con|", "h/acct/"),
        ("/acct-secondary/con/b", "h", "acct2|con|b", "h/acct-secondary/"),
        ("/acct/blob.txt", "h", "acct|$root|blob.txt", "h/acct/"),
        ("/acct/%24web/index.html", "h", "acct|$web|index.html", "h/acct/"),
        ("/acct/$root/x", "h", "acct|$root|x", "h/acct/"),
        ("/acct/con/a%2Fb+c%20d%25", "h", "acct|con|a/b+c d%", "h/acct/"),
        ("/acct/con//a//b/../.", "h", "acct|con|/a//b/../.", "h/acct/"),
        ("/acct/con/dir/", "h", "acct|con|dir/", "h/acct/"),
        ("/acct/con/%252F", "h", "acct|con|%2F", "h/acct/"),
        ("/acct/con/a%5Cb", "h", "acct|con|a/b", "h/acct/"),
        ("/acct/con/%E6%97%A5%F0%9F%98%80", "h", "acct|con|\u{65e5}\u{1f600}", "h/acct/"),
        ("/", "acct.blob.localhost:10000", "acct||", "acct.blob.localhost:10000/"),
        ("/con/b", "acct.BLOB.Store.Example", "acct|con|b", "acct.BLOB.Store.Example/"),
        ("/b", "acct-secondary.blob.localhost", "acct2|$root|b", "acct-secondary.blob.localhost/"),
        ("/acct/con/b", "acct.blob.elsewhere", "acct|con|b", "acct.blob.elsewhere/acct/"),
        ("/acct/con/b", "localhost:1", "acct|con|b", "localhost:1/acct/"),
        ("/acct/con/b", "acct.blob.notlocalhost", "acct|con|b", "acct.blob.notlocalhost/acct/"),
        ("/acct/con/b", "blob.localhost", "acct|con|b", "blob.localhost/acct/"),
        ("http://x.blob.localhost/con/b", "h", "", ""),
        ("http://acc.blob.localhost/con/b", "h", "acc|con|b", "acc.blob.localhost/"),
    ];
    for (url, host, expected, endpoint) in cases {
        let found = located(&format!("GET {url}"), host);
        if expected.is_empty() {
            assert_eq!(found.unwrap_err().reason, Reason::InvalidUri, "{url}");
            continue;
        }
        let found = found.unwrap();
        let container = found.container.as_ref().map_or("", |c| c.as_str());
        let blob = found.blob.as_ref().map_or("", |b| b.as_str());
        let suffix = if found.secondary { "2" } else { "" };
        assert_eq!(format!("{}{suffix}|{container}|{blob}", found.account), expected, "{url}");
        assert_eq!(found.endpoint, endpoint, "{url}");
    }
}

#[test]
fn bad_addresses_have_their_codes() {
    let long_blob = format!("/acct/con/{}", "b".repeat(1025));
    let long_container = format!("/acct/{}/b", "c".repeat(64));
    let cases = [
        ("GET /", Reason::InvalidUri),
        ("GET /ab/con/b", Reason::InvalidUri),
        ("GET /Acct/con/b", Reason::InvalidUri),
        ("GET /acct//b", Reason::InvalidUri),
        ("GET /acct/con/%zz", Reason::InvalidUri),
        ("GET /acct/con/%2", Reason::InvalidUri),
        ("GET /acct/con/%", Reason::InvalidUri),
        ("GET /acct/con/%FF", Reason::InvalidUri),
        ("GET /acct/con/%ED%A0%80", Reason::InvalidUri),
        ("GET /acct/con/a%00b", Reason::InvalidResourceName),
        ("GET /acct/Con/b", Reason::InvalidResourceName),
        ("PUT /acct/c--n?restype=container", Reason::InvalidResourceName),
        ("GET /acct/-con/b", Reason::InvalidResourceName),
        ("GET /acct/con-/b", Reason::InvalidResourceName),
        ("GET /acct/c_n/b", Reason::InvalidResourceName),
        ("GET /acct/%24other/b", Reason::InvalidResourceName),
        ("GET /acct/a%2Fb/c", Reason::InvalidResourceName),
        ("GET /acct/co/b", Reason::OutOfRangeInput),
        (&format!("GET {long_container}"), Reason::OutOfRangeInput),
        (&format!("GET {long_blob}"), Reason::OutOfRangeInput),
        ("TRACE /acct/con/b", Reason::UnsupportedHttpVerb),
        ("BREW /acct/con/b", Reason::InvalidHttpVerb),
        ("OPTIONS *", Reason::InvalidUri),
    ];
    for (line, expected) in cases {
        assert_eq!(located(line, "127.0.0.1").unwrap_err().reason, expected, "{line}");
    }
}

#[test]
fn versions_are_dates_and_echoed() {
    for text in ["2009-04-14", "2019-12-12", "2026-10-06", "2099-12-31"] {
        assert_eq!(ServiceVersion::parse(text).unwrap().to_string(), text);
        let context = Context::from_head(&head("GET /", &[&format!("x-ms-version: {text}")]));
        assert_eq!(context.unwrap().version.to_string(), text);
    }
    let bad = ["", "2026", "2026-1-1", "2026-13-01", "2026-00-01", "2026-01-32", "x026-01-01"];
    for text in bad.iter().chain(&["2026/01/01", "2026-01-011", "+026-01-01", "1999-01-01"]) {
        assert_eq!(ServiceVersion::parse(text), None, "{text}");
    }
    let garbage = Context::from_head(&head("GET /", &["x-ms-version: latest"]));
    assert_eq!(garbage.unwrap_err().reason, Reason::InvalidHeaderValue);
    let absent = Context::from_head(&head("GET /", &[])).unwrap();
    assert_eq!(absent.version, ServiceVersion::DEFAULT);
}

#[test]
fn client_request_ids_have_a_limit() {
    let line = |len: usize| format!("x-ms-client-request-id: {}", "i".repeat(len));
    let context = Context::from_head(&head("GET /", &[&line(1024)])).unwrap();
    assert_eq!(context.client_request_id.unwrap().len(), 1024);
    let refused = Context::from_head(&head("GET /", &[&line(1025)])).unwrap_err();
    assert_eq!(refused.reason, Reason::InvalidHeaderValue);
}

const PUT_BLOB: &[&str] = &["x-ms-blob-type: BlockBlob", "content-length: 5"];

const MAKE_PAGES: &[&str] =
    &["x-ms-blob-type: PageBlob", "x-ms-blob-content-length: 1024", "content-length: 0"];
const CLEAR_PAGES: &[&str] =
    &["x-ms-page-write: clear", "x-ms-range: bytes=512-1023", "content-length: 0"];

fn with<'a>(base: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [base, more].concat()
}

#[test]
fn requests_are_routed_to_their_operations() {
    let cases: &[(&str, &[&str], &str)] = &[
        ("GET /acct?restype=account&comp=properties", &[], "GetAccountInformation"),
        ("HEAD /acct/con/b?restype=account&comp=properties", &[], "GetAccountInformation"),
        ("GET /acct/?comp=list", &[], "ListContainers"),
        ("PUT /acct/con?restype=container", &[], "CreateContainer"),
        ("GET /acct/con?restype=container", &[], "GetContainerProperties"),
        ("HEAD /acct/con?RESTYPE=Container&comp=Metadata", &[], "GetContainerProperties"),
        ("PUT /acct/con?restype=container&comp=metadata", &[], "SetContainerMetadata"),
        ("DELETE /acct/con?restype=container&timeout=30", &[], "DeleteContainer"),
        ("GET /acct/con?restype=container&comp=list", &[], "ListBlobs"),
        ("PUT /acct/con/b", PUT_BLOB, "PutBlob"),
        ("PUT /acct/con/b?comp=block&blockid=YWFh", &["content-length: 1"], "PutBlock"),
        ("PUT /acct/con/b?comp=blocklist", &["content-length: 0"], "PutBlockList"),
        ("GET /acct/con/b?comp=blocklist", &[], "GetBlockList"),
        ("GET /acct/con/b", &[], "GetBlob"),
        ("HEAD /acct/con/b", &[], "GetBlobProperties"),
        ("PUT /acct/con/b", &["x-ms-blob-type: AppendBlob", "content-length: 0"], "PutBlob"),
        ("PUT /acct/con/b", MAKE_PAGES, "PutBlob"),
        ("PUT /acct/con/b?comp=appendblock", &["content-length: 1"], "AppendBlock"),
        ("PUT /acct/con/b?comp=seal", &[], "SealBlob"),
        ("PUT /acct/con/b?comp=page", CLEAR_PAGES, "PutPage"),
        ("GET /acct/con/b?comp=pagelist", &[], "GetPageRanges"),
        ("PUT /acct/con/b?comp=properties", &[], "SetBlobProperties"),
        (
            "PUT /acct/con/b?comp=properties",
            &["x-ms-blob-content-length: 512"],
            "SetBlobProperties",
        ),
        ("GET /acct/con/b?comp=metadata", &[], "GetBlobMetadata"),
        ("HEAD /acct/con/b?comp=metadata", &[], "GetBlobMetadata"),
        ("PUT /acct/con/b?comp=metadata", &[], "SetBlobMetadata"),
        ("DELETE /acct/con/b", &["x-ms-delete-snapshots: include"], "DeleteBlob"),
        ("PUT /acct/con/b?comp=lease", &["x-ms-lease-action: break"], "LeaseBlob"),
        (
            "PUT /acct/con?restype=container&comp=lease",
            &["x-ms-lease-action: break"],
            "LeaseContainer",
        ),
        ("PUT /acct/con/b?comp=snapshot", &[], "SnapshotBlob"),
        ("PUT /acct/con/b?comp=tier", &["x-ms-access-tier: cool"], "SetBlobTier"),
        ("PUT /acct/con/b?comp=undelete", &[], "UndeleteBlob"),
        ("POST /acct/con/b?comp=query", &["content-length: 9"], "QueryBlobContents"),
        (
            "PUT /acct/con?restype=container&comp=undelete",
            &[
                "x-ms-deleted-container-name: con",
                "x-ms-deleted-container-version: 01D69540C360196E",
            ],
            "RestoreContainer",
        ),
    ];
    for (line, headers, name) in cases {
        assert_eq!(operation(line, headers).unwrap().name(), *name, "{line}");
    }
}

#[test]
fn versions_are_named_by_their_times() {
    let version = "versionid=2026-01-02T03:04:05.0000000Z";
    let snapshot = "snapshot=2026-01-02T03:04:05.0000000Z";
    for (line, name) in [
        ("GET /acct/con/b?", "GetBlob"),
        ("HEAD /acct/con/b?", "GetBlobProperties"),
        ("DELETE /acct/con/b?", "DeleteBlob"),
        ("GET /acct/con/b?comp=tags&", "GetBlobTags"),
        ("GET /acct/con/b?comp=blocklist&", "GetBlockList"),
    ] {
        assert_eq!(operation(&format!("{line}{version}"), &[]).unwrap().name(), name);
        for wrong in
            ["versionid=", "versionid=x", "versionid=null", &format!("{version}&{snapshot}")]
        {
            let reason = refused(&format!("{line}{wrong}"), &[]);
            assert_eq!(reason, Reason::InvalidQueryParameterValue, "{line}{wrong}");
        }
    }
    let lease = refused(&format!("PUT /acct/con/b?comp=metadata&{version}"), &[]);
    assert_eq!(lease, Reason::InvalidQueryParameterValue);
}

#[test]
fn what_is_not_served_says_so() {
    let queries = [
        "GET /acct/con?restype=container&comp=list&showonly=deleted",
        "PUT /acct/files?resource=filesystem",
        "PATCH /acct/files/p?action=append&position=0",
        "OPTIONS /acct/con/b",
    ];
    for line in queries {
        assert_eq!(refused(line, &[]), Reason::NotImplemented, "{line}");
    }
    let header = "x-ms-expiry-option: NeverExpire";
    let error = operation("PUT /acct/con/b", &with(PUT_BLOB, &[header])).unwrap_err();
    assert_eq!(error.reason, Reason::NotImplemented);
    let named = error.details.iter().any(|(_, value)| value == "x-ms-expiry-option");
    assert!(named, "{error:?}");
    let acl = "HEAD /acct/con?action=getAccessControl";
    assert_eq!(refused(acl, &[]), Reason::HierarchicalNamespaceNotEnabled);
}

#[test]
fn the_secondary_is_for_reading() {
    assert!(operation("GET /acct-secondary/con/b", &[]).is_ok());
    assert!(operation("HEAD /acct-secondary/con?restype=container", &[]).is_ok());
    for line in ["PUT /acct-secondary/con/b", "DELETE /acct-secondary/con?restype=container"] {
        assert_eq!(refused(line, PUT_BLOB), Reason::InsufficientAccountPermissions, "{line}");
    }
}

#[test]
fn tiers_are_read_in_any_case() {
    for (text, expected) in [
        ("Hot", AccessTier::Hot),
        ("cOLD", AccessTier::Cold),
        ("p50", AccessTier::P50),
        ("smart", AccessTier::Smart),
    ] {
        let header = format!("x-ms-access-tier: {text}");
        let put = operation("PUT /acct/con/b", &with(PUT_BLOB, &[&header])).unwrap();
        let Operation::Content(ContentOperation::PutBlob { tier, .. }) = put else {
            panic!("{put:?}")
        };
        assert_eq!(tier, Some(expected));
    }
    let bad = with(PUT_BLOB, &["x-ms-access-tier: Lukewarm"]);
    assert_eq!(refused("PUT /acct/con/b", &bad), Reason::InvalidHeaderValue);
    let none_has = with(PUT_BLOB, &["x-ms-access-tier: P1"]);
    let expected = Reason::BlobAccessTierNotSupportedForAccountType;
    assert_eq!(refused("PUT /acct/con/b", &none_has), expected);
}

#[test]
fn malformed_requests_have_their_codes() {
    use Reason as E;
    let cases: &[(&str, &[&str], Reason)] = &[
        ("GET /acct", &[], E::MissingRequiredQueryParameter),
        ("GET /acct?comp=nothing", &[], E::InvalidQueryParameterValue),
        ("PUT /acct?comp=list", &[], E::UnsupportedHttpVerb),
        ("GET /acct?restype=account", &[], E::MissingRequiredQueryParameter),
        ("PUT /acct?restype=account&comp=properties", &[], E::UnsupportedHttpVerb),
        ("GET /acct/con/?comp=list", &[], E::MissingRequiredQueryParameter),
        ("GET /acct/con?restype=directory", &[], E::InvalidQueryParameterValue),
        ("GET /acct/con/b?restype=container", &[], E::InvalidQueryParameterValue),
        ("GET /acct/con?restype=container&comp=what", &[], E::InvalidQueryParameterValue),
        ("POST /acct/con?restype=container", &[], E::UnsupportedHttpVerb),
        ("POST /acct/con/b", &[], E::UnsupportedHttpVerb),
        ("DELETE /acct/con/b?comp=block", &[], E::UnsupportedHttpVerb),
        ("GET /acct/con/b?comp=what", &[], E::InvalidQueryParameterValue),
        ("GET /acct/con/b?comp=metadata&comp=metadata", &[], E::InvalidQueryParameterValue),
        ("GET /acct/con/b?timeout=soon", &[], E::InvalidQueryParameterValue),
        ("GET /acct/con/b?timeout=-1", &[], E::InvalidQueryParameterValue),
        ("GET /acct/con/b?x=%zz", &[], E::InvalidQueryParameterValue),
        ("GET /acct/con/b?x=%ff", &[], E::InvalidQueryParameterValue),
        ("GET /acct/con/b?snapshot=", &[], E::InvalidQueryParameterValue),
        ("PUT /acct/con/b", &["content-length: 1"], E::MissingRequiredHeader),
        ("PUT /acct/con/b", &["x-ms-blob-type: Blob"], E::InvalidHeaderValue),
        ("PUT /acct/con/b", &["x-ms-blob-type: BlockBlob"], E::MissingContentLengthHeader),
        ("PUT /acct/con/b?comp=block", &["content-length: 1"], E::MissingRequiredQueryParameter),
        ("PUT /acct/con/b?comp=block&blockid=", &[], E::MissingRequiredQueryParameter),
        ("PUT /acct/con/b?comp=block&blockid=***", &[], E::InvalidQueryParameterValue),
        ("PUT /acct/con/b?comp=block&blockid=YWFh", &[], E::MissingContentLengthHeader),
        ("PUT /acct/con/b?comp=block&blockid=YWFh", &["content-length: 0"], E::InvalidHeaderValue),
        (
            "PUT /acct/con/b?comp=block&blockid=YWFh",
            &["content-length: 1", "if-match: *"],
            E::ConditionHeadersNotSupported,
        ),
        ("PUT /acct/con/b?comp=blocklist", &["content-length: 9000000"], E::RequestBodyTooLarge),
        ("GET /acct/con/b?comp=blocklist&blocklisttype=x", &[], E::InvalidQueryParameterValue),
        ("GET /acct/con/b", &["x-ms-lease-id: mine"], E::InvalidHeaderValue),
        ("GET /acct/con/b", &["x-ms-range: bytes=5-1"], E::InvalidHeaderValue),
        ("GET /acct/con/b", &["if-none-match: *"], E::UnsatisfiableCondition),
        ("GET /acct/con/b", &["if-modified-since: today"], E::InvalidHeaderValue),
        ("GET /acct/con/b", &["x-ms-range-get-content-md5: true"], E::InvalidHeaderValue),
        ("GET /acct/con/b", &["x-ms-range-get-content-md5: yes"], E::InvalidHeaderValue),
        ("DELETE /acct/con/b", &["x-ms-delete-snapshots: all"], E::InvalidHeaderValue),
        ("PUT /acct/con/b?comp=metadata", &["x-ms-meta-: v"], E::EmptyMetadataKey),
        ("PUT /acct/con/b?comp=metadata", &["x-ms-meta-a-b: v"], E::InvalidMetadata),
        ("PUT /acct/con/b?comp=metadata", &["x-ms-meta-1a: v"], E::InvalidMetadata),
        ("PUT /acct/con/b?comp=metadata", &["x-ms-meta-a: \u{e9}"], E::InvalidMetadata),
        (
            "PUT /acct/con/b?comp=metadata",
            &["x-ms-meta-a: 1", "x-ms-meta-a: 2"],
            E::InvalidMetadata,
        ),
        (
            "PUT /acct/con?restype=container",
            &["x-ms-blob-public-access: all"],
            E::InvalidHeaderValue,
        ),
        ("PUT /acct/con?restype=container", &["if-none-match: *"], E::ConditionHeadersNotSupported),
        ("DELETE /acct/con?restype=container", &["if-match: *"], E::ConditionHeadersNotSupported),
        (
            "PUT /acct/con?restype=container&comp=metadata",
            &["if-unmodified-since: Sat, 21 Nov 2026 05:00:00 GMT"],
            E::ConditionHeadersNotSupported,
        ),
    ];
    for (line, headers, expected) in cases {
        assert_eq!(refused(line, headers), *expected, "{line} {headers:?}");
    }
}

#[test]
fn metadata_above_its_limit_is_refused() {
    let large = format!("x-ms-meta-a: {}", "v".repeat(8 * 1024));
    let line = "PUT /acct/con/b?comp=metadata";
    assert_eq!(refused(line, &[&large]), Reason::MetadataTooLarge);
}

#[test]
fn body_limits_follow_the_version() {
    let mib = |n: u64| n * 1024 * 1024;
    let cases = [
        ("2026-10-06", 5000, 4000),
        ("2019-12-12", 5000, 4000),
        ("2019-07-07", 256, 100),
        ("2016-05-31", 256, 100),
        ("2015-12-11", 64, 4),
    ];
    for (version, blob, block) in cases {
        let version = format!("x-ms-version: {version}");
        for (line, limit) in
            [("PUT /acct/con/b", blob), ("PUT /acct/con/b?comp=block&blockid=YWFh", block)]
        {
            let length = |n: u64| format!("content-length: {n}");
            let (most, more) = (length(mib(limit)), length(mib(limit) + 1));
            let kind = "x-ms-blob-type: BlockBlob";
            assert!(operation(line, &[&version, kind, &most]).is_ok(), "{version} {line}");
            let code = refused(line, &[&version, kind, &more]);
            assert_eq!(code, Reason::RequestBodyTooLarge, "{version} {line}");
        }
    }
}

#[test]
fn checksums_of_bodies_are_read_and_not_mixed() {
    let md5 = "content-md5: XUFAKrxLKna5cZ2REBfFkg==";
    let crc64 = "x-ms-content-crc64: AAAAAAAAAAE=";
    let put = |more: &[&str]| operation("PUT /acct/con/b", &with(PUT_BLOB, more));
    let Ok(Operation::Content(ContentOperation::PutBlob { upload, .. })) = put(&[md5]) else {
        panic!("refused")
    };
    assert!(upload.md5.is_some() && upload.crc64.is_none());
    assert_eq!(upload.framing, Framing::Known { len: 5 });
    let Ok(Operation::Content(ContentOperation::PutBlob { upload, .. })) = put(&[crc64]) else {
        panic!("refused")
    };
    assert!(upload.md5.is_none() && upload.crc64.is_some());
    let codes = [
        (vec![md5, crc64], Reason::BothCrc64AndMd5HeaderPresent),
        (vec!["content-md5: XUFAKrxLKna5cZ2REBfFkg"], Reason::InvalidMd5),
        (vec!["content-md5: YWFh"], Reason::InvalidMd5),
        (vec!["x-ms-blob-content-md5: YWFh"], Reason::InvalidMd5),
        (vec!["x-ms-content-crc64: YWFh"], Reason::InvalidHeaderValue),
    ];
    for (headers, expected) in codes {
        assert_eq!(put(&headers).unwrap_err().reason, expected, "{headers:?}");
    }
}
