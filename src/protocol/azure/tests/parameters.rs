//! Headers and parameters of requests that are well addressed.

use super::*;
use crate::protocol::model::operation::BlobOperation;
use crate::protocol::model::operation::ContainerOperation;
use crate::protocol::model::operation::ContentOperation;
use crate::types::Revision;

#[test]
fn properties_come_from_own_headers_then_plain_ones_of_put_blob_only() {
    let plain = ["content-type: text/plain", "cache-control: no-store", "content-language: de"];
    let put = operation("PUT /acct/con/b", &with(PUT_BLOB, &plain)).unwrap();
    let Operation::Content(ContentOperation::PutBlob { properties, .. }) = put else {
        panic!("{put:?}")
    };
    assert_eq!(properties.content_type.as_deref(), Some("text/plain"));
    assert_eq!(properties.cache_control.as_deref(), Some("no-store"));
    let own = with(&plain, &["x-ms-blob-content-type: a/b", "content-length: 1"]);
    let list = operation("PUT /acct/con/b?comp=blocklist", &own).unwrap();
    let Operation::Content(ContentOperation::PutBlockList { properties, .. }) = list else {
        panic!("{list:?}")
    };
    assert_eq!(properties.content_type.as_deref(), Some("a/b"));
    assert_eq!(properties.content_language, None);
}

#[test]
fn ranges_prefer_the_service_header_and_ignore_what_http_ignores() {
    let range = |headers: &[&str]| {
        let got = operation("GET /acct/con/b", headers).unwrap();
        let Operation::Blob(BlobOperation::GetBlob { range, .. }) = got else { panic!("{got:?}") };
        range
    };
    let bytes = |first, last| ByteRange::new(first, last);
    assert_eq!(range(&["range: bytes=0-9"]), bytes(0, Some(9)));
    assert_eq!(range(&["range: bytes=7-"]), bytes(7, None));
    assert_eq!(range(&["range: bytes=0-9", "x-ms-range: bytes=1-2"]), bytes(1, Some(2)));
    assert_eq!(range(&["range: Bytes=0-99999999999999999999"]), bytes(0, Some(u64::MAX)));
    let ignored = ["bytes=-5", "bytes=9-0", "bytes=a-b", "bytes=", "lines=0-1", "bytes=0-1,3-4"];
    for text in ignored {
        assert_eq!(range(&[&format!("range: {text}")]), None, "{text}");
        let own = format!("x-ms-range: {text}");
        assert_eq!(refused("GET /acct/con/b", &[&own]), Reason::InvalidHeaderValue, "{text}");
    }
}

#[test]
fn range_checksums_need_a_short_range() {
    let get = |headers: &[&str]| operation("GET /acct/con/b", headers);
    let flag = "x-ms-range-get-content-crc64: true";
    let Ok(Operation::Blob(BlobOperation::GetBlob { checksum, .. })) =
        get(&["x-ms-range: bytes=5-4194308", flag])
    else {
        panic!("refused")
    };
    assert_eq!(checksum, Some(RangeChecksum::Crc64));
    for (name, flag) in
        [(&names::RANGE_CRC64, flag), (&names::RANGE_MD5, "x-ms-range-get-content-md5: true")]
    {
        let long = get(&["x-ms-range: bytes=5-4194309", flag]).unwrap_err();
        assert_eq!(long.reason, Reason::OutOfRangeInput);
        let named = (errors::place(Detail::HeaderName), name.as_str().to_owned());
        assert_eq!(errors::details(&long).collect::<Vec<_>>(), [named]);
    }
    let both = get(&["range: bytes=0-1", flag, "x-ms-range-get-content-md5: true"]).unwrap_err();
    assert_eq!(both.reason, Reason::BothCrc64AndMd5HeaderPresent);
    let off = get(&["x-ms-range-get-content-md5: false"]).unwrap();
    assert!(matches!(off, Operation::Blob(BlobOperation::GetBlob { checksum: None, .. })));
}

#[test]
fn reads_take_several_tags_and_writes_one_condition() {
    let read = operation("HEAD /acct/con/b", &["if-match: \"0x8D\", 0x8E ,W/\"x\""]).unwrap();
    let Operation::Blob(BlobOperation::GetBlobProperties { precondition, .. }) = read else {
        panic!("{read:?}")
    };
    let expected = EtagMatch::Tags(vec![Etag::parse("0x8D"), Etag::parse("0x8E"), None]);
    assert_eq!(precondition.conditions.if_match, Some(expected));

    let date = "Sat, 21 Nov 2026 05:00:00 GMT";
    let (modified, unmodified) =
        (format!("if-modified-since: {date}"), format!("if-unmodified-since: {date}"));
    let (matching, none) = ("if-match: \"0x8D\"", "if-none-match: \"0x8D\"");
    let allowed: &[&[&str]] = &[
        &[matching],
        &[none],
        &["if-none-match: *"],
        &["if-match: *"],
        &[&modified],
        &[&unmodified],
        &[matching, &unmodified],
        &[none, &modified],
    ];
    for headers in allowed {
        assert!(operation("DELETE /acct/con/b", headers).is_ok(), "{headers:?}");
    }
    let forbidden: &[&[&str]] = &[
        &[matching, none],
        &[matching, &modified],
        &[none, &unmodified],
        &[&modified, &unmodified],
        &["if-match: \"0x8D\", \"0x8E\""],
        &["if-none-match: \"0x8D\"", "if-none-match: \"0x8E\""],
        &["if-match: *, \"0x8E\""],
    ];
    for headers in forbidden {
        let code = refused("DELETE /acct/con/b", headers);
        assert_eq!(code, Reason::MultipleConditionHeadersNotSupported, "{headers:?}");
    }
}

#[test]
fn container_facts_are_read() {
    let headers = &["x-ms-blob-public-access: Container", "x-ms-meta-k: v"];
    let made = operation("PUT /acct/con?restype=container", headers).unwrap();
    let Operation::Container(ContainerOperation::CreateContainer {
        metadata, public_access, ..
    }) = made
    else {
        panic!("{made:?}")
    };
    assert_eq!(public_access, PublicAccess::Container);
    assert_eq!(metadata.iter().collect::<Vec<_>>(), [("k", b"v".as_slice())]);
}

#[test]
fn list_parameters_are_read() {
    let line = "GET /acct/con?restype=container&comp=list&prefix=a%2Bb+c&delimiter=%2F&marker=m&startFrom=s\
        &maxresults=7&include=metadata,snapshots%2Cuncommittedblobs";
    let Ok(Operation::Container(ContainerOperation::ListBlobs(list))) = operation(line, &[]) else {
        panic!("refused")
    };
    assert_eq!(list.prefix.as_deref(), Some("a+b c"));
    assert_eq!(list.delimiter.as_deref(), Some("/"));
    assert_eq!((list.marker.as_deref(), list.start_from.as_deref()), (Some("m"), Some("s")));
    assert_eq!(list.max_results, Some(7));
    assert!(list.metadata && list.uncommitted);

    let all = "GET /acct/con?restype=container&comp=list&prefix=&maxresults=99999999999&include=";
    let Ok(Operation::Container(ContainerOperation::ListBlobs(list))) = operation(all, &[]) else {
        panic!("refused")
    };
    assert_eq!((list.prefix, list.max_results), (None, Some(5000)));
    assert!(!list.metadata && !list.uncommitted);
}

#[test]
fn bad_list_parameters_have_their_codes() {
    let out = Reason::OutOfRangeQueryParameterValue;
    let invalid = Reason::InvalidQueryParameterValue;
    let cases = [
        ("maxresults=0", out),
        ("maxresults=-1", out),
        ("maxresults=-99999999999", out),
        ("maxresults=ten", invalid),
        ("maxresults=-", invalid),
        ("maxresults=1.5", invalid),
        ("include=everything", invalid),
        ("include=metadata,everything", invalid),
        ("include=metadata&include=metadata", invalid),
        ("prefix=%ff", invalid),
    ];
    for (query, expected) in cases {
        for list in ["GET /acct?comp=list&", "GET /acct/con?restype=container&comp=list&"] {
            assert_eq!(refused(&format!("{list}{query}"), &[]), expected, "{list}{query}");
        }
    }
}

#[test]
fn block_list_kinds_are_read() {
    for (query, expected) in [
        ("", BlockListKind::Committed),
        ("&blocklisttype=committed", BlockListKind::Committed),
        ("&blocklisttype=Uncommitted", BlockListKind::Uncommitted),
        ("&blocklisttype=all", BlockListKind::All),
    ] {
        let got = operation(&format!("GET /acct/con/b?comp=blocklist{query}"), &[]).unwrap();
        let Operation::Blob(BlobOperation::GetBlockList { kind, .. }) = got else {
            panic!("{got:?}")
        };
        assert_eq!(kind, expected, "{query}");
    }
}

#[test]
fn deletions_say_what_of_the_blob() {
    const TAKEN: &str = "2026-11-21T02:13:18.1310000Z";
    let taken = Timestamp::from_iso(TAKEN).unwrap();
    let only = format!("DELETE /acct/con/b?snapshot={TAKEN}");
    let permanent = format!("{only}&deletetype=permanent");
    let cases: [(&str, &[&str], DeleteScope); 6] = [
        ("DELETE /acct/con/b", &[], DeleteScope::Blob),
        ("DELETE /acct/con/b", &["x-ms-delete-snapshots: include"], DeleteScope::BlobAndSnapshots),
        ("DELETE /acct/con/b", &["x-ms-delete-snapshots: Only"], DeleteScope::Snapshots),
        (&only, &[], DeleteScope::Snapshot(taken)),
        (&permanent, &[], DeleteScope::Permanently(Revision::Snapshot(taken))),
        (
            "DELETE /acct/con/b?deletetype=Permanent",
            &[],
            DeleteScope::Permanently(Revision::Current),
        ),
    ];
    for (line, headers, expected) in cases {
        let got = operation(line, headers).unwrap();
        let Operation::Blob(BlobOperation::DeleteBlob { scope, .. }) = got else {
            panic!("{got:?}")
        };
        assert_eq!(scope, expected, "{line} {headers:?}");
    }
}

#[test]
fn snapshots_are_read_deleted_and_tiered_only() {
    const TAKEN: &str = "snapshot=2026-11-21T02:13:18.1310000Z";
    for line in ["GET /acct/con/b?", "HEAD /acct/con/b?", "GET /acct/con/b?comp=metadata&"] {
        let got = operation(&format!("{line}{TAKEN}"), &[]).unwrap();
        let Operation::Blob(
            BlobOperation::GetBlob { path, .. }
            | BlobOperation::GetBlobProperties { path, .. }
            | BlobOperation::GetBlobMetadata { path, .. },
        ) = got
        else {
            panic!("{got:?}")
        };
        assert_eq!(path.revision.snapshot(), Timestamp::from_iso("2026-11-21T02:13:18.131Z"));
    }
    for comp in ["metadata", "properties", "snapshot", "lease", "undelete", "blocklist"] {
        let line = format!("PUT /acct/con/b?comp={comp}&{TAKEN}");
        assert_eq!(refused(&line, &[]), Reason::InvalidQueryParameterValue, "{line}");
    }
}
