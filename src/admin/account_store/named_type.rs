//! Kinds and SKUs of accounts.

use serde::Deserialize;
use serde::Deserializer;
use serde::de::Error as _;

use super::AccountStore;
use super::StoreError;
use super::Turn;
use crate::index::AccountChange;
use crate::index::AccountRecord;
use crate::types::AccountKind;
use crate::types::AccountName;
use crate::types::AccountType;
use crate::types::Sku;
use crate::types::TierFamily;

/// The kind and SKU that a command names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedType {
    /// The SKU.
    pub sku: Option<Sku>,
    /// The kind.
    pub kind: Option<AccountKind>,
}

impl NamedType {
    /// Whether the command names any of both.
    #[must_use]
    pub const fn is_any(self) -> bool {
        self.sku.is_some() || self.kind.is_some()
    }

    /// The type of an account that was of type `before`.
    pub(super) fn after(self, before: AccountType) -> Result<AccountType, StoreError> {
        let Self { sku, kind } = self;
        let made = AccountType::new(sku.unwrap_or(before.sku()), kind.unwrap_or(before.kind()));
        Ok(made?)
    }
}

impl AccountStore {
    /// Checks that an account may get the type that a command names, and returns it. Where blobs
    /// may have tiers they keep them: the type of other tiers is for accounts without containers.
    pub(super) async fn checked_type(
        &self,
        name: &AccountName,
        record: &AccountRecord,
        named: NamedType,
    ) -> Result<AccountType, StoreError> {
        let before = record.account_type();
        let after = named.after(before)?;
        let tiers = before.tiers();
        if tiers != TierFamily::Untiered
            && tiers != after.tiers()
            && let Some(container) = self.any_container(record.id).await?
        {
            let container = container.name.as_str().to_owned();
            return Err(StoreError::OtherTiers(name.as_str().to_owned(), container));
        }
        Ok(after)
    }

    /// Sets kind and SKU.
    pub(super) async fn set_type(
        &self,
        turn: &Turn,
        name: &AccountName,
        new: AccountType,
    ) -> Result<(), StoreError> {
        self.change(turn, name, AccountChange::Type(new)).await?;
        let (sku, kind) = (new.sku().as_str(), new.kind().as_str());
        tracing::info!(account = name.as_str(), sku, kind, "kind and SKU set");
        Ok(())
    }
}

/// Decodes a SKU that may be left out.
///
/// # Errors
/// What is no SKU.
pub(in crate::admin) fn sku<'de, D: Deserializer<'de>>(
    decoder: D,
) -> Result<Option<Sku>, D::Error> {
    let Some(text) = Option::<String>::deserialize(decoder)? else { return Ok(None) };
    let unknown = || {
        let known = Sku::ALL.map(Sku::as_str).join(", ");
        D::Error::custom(format!("`{text}` is no SKU of an account: {known}"))
    };
    Sku::parse(&text).map(Some).ok_or_else(unknown)
}

/// Decodes a kind that may be left out.
///
/// # Errors
/// What is no kind.
pub(in crate::admin) fn kind<'de, D: Deserializer<'de>>(
    decoder: D,
) -> Result<Option<AccountKind>, D::Error> {
    let Some(text) = Option::<String>::deserialize(decoder)? else { return Ok(None) };
    let unknown = || {
        let known = AccountKind::ALL.map(AccountKind::as_str).join(", ");
        D::Error::custom(format!("`{text}` is no kind of account: {known}"))
    };
    AccountKind::parse(&text).map(Some).ok_or_else(unknown)
}
