//! Points in time, with the offset from UTC in which they were written.

use std::fmt;

const MICROS: i64 = 1_000_000;
const DAY: i64 = 86_400 * MICROS;

/// A point in time from the year 0000 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timestamp {
    micros: i64,
    offset_minutes: i16,
}

/// A part of a date or time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    TimezoneHour,
    TimezoneMinute,
}

impl Part {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "year" => Self::Year,
            "month" => Self::Month,
            "day" => Self::Day,
            "hour" => Self::Hour,
            "minute" => Self::Minute,
            "second" => Self::Second,
            "timezone_hour" => Self::TimezoneHour,
            "timezone_minute" => Self::TimezoneMinute,
            _ => return None,
        })
    }

    /// Months of those that do not.
    fn months(self) -> Option<i64> {
        match self {
            Self::Year => Some(12),
            Self::Month => Some(1),
            Self::Day | Self::Hour | Self::Minute | Self::Second => None,
            Self::TimezoneHour | Self::TimezoneMinute => None,
        }
    }

    /// Microseconds of those that always last equally long.
    fn micros(self) -> Option<i64> {
        match self {
            Self::Day => Some(DAY),
            Self::Hour => Some(3600 * MICROS),
            Self::Minute => Some(60 * MICROS),
            Self::Second => Some(MICROS),
            Self::Year | Self::Month | Self::TimezoneHour | Self::TimezoneMinute => None,
        }
    }
}

/// A date and a time as a calendar and a clock show it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) micro: i64,
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the first day of the year 0000 to that of this one.
fn days_before_year(year: i64) -> i64 {
    if year == 0 {
        return 0;
    }
    let before = year - 1;
    year * 365 + 1 + before / 4 - before / 100 + before / 400
}

/// Days from the first day of the year 0000 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_528;

fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let months: i64 = (1..month).map(|month| days_of_month(year, month)).sum();
    days_before_year(year) + months + day - 1 - EPOCH_DAYS
}

impl Timestamp {
    /// `None` outside of the years 0000 to 9999.
    pub(crate) fn new(micros: i64, offset_minutes: i16) -> Option<Self> {
        let local = micros.checked_add(i64::from(offset_minutes) * 60 * MICROS)?;
        let first = days_since_epoch(0, 1, 1) * DAY;
        let end = days_since_epoch(10_000, 1, 1) * DAY;
        (first..end).contains(&local).then_some(Self { micros, offset_minutes })
    }

    pub(crate) fn of_millis(millis: i64) -> Option<Self> {
        Self::new(millis.checked_mul(1000)?, 0)
    }

    fn of_fields(fields: Fields, offset_minutes: i16) -> Option<Self> {
        let days = days_since_epoch(fields.year, fields.month, fields.day);
        let seconds = (fields.hour * 60 + fields.minute) * 60 + fields.second;
        let local = days * DAY + seconds * MICROS + fields.micro;
        Self::new(local - i64::from(offset_minutes) * 60 * MICROS, offset_minutes)
    }

    /// Microseconds since 1970 in UTC.
    pub(crate) fn micros(self) -> i64 {
        self.micros
    }

    pub(crate) fn offset_minutes(self) -> i64 {
        i64::from(self.offset_minutes)
    }

    /// As a clock shows it there where the timestamp was written.
    pub(crate) fn fields(self) -> Fields {
        let local = self.micros + self.offset_minutes() * 60 * MICROS;
        let (days, rest) = (local.div_euclid(DAY) + EPOCH_DAYS, local.rem_euclid(DAY));
        // 146,097 days are 400 years; the estimate is off by one at most.
        let mut year = days * 400 / 146_097;
        while days_before_year(year + 1) <= days {
            year += 1;
        }
        while days_before_year(year) > days {
            year -= 1;
        }
        let (mut month, mut day) = (1, days - days_before_year(year));
        while day >= days_of_month(year, month) {
            day -= days_of_month(year, month);
            month += 1;
        }
        let (seconds, micro) = (rest / MICROS, rest % MICROS);
        Fields {
            year,
            month,
            day: day + 1,
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            micro,
        }
    }

    pub(crate) fn part(self, part: Part) -> i64 {
        let fields = self.fields();
        match part {
            Part::Year => fields.year,
            Part::Month => fields.month,
            Part::Day => fields.day,
            Part::Hour => fields.hour,
            Part::Minute => fields.minute,
            Part::Second => fields.second,
            Part::TimezoneHour => self.offset_minutes() / 60,
            Part::TimezoneMinute => self.offset_minutes() % 60,
        }
    }

    /// Later by `quantity` of the part. A day that the month does not have becomes its last one.
    pub(crate) fn plus(self, part: Part, quantity: i64) -> Option<Self> {
        if let Some(micros) = part.micros() {
            let by = quantity.checked_mul(micros)?;
            return Self::new(self.micros.checked_add(by)?, self.offset_minutes);
        }
        let months = quantity.checked_mul(part.months()?)?;
        let mut fields = self.fields();
        let month = (fields.year * 12 + fields.month - 1).checked_add(months)?;
        (fields.year, fields.month) = (month.div_euclid(12), month.rem_euclid(12) + 1);
        if !(0..10_000).contains(&fields.year) {
            return None;
        }
        fields.day = fields.day.min(days_of_month(fields.year, fields.month));
        Self::of_fields(fields, self.offset_minutes)
    }

    /// How many whole parts lie between this one and a later one; negative if it is earlier.
    pub(crate) fn until(self, later: Self, part: Part) -> Option<i64> {
        if let Some(micros) = part.micros() {
            return Some((later.micros - self.micros) / micros);
        }
        let (from, to) = (Self { offset_minutes: 0, ..self }, Self { offset_minutes: 0, ..later });
        let (a, b) = (from.fields(), to.fields());
        let mut months = (b.year - a.year) * 12 + b.month - a.month;
        // The last month may not be a whole one.
        let reached = from.plus(Part::Month, months)?;
        if months > 0 && reached.micros > to.micros {
            months -= 1;
        } else if months < 0 && reached.micros < to.micros {
            months += 1;
        }
        Some(months / part.months()?)
    }

    /// Reads the forms of ISO 8601 of the W3C's note: from a year to a fraction of a second, a `T`
    /// behind a date without a time too, and a blank in its place. Without an offset it is in UTC.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut reader = Reader { rest: text.trim().as_bytes() };
        let mut fields =
            Fields { year: 0, month: 1, day: 1, hour: 0, minute: 0, second: 0, micro: 0 };
        fields.year = reader.digits(4)?;
        if reader.takes(b"-") {
            fields.month = reader.digits(2)?;
            if reader.takes(b"-") {
                fields.day = reader.digits(2)?;
            }
        }
        let mut offset = 0;
        if reader.takes(b"Tt ") && !reader.rest.is_empty() {
            fields.hour = reader.digits(2)?;
            if !reader.takes(b":") {
                return None;
            }
            fields.minute = reader.digits(2)?;
            if reader.takes(b":") {
                fields.second = reader.digits(2)?;
                fields.micro = reader.fraction()?;
            }
            offset = reader.offset()?;
        }
        let days = days_of_month(fields.year, fields.month);
        let is_right = reader.rest.is_empty()
            && (1..=12).contains(&fields.month)
            && (1..=days).contains(&fields.day)
            && fields.hour < 24
            && fields.minute < 60
            && fields.second < 60;
        if is_right { Self::of_fields(fields, offset) } else { None }
    }
}

/// Takes parts from the front of a text.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        let add = |sum: i64, digit: &u8| {
            digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0'))
        };
        digits.iter().try_fold(0, add)
    }

    fn takes(&mut self, any: &[u8]) -> bool {
        match self.rest.split_first() {
            Some((first, rest)) if any.contains(first) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Microseconds; digits beyond them are left out.
    fn fraction(&mut self) -> Option<i64> {
        if !self.takes(b".") {
            return Some(0);
        }
        let (mut micro, mut unit, mut any) = (0, 100_000, false);
        while let Some((digit, rest)) = self.rest.split_first()
            && digit.is_ascii_digit()
        {
            micro += i64::from(digit - b'0') * unit;
            (unit, any, self.rest) = (unit / 10, true, rest);
        }
        any.then_some(micro)
    }

    fn offset(&mut self) -> Option<i16> {
        let sign = match self.rest.split_first() {
            None => return Some(0),
            Some((b'Z' | b'z', rest)) => {
                self.rest = rest;
                return Some(0);
            }
            Some((b'+', _)) => 1,
            Some((b'-', _)) => -1,
            Some(_) => return None,
        };
        self.rest = &self.rest[1..];
        let hours = self.digits(2)?;
        self.takes(b":");
        let minutes = if self.rest.is_empty() { 0 } else { self.digits(2)? };
        let is_right = hours < 24 && minutes < 60;
        is_right.then(|| i16::try_from(sign * (hours * 60 + minutes)).ok())?
    }
}

impl fmt::Display for Timestamp {
    /// ISO 8601; the fraction of the second only if there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fields { year, month, day, hour, minute, second, micro } = self.fields();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if micro % 1000 != 0 {
            write!(f, ".{micro:06}")?;
        } else if micro != 0 {
            write!(f, ".{:03}", micro / 1000)?;
        }
        match self.offset_minutes() {
            0 => f.write_str("Z"),
            offset => {
                let sign = if offset < 0 { '-' } else { '+' };
                write!(f, "{sign}{:02}:{:02}", offset.abs() / 60, offset.abs() % 60)
            }
        }
    }
}
