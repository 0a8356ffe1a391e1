//! GUIDs as .NET spells them. Lease Blob takes the spellings of its `Guid(String)` constructor.

#![deny(clippy::indexing_slicing)]

use uuid::Uuid;

/// The GUID of a text: 32 hexadecimal digits, the same with hyphens, that in braces or parentheses,
/// or four values with `0x` in braces. `None` for other texts.
pub(super) fn parse(text: &str) -> Option<Uuid> {
    if let Some(inside) = enclosed(text, '(', ')') {
        return hyphenated(inside);
    }
    match enclosed(text, '{', '}') {
        Some(inside) if inside.contains(',') => fields(inside),
        Some(inside) => hyphenated(inside),
        // The parser of the crate takes other spellings too, which are longer.
        None if text.len() == 32 => Uuid::try_parse(text).ok(),
        None => hyphenated(text),
    }
}

fn enclosed(text: &str, open: char, close: char) -> Option<&str> {
    text.strip_prefix(open)?.strip_suffix(close)
}

fn hyphenated(text: &str) -> Option<Uuid> {
    if text.len() == 36 { Uuid::try_parse(text).ok() } else { None }
}

/// Reads `0xdddddddd,0xdddd,0xdddd,{0xdd,0xdd,0xdd,0xdd,0xdd,0xdd,0xdd,0xdd}`.
fn fields(text: &str) -> Option<Uuid> {
    let (words, bytes) = text.strip_suffix('}')?.split_once(",{")?;
    let words: Vec<u32> = words.split(',').map(hexadecimal).collect::<Option<_>>()?;
    let bytes: Vec<u32> = bytes.split(',').map(hexadecimal).collect::<Option<_>>()?;
    let bytes: Vec<u8> = bytes.into_iter().map(u8::try_from).collect::<Result<_, _>>().ok()?;
    let [first, second, third] = words.as_slice() else { return None };
    let (second, third) = (u16::try_from(*second).ok()?, u16::try_from(*third).ok()?);
    Some(Uuid::from_fields(*first, second, third, bytes.as_slice().try_into().ok()?))
}

fn hexadecimal(text: &str) -> Option<u32> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    if digits.starts_with('+') {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_dotnet_are_read() {
        let id = Uuid::from_u128(0x6f3a_8c1e_0b7d_4e5a_9c2f_1234_5678_90ab);
        for text in [
            "6f3a8c1e-0b7d-4e5a-9c2f-1234567890ab",
            "6F3A8C1E-0B7D-4E5A-9C2F-1234567890AB",
            "6f3a8c1e0b7d4e5a9c2f1234567890ab",
            "{6f3a8c1e-0b7d-4e5a-9c2f-1234567890ab}",
            "(6f3a8c1e-0b7d-4e5a-9c2f-1234567890ab)",
            "{0x6f3a8c1e,0xb7d,0x4e5a,{0x9c,0x2f,0x12,0x34,0x56,0x78,0x90,0xab}}",
            "{0X6F3A8C1E, 0xb7d, 0x4e5a,{0x9c, 0x2f,0x12,0x34,0x56,0x78,0x90,0xab}}",
        ] {
            assert_eq!(parse(text), Some(id), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "any",
            "{}",
            "()",
            "6f3a8c1e-0b7d-4e5a-9c2f-1234567890a",
            "urn:uuid:6f3a8c1e-0b7d-4e5a-9c2f-1234567890ab",
            "{6f3a8c1e0b7d4e5a9c2f1234567890ab}",
            "(6f3a8c1e0b7d4e5a9c2f1234567890ab)",
            "{6f3a8c1e-0b7d-4e5a-9c2f-1234567890ab)",
            "{0x6f3a8c1e,0xb7d,0x4e5a,{0x9c,0x2f,0x12,0x34,0x56,0x78,0x90}}",
            "{0x6f3a8c1e,0xb7d,0x4e5a,{0x9c,0x2f,0x12,0x34,0x56,0x78,0x90,0x1ab}}",
            "{0x6f3a8c1e,0x1b7d0,0x4e5a,{0x9c,0x2f,0x12,0x34,0x56,0x78,0x90,0xab}}",
            "{0x+f3a8c1e,0xb7d,0x4e5a,{0x9c,0x2f,0x12,0x34,0x56,0x78,0x90,0xab}}",
            "{0x,0xb7d,0x4e5a,{0x9c,0x2f,0x12,0x34,0x56,0x78,0x90,0xab}}",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
