//! Lists of uploads, and their expiry.

use bytes::Bytes;

use super::support::*;
use super::uploads::id;
use super::uploads::start;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::types::*;

/// All pages of a list of uploads, `limit` entries each.
fn all(p: &Partition, list: &ListUploads) -> Vec<String> {
    let mut names = Vec::new();
    let mut uploads = list.clone();
    loop {
        let ReadReply::Blobs(page) = p.read(&Read::Uploads(uploads.clone())).unwrap() else {
            panic!("not a page")
        };
        assert!(page.entries.len() <= list.list.limit);
        assert_eq!(page.entries.len(), page.after.len());
        names.extend(page.entries.iter().map(show_short));
        let Some(next) = page.next else { return names };
        uploads.list.from = Some(next);
    }
}

/// `name#n` for the upload `id(n)`.
fn show_short(entry: &ListEntry) -> String {
    match entry {
        ListEntry::Upload { name, id, .. } => format!("{name}#{}", id.as_bytes()[0]),
        other @ (ListEntry::Blob { .. }
        | ListEntry::VersionsOnly { .. }
        | ListEntry::Uncommitted { .. }
        | ListEntry::Prefix { .. }) => show(other),
    }
}

fn uploads(limit: usize) -> ListUploads {
    ListUploads { list: ListBlobs { limit, ..list() }, after: None }
}

fn part_of(key: &BlobKey, upload: UploadId, n: u32) -> Write {
    let (content, crc64) = inline(b"part");
    Write::StagePart(StagePart {
        key: key.clone(),
        upload,
        number: PartNumber::new(n).unwrap(),
        encryption: EncryptionClaim::Given(None),
        content,
        crc64,
        checksums: Vec::new(),
    })
}

fn complete(key: &BlobKey, upload: UploadId) -> Write {
    let parts = ListParts { key: key.clone(), upload, after: 0, limit: 1 };
    let mut p = partition();
    p.must(&start(key, upload));
    p.must(&part_of(key, upload, 1));
    let ReadReply::Parts(page) = p.read(&Read::Parts(parts)).unwrap() else { panic!("no parts") };
    let tag = page.parts[0].tag;
    Write::CompleteUpload(Box::new(CompleteUpload {
        key: key.clone(),
        upload,
        guard: Guard::default(),
        parts: vec![NamedPart { number: PartNumber::new(1).unwrap(), tag, checksum: None }],
        part_len_min: PART_BYTES_MIN,
        len: None,
        checksum: None,
        coverage: None,
    }))
}

/// Uploads among blobs, staged blocks, parts and completed uploads.
fn mixed() -> Partition {
    let mut p = partition();
    for name in ["a", "d/1", "d/2", "e"] {
        for n in [2, 1] {
            p.must(&start(&key(name), id(n)));
            for part in 1..=40 {
                p.must(&part_of(&key(name), id(n), part));
            }
        }
    }
    for name in ["a", "b", "d/2", "f"] {
        for n in 0..40 {
            p.must(&stage(&key(name), &format!("{n:02}"), inline(b"b")));
        }
    }
    for name in ["c", "d/2"] {
        p.must(&start(&key(name), id(3)));
        p.must(&part_of(&key(name), id(3), 1));
        p.must(&complete(&key(name), id(3)));
    }
    p.must(&Write::PutBlob(put(&key("g"), inline(b"g"))));
    p
}

#[test]
fn uploads_come_by_name_and_then_by_id() {
    let p = mixed();
    let expected = ["a#1", "a#2", "d/1#1", "d/1#2", "d/2#1", "d/2#2", "e#1", "e#2"];
    for limit in [1, 2, 3, 8, 100] {
        assert_eq!(all(&p, &uploads(limit)), expected, "{limit}");
    }
    let of_prefix =
        ListUploads { list: ListBlobs { prefix: "d/".to_owned(), ..uploads(3).list }, after: None };
    assert_eq!(all(&p, &of_prefix), expected[2..6]);
    let folded = ListUploads {
        list: ListBlobs { delimiter: Some("/".to_owned()), ..uploads(1).list },
        after: None,
    };
    assert_eq!(all(&p, &folded), ["a#1", "a#2", "d/>", "e#1", "e#2"]);
}

#[test]
fn a_page_ends_only_where_more_uploads_follow() {
    let p = mixed();
    let ReadReply::Blobs(page) = p.read(&Read::Uploads(uploads(8))).unwrap() else {
        panic!("not a page")
    };
    assert_eq!((page.entries.len(), page.next), (8, None), "blocks follow, but no uploads");
}

#[test]
fn a_list_begins_after_its_marker() {
    let p = mixed();
    let after = |name: &str, upload: Option<UploadId>| {
        let name = BlobName::new(name).unwrap();
        all(&p, &ListUploads { after: Some(UploadMarker { name, upload }), ..uploads(3) })
    };
    assert_eq!(after("a", None)[0], "d/1#1");
    assert_eq!(after("a", Some(id(1)))[0], "a#2");
    assert_eq!(after("a", Some(id(2)))[0], "d/1#1");
    assert_eq!(after("a", Some(id(0)))[0], "a#1");
    assert_eq!(after("c", Some(id(0)))[0], "d/1#1", "no upload of the marker's blob");
    assert_eq!(after("e", Some(id(1))), ["e#2"]);
    assert_eq!(after("z", None), [""; 0]);
}

/// A list that goes on after the marker of any position shows the same as one from the position.
#[test]
fn marker_of_a_position_goes_on_as_the_position_does() {
    let p = mixed();
    let rows: Vec<Bytes> = p
        .memory
        .rows
        .keys()
        .filter(|(family, _)| *family == crate::index::rows::Family::Staged)
        .flat_map(|(_, row)| [row.clone(), Bytes::from([row.as_ref(), &[0]].concat())])
        .collect();
    let ends = ["a", "d/2"]
        .map(|name| super::super::keys::after_upload(&RoutingKey::blob(&key(name)), id(1)));
    for position in rows.into_iter().step_by(7).chain(ends) {
        let after = super::super::upload_list::upload_marker_before(&position, Collation::Utf16);
        assert!(after.is_some());
        let from = ListBlobs { from: Some(position), ..uploads(100).list };
        let by_position = ListUploads { list: from, after: None };
        let by_marker = ListUploads { after, ..uploads(100) };
        assert_eq!(all(&p, &by_marker), all(&p, &by_position));
    }
    let short = Bytes::from_static(b"short");
    assert_eq!(super::super::upload_list::upload_marker_before(&short, Collation::Utf16), None);
}

#[test]
fn lists_end_at_the_partition_and_say_where_to_go_on() {
    let whole = mixed();
    let (blob, mut low) = (RoutingKey::blob(&key("d/2")), mixed());
    low.memory.range = KeyRange::new(RoutingKey::min(), Some(blob.clone()));
    let ReadReply::Blobs(page) = low.read(&Read::Uploads(uploads(100))).unwrap() else {
        panic!("not a page")
    };
    assert_eq!(page.entries.len(), 4);
    assert_eq!(page.next.as_ref(), Some(blob.as_bytes()));
    let rest =
        ListUploads { list: ListBlobs { from: page.next, ..uploads(100).list }, after: None };
    assert_eq!(all(&whole, &rest), ["d/2#1", "d/2#2", "e#1", "e#2"]);
}

#[test]
fn uploads_do_not_expire_but_completed_ones_do() {
    let p = mixed();
    let expired = |before, limit| {
        let (mut found, mut from) = (Vec::new(), Some(Bytes::new()));
        while let Some(start) = from {
            let read = Read::Expired { from: start, before, limit };
            let ReadReply::Expired(page) = p.read(&read).unwrap() else { panic!("not expired") };
            assert!(page.blobs.len() <= limit);
            found.extend(page.blobs.iter().map(|blob| blob.key.name(Collation::Utf16).unwrap()));
            from = page.next;
        }
        found
    };
    for limit in [1, 2, 99] {
        assert_eq!(expired(p.now.next(), limit), ["a", "b", "c", "d/2", "f"], "{limit}");
    }
    assert_eq!(expired(Timestamp::ZERO, 9), [""; 0]);
    let mut p = p;
    for name in ["a", "b", "c", "d/2", "e", "f"] {
        let key = RoutingKey::blob(&key(name));
        p.must(&Write::ExpireStaged { key, before: p.now.next() });
    }
    assert_eq!(all(&p, &uploads(100)).len(), 8, "uploads stay");
    assert_eq!(p.block_list(&key("a")).unwrap_err(), Error::Refused(Refused::BlobNotFound));
}
