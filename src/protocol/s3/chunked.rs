//! Bodies in `aws-chunked` form: content in chunks, each of which may be signed, and trailers after
//! the last one.
//!
//! ```text
//! SIZE[;chunk-signature=SIGNATURE]CRLF CONTENT CRLF      any number of times, SIZE hexadecimal
//! 0[;chunk-signature=SIGNATURE]CRLF
//! [NAME:VALUE CRLF]...  [x-amz-trailer-signature:SIGNATURE CRLF]
//! CRLF
//! ```
//!
//! This file parses a body and compares its length with the claimed one. `auth::ChunkVerifier`
//! verifies the signatures with the key.
//!
//! Source: S3 API reference, "Transferring Payload in Multiple Chunks" and "... with trailing
//! headers".

use bytes::Bytes;

use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;

/// The longest line of a chunk's size and signature, bytes: 16 digits, a name and 64 digits are 98.
const LINE_MAX: usize = 256;
/// The longest trailers, bytes: those of S3 are a checksum and a signature.
const TRAILERS_MAX: usize = 4 * 1024;
/// Trailers at most.
const TRAILER_COUNT_MAX: usize = 8;
const SIGNATURE: &str = "chunk-signature";
const TRAILER_SIGNATURE: &str = "x-amz-trailer-signature";

/// The next piece of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Content of the current chunk.
    Content(Bytes),
    /// The end of a chunk, with its signature when it has one. The last chunk has no content.
    ChunkEnd(Option<String>),
    /// The end of the body.
    Trailers(Trailers),
}

/// The trailers behind the last chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trailers {
    /// Names in lower case, and values.
    pub fields: Vec<(String, String)>,
    /// Their signature.
    pub signature: Option<String>,
}

impl Trailers {
    /// The lines that are signed.
    #[must_use]
    pub fn signed_lines(&self) -> Vec<u8> {
        let lines = self.fields.iter().map(|(name, value)| format!("{name}:{value}\n"));
        lines.collect::<String>().into_bytes()
    }
}

/// The form of the body that the request announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkForm {
    /// No chunk is signed; trailers may follow.
    Unsigned,
    /// Every chunk is signed; there are no trailers.
    Signed,
    /// Every chunk is signed, and so are the trailers that follow.
    SignedWithTrailers,
}

/// The part of the body to which the next bytes belong.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// The line before a chunk.
    Size,
    Content {
        left: u64,
    },
    /// The line break behind the content.
    ContentEnd,
    /// Lines of trailers, and the empty one that ends them.
    Trailers,
    End,
}

/// Parses a body as it arrives; holds at most a line of it, and the trailers. Content is returned
/// before its signature is known: the caller makes nothing visible until
/// [`ChunkedDecoder::finish`].
#[derive(Debug)]
pub struct ChunkedDecoder {
    /// Content not seen yet.
    content_left: u64,
    part: Part,
    /// The part of a line that is here.
    line: Vec<u8>,
    /// Of the current chunk.
    signature: Option<String>,
    trailers: Trailers,
    /// Bytes of trailers so far.
    trailer_bytes: usize,
    form: ChunkForm,
    /// Whether the next empty line belongs to the trailer before it: some clients end trailers
    /// with a line feed and follow them with an empty line.
    skips_empty: bool,
}

impl ChunkedDecoder {
    /// A decoder of a body with `content_len` bytes of content.
    #[must_use]
    pub fn new(content_len: u64, form: ChunkForm) -> Self {
        Self {
            content_left: content_len,
            part: Part::Size,
            line: Vec::new(),
            signature: None,
            trailers: Trailers::default(),
            trailer_bytes: 0,
            form,
            skips_empty: false,
        }
    }

    /// Takes the next bytes of the body and returns the first piece among them. Call it until it
    /// returns none.
    ///
    /// # Errors
    /// `IncompleteBody` when the content is longer than claimed, or the chunks are malformed.
    pub fn next(&mut self, bytes: &mut Bytes) -> Result<Option<Piece>, Refusal> {
        while !bytes.is_empty() {
            if let Part::Content { left } = self.part {
                let len = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                let piece = bytes.split_to(len);
                let left = left - piece.len() as u64;
                self.part = if left == 0 { Part::ContentEnd } else { Part::Content { left } };
                return Ok(Some(Piece::Content(piece)));
            }
            if self.part == Part::End {
                return Err(malformed("bytes follow its end"));
            }
            let Some(line) = self.whole_line(bytes)? else { return Ok(None) };
            if let Some(piece) = self.take_line(&line)? {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    /// Ends the body.
    ///
    /// # Errors
    /// `IncompleteBody` when it ended early.
    pub fn finish(&self) -> Result<(), Refusal> {
        if self.part == Part::End { Ok(()) } else { Err(malformed("it ends early")) }
    }

    /// The next line without its line break, once it has arrived completely.
    fn whole_line(&mut self, bytes: &mut Bytes) -> Result<Option<Vec<u8>>, Refusal> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let piece = bytes.split_to(end.map_or(bytes.len(), |at| at + 1));
        self.line.extend_from_slice(&piece);
        if self.line.len() > LINE_MAX.max(TRAILERS_MAX) {
            return Err(malformed("a line is too long"));
        }
        if end.is_none() {
            return Ok(None);
        }
        let mut line = std::mem::take(&mut self.line);
        line.pop();
        let is_bare = line.last() != Some(&b'\r');
        if !is_bare {
            line.pop();
        }
        self.skips_empty = is_bare && self.part == Part::Trailers && !line.is_empty()
            || self.skips_empty && line.is_empty();
        Ok(Some(line))
    }

    fn take_line(&mut self, line: &[u8]) -> Result<Option<Piece>, Refusal> {
        match self.part {
            Part::Size => self.size(line),
            Part::ContentEnd if line.is_empty() => {
                self.part = Part::Size;
                Ok(Some(Piece::ChunkEnd(self.signature.take())))
            }
            Part::ContentEnd => Err(malformed("a chunk is longer than its size says")),
            Part::Trailers => self.trailer(line),
            Part::Content { .. } | Part::End => Err(malformed("bytes follow its end")),
        }
    }

    fn size(&mut self, line: &[u8]) -> Result<Option<Piece>, Refusal> {
        let line = std::str::from_utf8(line).ok().filter(|line| line.len() <= LINE_MAX);
        let line = line.ok_or_else(|| malformed("the line before a chunk is not one"))?;
        let (size, extension) = match line.split_once(';') {
            Some((size, extension)) => (size, Some(extension)),
            None => (line, None),
        };
        let is_plain = !size.is_empty() && size.bytes().all(|digit| digit.is_ascii_hexdigit());
        let size = if is_plain { u64::from_str_radix(size, 16).ok() } else { None };
        let size = size.ok_or_else(|| malformed("the size of a chunk is not hexadecimal"))?;
        self.signature = match extension {
            None => None,
            Some(extension) => {
                let found = extension.trim().split_once('=');
                let found = found.filter(|(name, _)| *name == SIGNATURE);
                let (_, value) = found.ok_or_else(|| malformed("a chunk has an extension"))?;
                Some(value.to_owned())
            }
        };
        match (self.form, &self.signature) {
            (ChunkForm::Unsigned, Some(_)) => {
                return Err(malformed("a chunk is signed, and the request says that none is"));
            }
            (ChunkForm::Signed | ChunkForm::SignedWithTrailers, None) => {
                return Err(malformed("a chunk is not signed"));
            }
            (ChunkForm::Unsigned, None)
            | (ChunkForm::Signed | ChunkForm::SignedWithTrailers, Some(_)) => {}
        }
        self.content_left = self.content_left.checked_sub(size).ok_or_else(|| {
            malformed("the chunks hold more than x-amz-decoded-content-length says")
        })?;
        if size > 0 {
            self.part = Part::Content { left: size };
            return Ok(None);
        }
        if self.content_left > 0 {
            return Err(malformed("the chunks hold less than x-amz-decoded-content-length says"));
        }
        self.part = Part::Trailers;
        Ok(Some(Piece::ChunkEnd(self.signature.take())))
    }

    fn trailer(&mut self, line: &[u8]) -> Result<Option<Piece>, Refusal> {
        if line.is_empty() && self.skips_empty {
            self.skips_empty = false;
            return Ok(None);
        }
        if line.is_empty() {
            if self.form == ChunkForm::SignedWithTrailers && self.trailers.signature.is_none() {
                return Err(malformed("the trailers are not signed"));
            }
            self.part = Part::End;
            return Ok(Some(Piece::Trailers(std::mem::take(&mut self.trailers))));
        }
        self.trailer_bytes += line.len();
        let is_full = self.trailers.fields.len() == TRAILER_COUNT_MAX;
        if self.form == ChunkForm::Signed || is_full || self.trailer_bytes > TRAILERS_MAX {
            return Err(malformed("it has trailers that were not announced"));
        }
        let text = std::str::from_utf8(line).ok();
        let (name, value) = text
            .and_then(|text| text.split_once(':'))
            .ok_or_else(|| malformed("a trailer is not of the form NAME:VALUE"))?;
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
        if self.trailers.signature.is_some() {
            return Err(malformed("trailers follow their signature"));
        }
        if name == TRAILER_SIGNATURE {
            self.trailers.signature = Some(value);
            return Ok(None);
        }
        if self.trailers.fields.iter().any(|(known, _)| *known == name) {
            return Err(malformed("a trailer is given twice"));
        }
        self.trailers.fields.push((name, value));
        Ok(None)
    }
}

fn malformed(what: &str) -> Refusal {
    Refusal::new(Reason::IncompleteBody).message(format!("The body is not well formed: {what}."))
}

#[cfg(test)]
mod tests;
