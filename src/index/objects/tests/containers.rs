//! Accounts and containers.

use bytes::Bytes;

use super::support::*;
use crate::index::api::*;
use crate::index::objects::fake::Partition;
use crate::index::record::AccountRecord;
use crate::index::record::UserKey;
use crate::index::record::UserRecord;
use crate::types::*;

fn name(text: &str) -> ContainerName {
    ContainerName::new(text).unwrap()
}

fn names(p: &Partition, prefix: &str, limit: usize) -> Vec<String> {
    let mut found = Vec::new();
    let mut from = None;
    loop {
        let list = ListContainers {
            account: ACCOUNT,
            prefix: prefix.to_owned(),
            from,
            limit,
            deleted: false,
        };
        let ReadReply::Containers(page) = p.read(&Read::Containers(list)).unwrap() else {
            panic!("not a page")
        };
        assert!(page.entries.len() <= limit);
        found.extend(page.entries.into_iter().map(|e| e.name.into_string()));
        from = page.next;
        if from.is_none() {
            return found;
        }
    }
}

#[test]
fn account_made_twice_stays_the_first() {
    let mut p = partition();
    let name = AccountName::new("abc").unwrap();
    assert_eq!(
        p.read(&Read::Account(name.clone())).unwrap_err(),
        Error::Refused(Refused::AccountNotFound)
    );
    let make =
        |id| Write::CreateAccount { name: name.clone(), id: AccountId::new(id), anonymous: false };
    let first = p.must(&make(5));
    assert_eq!(p.must(&make(6)), first);
    let ReadReply::Account(record) = p.read(&Read::Account(name.clone())).unwrap() else {
        panic!("not an account")
    };
    assert_eq!(record.id.get(), 5);
}

#[test]
fn accounts_change_are_listed_in_pages_and_removed_by_id() {
    let mut p = partition();
    let account = |name: &str| AccountName::new(name).unwrap();
    for (id, name) in [(7, "zeta"), (8, "alpha"), (9, "mid")] {
        p.must(&Write::CreateAccount {
            name: account(name),
            id: AccountId::new(id),
            anonymous: false,
        });
    }
    // A container of an account is no account.
    p.must(&create_container("abc", 1));
    let keys = [b"first", b"other"].map(|key| Secret::Sealed(Bytes::from_static(key))).to_vec();
    for change in [AccountChange::Keys(keys.clone()), AccountChange::Anonymous(false)] {
        p.must(&Write::UpdateAccount { name: account("mid"), change });
    }
    let list = |p: &Partition, limit| {
        let (mut found, mut from) = (Vec::new(), None);
        loop {
            let read = Read::Accounts(ListAccounts { from, limit });
            let ReadReply::Accounts(page) = p.read(&read).unwrap() else { panic!("no page") };
            assert!(page.entries.len() <= limit);
            found.extend(page.entries);
            from = page.next;
            if from.is_none() {
                return found;
            }
        }
    };
    for limit in [1, 2, 10] {
        let found = list(&p, limit);
        let names: Vec<_> = found.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["alpha", "mid", "zeta"], "{limit} a page");
        assert_eq!((&found[1].record.keys, found[1].record.anonymous), (&keys, false));
    }
    let role = RoleAssignment {
        issuer: "i".to_owned(),
        kind: PrincipalKind::Subject,
        principal: "s".to_owned(),
        role: Role::Reader,
        container: None,
    };
    let elsewhere = Some(name("abc"));
    let elsewhere = RoleAssignment { container: elsewhere, ..role.clone() };
    let mut assigned = |change| {
        p.must(&Write::UpdateAccount { name: account("mid"), change });
        list(&p, 10).remove(1).record.assignments
    };
    let given = vec![role.clone()];
    let both = vec![role.clone(), elsewhere.clone()];
    assert_eq!(assigned(AccountChange::Assign(role.clone())), given);
    assert_eq!(assigned(AccountChange::Assign(role.clone())), given, "once");
    assert_eq!(assigned(AccountChange::Unassign(elsewhere.clone())), given);
    assert_eq!(assigned(AccountChange::Assign(elsewhere.clone())), both);
    assert_eq!(assigned(AccountChange::Unassign(role)), [elsewhere]);
    assert_users(&mut p);
    let delete = |id| Write::DeleteAccount { name: account("mid"), id: AccountId::new(id) };
    assert_eq!(
        p.write(&delete(8)).unwrap_err(),
        Error::Refused(Refused::AccountNotFound),
        "another account"
    );
    p.must(&delete(9));
    assert_eq!(p.write(&delete(9)).unwrap_err(), Error::Refused(Refused::AccountNotFound));
    assert_eq!(list(&p, 10).len(), 2);
}

#[test]
fn container_lives_once_under_its_name() {
    let mut p = partition();
    let get = |p: &Partition| p.read(&Read::Container(ACCOUNT, name("abc")));
    assert_eq!(get(&p).unwrap_err(), Error::Refused(Refused::ContainerNotFound));
    p.must(&create_container("abc", 1));
    assert_eq!(
        p.write(&create_container("abc", 2)).unwrap_err(),
        Error::Refused(Refused::ContainerExists)
    );
    let metadata = Metadata::new(vec![("k".to_owned(), "v".to_owned())]).unwrap();
    let update = UpdateContainer {
        account: ACCOUNT,
        name: name("abc"),
        guard: Guard::default(),
        change: ContainerChange::Metadata(metadata.clone()),
    };
    p.must(&Write::UpdateContainer(update.clone()));
    let ReadReply::Container(record) = get(&p).unwrap() else { panic!("not a container") };
    assert_eq!((record.metadata, record.last_modified), (metadata, p.now));
    assert!(record.created < record.last_modified);

    let mut delete = DeleteContainer {
        account: ACCOUNT,
        name: name("abc"),
        guard: Guard::default(),
        closed: None,
        restorable_for: None,
    };
    delete.guard.conditions.if_unmodified_since = Some(Timestamp::ZERO);
    let failed = Error::Refused(Refused::Condition(Outcome::Failed));
    assert_eq!(p.write(&Write::DeleteContainer(delete.clone())).unwrap_err(), failed);
    delete.guard = Guard::default();
    p.must(&Write::DeleteContainer(delete.clone()));
    assert_eq!(
        p.write(&Write::DeleteContainer(delete)).unwrap_err(),
        Error::Refused(Refused::ContainerNotFound)
    );
    assert_eq!(
        p.write(&Write::UpdateContainer(update)).unwrap_err(),
        Error::Refused(Refused::ContainerNotFound)
    );
    p.must(&create_container("abc", 2));
    let ReadReply::DeadContainers(dead) = p.read(&Read::DeadContainers).unwrap() else {
        panic!("not dead containers")
    };
    assert_eq!(dead.len(), 1);
    assert_eq!((dead[0].account, dead[0].container), (ACCOUNT, ContainerId::new(1)));
}

#[test]
fn containers_list_in_pages_by_prefix() {
    let mut p = partition();
    let all = ["$root", "aaa", "aab", "ab-c", "bbb"];
    for (n, name) in (1..).zip(all) {
        p.must(&create_container(name, n));
    }
    for limit in 1..6 {
        assert_eq!(names(&p, "", limit), all);
        assert_eq!(names(&p, "a", limit), ["aaa", "aab", "ab-c"]);
        assert_eq!(names(&p, "aab", limit), ["aab"]);
        assert!(names(&p, "zzz", limit).is_empty());
    }
}

/// Users of the account `mid` are added, replaced, sealed again and removed with their roles.
fn assert_users(p: &mut Partition) {
    let mid = || AccountName::new("mid").unwrap();
    let secret = |bytes: &'static [u8]| Secret::Sealed(Bytes::from_static(bytes));
    let user = |name: &str, id: &str, sealed| UserRecord {
        name: UserName::new(name).unwrap(),
        display: "U".to_owned(),
        canonical: "c".to_owned(),
        created: Timestamp::ZERO,
        keys: vec![UserKey {
            id: AccessKeyId::new(id).unwrap(),
            created: Timestamp::ZERO,
            secret: secret(sealed),
        }],
    };
    let role = |issuer: &str, principal: &str| RoleAssignment {
        issuer: issuer.to_owned(),
        kind: PrincipalKind::Subject,
        principal: principal.to_owned(),
        role: Role::Reader,
        container: None,
    };
    let ReadReply::Account(before) = p.read(&Read::Account(mid())).unwrap() else { panic!() };
    let mut changed = |change| {
        p.must(&Write::UpdateAccount { name: mid(), change });
        let ReadReply::Account(record) = p.read(&Read::Account(mid())).unwrap() else { panic!() };
        record
    };
    let put = |user| AccountChange::PutUser(Box::new(user));
    let shown = |record: &AccountRecord| -> Vec<String> {
        let show = |user: &UserRecord| format!("{} {}", user.name, user.keys[0].id);
        record.users().iter().map(show).collect()
    };
    let one = changed(put(user("a", "KEY1", b"1")));
    assert!(one.users()[0].created > Timestamp::ZERO, "the partition sets the time");
    assert_eq!(one.users()[0].created, one.users()[0].keys[0].created);
    assert_eq!(shown(&changed(put(user("b", "KEY2", b"2")))), ["a KEY1", "b KEY2"]);
    assert_eq!(shown(&changed(put(user("a", "KEY3", b"3")))), ["a KEY3", "b KEY2"]);
    let record = changed(AccountChange::Reseal(vec![(secret(b"3"), secret(b"4"))]));
    assert_eq!(record.users()[0].keys[0].secret, secret(b"4"));
    assert_eq!(record.secrets().filter(|kept| **kept == secret(b"4")).count(), 1);
    for (issuer, who) in [(USER_ISSUER, "a"), (USER_ISSUER, "b"), ("i", "a")] {
        changed(AccountChange::Assign(role(issuer, who)));
    }
    let record = changed(AccountChange::RemoveUser(UserName::new("a").unwrap()));
    assert_eq!(shown(&record), ["b KEY2"]);
    assert!(record.assignments.contains(&role("i", "a")), "a subject of that name keeps its role");
    assert!(!record.assignments.contains(&role(USER_ISSUER, "a")));
    changed(AccountChange::Unassign(role("i", "a")));
    let after = changed(AccountChange::RemoveUser(UserName::new("b").unwrap()));
    assert_eq!(after, before, "nothing is left");
}

#[test]
fn an_account_has_the_type_that_it_was_given() {
    let mut p = partition();
    let name = AccountName::new("abc").unwrap();
    let create =
        Write::CreateAccount { name: name.clone(), id: AccountId::new(1), anonymous: false };
    let WriteReply::Account(made) = p.must(&create) else { panic!("not an account") };
    assert_eq!(made.account_type(), AccountType::default());
    for (sku, kind) in [
        (Sku::PremiumLrs, AccountKind::StorageV2),
        (Sku::StandardLrs, AccountKind::StorageV2),
        (Sku::PremiumZrs, AccountKind::BlockBlobStorage),
    ] {
        let new = AccountType::new(sku, kind).unwrap();
        let change = AccountChange::Type(new);
        p.must(&Write::UpdateAccount { name: name.clone(), change });
        let WriteReply::Account(kept) = p.must(&create) else { panic!("not an account") };
        assert_eq!(kept.account_type(), new);
    }
}

#[test]
fn an_account_is_made_with_all_that_it_has_in_one_write() {
    let mut p = partition();
    let name = AccountName::new("abc").unwrap();
    let account_type = AccountType::new(Sku::PremiumLrs, AccountKind::StorageV2).unwrap();
    let of = |id, key: &str| SetUpAccount {
        name: name.clone(),
        id: AccountId::new(id),
        keys: vec![Secret::Plain(Bytes::copy_from_slice(key.as_bytes()))],
        delegation_secret: Secret::Plain(Bytes::from_static(b"delegation")),
        anonymous: true,
        account_type,
    };
    let set_up = |id, key| Write::SetUpAccount(of(id, key));
    let WriteReply::Account(made) = p.must(&set_up(1, "one")) else { panic!("no account") };
    let SetUpAccount { keys, delegation_secret, .. } = of(1, "one");
    assert_eq!((made.id, made.keys.clone(), made.anonymous), (AccountId::new(1), keys, true));
    assert_eq!(made.delegation_secret, Some(delegation_secret));
    assert_eq!(made.account_type(), account_type);
    let other = p.write(&set_up(2, "two")).unwrap_err();
    assert_eq!(other, Error::Refused(Refused::AccountNotFound), "sealed for another id");
    let WriteReply::Account(again) = p.must(&set_up(1, "two")) else { panic!("no account") };
    assert_eq!((again.created, again.keys), (made.created, of(1, "two").keys), "it keeps its row");
}

#[test]
fn versions_of_an_account_are_never_unset() {
    let mut p = partition();
    let name = AccountName::new("abc").unwrap();
    let create =
        Write::CreateAccount { name: name.clone(), id: AccountId::new(1), anonymous: false };
    p.must(&create);
    let mut set = |on| {
        let change = AccountChange::Versioning(on);
        let reply = p.must(&Write::UpdateAccount { name: name.clone(), change });
        let WriteReply::Account(record) = reply else { panic!("not an account") };
        record.versioning()
    };
    assert_eq!(set(false), None, "nothing to suspend");
    assert_eq!(set(true), Some(Versioning::Enabled));
    assert_eq!(set(false), Some(Versioning::Suspended));
    assert_eq!(set(true), Some(Versioning::Enabled));
}
