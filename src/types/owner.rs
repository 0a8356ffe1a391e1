//! The ids under which S3 knows the owner of an account.

use sha2::Digest;
use sha2::Sha256;

use crate::types::AccountName;
use crate::types::UserName;

/// Digits of an account number.
const NUMBER_DIGITS: u32 = 12;

/// The ids of an account's root user. They are derived from the account's name, so that they are
/// the same in every store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerIds {
    /// The canonical user id: 64 hexadecimal digits.
    pub canonical: String,
    /// The account number: 12 decimal digits.
    pub number: String,
}

impl OwnerIds {
    /// Those of an account.
    #[must_use]
    pub fn of(account: &AccountName) -> Self {
        let digest = |label: &str| -> [u8; 32] {
            let mut hash = Sha256::new();
            hash.update(label.as_bytes());
            hash.update([0]);
            hash.update(account.as_str().as_bytes());
            hash.finalize().into()
        };
        let canonical = digest("canonical user id");
        let canonical = canonical.iter().map(|byte| format!("{byte:02x}")).collect();
        let [a, b, c, d, e, f, g, h, ..] = digest("account number");
        let number = u64::from_be_bytes([a, b, c, d, e, f, g, h]) % 10_u64.pow(NUMBER_DIGITS);
        Self { canonical, number: format!("{number:012}") }
    }

    /// The name of a user in the form of IAM.
    #[must_use]
    pub fn arn_of_user(account: &AccountName, user: &UserName) -> String {
        format!("arn:aws:iam::{}:user/{user}", Self::of(account).number)
    }

    /// The canonical id of a user of the configuration, derived from its names, so that it is the
    /// same in every store.
    #[must_use]
    pub fn of_configured_user(account: &AccountName, user: &UserName) -> String {
        let mut hash = Sha256::new();
        for text in ["canonical id of a user", account.as_str(), user.as_str()] {
            hash.update(text.as_bytes());
            hash.update([0]);
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients keep these ids in policies and scripts: they never change.
    #[test]
    fn ids_are_the_same_for_ever() {
        let ids = OwnerIds::of(&AccountName::new("devstoreaccount1").unwrap());
        assert_eq!(
            ids.canonical,
            "6660b3155a7ed8cd41e710e54cb90e16eb9e5a237308a6257ca66faec25ff166"
        );
        assert_eq!(ids.number, "351980825820");
        let (account, user) = (AccountName::new("abc").unwrap(), UserName::new("u").unwrap());
        let arn = OwnerIds::arn_of_user(&account, &user);
        assert_eq!(arn, format!("arn:aws:iam::{}:user/u", OwnerIds::of(&account).number));
        let of_user = OwnerIds::of_configured_user(&account, &user);
        assert_eq!(of_user.len(), 64);
        assert_ne!(of_user, OwnerIds::of(&account).canonical);
        assert_ne!(ids, OwnerIds::of(&AccountName::new("devstoreaccount2").unwrap()));
    }
}
