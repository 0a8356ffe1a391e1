//! Access control lists of containers and blobs.

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::types::*;

fn open_to(audience: Audience) -> Guard {
    Guard { open_to: Some(audience), ..Guard::default() }
}

fn read(p: &Partition, name: &str, guard: Guard) -> Result<(), Error> {
    let read =
        ReadBlob { key: key(name), revision: Revision::Current, guard, range: None, pieces: true };
    p.read(&Read::Blob(read)).map(drop)
}

fn set(p: &mut Partition, name: &str, acl: CannedAcl) {
    let change = BlobChange::Acl(acl);
    let (guard, revision) = (Guard::default(), Revision::Current);
    p.must(&Write::UpdateBlob(UpdateBlob { key: key(name), revision, guard, change }));
}

#[test]
fn reads_demand_what_the_list_of_the_blob_permits() {
    let mut p = partition();
    p.must(&Write::PutBlob(put(&key("a"), inline(b"x"))));
    let closed = || Err(Refused::NotOpen.into());
    let all = [Audience::Everyone, Audience::Authenticated];
    assert_eq!(all.map(|audience| read(&p, "a", open_to(audience))), [closed(), closed()]);
    assert_eq!(read(&p, "a", Guard::default()), Ok(()));
    for (acl, expected) in [
        (CannedAcl::PublicRead, [Ok(()), Ok(())]),
        (CannedAcl::AuthenticatedRead, [closed(), Ok(())]),
        (CannedAcl::BucketOwnerRead, [closed(), closed()]),
        (CannedAcl::Private, [closed(), closed()]),
    ] {
        set(&mut p, "a", acl);
        assert_eq!(all.map(|audience| read(&p, "a", open_to(audience))), expected, "{acl:?}");
    }
    // Before its conditions: they would reveal what the blob is.
    let conditions = Conditions { if_none_match: Some(EtagMatch::Any), ..Conditions::default() };
    let guard = Guard { conditions, ..open_to(Audience::Everyone) };
    assert_eq!(read(&p, "a", guard), closed());
    assert_eq!(read(&p, "none", open_to(Audience::Everyone)), closed(), "as one that is closed");
    assert_eq!(read(&p, "none", Guard::default()), Err(Refused::BlobNotFound.into()));
    set(&mut p, "a", CannedAcl::PublicRead);
    p.must(&Write::PutBlob(put(&key("a"), inline(b"secret"))));
    assert_eq!(read(&p, "a", open_to(Audience::Everyone)), closed(), "a new blob has its own list");
}

#[test]
fn a_list_leaves_tag_time_and_row_as_they_were() {
    let mut p = partition();
    p.must(&Write::PutBlob(put(&key("a"), inline(b"x"))));
    let rows = p.memory.rows.clone();
    set(&mut p, "a", CannedAcl::PublicRead);
    assert_ne!(p.memory.rows, rows);
    set(&mut p, "a", CannedAcl::Private);
    assert_eq!(p.memory.rows, rows, "private is what applies where none was set");
}

#[test]
fn the_last_change_of_access_of_a_container_counts() {
    let mut p = partition();
    let name = ContainerName::new("abc").unwrap();
    p.must(&Write::CreateContainer(CreateContainer {
        account: ACCOUNT,
        name: name.clone(),
        id: ContainerId::new(1),
        collation: Collation::Utf8,
        metadata: Metadata::default(),
        public_access: PublicAccess::Container,
        encryption_scope: None,
        owner: None,
        region: None,
        acl: CannedAcl::Private,
        object_lock: false,
    }));
    let mut change = |change| {
        let (name, guard) = (name.clone(), Guard::default());
        p.must(&Write::UpdateContainer(UpdateContainer { account: ACCOUNT, name, guard, change }));
        let read = p.read(&Read::Container(ACCOUNT, ContainerName::new("abc").unwrap()));
        let Ok(ReadReply::Container(record)) = read else { panic!("no container") };
        (record.public_access, record.acl())
    };
    let acl = ContainerChange::Acl(CannedAcl::PublicRead);
    assert_eq!(change(acl), (PublicAccess::Private, CannedAcl::PublicRead));
    let (public_access, policies) = (PublicAccess::Blob, Vec::new());
    let access = ContainerChange::Access { public_access, policies };
    assert_eq!(change(access), (PublicAccess::Blob, CannedAcl::Private));
    let acl = ContainerChange::Acl(CannedAcl::Private);
    assert_eq!(change(acl), (PublicAccess::Private, CannedAcl::Private));
}
