//! S3's tag of content, and the fields of objects.

use super::support::*;
use crate::index::api::*;
use crate::types::*;

fn with_md5(name: &str, bytes: &[u8]) -> PutBlob {
    let content_md5 = Some(Md5::of(bytes)).into();
    PutBlob {
        properties: BlobProperties { content_md5, ..BlobProperties::default() },
        fields: NewBlobFields {
            content_tag: Some(ContentTag::PropertyMd5),
            ..NewBlobFields::default()
        },
        ..put(&key(name), inline(bytes))
    }
}

fn update(name: &str, change: BlobChange) -> Write {
    let (key, guard) = (key(name), Guard::default());
    Write::UpdateBlob(UpdateBlob { key, revision: Revision::Current, guard, change })
}

fn matching(if_match: EtagMatch) -> Guard {
    let conditions = Conditions { if_match: Some(if_match), ..Conditions::default() };
    Guard { conditions, ..Guard::default() }
}

#[test]
fn an_md5_that_was_computed_is_the_tag_whatever_a_client_sets() {
    let mut p = partition();
    let ours = ContentEtag::md5(Md5::of(b"content"));
    p.must(&Write::PutBlob(with_md5("a", b"content")));
    let etag = |p: &crate::index::objects::fake::Partition| {
        p.blob(&read(&key("a"))).unwrap().record.content_etag()
    };
    assert_eq!(etag(&p), ours);
    p.must(&update("a", BlobChange::Metadata(Metadata::default())));
    assert_eq!(etag(&p), ours);
    for md5 in [Some(Md5::of(b"content")), None, Some(Md5::of(b"other"))] {
        let properties = BlobProperties { content_md5: md5.into(), ..BlobProperties::default() };
        p.must(&update("a", BlobChange::Properties(properties)));
        assert_eq!(etag(&p), ours, "{md5:?} was set");
    }
    let mut list = commit(&key("b"), &[]);
    list.properties.content_md5 = Some(Md5::of(b"claimed")).into();
    p.must(&Write::CommitBlocks(list));
    let claimed = p.blob(&read(&key("b"))).unwrap().record;
    assert_eq!(claimed.content_etag().as_md5(), None, "an MD5 that a client set");
}

#[test]
fn tags_that_are_not_stored_change_with_the_content_alone() {
    let mut p = partition();
    let etag = |p: &crate::index::objects::fake::Partition, name| {
        p.blob(&read(&key(name))).unwrap().record.content_etag()
    };
    p.must(&stage(&key("list"), "1", inline(b"one")));
    p.must(&stage(&key("list"), "2", inline(b"two")));
    p.must(&Write::CommitBlocks(commit(&key("list"), &["1", "2"])));
    let first = etag(&p, "list");
    p.must(&update("list", BlobChange::Metadata(Metadata::default())));
    assert_eq!(etag(&p, "list"), first);
    p.must(&Write::CommitBlocks(commit(&key("list"), &["2", "1"])));
    assert_ne!(etag(&p, "list"), first);

    p.must(&make(&key("log"), NewKind::Append));
    let empty = etag(&p, "log");
    p.must(&Write::AppendBlock(append(&key("log"), inline(b"line"))));
    p.must(&Write::AppendBlock(append(&key("log"), inline(b"line"))));
    assert_ne!(etag(&p, "log"), empty);
    assert_eq!(etag(&p, "log").number(), Some(2));

    p.must(&make(&key("pages"), NewKind::Page { len: 512, sequence: 0 }));
    let empty = etag(&p, "pages");
    p.must(&update("pages", BlobChange::Metadata(Metadata::default())));
    assert_ne!(etag(&p, "pages"), empty, "only the commit is known of pages");
}

/// No checksum of content under a customer's key is kept.
#[test]
fn content_under_a_key_has_a_tag_of_its_commit() {
    let mut p = partition();
    let encryption = EncryptionClaim::Given(Some(Encryption::Customer([3; 32])));
    let guard = || Guard { encryption: encryption.clone(), ..Guard::default() };
    let list = || CommitBlocks { guard: guard(), ..commit(&key("a"), &[]) };
    p.must(&Write::CommitBlocks(list()));
    let look = ReadBlob { guard: guard(), ..read(&key("a")) };
    let first = p.blob(&look).unwrap().record.content_etag();
    let change = BlobChange::Metadata(Metadata::default());
    let set = UpdateBlob { key: key("a"), revision: Revision::Current, guard: guard(), change };
    p.must(&Write::UpdateBlob(set));
    assert_eq!(p.blob(&look).unwrap().record.content_etag(), first);
    p.must(&Write::CommitBlocks(list()));
    assert_ne!(p.blob(&look).unwrap().record.content_etag(), first);
}

#[test]
fn a_write_is_decided_by_the_tag_of_the_content() {
    let mut p = partition();
    let ours = EtagMatch::Content(vec![ContentEtag::md5(Md5::of(b"1"))]);
    let first = |if_match| PutBlob { guard: matching(if_match), ..with_md5("a", b"2") };
    let refused = |outcome| Err(Error::Refused(Refused::Condition(outcome)));
    let nothing = refused(Outcome::NothingToMatch);
    assert_eq!(p.write(&Write::PutBlob(first(ours.clone()))), nothing);
    assert_eq!(p.write(&Write::PutBlob(first(EtagMatch::Any))), nothing);
    p.must(&Write::PutBlob(with_md5("a", b"1")));
    p.must(&update("a", BlobChange::Metadata(Metadata::default())));
    p.must(&Write::PutBlob(first(ours.clone())));
    assert_eq!(p.write(&Write::PutBlob(first(ours))), refused(Outcome::Failed));
}

#[test]
fn fields_of_objects_are_kept_and_an_overwrite_drops_them() {
    let mut p = partition();
    let object = ObjectProperties {
        expires: Some("never".to_owned()),
        redirect: Some("/there".to_owned()),
        storage_class: Some("GLACIER_IR".to_owned()),
        owner: Some("somebody".to_owned()),
        acl: Some(CannedAcl::PublicRead),
    };
    let checksum = ChecksumValue::new(ChecksumAlgorithm::Sha1, &[5; 20]).unwrap().of_whole();
    let mut new = with_md5("a", b"1");
    new.fields.checksums = vec![checksum.clone()];
    new.fields.object = object.clone().if_any();
    p.must(&Write::PutBlob(new.clone()));
    let fields = p.blob(&read(&key("a"))).unwrap().record.fields.unwrap();
    assert_eq!((fields.object(), &fields.checksums), (object.if_any(), &vec![checksum]));
    p.must(&Write::PutBlob(put(&key("a"), inline(b"2"))));
    assert_eq!(p.blob(&read(&key("a"))).unwrap().record.fields, None);
    // The content of an append blob changes in place.
    p.must(&Write::PutBlob(PutBlob { kind: NewKind::Append, ..new }));
    let fields = p.blob(&read(&key("a"))).unwrap().record.fields.unwrap();
    assert_eq!((fields.content_tag, fields.checksums), (None, Vec::new()));
}
