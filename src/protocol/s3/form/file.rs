//! Extracts the file from the body of a form, as it arrives.

use bytes::Bytes;
use memchr::memmem;
use memchr::memrchr;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::s3::form::boundary::Boundary;
use crate::protocol::s3::form::boundary::malformed;
use crate::protocol::s3::form::reader::After;
use crate::protocol::s3::form::reader::after_boundary;

/// The most bytes behind the file. Fields there are ignored.
const REST_BYTES_MAX: usize = 20 * 1024;

/// The length that a policy allows the file, bytes; both ends are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthRange {
    /// The shortest file.
    pub min: u64,
    /// The longest file.
    pub max: u64,
}

impl LengthRange {
    /// Any length.
    pub const ANY: Self = Self { min: 0, max: u64::MAX };

    /// The lengths that both allow.
    pub(super) fn and(self, other: Self) -> Self {
        Self { min: self.min.max(other.min), max: self.max.min(other.max) }
    }
}

/// Extracts the file from the body of a form. The file ends at the next boundary.
#[derive(Debug)]
pub struct FileDecoder {
    finder: memmem::Finder<'static>,
    delimiter: Bytes,
    range: LengthRange,
    /// Bytes of the file so far.
    len: u64,
    /// The last bytes that arrived, if a boundary may begin in them.
    held: Bytes,
    /// The bytes that arrived behind the file; `None` before its end.
    rest: Option<Vec<u8>>,
}

impl FileDecoder {
    /// A decoder of the bytes behind the head of the file.
    #[must_use]
    pub fn new(boundary: &Boundary, range: LengthRange) -> Self {
        let delimiter = boundary.delimiter().clone();
        let finder = memmem::Finder::new(&delimiter).into_owned();
        Self { finder, delimiter, range, len: 0, held: Bytes::new(), rest: None }
    }

    /// The next content among these bytes; call until `bytes` is empty.
    ///
    /// # Errors
    /// `RequestBodyTooLarge` (EntityTooLarge) when the file is longer than it may be,
    /// `MalformedForm` when too many bytes follow it.
    pub fn next(&mut self, bytes: &mut Bytes) -> Result<Option<Bytes>, Refusal> {
        if let Some(rest) = &mut self.rest {
            let arrived = std::mem::take(bytes);
            if rest.len() + arrived.len() > REST_BYTES_MAX {
                return Err(malformed());
            }
            rest.extend_from_slice(&arrived);
            return Ok(None);
        }
        let content = if self.held.is_empty() { self.plain(bytes) } else { self.joined(bytes) };
        self.len += content.len() as u64;
        if self.len > self.range.max {
            return Err(Refusal::new(Reason::RequestBodyTooLarge)
                .message("Your proposed upload exceeds the maximum allowed size")
                .detail(Detail::Limit, self.range.max.to_string()));
        }
        match content.is_empty() {
            true if bytes.is_empty() => Ok(None),
            // The file ends within these bytes, or the held bytes belong to it.
            true => self.next(bytes),
            false => Ok(Some(content)),
        }
    }

    /// The content among the bytes, if none are held before them.
    fn plain(&mut self, bytes: &mut Bytes) -> Bytes {
        if let Some(end) = self.finder.find(bytes) {
            let content = bytes.split_to(end);
            drop(bytes.split_to(self.delimiter.len()));
            self.rest = Some(Vec::new());
            return content;
        }
        let mut content = std::mem::take(bytes);
        self.held = content.split_off(self.may_begin(&content));
        content
    }

    /// The content among the held bytes and the first of these.
    fn joined(&mut self, bytes: &mut Bytes) -> Bytes {
        let taken = bytes.len().min(self.delimiter.len());
        let joined = [&*self.held, bytes.get(..taken).unwrap_or_default()].concat();
        if let Some(end) = self.finder.find(&joined) {
            // A boundary begins in the held bytes and ends among these.
            let used = (end + self.delimiter.len()).saturating_sub(self.held.len());
            let content = self.held.split_to(end.min(self.held.len()));
            let content = match end.checked_sub(content.len()) {
                Some(more) if more > 0 => Bytes::from(joined).slice(..end),
                Some(_) | None => content,
            };
            drop(bytes.split_to(used.min(bytes.len())));
            self.held = Bytes::new();
            self.rest = Some(Vec::new());
            return content;
        }
        if taken < bytes.len() {
            // The bytes are at least as long as a boundary, so none begins in the held bytes.
            return std::mem::take(&mut self.held);
        }
        bytes.clear();
        let mut content = Bytes::from(joined);
        self.held = content.split_off(self.may_begin(&content));
        content
    }

    /// The position at which a boundary may begin that does not end within these bytes; their
    /// length if there is none. A boundary has a carriage return only at its beginning.
    fn may_begin(&self, bytes: &[u8]) -> usize {
        let from = bytes.len().saturating_sub(self.delimiter.len() - 1);
        let last = memrchr(b'\r', bytes.get(from..).unwrap_or_default()).map(|at| from + at);
        let begins =
            |at: &usize| bytes.get(*at..).is_some_and(|end| self.delimiter.starts_with(end));
        last.filter(begins).unwrap_or(bytes.len())
    }

    /// Ends the body.
    ///
    /// # Errors
    /// `MalformedForm` when the form has no end, `PartTooSmall` (EntityTooSmall) when the file is
    /// shorter than it may be.
    pub fn finish(&self) -> Result<(), Refusal> {
        let rest = self.rest.as_deref().ok_or_else(malformed)?;
        let is_closed = match after_boundary(rest) {
            After::End => true,
            After::Part(_) => self.ends(rest),
            After::More | After::Other => false,
        };
        if !is_closed {
            return Err(malformed());
        }
        if self.len < self.range.min {
            return Err(Refusal::new(Reason::PartTooSmall)
                .message("Your proposed upload is smaller than the minimum allowed size"));
        }
        Ok(())
    }

    /// Whether the last boundary is among these bytes.
    fn ends(&self, rest: &[u8]) -> bool {
        let mut ends = self.finder.find_iter(rest).map(|at| at + self.delimiter.len());
        ends.any(|at| rest.get(at..).is_some_and(|after| after.starts_with(b"--")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(body: &[u8], size: usize, range: LengthRange) -> Result<Vec<u8>, Reason> {
        let mut decoder = FileDecoder::new(&Boundary::new("Bd").unwrap(), range);
        let mut content = Vec::new();
        for piece in body.chunks(size) {
            let mut piece = Bytes::copy_from_slice(piece);
            while let Some(next) = decoder.next(&mut piece).map_err(|refusal| refusal.reason)? {
                assert!(!next.is_empty());
                content.extend_from_slice(&next);
            }
            assert!(piece.is_empty());
        }
        decoder.finish().map(|()| content).map_err(|refusal| refusal.reason)
    }

    #[test]
    fn files_are_byte_for_byte() {
        for file in [
            &b""[..],
            b"content",
            b"\r",
            b"\r\n",
            b"\r\n\r\n",
            b"\r\n--B",
            b"\r\n--B\r\n--B",
            b"\r\r\n--B\r\n-\r",
            b"--Bd--",
            b"x\n--Bd--\n",
            b"\r\n--\r\n--B\r",
        ] {
            for end in
                ["--", "--\r\n", "--\r\nepilogue", "\r\nfield\r\n--Bd--\r\n", " \r\n\r\n--Bd--"]
            {
                let body = [file, b"\r\n--Bd", end.as_bytes()].concat();
                for size in [1, 2, 3, 4, 5, 6, 7, 8, 100] {
                    let read = decode(&body, size, LengthRange::ANY);
                    assert_eq!(read.as_deref(), Ok(file), "{file:?} {end:?} {size}");
                }
            }
        }
    }

    #[test]
    fn forms_without_an_end_are_refused() {
        for body in
            ["", "x", "x\r\n--B", "x\r\n--Bd", "x\r\n--Bd-", "x\r\n--Bd\r\n", "x\r\n--Bdx--"]
        {
            for size in [1, 3, 100] {
                let read = decode(body.as_bytes(), size, LengthRange::ANY);
                assert_eq!(read, Err(Reason::MalformedForm), "{body:?}");
            }
        }
        let long = format!("x\r\n--Bd\r\n{}\r\n--Bd--", "y".repeat(REST_BYTES_MAX));
        assert_eq!(decode(long.as_bytes(), 99, LengthRange::ANY), Err(Reason::MalformedForm));
    }

    #[test]
    fn lengths_have_limits() {
        let range = LengthRange { min: 2, max: 4 };
        for (len, reason) in [
            (1, Some(Reason::PartTooSmall)),
            (2, None),
            (4, None),
            (5, Some(Reason::RequestBodyTooLarge)),
        ] {
            for size in [1, 100] {
                let body = format!("{}\r\n--Bd--", "x".repeat(len));
                assert_eq!(decode(body.as_bytes(), size, range).err(), reason, "{len}");
            }
        }
        let both = range.and(LengthRange { min: 0, max: 3 });
        assert_eq!(both, LengthRange { min: 2, max: 3 });
    }
}
