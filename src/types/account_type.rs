//! Kinds and SKUs of accounts, which decide the access tiers of their blobs.
//!
//! Source: "Get Account Information", "SKU types" of the storage resource provider.

use serde::Deserialize;
use serde::Serialize;
use thiserror::Error as ThisError;

use crate::types::AccessTier;

/// The SKU of an account: performance and redundancy. Here it is a label, but for the tiers. The
/// order of the variants is on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Sku {
    /// `Standard_LRS`.
    #[default]
    StandardLrs,
    /// `Standard_GRS`.
    StandardGrs,
    /// `Standard_RAGRS`.
    StandardRagrs,
    /// `Standard_ZRS`.
    StandardZrs,
    /// `Premium_LRS`.
    PremiumLrs,
    /// `Premium_ZRS`.
    PremiumZrs,
}

impl Sku {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::StandardLrs,
        Self::StandardGrs,
        Self::StandardRagrs,
        Self::StandardZrs,
        Self::PremiumLrs,
        Self::PremiumZrs,
    ];

    /// Its value in `x-ms-sku-name`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StandardLrs => "Standard_LRS",
            Self::StandardGrs => "Standard_GRS",
            Self::StandardRagrs => "Standard_RAGRS",
            Self::StandardZrs => "Standard_ZRS",
            Self::PremiumLrs => "Premium_LRS",
            Self::PremiumZrs => "Premium_ZRS",
        }
    }

    /// Parses a name, in any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sku| sku.as_str().eq_ignore_ascii_case(text))
    }

    const fn is_premium(self) -> bool {
        matches!(self, Self::PremiumLrs | Self::PremiumZrs)
    }
}

/// The kind of an account. The order of the variants is on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AccountKind {
    /// `StorageV2`.
    #[default]
    StorageV2,
    /// `Storage`: the first version of general-purpose accounts.
    Storage,
    /// `BlobStorage`.
    BlobStorage,
    /// `BlockBlobStorage`.
    BlockBlobStorage,
}

impl AccountKind {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::StorageV2, Self::Storage, Self::BlobStorage, Self::BlockBlobStorage];

    /// Its value in `x-ms-account-kind`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StorageV2 => "StorageV2",
            Self::Storage => "Storage",
            Self::BlobStorage => "BlobStorage",
            Self::BlockBlobStorage => "BlockBlobStorage",
        }
    }

    /// Parses a name, in any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(text))
    }

    /// The SKUs that accounts of this kind have.
    #[must_use]
    pub const fn skus(self) -> &'static [Sku] {
        match self {
            Self::StorageV2 | Self::Storage => &Sku::ALL,
            Self::BlobStorage => &[Sku::StandardLrs, Sku::StandardGrs, Sku::StandardRagrs],
            Self::BlockBlobStorage => &[Sku::PremiumLrs, Sku::PremiumZrs],
        }
    }
}

/// Kind and SKU of an account: a pair that the service has. The default is a general-purpose
/// account of version 2, locally redundant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(Sku, AccountKind)")]
pub struct AccountType {
    sku: Sku,
    kind: AccountKind,
}

/// The service has no account of this kind with this SKU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[error(
    "an account of kind {} has no SKU {}, only {}",
    .kind.as_str(),
    .sku.as_str(),
    .kind.skus().iter().map(|sku| sku.as_str()).collect::<Vec<_>>().join(", ")
)]
pub struct NoSuchType {
    sku: Sku,
    kind: AccountKind,
}

/// The access tiers that blobs of an account may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TierFamily {
    /// Hot, Cool, Cold, Archive and Smart, for block blobs.
    Standard,
    /// P4 to P80, for page blobs.
    PremiumPages,
    /// None.
    Untiered,
}

impl TierFamily {
    /// Whether blobs may have this tier.
    #[must_use]
    pub fn has(self, tier: AccessTier) -> bool {
        match self {
            Self::Standard => tier.bytes_max().is_none(),
            Self::PremiumPages => tier.bytes_max().is_some(),
            Self::Untiered => false,
        }
    }
}

impl AccountType {
    /// An account of this kind with this SKU.
    ///
    /// # Errors
    /// [`NoSuchType`].
    pub fn new(sku: Sku, kind: AccountKind) -> Result<Self, NoSuchType> {
        if kind.skus().contains(&sku) {
            Ok(Self { sku, kind })
        } else {
            Err(NoSuchType { sku, kind })
        }
    }

    /// Its SKU.
    #[must_use]
    pub const fn sku(self) -> Sku {
        self.sku
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(self) -> AccountKind {
        self.kind
    }

    /// The access tiers that its blobs may have. Source: "Set Blob Tier", which permits page blobs
    /// of premium accounts and block blobs of Blob storage and general-purpose v2 accounts.
    #[must_use]
    pub const fn tiers(self) -> TierFamily {
        match (self.kind, self.sku.is_premium()) {
            (AccountKind::StorageV2 | AccountKind::Storage, true) => TierFamily::PremiumPages,
            (AccountKind::StorageV2 | AccountKind::BlobStorage, false) => TierFamily::Standard,
            (AccountKind::Storage, false)
            | (AccountKind::BlobStorage, true)
            | (AccountKind::BlockBlobStorage, _) => TierFamily::Untiered,
        }
    }
}

impl TryFrom<(Sku, AccountKind)> for AccountType {
    type Error = NoSuchType;

    fn try_from((sku, kind): (Sku, AccountKind)) -> Result<Self, NoSuchType> {
        Self::new(sku, kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case() {
        for sku in Sku::ALL {
            assert_eq!(Sku::parse(&sku.as_str().to_lowercase()), Some(sku));
        }
        for kind in AccountKind::ALL {
            assert_eq!(AccountKind::parse(&kind.as_str().to_uppercase()), Some(kind));
        }
        assert_eq!((Sku::parse("Standard"), AccountKind::parse("FileStorage")), (None, None));
    }

    #[test]
    fn only_pairs_of_the_service_are_made() {
        let tiers = |sku, kind| AccountType::new(sku, kind).ok().map(AccountType::tiers);
        for (sku, kind, expected) in [
            (Sku::StandardLrs, AccountKind::StorageV2, Some(TierFamily::Standard)),
            (Sku::StandardRagrs, AccountKind::BlobStorage, Some(TierFamily::Standard)),
            (Sku::StandardZrs, AccountKind::BlobStorage, None),
            (Sku::PremiumLrs, AccountKind::BlobStorage, None),
            (Sku::StandardGrs, AccountKind::Storage, Some(TierFamily::Untiered)),
            (Sku::PremiumLrs, AccountKind::Storage, Some(TierFamily::PremiumPages)),
            (Sku::PremiumLrs, AccountKind::StorageV2, Some(TierFamily::PremiumPages)),
            (Sku::StandardLrs, AccountKind::BlockBlobStorage, None),
            (Sku::PremiumZrs, AccountKind::BlockBlobStorage, Some(TierFamily::Untiered)),
        ] {
            assert_eq!(tiers(sku, kind), expected, "{sku:?} {kind:?}");
        }
        let refused = AccountType::new(Sku::StandardLrs, AccountKind::BlockBlobStorage);
        let text = refused.unwrap_err().to_string();
        assert!(text.ends_with("only Premium_LRS, Premium_ZRS"), "{text}");
    }

    #[test]
    fn a_pair_that_the_service_has_not_is_not_decoded() {
        let pair = |sku: Sku, kind: AccountKind| postcard::to_stdvec(&(sku, kind)).unwrap();
        let made = AccountType::new(Sku::PremiumZrs, AccountKind::BlockBlobStorage).unwrap();
        let bytes = pair(made.sku(), made.kind());
        assert_eq!(postcard::to_stdvec(&made).unwrap(), bytes);
        assert_eq!(postcard::from_bytes::<AccountType>(&bytes), Ok(made));
        let none = pair(Sku::StandardLrs, AccountKind::BlockBlobStorage);
        postcard::from_bytes::<AccountType>(&none).unwrap_err();
    }

    #[test]
    fn families_divide_the_tiers() {
        for (family, hot, smart, p4) in [
            (TierFamily::Standard, true, true, false),
            (TierFamily::PremiumPages, false, false, true),
            (TierFamily::Untiered, false, false, false),
        ] {
            let has =
                [AccessTier::Hot, AccessTier::Smart, AccessTier::P4].map(|tier| family.has(tier));
            assert_eq!(has, [hot, smart, p4], "{family:?}");
        }
    }
}
