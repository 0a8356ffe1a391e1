//! Reads and writes, one of each variant at least; the writes are those with few bytes.

use super::*;

pub(in crate::index::api::tests) fn account_changes() -> Vec<AccountChange> {
    let properties = ServicePropertiesChange {
        logging: Some(Logging::default()),
        cors: Some(vec![CorsRule { max_age: 5, ..CorsRule::default() }]),
        default_version: Some(None),
        delete_retention_days: Some(Some(7)),
        website: Some(Some(Website::default())),
        ..ServicePropertiesChange::default()
    };
    vec![
        AccountChange::Properties(Box::new(properties)),
        AccountChange::Keys(vec![secret()]),
        AccountChange::Anonymous(true),
        AccountChange::Versioning(true),
        AccountChange::ContainerRetention(Some(7)),
        AccountChange::ObjectLock(true),
        AccountChange::Type(AccountType::default()),
        AccountChange::DelegationSecret(secret()),
        AccountChange::Reseal(vec![(Secret::Plain(Bytes::from_static(b"old")), secret())]),
        AccountChange::Assign(assignment()),
        AccountChange::Unassign(assignment()),
        AccountChange::PutUser(Box::new(user())),
        AccountChange::RemoveUser(UserName::new("u").unwrap()),
        AccountChange::AddScope(Box::new(ScopeRecord {
            name: "scope".to_owned(),
            created: Timestamp::ZERO,
            enabled: true,
            key: secret(),
        })),
        AccountChange::SwitchScope { name: "scope".to_owned(), enabled: false },
    ]
}

pub(in crate::index::api::tests) fn contents() -> Vec<NewContent> {
    let inline = || NewContent::Inline(Bytes::from_static(b"bytes"));
    let shared = NewContent::Shared(vec![location(0), location(1 << 40)]);
    vec![
        inline(),
        NewContent::Stored(vec![location(0)]),
        NewContent::Encrypted(NONCE, Box::new(inline())),
        NewContent::Authenticated(NONCE, Box::new(shared.clone())),
        NewContent::Authenticated(NONCE, Box::new(NewContent::Stored(Vec::new()))),
        shared,
    ]
}

/// Writes whose bytes are few.
pub(in crate::index::api::tests) fn small_writes() -> Vec<Write> {
    let put = |content| PutBlob {
        key: key(),
        guard: guard(),
        properties: BlobProperties::default(),
        metadata: metadata(),
        tags: tags(),
        kind: NewKind::Page { len: 512, sequence: 1 },
        content,
        crc64: Crc64::of(b"x"),
        tier: Some(AccessTier::Cool),
        fields: new_fields(),
    };
    let changes = account_changes().into_iter();
    let name = AccountName::new("account").unwrap();
    let change = |change| Write::UpdateAccount { name: name.clone(), change };
    let puts = contents().into_iter().map(|content| Write::PutBlob(put(content)));
    puts.chain(changes.map(change)).collect()
}

pub(in crate::index::api::tests) fn reads() -> Vec<Read> {
    let prefix = || "p".to_owned();
    let (account, limit, deleted) = (ACCOUNT, 5_000, true);
    let containers = ListContainers { account, prefix: prefix(), from: None, limit, deleted };
    let blob_read = ReadBlob {
        key: key(),
        revision: Revision::Snapshot(TIME),
        guard: guard_of_content(),
        range: ByteRange::new(1, Some(2)),
        pieces: true,
    };
    let pages = ReadPages {
        key: key(),
        revision: Revision::Current,
        since: Some(TIME),
        guard: Guard::default(),
        range: ByteRange::new(0, None),
        limit: 1,
    };
    let blobs = ListBlobs {
        delimiter: Some("/".to_owned()),
        from: Some(position()),
        ..ListBlobs::first_page(ACCOUNT, CONTAINER, Collation::Utf8, 7)
    };
    let references = ListReferences {
        from: ReferencePlace { key: position(), after: Some(location(1)) },
        ..ListReferences::all()
    };
    vec![
        Read::Account(AccountName::new("account").unwrap()),
        Read::Accounts(ListAccounts { from: Some(position()), limit: 1 }),
        Read::Container(ACCOUNT, container_name()),
        Read::Setting(ReadSetting {
            account: ACCOUNT,
            name: container_name(),
            kind: SettingKind::Cors,
        }),
        Read::Containers(containers),
        Read::Blob(blob_read),
        Read::BlockList(key(), Revision::Snapshot(TIME), guard()),
        Read::BlobParts(ReadBlobParts {
            key: key(),
            revision: Revision::Snapshot(TIME),
            guard: guard(),
            after: 7,
            limit: u32::MAX,
        }),
        Read::Pages(pages),
        Read::Blobs(blobs),
        Read::Parts(ListParts { key: key(), upload: upload_id(), after: 7, limit: 1 }),
        Read::Part(ReadPart {
            key: key(),
            revision: Revision::Snapshot(TIME),
            guard: guard(),
            number: PartNumber::new(7).unwrap(),
        }),
        Read::Uploads(ListUploads {
            list: ListBlobs::first_page(ACCOUNT, CONTAINER, Collation::Utf8, 7),
            after: Some(UploadMarker { name: key().name, upload: Some(upload_id()) }),
        }),
        Read::Tags(ListTags { from: position(), to: Some(Bytes::new()), limit: usize::MAX }),
        Read::CopyJobs { from: position(), limit: 1 },
        Read::TagWork { blob: Some(blob()), from: Bytes::new(), limit: 1 },
        Read::References(references),
    ]
    .into_iter()
    .chain(reads_of_sweeps())
    .collect()
}

fn reads_of_sweeps() -> [Read; 4] {
    [
        Read::Garbage { from: position(), limit: 1 },
        Read::DeadContainers,
        Read::Expired { from: position(), before: TIME, limit: 1 },
        Read::EndedDeletions { from: position(), now: TIME, limit: 1 },
    ]
}
