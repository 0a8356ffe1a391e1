//! Numbers of floating point as text.

/// A float in its shortest form that reads as the same number; very large and small ones with an
/// exponent.
pub(crate) fn written(number: f64) -> String {
    let size = number.abs();
    let is_plain = number == 0.0 || (1e-5..1e16).contains(&size) || !number.is_finite();
    if is_plain { number.to_string() } else { format!("{number:e}") }
}
