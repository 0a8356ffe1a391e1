//! Versions of deleted containers: the time of the deletion, as 100 ns since 1601, 16 hexadecimal
//! digits. Source: "List Containers", "Restore Container"; recorded answers of the service.

use crate::types::Timestamp;

/// Ticks from year 1 to year 1601.
const TICKS_TO_1601: u64 = 504_911_232_000_000_000;

/// The version of a container that was deleted at this time.
pub(super) fn version_of(since: Timestamp) -> String {
    format!("{:016X}", since.ticks().saturating_sub(TICKS_TO_1601))
}

/// The time of the deletion; `None` if the text is not a version.
pub(super) fn time_of(version: &str) -> Option<Timestamp> {
    let digits = version.len() == 16 && version.bytes().all(|byte| byte.is_ascii_hexdigit());
    let ticks = digits.then(|| u64::from_str_radix(version, 16).ok())??;
    ticks.checked_add(TICKS_TO_1601).map(Timestamp::from_ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_times_of_deletions() {
        // Recorded: this version was deleted at 02:40:44.
        let time = time_of("01D69540C360196E").unwrap();
        assert_eq!(time.to_string(), "Mon, 28 Sep 2020 02:40:44 GMT");
        assert_eq!(version_of(time), "01D69540C360196E");
        for wrong in ["", "01D69540C360196", "+1D69540C360196E", "FFFFFFFFFFFFFFFF", "yesterday"] {
            assert_eq!(time_of(wrong), None, "{wrong}");
        }
    }
}
