//! Times in query parameters and XML: ISO 8601 in UTC.

use std::fmt::Write;
use std::time::Duration;

use crate::types::Timestamp;

const SECONDS_PER_DAY: u64 = 86_400;
/// The digits after the point that a tick of 100 ns can represent.
const FRACTION_DIGITS: usize = 7;

impl Timestamp {
    /// Parses `YYYY-MM-DD`, `YYYY-MM-DDThh:mmZ` or `YYYY-MM-DDThh:mm:ss[.fffffff]Z`. `Z` may be an
    /// offset such as `+01:00`. `None` for anything else and for times before 1970 or after 9999.
    #[must_use]
    pub fn from_iso(text: &str) -> Option<Self> {
        let (date, time) = match text.split_once('T') {
            Some((date, time)) => (date, Some(time)),
            None => (text, None),
        };
        let midnight = days_of(date)?.checked_mul(SECONDS_PER_DAY)?;
        let Some(time) = time else { return Some(Self::from_unix(Duration::from_secs(midnight))) };
        let (clock, east) = split_offset(time)?;
        let (seconds, ticks) = seconds_of(clock)?;
        let local = i64::try_from(midnight.checked_add(seconds)?).ok()?;
        let utc = u64::try_from(local.checked_sub(east)?).ok()?;
        if civil(utc / SECONDS_PER_DAY).year > 9_999 {
            return None;
        }
        Some(Self::from_unix(Duration::new(utc, ticks.checked_mul(100)?)))
    }

    /// `2026-11-21T02:13:18.1310000Z`, as in documents and snapshot ids of Azure.
    #[must_use]
    pub fn to_iso(self) -> String {
        let mut text = self.to_iso_seconds();
        text.pop();
        let ticks = self.since_unix().subsec_nanos() / 100;
        write!(text, ".{ticks:07}Z").expect("writing to a string does not fail");
        text
    }

    /// `2026-11-21T02:13:18.131Z`, as in logs.
    #[must_use]
    pub fn to_iso_millis(self) -> String {
        let mut text = self.to_iso_seconds();
        text.pop();
        let millis = self.since_unix().subsec_millis();
        write!(text, ".{millis:03}Z").expect("writing to a string does not fail");
        text
    }

    /// `2026-11-21T02:13:18Z`, as in access policies and signatures.
    #[must_use]
    pub fn to_iso_seconds(self) -> String {
        let since = self.since_unix();
        let (days, seconds) =
            (since.as_secs() / SECONDS_PER_DAY, since.as_secs() % SECONDS_PER_DAY);
        let Date { year, month, day } = civil(days);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

impl Timestamp {
    /// The same date and time `years` years later, at most 10,000. 29 February becomes 1 March in
    /// years without it.
    #[must_use]
    pub fn plus_years(self, years: u32) -> Self {
        let since = self.since_unix();
        let days = since.as_secs() / SECONDS_PER_DAY;
        let Date { year, month, day } = civil(days);
        let later = days_before(year + u64::from(years.min(10_000)), month);
        let later = later.map_or(days, |first| first + day - 1);
        self.plus(Duration::from_secs((later - days) * SECONDS_PER_DAY))
    }
}

/// Days since 1970-01-01 of a written date.
fn days_of(date: &str) -> Option<u64> {
    let mut parts = date.split('-');
    let year = number(parts.next()?, 4)?;
    let (month, day) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    if parts.next().is_some() || year < 1970 {
        return None;
    }
    let days = days_before(year, month)?.checked_add(day.checked_sub(1)?)?;
    // A day that does not exist, such as 30 February, comes back as another date.
    (civil(days) == Date { year, month, day }).then_some(days)
}

/// Days from 1970-01-01 to the first of a month.
fn days_before(year: u64, month: u64) -> Option<u64> {
    if !(1..=12).contains(&month) {
        return None;
    }
    // Counted from March, so that the leap day is the last of its year.
    let (shifted_year, shifted_month) =
        if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let leap_days = shifted_year / 4 - shifted_year / 100 + shifted_year / 400;
    let days = shifted_year * 365 + leap_days + (153 * shifted_month + 2) / 5;
    days.checked_sub(719_468)
}

/// A day in the Gregorian calendar; month and day count from 1.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Date {
    year: u64,
    month: u64,
    day: u64,
}

/// The date of the `days`-th day after 1970-01-01.
fn civil(days: u64) -> Date {
    // Counted from 0000-03-01, so that the leap day is the last of its year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    Date { year, month, day }
}

/// The clock part of a time, and the offset of its zone from UTC in seconds, positive to the east.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(clock) = time.strip_suffix('Z') {
        return Some((clock, 0));
    }
    let at = time.rfind(['+', '-'])?;
    let (clock, offset) = (time.get(..at)?, time.get(at + 1..)?);
    let (hours, minutes) = offset.split_once(':')?;
    let (hours, minutes) = (number(hours, 2)?, number(minutes, 2)?);
    if hours > 14 || minutes > 59 {
        return None;
    }
    let seconds = i64::try_from(hours * 3600 + minutes * 60).ok()?;
    Some((clock, if time.as_bytes().get(at) == Some(&b'-') { -seconds } else { seconds }))
}

/// Seconds since midnight and ticks of 100 ns.
fn seconds_of(clock: &str) -> Option<(u64, u32)> {
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let (second, ticks) = match parts.next() {
        None => (0, 0),
        Some(text) => match text.split_once('.') {
            None => (number(text, 2)?, 0),
            Some((whole, fraction)) => (number(whole, 2)?, ticks_of(fraction)?),
        },
    };
    (hour < 24 && minute < 60 && second < 60).then_some((hour * 3600 + minute * 60 + second, ticks))
}

fn ticks_of(fraction: &str) -> Option<u32> {
    let fits = (1..=FRACTION_DIGITS).contains(&fraction.len());
    if !fits || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    format!("{fraction:0<FRACTION_DIGITS$}").parse().ok()
}

fn number(text: &str, digits: usize) -> Option<u64> {
    let plain = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_times_of_every_form_are_read() {
        let cases = [
            ("1970-01-01", 0, 0),
            ("2026-11-21", 1_795_219_200, 0),
            ("2026-11-21T07:40Z", 1_795_246_800, 0),
            ("2026-11-21T07:40:05Z", 1_795_246_805, 0),
            ("2026-11-21T07:40:05.1310000Z", 1_795_246_805, 131_000_000),
            ("2026-11-21T07:40:05.5Z", 1_795_246_805, 500_000_000),
            ("2026-11-21T08:40:05+01:00", 1_795_246_805, 0),
            ("2026-11-20T23:10:05-08:30", 1_795_246_805, 0),
            ("2024-02-29T00:00:00Z", 1_709_164_800, 0),
        ];
        for (text, seconds, nanos) in cases {
            let expected = Timestamp::from_unix(Duration::new(seconds, nanos));
            assert_eq!(Timestamp::from_iso(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "2026",
            "2026-11",
            "2026-11-31",
            "2025-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-01-00",
            "1969-12-31",
            "2026-11-21T",
            "2026-11-21TZ",
            "2026-11-21T24:00Z",
            "2026-11-21T07:60Z",
            "2026-11-21T07:40:60Z",
            "2026-11-21T07:40",
            "2026-11-21T07:40:05",
            "2026-11-21 07:40:05Z",
            "2026-11-21T07:40:05.Z",
            "2026-11-21T07:40:05.12345678Z",
            "2026-11-21T07:40:05+0100",
            "2026-11-21T07:40:05+15:00",
            "+2026-11-21",
            "2026-1-1",
            "1970-01-01T00:00:00+01:00",
        ] {
            assert_eq!(Timestamp::from_iso(text), None, "{text}");
        }
    }

    #[test]
    fn written_times_are_read_back() {
        for ticks in
            [0u64, 1, 9_999_999, 10_000_000, 17_952_468_051_310_000, 2_534_023_007_999_999_999]
        {
            let time = Timestamp::from_ticks(Timestamp::from_unix(Duration::ZERO).ticks() + ticks);
            let text = time.to_iso();
            assert_eq!(Timestamp::from_iso(&text), Some(time), "{text}");
            assert_eq!(Timestamp::from_iso(&time.to_iso_seconds()), Some(time.whole_seconds()));
        }
    }
}
