//! The document of CompleteMultipartUpload.

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::protocol::model::Detail;
use crate::protocol::model::Operation;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::model::operation::Document;
use crate::protocol::model::operation::NamedPart;
use crate::protocol::model::operation::UploadOperation;
use crate::protocol::s3::upload_checksums;
use crate::protocol::wire::xml::check_encoding;
use crate::protocol::wire::xml::missing;
use crate::protocol::wire::xml::not_xml;
use crate::protocol::wire::xml::reference;
use crate::types::ContentChecksum;
use crate::types::ContentEtag;
use crate::types::PartNumber;
use crate::types::UPLOAD_PARTS_MAX;

/// Bytes that the document may have: 10,000 parts, with room for white space and every checksum.
pub const DOCUMENT_BYTES_MAX: u64 = 6 * 1024 * 1024;

/// Characters of one value.
const TEXT_MAX: usize = 256;

/// A tag for text that is not a tag: no part has it.
fn no_tag() -> ContentEtag {
    ContentEtag::opaque([0; 16], u32::MAX)
}

/// Completes the operation with the parts that the document names.
pub(super) fn decode(operation: &mut Operation, document: &Document<'_>) -> Result<(), Refusal> {
    if let Operation::Upload(UploadOperation::Complete(complete)) = operation {
        complete.parts = parts(document.bytes)?;
        Ok(())
    } else {
        Err(Reason::InternalError.into())
    }
}

/// Where the reader stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the root.
    Start,
    /// Among the parts.
    List,
    /// In a part.
    Part,
    /// In a value of a part.
    Value,
    /// After the root.
    End,
}

/// A part of which not all was read yet.
#[derive(Debug, Default)]
struct Draft {
    number: Option<PartNumber>,
    tag: Option<ContentEtag>,
    checksum: Option<ContentChecksum>,
}

/// The parts that were read, and the state of the reader.
#[derive(Debug)]
struct Parts {
    place: Place,
    all: Vec<NamedPart>,
    draft: Draft,
    /// The element of the value, and its text so far.
    name: String,
    text: String,
}

/// Reads the document. Only the predefined five entities and character references are expanded.
///
/// # Errors
/// `InvalidDocument` and the like, all MalformedXML, when it is not one XML document of this shape
/// with 1 to 10,000 parts; `InvalidQueryParameterValue` (InvalidArgument) for a number that no part
/// can have.
pub fn parts(body: &[u8]) -> Result<Vec<NamedPart>, Refusal> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let text = std::str::from_utf8(body).map_err(|_| not_xml())?;
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_comments = true;
    let mut parts = Parts {
        place: Place::Start,
        all: Vec::new(),
        draft: Draft::default(),
        name: String::new(),
        text: String::new(),
    };
    loop {
        let event = reader.read_event().map_err(|_| not_xml())?;
        match event {
            Event::Start(ref tag) | Event::Empty(ref tag) => {
                if tag.attributes().any(|attribute| attribute.is_err()) {
                    return Err(not_xml());
                }
                let name = tag.local_name();
                let name: &str = name.as_ref();
                parts.open(name)?;
                if matches!(event, Event::Empty(_)) {
                    parts.close()?;
                }
            }
            Event::End(_) => parts.close()?,
            Event::Text(piece) => parts.add(&piece)?,
            Event::CData(piece) => parts.add(&piece)?,
            Event::GeneralRef(piece) => {
                let mut bytes = [0; 4];
                parts.add(reference(&piece)?.encode_utf8(&mut bytes))?;
            }
            Event::Decl(head) => check_encoding(head.encoding())?,
            Event::Comment(_) | Event::PI(_) => {}
            // A document type could define entities. None is needed, so it is refused.
            Event::DocType(_) => return Err(not_xml()),
            Event::Eof => return parts.finish(),
        }
    }
}

impl Parts {
    fn open(&mut self, name: &str) -> Result<(), Refusal> {
        self.place = match self.place {
            Place::Start if name == "CompleteMultipartUpload" => Place::List,
            Place::List if name == "Part" => Place::Part,
            Place::Part => {
                name.clone_into(&mut self.name);
                self.text.clear();
                Place::Value
            }
            Place::Start | Place::List | Place::Value | Place::End => return Err(not_xml()),
        };
        Ok(())
    }

    fn close(&mut self) -> Result<(), Refusal> {
        self.place = match self.place {
            Place::Value => {
                self.value()?;
                Place::Part
            }
            Place::Part => {
                self.part()?;
                Place::List
            }
            Place::List => Place::End,
            Place::Start | Place::End => return Err(not_xml()),
        };
        Ok(())
    }

    fn add(&mut self, piece: &str) -> Result<(), Refusal> {
        match self.place {
            Place::Value if self.text.len() + piece.len() <= TEXT_MAX => {
                self.text.push_str(piece);
                Ok(())
            }
            Place::Start | Place::List | Place::Part | Place::End if piece.trim().is_empty() => {
                Ok(())
            }
            Place::Start | Place::List | Place::Part | Place::Value | Place::End => Err(not_xml()),
        }
    }

    /// Reads a value of a part. Each may come once.
    fn value(&mut self) -> Result<(), Refusal> {
        let (name, text) = (self.name.as_str(), self.text.trim());
        let is_first = match name {
            "PartNumber" => {
                let number = text.parse().map_err(|_| not_xml())?;
                let number = PartNumber::new(number).ok_or_else(|| {
                    Refusal::new(Reason::InvalidQueryParameterValue)
                        .message("PartNumber must be between 1 and 10000")
                        .detail(Detail::ParameterName, "PartNumber")
                        .detail(Detail::ParameterValue, text)
                })?;
                self.draft.number.replace(number).is_none()
            }
            "ETag" => {
                let tag = ContentEtag::parse(text).unwrap_or_else(no_tag);
                self.draft.tag.replace(tag).is_none()
            }
            _ => match upload_checksums::of_element(name, text)? {
                Some(checksum) => self.draft.checksum.replace(checksum).is_none(),
                // Elements of later versions of S3.
                None => true,
            },
        };
        if is_first { Ok(()) } else { Err(not_xml()) }
    }

    fn part(&mut self) -> Result<(), Refusal> {
        let Draft { number, tag, checksum } = std::mem::take(&mut self.draft);
        if u32::try_from(self.all.len()).is_ok_and(|count| count >= UPLOAD_PARTS_MAX) {
            return Err(not_xml());
        }
        let number = number.ok_or_else(|| missing("PartNumber"))?;
        let tag = tag.ok_or_else(|| missing("ETag"))?;
        self.all.push(NamedPart { number, tag, checksum });
        Ok(())
    }

    fn finish(self) -> Result<Vec<NamedPart>, Refusal> {
        if self.place != Place::End || self.all.is_empty() {
            return Err(not_xml());
        }
        Ok(self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ChecksumAlgorithm;
    use crate::types::Md5;

    const MD5: &str = "900150983cd24fb0d6963f7d28e17f72";

    fn document(inside: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?><CompleteMultipartUpload>{inside}</CompleteMultipartUpload>"
        )
    }

    fn part(inside: &str) -> Result<Vec<NamedPart>, Reason> {
        parts(document(&format!("<Part>{inside}</Part>")).as_bytes()).map_err(|error| error.reason)
    }

    #[test]
    fn parts_are_read_in_their_order() {
        let body = format!(
            "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\n\
             <Part><ETag>&quot;{MD5}&quot;</ETag><PartNumber>2</PartNumber></Part>\
             <Part><PartNumber> 1 </PartNumber><ETag>{MD5}-1</ETag>\
             <ChecksumCRC32>AAAAAA==</ChecksumCRC32><Later>x</Later></Part>\
             </CompleteMultipartUpload>"
        );
        let found = parts(body.as_bytes()).unwrap();
        let numbers: Vec<u32> = found.iter().map(|part| part.number.get()).collect();
        assert_eq!(numbers, [2, 1], "the index judges the order");
        assert_eq!(found[0].tag, ContentEtag::md5(Md5::of(b"abc")));
        assert_eq!(found[1].tag.number(), Some(1));
        let checksum = found[1].checksum.as_ref().unwrap();
        assert_eq!(checksum.algorithm, ChecksumAlgorithm::Crc32);
    }

    #[test]
    fn a_text_that_is_no_tag_is_that_of_no_part() {
        let found = part("<PartNumber>1</PartNumber><ETag>nonsense</ETag>").unwrap();
        assert_eq!(found[0].tag, no_tag());
    }

    #[test]
    fn malformed_documents_are_refused() {
        let number = "<PartNumber>1</PartNumber>";
        let tag = format!("<ETag>{MD5}</ETag>");
        for (inside, reason) in [
            ("", Reason::MissingElement),
            (number, Reason::MissingElement),
            (tag.as_str(), Reason::MissingElement),
            (&format!("{number}{number}{tag}"), Reason::InvalidDocument),
            (&format!("{number}{tag}{tag}"), Reason::InvalidDocument),
            (&format!("<PartNumber>x</PartNumber>{tag}"), Reason::InvalidDocument),
            (&format!("<PartNumber>-1</PartNumber>{tag}"), Reason::InvalidDocument),
            (&format!("<PartNumber>0</PartNumber>{tag}"), Reason::InvalidQueryParameterValue),
            (&format!("<PartNumber>10001</PartNumber>{tag}"), Reason::InvalidQueryParameterValue),
            (
                &format!("{number}{tag}<ChecksumSHA1>AA==</ChecksumSHA1>"),
                Reason::InvalidElementValue,
            ),
            (&format!("{number}<ETag><x/></ETag>"), Reason::InvalidDocument),
            (&format!("{number}{tag}text"), Reason::InvalidDocument),
        ] {
            assert_eq!(part(inside), Err(reason), "{inside}");
        }
        for body in ["", "x", "<Other/>", &document(""), &document("<Other/>"), &document("x")] {
            assert!(parts(body.as_bytes()).is_err(), "{body}");
        }
        let dtd = format!("<!DOCTYPE a [<!ENTITY b \"c\">]>{}", document("<Part/>"));
        assert!(parts(dtd.as_bytes()).is_err());
    }

    #[test]
    fn ten_thousand_parts_are_read_and_no_more() {
        let list = |count: u32| {
            let part = |n| format!("<Part><PartNumber>{n}</PartNumber><ETag>{MD5}</ETag></Part>");
            document(&(1..=count).map(part).collect::<String>())
        };
        assert_eq!(parts(list(10_000).as_bytes()).unwrap().len(), 10_000);
        let one_more = list(10_000).replace(
            "</CompleteM",
            &format!(
                "<Part>{}</Part></CompleteM",
                format_args!("<PartNumber>1</PartNumber><ETag>{MD5}</ETag>")
            ),
        );
        assert!(parts(one_more.as_bytes()).is_err());
    }
}
