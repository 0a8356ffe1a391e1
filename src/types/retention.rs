//! Retention of blobs: until when a blob must not be removed or changed. Soft deletion: until when
//! a deleted blob can be restored.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::types::Timestamp;

const DAY: Duration = Duration::from_secs(86_400);

/// The retention of a version: it must neither be removed nor changed until a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// Whether the time may be shortened.
    pub mode: RetentionMode,
    /// Until when.
    pub until: Timestamp,
}

/// Whether a retention may be shortened or removed. The order of the variants is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetentionMode {
    /// By principals with a separate permission: S3's `GOVERNANCE`, Blob's `Unlocked`.
    Unlocked,
    /// By no principal: S3's `COMPLIANCE`, Blob's `Locked`.
    Locked,
}

impl Retention {
    /// Whether it protects at this time.
    #[must_use]
    pub fn is_active(&self, now: Timestamp) -> bool {
        now < self.until
    }
}

/// The protection by object lock that a request sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockClaim {
    /// The retention of the version that it makes; `None` for the default of the container.
    pub retention: Option<Retention>,
    /// Whether the version that it makes is under a legal hold; `None` if it does not say.
    pub legal_hold: Option<bool>,
    /// Whether it may remove a version under a retention that is not locked, or shorten that.
    pub bypass: bool,
}

impl LockClaim {
    /// Whether it asks for protection of the version that it makes.
    #[must_use]
    pub const fn protects(&self) -> bool {
        self.retention.is_some() || self.legal_hold.is_some()
    }
}

/// The object lock of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectLock {
    /// The retention of new blobs whose request names none.
    pub default: Option<DefaultRetention>,
}

/// The retention that a container gives to new blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultRetention {
    /// Whether the retention may be shortened or removed.
    pub mode: RetentionMode,
    /// For how long.
    pub period: RetentionPeriod,
}

impl DefaultRetention {
    /// The retention of a blob that is written at this time, until the end of a second.
    #[must_use]
    pub fn from(self, now: Timestamp) -> Retention {
        let until = match self.period {
            RetentionPeriod::Days(days) => now.plus(DAY.saturating_mul(days)),
            RetentionPeriod::Years(years) => now.plus_years(years),
        };
        Retention { mode: self.mode, until: until.seconds_up() }
    }
}

/// The length of a retention. The order of the variants is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetentionPeriod {
    /// A number of days.
    Days(u32),
    /// A number of years.
    Years(u32),
}

/// When something was deleted that can be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftDelete {
    /// When it was deleted.
    pub since: Timestamp,
    /// Until when it can be restored.
    pub until: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_days_and_calendar_years() {
        let made = Timestamp::from_iso("2024-02-29T10:00:00.5Z").unwrap();
        for (period, until) in [
            (RetentionPeriod::Days(1), "2024-03-01T10:00:01.0000000Z"),
            (RetentionPeriod::Days(366), "2025-03-01T10:00:01.0000000Z"),
            // There is no 29 February then.
            (RetentionPeriod::Years(1), "2025-03-01T10:00:01.0000000Z"),
            (RetentionPeriod::Years(4), "2028-02-29T10:00:01.0000000Z"),
            (RetentionPeriod::Years(100), "2124-02-29T10:00:01.0000000Z"),
        ] {
            let mode = RetentionMode::Unlocked;
            let retention = DefaultRetention { mode, period }.from(made);
            assert_eq!(retention.until.to_iso(), until, "{period:?}");
            assert!(retention.is_active(made) && !retention.is_active(retention.until));
        }
    }
}
