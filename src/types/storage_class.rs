//! Storage classes of S3. Here they are names of Azure's access tiers.
//!
//! Decisions: ADR 0014, ADR 0034.

use crate::types::AccessTier;

/// A storage class of S3 objects. Source: S3, "Understanding and managing Amazon S3 storage
/// classes".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageClass {
    /// `STANDARD`, the default.
    Standard,
    /// `REDUCED_REDUNDANCY`.
    ReducedRedundancy,
    /// `INTELLIGENT_TIERING`.
    IntelligentTiering,
    /// `STANDARD_IA`.
    StandardIa,
    /// `ONEZONE_IA`.
    OnezoneIa,
    /// `GLACIER_IR`.
    GlacierIr,
    /// `GLACIER`: not readable until restored.
    Glacier,
    /// `DEEP_ARCHIVE`: not readable until restored.
    DeepArchive,
}

impl StorageClass {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Standard,
        Self::ReducedRedundancy,
        Self::IntelligentTiering,
        Self::StandardIa,
        Self::OnezoneIa,
        Self::GlacierIr,
        Self::Glacier,
        Self::DeepArchive,
    ];

    /// Its name in headers and lists.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "STANDARD",
            Self::ReducedRedundancy => "REDUCED_REDUNDANCY",
            Self::IntelligentTiering => "INTELLIGENT_TIERING",
            Self::StandardIa => "STANDARD_IA",
            Self::OnezoneIa => "ONEZONE_IA",
            Self::GlacierIr => "GLACIER_IR",
            Self::Glacier => "GLACIER",
            Self::DeepArchive => "DEEP_ARCHIVE",
        }
    }

    /// Parses a header: a storage class, or the name of an access tier of block blobs, in any
    /// case. `None` if it is neither.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let class = Self::ALL.into_iter().find(|class| class.as_str() == text);
        let tier = AccessTier::parse(text).filter(|tier| tier.bytes_max().is_none());
        class.or_else(|| tier.map(Self::of_tier))
    }

    /// The access tier of an object of this class.
    #[must_use]
    pub const fn tier(self) -> AccessTier {
        match self {
            Self::Standard | Self::ReducedRedundancy => AccessTier::Hot,
            Self::IntelligentTiering => AccessTier::Smart,
            Self::StandardIa | Self::OnezoneIa => AccessTier::Cool,
            Self::GlacierIr => AccessTier::Cold,
            Self::Glacier | Self::DeepArchive => AccessTier::Archive,
        }
    }

    /// Whether objects of this class are in `tier`. Releases before the tier Smart gave
    /// `INTELLIGENT_TIERING` the tier Hot.
    #[must_use]
    pub fn is_of(self, tier: AccessTier) -> bool {
        self.tier() == tier || self == Self::IntelligentTiering && tier == AccessTier::Hot
    }

    /// The class of a blob in this tier of which no class is known.
    #[must_use]
    pub const fn of_tier(tier: AccessTier) -> Self {
        match tier {
            AccessTier::Cool => Self::StandardIa,
            AccessTier::Cold => Self::GlacierIr,
            AccessTier::Archive => Self::Glacier,
            AccessTier::Smart => Self::IntelligentTiering,
            AccessTier::Hot
            | AccessTier::P4
            | AccessTier::P6
            | AccessTier::P10
            | AccessTier::P15
            | AccessTier::P20
            | AccessTier::P30
            | AccessTier::P40
            | AccessTier::P50
            | AccessTier::P60
            | AccessTier::P70
            | AccessTier::P80 => Self::Standard,
        }
    }

    /// The class that an object shows: the one that its row keeps, if that still is of its tier.
    #[must_use]
    pub fn shown(kept: Option<&str>, tier: AccessTier) -> Self {
        let kept = kept.and_then(Self::parse).filter(|class| class.is_of(tier));
        kept.unwrap_or(Self::of_tier(tier))
    }

    /// The text that the row of an object of this class keeps beside its tier; `None` if the tier
    /// determines the class.
    #[must_use]
    pub fn kept(self) -> Option<String> {
        (Self::of_tier(self.tier()) != self).then(|| self.as_str().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_tiers_name_each_other() {
        for class in StorageClass::ALL {
            assert_eq!(StorageClass::parse(class.as_str()), Some(class));
            let kept = class.kept();
            assert_eq!(StorageClass::shown(kept.as_deref(), class.tier()), class);
        }
        for (tier, class) in [
            ("Hot", StorageClass::Standard),
            ("cool", StorageClass::StandardIa),
            ("Cold", StorageClass::GlacierIr),
            ("ARCHIVE", StorageClass::Glacier),
            ("smart", StorageClass::IntelligentTiering),
        ] {
            assert_eq!(StorageClass::parse(tier), Some(class));
            assert_eq!((class.kept(), Some(class.tier())), (None, AccessTier::parse(tier)));
        }
        for unknown in ["", "standard", "SNOW", "OUTPOSTS", "P4", "STANDARD "] {
            assert_eq!(StorageClass::parse(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_class_of_another_tier_is_not_shown() {
        let shown = |tier| StorageClass::shown(Some("DEEP_ARCHIVE"), tier);
        assert_eq!(shown(AccessTier::Archive), StorageClass::DeepArchive);
        assert_eq!(shown(AccessTier::Hot), StorageClass::Standard);
        let intelligent = |tier| StorageClass::shown(Some("INTELLIGENT_TIERING"), tier);
        assert_eq!(intelligent(AccessTier::Hot), StorageClass::IntelligentTiering, "of old rows");
        assert_eq!(intelligent(AccessTier::Cool), StorageClass::StandardIa);
        assert_eq!(StorageClass::shown(Some("LATER"), AccessTier::Cool), StorageClass::StandardIa);
    }
}
