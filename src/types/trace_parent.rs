//! Where a request stands in a trace of its client: the header `traceparent` of W3C Trace Context.

use std::fmt;

/// The value of a `traceparent`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    trace: [u8; 16],
    parent: [u8; 8],
    sampled: bool,
}

impl TraceParent {
    /// Reads a header's value. A value that breaks a rule of the specification is none: its
    /// receiver begins a trace of its own. Of later versions the known part is read.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (known, rest) = text.split_at_checked(55)?;
        let version = byte(known.get(..2)?)?;
        let is_whole = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => matches!(rest, [] | [b'-', ..]),
        };
        let hyphens = [2, 35, 52].into_iter().all(|at| known.get(at) == Some(&b'-'));
        if !is_whole || !hyphens {
            return None;
        }
        let trace = bytes::<16>(known.get(3..35)?)?;
        let parent = bytes::<8>(known.get(36..52)?)?;
        let flags = byte(known.get(53..)?)?;
        let are_given = trace != [0; 16] && parent != [0; 8];
        are_given.then_some(Self { trace, parent, sampled: flags & 1 == 1 })
    }

    /// A new trace, which is recorded. An id of zeros would be none.
    #[must_use]
    pub const fn begun(id: u128) -> Self {
        let id = if id == 0 { 1 } else { id };
        Self { trace: id.to_be_bytes(), parent: [0; 8], sampled: true }
    }

    /// The id of the trace.
    #[must_use]
    pub const fn trace(&self) -> [u8; 16] {
        self.trace
    }

    /// The id of the client's span; none in a new trace.
    #[must_use]
    pub fn parent(&self) -> Option<[u8; 8]> {
        (self.parent != [0; 8]).then_some(self.parent)
    }

    /// Whether the client records the trace.
    #[must_use]
    pub const fn is_sampled(&self) -> bool {
        self.sampled
    }
}

/// The id of the trace, as in the header.
impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.trace))
    }
}

impl fmt::Debug for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceParent({self})")
    }
}

fn bytes<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    for (into, pair) in bytes.iter_mut().zip(text.chunks(2)) {
        *into = byte(pair)?;
    }
    Some(bytes)
}

/// The value of two digits. Capital letters are not allowed.
fn byte(pair: &[u8]) -> Option<u8> {
    let digit = |at: usize| match pair.get(at)? {
        digit @ b'0'..=b'9' => Some(digit - b'0'),
        letter @ b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    };
    Some(digit(0)? << 4 | digit(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const PARENT: &str = "00f067aa0ba902b7";

    #[test]
    fn right_values_are_read() {
        for (version, flags, rest, sampled) in [
            ("00", "01", "", true),
            ("00", "00", "", false),
            ("00", "03", "", true),
            ("00", "fe", "", false),
            ("01", "01", "", true),
            ("cc", "01", "-what-comes-later", true),
        ] {
            let text = format!("{version}-{TRACE}-{PARENT}-{flags}{rest}");
            let read = TraceParent::parse(text.as_bytes()).unwrap();
            assert_eq!((read.to_string().as_str(), read.is_sampled()), (TRACE, sampled), "{text}");
            assert_eq!(read.parent(), Some(0x00f0_67aa_0ba9_02b7_u64.to_be_bytes()));
            assert_eq!(read.trace(), 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes());
        }
    }

    #[test]
    fn new_traces_have_no_parent() {
        let begun = TraceParent::begun(0);
        assert_eq!((begun.parent(), begun.is_sampled()), (None, true));
        assert_eq!(begun.to_string(), format!("{:032}", 1));
    }

    #[test]
    fn wrong_values_are_none() {
        let zeros = |n| "0".repeat(n);
        for text in [
            String::new(),
            "00".to_owned(),
            format!("00-{TRACE}-{PARENT}"),
            format!("00-{TRACE}-{PARENT}-1"),
            format!("00-{TRACE}-{PARENT}-01-"),
            format!("00-{TRACE}-{PARENT}-01-later"),
            format!("01-{TRACE}-{PARENT}-01later"),
            format!("ff-{TRACE}-{PARENT}-01"),
            format!("0g-{TRACE}-{PARENT}-01"),
            format!("00-{}-{PARENT}-01", zeros(32)),
            format!("00-{TRACE}-{}-01", zeros(16)),
            format!("00-{}-{PARENT}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-{PARENT}-0G"),
            format!("00_{TRACE}-{PARENT}-01"),
            format!(" 00-{TRACE}-{PARENT}-01"),
            format!("00-{TRACE}-{PARENT}-é1"),
        ] {
            assert_eq!(TraceParent::parse(text.as_bytes()), None, "{text}");
        }
    }
}
