//! Decimal numbers of up to 38 digits.

use std::cmp::Ordering;
use std::fmt;

/// Digits that always fit.
pub(crate) const PRECISION_MAX: u8 = 38;
/// Digits behind the point that a quotient has at least.
const FRACTION_MIN: u8 = 6;

/// `unscaled / 10^scale`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decimal {
    unscaled: i128,
    scale: u8,
}

/// Ten to the power of `exponent`.
fn power(exponent: u8) -> Option<i128> {
    10_i128.checked_pow(u32::from(exponent))
}

impl Decimal {
    /// `None` if the scale is larger than any number has.
    pub(crate) fn new(unscaled: i128, scale: u8) -> Option<Self> {
        (scale <= PRECISION_MAX).then_some(Self { unscaled, scale })
    }

    pub(crate) fn of_int(value: i128) -> Self {
        Self { unscaled: value, scale: 0 }
    }

    /// Reads digits with an optional sign and point; other forms are `None`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.len() + fraction.len() == 0 {
            return None;
        }
        let mut unscaled: i128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
            unscaled = unscaled.checked_mul(10)?.checked_add(i128::from(digit))?;
        }
        let unscaled = if text.starts_with('-') { -unscaled } else { unscaled };
        Self::new(unscaled, u8::try_from(fraction.len()).ok()?)
    }

    /// The nearest decimal with `scale` digits behind the point. Halves are rounded away from zero.
    pub(crate) fn rescaled(self, scale: u8) -> Option<Self> {
        let unscaled = if scale >= self.scale {
            self.unscaled.checked_mul(power(scale - self.scale)?)?
        } else {
            let by = power(self.scale - scale)?;
            let (whole, rest) = (self.unscaled / by, self.unscaled % by);
            let up = i128::from(rest.unsigned_abs() >= by.unsigned_abs().div_ceil(2));
            whole + up * rest.signum()
        };
        Self::new(unscaled, scale)
    }

    /// The nearest one with this scale, if it has at most `precision` digits.
    pub(crate) fn fitted(self, precision: u8, scale: u8) -> Option<Self> {
        let fitted = self.rescaled(scale)?;
        (fitted.unscaled.unsigned_abs() < power(precision)?.unsigned_abs()).then_some(fitted)
    }

    pub(crate) fn unscaled(self) -> i128 {
        self.unscaled
    }

    /// Both with the larger scale.
    fn aligned(self, other: Self) -> Option<(i128, i128, u8)> {
        let scale = self.scale.max(other.scale);
        Some((self.rescaled(scale)?.unscaled, other.rescaled(scale)?.unscaled, scale))
    }

    pub(crate) fn add(self, other: Self) -> Option<Self> {
        let (left, right, scale) = self.aligned(other)?;
        Self::new(left.checked_add(right)?, scale)
    }

    pub(crate) fn subtract(self, other: Self) -> Option<Self> {
        let (left, right, scale) = self.aligned(other)?;
        Self::new(left.checked_sub(right)?, scale)
    }

    /// Without zeros at the end of its fraction.
    fn short(self) -> Self {
        let mut short = self;
        while short.scale > 0 && short.unscaled % 10 == 0 {
            short = Self { unscaled: short.unscaled / 10, scale: short.scale - 1 };
        }
        short
    }

    /// With the digits behind the point of both. Of more than 38 of these the last ones are
    /// rounded off, and zeros at the end are left out if it does not fit with them. `None` if it
    /// does not fit then; the caller goes on with a float.
    pub(crate) fn multiply(self, other: Self) -> Option<Self> {
        self.times(other).or_else(|| self.short().times(other.short()))
    }

    fn times(self, other: Self) -> Option<Self> {
        let unscaled = self.unscaled.checked_mul(other.unscaled)?;
        let scale = self.scale.checked_add(other.scale)?;
        // More digits than any number has, until it is rounded.
        let long = Self { unscaled, scale };
        if scale > PRECISION_MAX { long.rescaled(PRECISION_MAX) } else { Some(long) }
    }

    /// With six digits behind the point more than the dividend has, or as many as fit; the divisor
    /// is not zero. `None` if fewer than six fit; the caller goes on with a float.
    pub(crate) fn divide(self, other: Self) -> Option<Self> {
        let other = other.short();
        let wanted = self.scale.saturating_add(FRACTION_MIN).min(PRECISION_MAX);
        (FRACTION_MIN..=wanted).rev().find_map(|scale| {
            // The quotient has the scale of the dividend without that of the divisor.
            let dividend = match (scale + other.scale).checked_sub(self.scale) {
                Some(more) => self.unscaled.checked_mul(power(more)?)?,
                None => self.unscaled / power(self.scale - scale - other.scale)?,
            };
            Self::new(dividend.checked_div(other.unscaled)?, scale)
        })
    }

    /// The rest of a division, with the sign of the dividend; the divisor is not zero.
    pub(crate) fn remainder(self, other: Self) -> Option<Self> {
        let (left, right, scale) = self.aligned(other)?;
        Self::new(left.checked_rem(right)?, scale)
    }

    pub(crate) fn to_f64(self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// Without the digits behind the point.
    pub(crate) fn whole(self) -> i128 {
        power(self.scale).map_or(0, |by| self.unscaled / by)
    }

    pub(crate) fn compare(self, other: Self) -> Ordering {
        match self.aligned(other) {
            Some((left, right, _)) => left.cmp(&right),
            // One is too large for the scale of the other, so it is far away from it.
            None => self.to_f64().total_cmp(&other.to_f64()),
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.unscaled < 0 { "-" } else { "" };
        let scale = usize::from(self.scale);
        let digits = format!("{:0>width$}", self.unscaled.unsigned_abs(), width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let point = if scale > 0 { "." } else { "" };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}
