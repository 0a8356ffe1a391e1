use super::*;
use crate::types::Collation;
use crate::types::ContainerId;
use crate::types::CustomerKey;
use crate::types::EncryptionScope;
use crate::types::Timestamp;

fn container(scope: Option<(&str, bool)>) -> ContainerRecord {
    let now = Timestamp::from_ticks(1);
    ContainerRecord {
        encryption_scope: scope
            .map(|(name, deny_override)| EncryptionScope { name: name.to_owned(), deny_override }),
        ..ContainerRecord::new(ContainerId::new(1), Collation::Utf16, now)
    }
}

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn settled(
    scope: Option<(&str, bool)>,
    encryption: RequestEncryption,
) -> Result<RequestEncryption, Reason> {
    let mut precondition = Precondition { encryption, ..Precondition::default() };
    match settle(&container(scope), &mut precondition) {
        Ok(()) => Ok(precondition.encryption),
        Err(error) => Err(error.reason),
    }
}

#[test]
fn a_container_fills_in_and_may_insist_on_its_scope() {
    use RequestEncryption as R;
    let key = || R::Key(CustomerKey::from_base64(KEY).unwrap());
    let scope = |name: &str| R::Scope(name.to_owned());
    let forbidden = Err(Reason::RequestForbiddenByContainerEncryptionPolicy);
    for request in [R::Plain, key(), scope("a")] {
        assert_eq!(settled(None, request.clone()), Ok(request));
    }
    for deny in [false, true] {
        let own = Some(("own", deny));
        assert_eq!(settled(own, R::Plain), Ok(scope("own")));
        assert_eq!(settled(own, scope("own")), Ok(scope("own")));
        assert_eq!(settled(own, R::Unchecked), Ok(R::Unchecked));
        for request in [key(), scope("other")] {
            let taken = Ok(request.clone());
            assert_eq!(settled(own, request), if deny { forbidden.clone() } else { taken });
        }
    }
    let account = Some(("$account-encryption-key", true));
    assert_eq!(settled(account, R::Plain), Ok(R::Plain));
    assert_eq!(settled(account, key()), forbidden);
}
