//! The XML body of Put Block List.

use quick_xml::Reader;
use quick_xml::events::BytesRef;
use quick_xml::events::BytesStart;
use quick_xml::events::Event;

use crate::protocol::azure::block_id;
use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::wire::xml::check_encoding;
use crate::protocol::wire::xml::not_xml;
use crate::protocol::wire::xml::reference;
use crate::types::BLOCKS_COMMITTED_MAX;
use crate::types::BlockListEntry;
use crate::types::BlockSource;

/// Bytes a block list body may have: 50,000 entries of the longest id, with room for white space
/// and an XML head.
pub const BLOCK_LIST_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Characters of one id: 64 bytes in base64, with room for white space around.
const ID_CHARS_MAX: usize = 256;

/// Where the reader stands.
enum Place {
    /// Before `<BlockList>`.
    Start,
    /// Among the entries.
    List,
    /// In an entry; the text so far.
    Entry(BlockSource, String),
    /// After `</BlockList>`.
    End,
}

/// Reads the body of Put Block List. No entity is expanded but the predefined five and character
/// references.
///
/// # Errors
/// `InvalidXmlDocument` when it is not one XML document with the root `BlockList`;
/// `UnsupportedXmlNode` for other elements; `InvalidXmlNodeValue` for an empty entry;
/// `InvalidBlockId`; `BlockListTooLong` above 50,000 entries.
pub fn block_list(body: &[u8]) -> Result<Vec<BlockListEntry>, Refusal> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let text = std::str::from_utf8(body).map_err(|_| not_xml())?;
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_comments = true;
    let mut entries = Vec::new();
    let mut place = Place::Start;
    loop {
        match reader.read_event().map_err(|_| not_xml())? {
            Event::Start(tag) => place = open(&place, &tag)?,
            Event::Empty(tag) => place = close(open(&place, &tag)?, &mut entries)?,
            Event::End(_) => place = close(place, &mut entries)?,
            Event::Text(piece) => add_text(&mut place, &piece)?,
            Event::CData(piece) => {
                if !matches!(place, Place::Entry(..)) {
                    return Err(not_xml());
                }
                add_text(&mut place, &piece)?;
            }
            Event::GeneralRef(reference) => add_reference(&mut place, &reference)?,
            Event::Decl(head) => check_encoding(head.encoding())?,
            Event::Comment(_) | Event::PI(_) => {}
            // A document type could define entities: none is needed here, so none is read.
            Event::DocType(_) => return Err(not_xml()),
            Event::Eof => {
                return if matches!(place, Place::End) { Ok(entries) } else { Err(not_xml()) };
            }
        }
    }
}

fn open(place: &Place, tag: &BytesStart<'_>) -> Result<Place, Refusal> {
    if tag.attributes().any(|attribute| attribute.is_err()) {
        return Err(not_xml());
    }
    let name = tag.name();
    let name: &str = name.as_ref();
    match place {
        Place::Start if name == "BlockList" => Ok(Place::List),
        Place::Start | Place::End => Err(not_xml()),
        Place::Entry(..) => Err(unsupported(name)),
        Place::List => {
            let source = match name {
                "Latest" => BlockSource::Latest,
                "Committed" => BlockSource::Committed,
                "Uncommitted" => BlockSource::Uncommitted,
                _ => return Err(unsupported(name)),
            };
            Ok(Place::Entry(source, String::new()))
        }
    }
}

fn unsupported(name: &str) -> Refusal {
    Refusal::new(Reason::UnsupportedElement).detail(Detail::ElementName, name)
}

fn close(place: Place, entries: &mut Vec<BlockListEntry>) -> Result<Place, Refusal> {
    match place {
        Place::List => Ok(Place::End),
        Place::Entry(source, text) => {
            if entries.len() == BLOCKS_COMMITTED_MAX {
                return Err(Reason::BlockListTooLong.into());
            }
            let text = text.trim();
            if text.is_empty() {
                return Err(Reason::InvalidElementValue.into());
            }
            let id = block_id::read(text).map_err(|_| {
                Refusal::new(Reason::InvalidBlockId).detail(Detail::ElementValue, text)
            })?;
            entries.push(BlockListEntry { source, id });
            Ok(Place::List)
        }
        Place::Start | Place::End => Err(not_xml()),
    }
}

fn add_text(place: &mut Place, piece: &str) -> Result<(), Refusal> {
    match place {
        Place::Entry(_, text) if text.len() + piece.len() <= ID_CHARS_MAX => {
            text.push_str(piece);
            Ok(())
        }
        Place::Entry(..) => Err(Reason::InvalidBlockId.into()),
        Place::Start | Place::List | Place::End if piece.trim().is_empty() => Ok(()),
        Place::List => Err(Reason::InvalidElementValue.into()),
        Place::Start | Place::End => Err(not_xml()),
    }
}

fn add_reference(place: &mut Place, piece: &BytesRef<'_>) -> Result<(), Refusal> {
    let mut bytes = [0; 4];
    add_text(place, reference(piece)?.encode_utf8(&mut bytes))
}

#[cfg(test)]
mod tests;
