//! How long the text of a block of Zstandard is.
//!
//! The decoder writes as much as a block says, which may be gigabytes for some KiB. Blocks of the
//! standard (RFC 8878) have 128 KiB at most, so the lengths in them are added before.

/// Bytes of the text of a block.
pub(crate) const BLOCK_MAX: u64 = 128 * 1024;
/// Bits of the state of a table.
const LOG_MAX: u32 = 9;
/// Symbols of a table.
const SYMBOLS_MAX: usize = 256;

/// How often each symbol is in the tables that need not be written, and the bits of their states.
const LITERALS: (&[i16], u32) = (
    &[
        4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1,
        1, 1, -1, -1, -1, -1,
    ],
    6,
);
const OFFSETS: (&[i16], u32) = (
    &[1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1],
    5,
);
const MATCHES: (&[i16], u32) = (
    &[
        1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
    ],
    6,
);
/// Bits behind the codes of lengths, from code 16 of literals and code 32 of matches.
const LITERAL_BITS: [u32; 20] = [1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const MATCH_BITS: [u32; 21] =
    [1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

/// A state of a table: its symbol, and how the next state is read.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    symbol: u8,
    bits: u32,
    base: u32,
}

/// A table of finite state entropy; without bits if it has one symbol.
#[derive(Debug, Clone)]
struct Table {
    states: Vec<State>,
    log: u32,
}

impl Table {
    fn one(symbol: u8) -> Self {
        Self { states: vec![State { symbol, bits: 0, base: 0 }], log: 0 }
    }

    /// The table of symbols that are there so often; -1 is less than once.
    fn new(counts: &[i16], log: u32) -> Option<Self> {
        let size = 1_usize << log;
        let mut states = vec![State::default(); size];
        let mut high = size;
        for (symbol, _) in counts.iter().enumerate().filter(|(_, count)| **count == -1) {
            high = high.checked_sub(1)?;
            states[high].symbol = u8::try_from(symbol).ok()?;
        }
        let (step, mut at) = ((size >> 1) + (size >> 3) + 3, 0);
        for (symbol, count) in counts.iter().enumerate() {
            for _ in 0..*count {
                states[at].symbol = u8::try_from(symbol).ok()?;
                at = (at + step) & (size - 1);
                while at >= high {
                    at = (at + step) & (size - 1);
                }
            }
        }
        let mut next: Vec<u32> =
            counts.iter().map(|count| u32::from(count.unsigned_abs())).collect();
        for state in &mut states {
            let next = next.get_mut(usize::from(state.symbol))?;
            state.bits = log.checked_sub(next.checked_ilog2()?)?;
            state.base = (*next << state.bits).checked_sub(1 << log)?;
            *next += 1;
        }
        Some(Self { states, log })
    }

    /// A table as it is written, and what follows it.
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let bits = |at: u32, count: u32| -> Option<u32> {
            let first = usize::try_from(at / 8).ok()?;
            let byte = |more: usize| u32::from(bytes.get(first + more).copied().unwrap_or(0));
            let word = byte(0) | byte(1) << 8 | byte(2) << 16;
            Some((word >> (at % 8)) & ((1 << count) - 1))
        };
        let log = bits(0, 4)? + 5;
        if log > LOG_MAX {
            return None;
        }
        let (mut at, mut left, mut counts) = (4, 1_u32 << log, Vec::new());
        while left > 0 {
            let width = (left + 1).ilog2() + 1;
            let mut value = bits(at, width)?;
            let (low, limit) = ((1 << (width - 1)) - 1, (1 << width) - 1 - (left + 1));
            at += width;
            if value & low < limit {
                value &= low;
                at -= 1;
            } else if value > low {
                value -= limit;
            }
            let count = i16::try_from(value).ok()? - 1;
            left = left.checked_sub(u32::from(count.unsigned_abs()))?;
            counts.push(count);
            // Zeros are written as how many more of them follow; after three it goes on.
            let mut zeros = if count == 0 { 3 } else { 0 };
            while zeros == 3 && counts.len() <= SYMBOLS_MAX {
                zeros = bits(at, 2)?;
                at += 2;
                counts.extend((0..zeros).map(|_| 0));
            }
            if counts.len() > SYMBOLS_MAX {
                return None;
            }
        }
        let rest = bytes.get(usize::try_from(at.div_ceil(8)).ok()?..)?;
        Some((Self::new(&counts, log)?, rest))
    }
}

/// Reads bits from the end to the front.
struct Backwards<'a> {
    bytes: &'a [u8],
    /// Bits that are left.
    left: usize,
}

impl<'a> Backwards<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        // The highest bit of the last byte only says where the others begin.
        let last = bytes.last()?.checked_ilog2()?;
        Some(Self { bytes, left: (bytes.len() - 1) * 8 + usize::try_from(last).ok()? })
    }

    /// Bits in front of the first byte are zero.
    fn bits(&mut self, count: u32) -> u32 {
        let mut value = 0;
        for _ in 0..count {
            value <<= 1;
            if let Some(left) = self.left.checked_sub(1) {
                self.left = left;
                value |= u32::from(self.bytes[left / 8] >> (left % 8)) & 1;
            }
        }
        value
    }
}

/// The tables of a frame, which a block may use again.
#[derive(Debug, Default)]
pub(crate) struct Lengths {
    literals: Option<Table>,
    offsets: Option<Table>,
    matches: Option<Table>,
}

/// A number of these bytes, from the lowest on.
fn number(bytes: &[u8], count: usize) -> Option<usize> {
    let bytes = bytes.get(..count)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

/// How many literals a block has, and what follows them.
fn literals(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let first = *bytes.first()?;
    let (header, text, stored) = match (first & 3, first >> 2 & 3) {
        (kind @ (0 | 1), format) => {
            let (header, shift) = [(1, 3), (2, 4), (1, 3), (3, 4)][usize::from(format)];
            let text = number(bytes, header)? >> shift;
            (header, text, if kind == 0 { text } else { 1 })
        }
        (_, format) => {
            let (header, width) = [(3, 10), (3, 10), (4, 14), (5, 18)][usize::from(format)];
            let sizes = number(bytes, header)? >> 4;
            let mask = (1 << width) - 1;
            (header, sizes & mask, sizes >> width & mask)
        }
    };
    Some((text, bytes.get(header + stored..)?))
}

/// The table that a block uses, in one of four ways.
fn table<'b>(
    kept: &mut Option<Table>,
    mode: u8,
    usual: (&[i16], u32),
    bytes: &'b [u8],
) -> Option<&'b [u8]> {
    let mut rest = bytes;
    match mode & 3 {
        0 => *kept = Some(Table::new(usual.0, usual.1)?),
        1 => {
            *kept = Some(Table::one(*bytes.first()?));
            rest = &bytes[1..];
        }
        2 => {
            let (read, behind) = Table::read(bytes)?;
            (*kept, rest) = (Some(read), behind);
        }
        _ => {}
    }
    Some(rest)
}

impl Lengths {
    /// Bytes of the text of a compressed block. `None` if it cannot be read.
    pub(crate) fn of_block(&mut self, bytes: &[u8]) -> Option<u64> {
        let (text, rest) = literals(bytes)?;
        let (count, header) = match *rest.first()? {
            0 => return Some(text as u64),
            first @ 1..128 => (usize::from(first), 1),
            first @ 128..255 => ((usize::from(first) - 128) << 8 | usize::from(*rest.get(1)?), 2),
            255 => (number(rest.get(1..)?, 2)? + 0x7f00, 3),
        };
        let modes = *rest.get(header)?;
        let rest = &rest[header + 1..];
        let rest = table(&mut self.literals, modes >> 6, LITERALS, rest)?;
        let rest = table(&mut self.offsets, modes >> 4, OFFSETS, rest)?;
        let rest = table(&mut self.matches, modes >> 2, MATCHES, rest)?;
        let matches = self.matches(Backwards::new(rest)?, count)?;
        Some(text as u64 + matches)
    }

    /// The bytes of `count` matches.
    fn matches(&self, mut from: Backwards<'_>, count: usize) -> Option<u64> {
        let tables = [self.literals.as_ref()?, self.offsets.as_ref()?, self.matches.as_ref()?];
        let mut states = tables.map(|table| from.bits(table.log));
        let mut sum = 0;
        for left in (0..count).rev() {
            let state = |at: usize| {
                let state = usize::try_from(states[at]).ok()?;
                tables[at].states.get(state).copied()
            };
            let (literal, offset, length) = (state(0)?, state(1)?, state(2)?);
            from.bits(u32::from(offset.symbol).min(32));
            sum += match length.symbol {
                code @ 0..32 => u64::from(code) + 3,
                code => {
                    let bits = |code: u8| MATCH_BITS.get(usize::from(code) - 32).copied();
                    let before = (32..code).map_while(bits).map(|bits| 1_u64 << bits).sum::<u64>();
                    35 + before + u64::from(from.bits(bits(code)?))
                }
            };
            if let Some(code) = usize::from(literal.symbol).checked_sub(16) {
                from.bits(*LITERAL_BITS.get(code)?);
            }
            if left > 0 {
                states[0] = literal.base + from.bits(literal.bits);
                states[2] = length.base + from.bits(length.bits);
                states[1] = offset.base + from.bits(offset.bits);
            }
        }
        Some(sum)
    }
}
