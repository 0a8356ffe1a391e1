//! A small XML document as a tree: for bodies of a few kilobytes with nested elements.
//!
//! No entity is expanded but the predefined five and character references. Attributes are kept as
//! they stand.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::events::BytesRef;
use quick_xml::events::BytesStart;
use quick_xml::events::Event;
use quick_xml::events::attributes::Attribute;

use crate::protocol::model::Detail;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;

/// Elements inside elements; the deepest document of a known dialect has five levels.
const DEPTH_MAX: usize = 16;
/// Elements of one document.
const ELEMENTS_MAX: usize = 4096;

/// An element: either children or text counts, as the reader of it knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::protocol) struct Element {
    /// The tag.
    pub(in crate::protocol) name: String,
    /// Its character data, as it stands.
    pub(in crate::protocol) text: String,
    /// The elements inside, in order.
    pub(in crate::protocol) children: Vec<Self>,
    /// Names and values of its attributes.
    pub(in crate::protocol) attributes: Vec<(String, String)>,
}

impl Element {
    /// The child of that name, if there is one; the first of several.
    #[must_use]
    pub(in crate::protocol) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of a child, without white space around; `None` when it is missing.
    #[must_use]
    pub(in crate::protocol) fn child_text(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.trim())
    }

    /// Refuses children that are not in `known`, and known ones that come twice unless they may.
    ///
    /// # Errors
    /// `UnsupportedXmlNode`, `InvalidXmlDocument`.
    pub(in crate::protocol) fn only(&self, known: &[&str]) -> Result<(), Refusal> {
        for (at, child) in self.children.iter().enumerate() {
            if !known.contains(&child.name.as_str()) {
                return Err(Refusal::new(Reason::UnsupportedElement)
                    .detail(Detail::ElementName, child.name.as_str()));
            }
            if self.children.iter().skip(at + 1).any(|other| other.name == child.name) {
                return Err(Refusal::new(Reason::InvalidDocument)
                    .detail(Detail::ElementName, child.name.as_str()));
            }
        }
        if self.text.trim().is_empty() {
            return Ok(());
        }
        Err(Refusal::new(Reason::InvalidElementValue)
            .detail(Detail::ElementName, self.name.as_str()))
    }
}

/// A value an element must not have.
#[must_use]
pub(in crate::protocol) fn invalid_value(name: &str, value: &str) -> Refusal {
    Refusal::new(Reason::InvalidElementValue)
        .detail(Detail::ElementName, name)
        .detail(Detail::ElementValue, value)
}

/// An element that the document must not have.
#[must_use]
pub(in crate::protocol) fn unsupported(name: &str) -> Refusal {
    Refusal::new(Reason::UnsupportedElement).detail(Detail::ElementName, name)
}

/// An element that has to be there and is not.
#[must_use]
pub(in crate::protocol) fn missing(name: &str) -> Refusal {
    Refusal::new(Reason::MissingElement).detail(Detail::ElementName, name)
}

/// Reads a document whose root has the name `root`.
///
/// # Errors
/// `InvalidXmlDocument` when it is not one XML document with that root, or too deep or large.
pub(in crate::protocol) fn parse(body: &[u8], root: &str) -> Result<Element, Refusal> {
    parse_long(body, root, ELEMENTS_MAX)
}

/// As [`parse`], of a document that may have `elements_max` elements.
///
/// # Errors
/// As [`parse`].
pub(in crate::protocol) fn parse_long(
    body: &[u8],
    root: &str,
    elements_max: usize,
) -> Result<Element, Refusal> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let text = std::str::from_utf8(body).map_err(|_| not_xml())?;
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_comments = true;
    let mut open: Vec<Element> = Vec::new();
    let mut done = None;
    let mut count = 0;
    loop {
        let event = reader.read_event().map_err(|_| not_xml())?;
        match event {
            Event::Start(ref tag) | Event::Empty(ref tag) => {
                count += 1;
                if done.is_some() || open.len() >= DEPTH_MAX || count > elements_max {
                    return Err(not_xml());
                }
                let name: &str = tag.name().into_inner();
                let attributes = attributes(tag)?;
                open.push(Element { name: name.to_owned(), attributes, ..Element::default() });
                if matches!(event, Event::Empty(_)) {
                    close(&mut open, &mut done)?;
                }
            }
            Event::End(_) => close(&mut open, &mut done)?,
            Event::Text(piece) => add(&mut open, &piece)?,
            Event::CData(piece) => add(&mut open, &piece)?,
            Event::GeneralRef(piece) => {
                let mut bytes = [0; 4];
                add(&mut open, reference(&piece)?.encode_utf8(&mut bytes))?;
            }
            Event::Decl(head) => check_encoding(head.encoding())?,
            Event::Comment(_) | Event::PI(_) => {}
            // A document type could define entities: none is needed here, so none is read.
            Event::DocType(_) => return Err(not_xml()),
            Event::Eof => {
                let whole = done.filter(|found| found.name == root && open.is_empty());
                return whole.ok_or_else(not_xml);
            }
        }
    }
}

fn attributes(tag: &BytesStart<'_>) -> Result<Vec<(String, String)>, Refusal> {
    let pair = |found: Result<Attribute<'_>, _>| {
        let found = found.map_err(|_| not_xml())?;
        let name: &str = found.key.into_inner();
        let value: &str = found.value.as_ref();
        Ok((name.to_owned(), value.to_owned()))
    };
    tag.attributes().map(pair).collect()
}

fn close(open: &mut Vec<Element>, done: &mut Option<Element>) -> Result<(), Refusal> {
    let element = open.pop().ok_or_else(not_xml)?;
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None => *done = Some(element),
    }
    Ok(())
}

fn add(open: &mut [Element], piece: &str) -> Result<(), Refusal> {
    match open.last_mut() {
        Some(element) => {
            element.text.push_str(piece);
            Ok(())
        }
        None if piece.trim().is_empty() => Ok(()),
        None => Err(not_xml()),
    }
}

/// The refusal of a document that is not XML, or has another root.
pub(in crate::protocol) fn not_xml() -> Refusal {
    Reason::InvalidDocument.into()
}

/// The character a reference stands for: by number, or one of the predefined five.
pub(in crate::protocol) fn reference(piece: &BytesRef<'_>) -> Result<char, Refusal> {
    match piece.resolve_char_ref().map_err(|_| not_xml())? {
        Some(character) => Ok(character),
        None => match AsRef::<str>::as_ref(piece) {
            "amp" => Ok('&'),
            "lt" => Ok('<'),
            "gt" => Ok('>'),
            "quot" => Ok('"'),
            "apos" => Ok('\''),
            _ => Err(not_xml()),
        },
    }
}

/// Refuses all but UTF-8.
pub(in crate::protocol) fn check_encoding<E>(
    encoding: Option<Result<Cow<'_, str>, E>>,
) -> Result<(), Refusal> {
    match encoding {
        None => Ok(()),
        Some(Ok(name)) if name.eq_ignore_ascii_case("utf-8") => Ok(()),
        Some(_) => Err(not_xml()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_nest_and_texts_are_joined() {
        let found =
            parse(b"<?xml version=\"1.0\"?><A x=\"1\"> <B>a&amp;b<![CDATA[<]]></B><C/></A>", "A");
        let found = found.unwrap();
        assert_eq!(found.child_text("B"), Some("a&b<"));
        assert_eq!(found.child_text("C"), Some(""));
        assert_eq!(found.child("D"), None);
        assert_eq!(found.attributes, [("x".to_owned(), "1".to_owned())]);
        assert!(found.only(&["B", "C"]).is_ok());
        assert_eq!(found.only(&["B"]).unwrap_err().reason, Reason::UnsupportedElement);
    }

    #[test]
    fn what_is_not_one_document_is_refused() {
        let deep = "<a>".repeat(17) + &"</a>".repeat(17);
        let bad: [&str; 9] = [
            "",
            "<A>",
            "<B/>",
            "<A/><A/>",
            "x<A/>",
            "<A></B>",
            "<!DOCTYPE x><A/>",
            "<A>&x;</A>",
            &deep,
        ];
        for text in bad {
            assert_eq!(parse(text.as_bytes(), "A").unwrap_err().reason, Reason::InvalidDocument);
        }
        let twice = parse(b"<A><B/><B/></A>", "A").unwrap();
        assert_eq!(twice.only(&["B"]).unwrap_err().reason, Reason::InvalidDocument);
    }
}
