//! Parses answers of the service for clients: lists, tags, refusals.
//!
//! Sources: "List Containers", "List Blobs", "Get Block List", "Get Blob Tags", "Status and error
//! codes".

use percent_encoding::percent_decode_str;

use crate::protocol::model::Refusal;
use crate::protocol::wire::xml;
use crate::protocol::wire::xml::Element;
use crate::types::Md5;
use crate::types::Timestamp;

/// Elements of a page of 5,000 blobs with all of their properties and some metadata.
const ELEMENTS_MAX: usize = 1_000_000;

/// A page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page<T> {
    /// Its entries, in the order of the service.
    pub items: Vec<T>,
    /// The marker of the next page; none after the last one.
    pub next: Option<String>,
}

/// A container in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedContainer {
    /// Its name.
    pub name: String,
    /// When it or its properties were changed.
    pub modified: Option<Timestamp>,
}

/// A blob in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedBlob {
    /// Its name.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// When it was changed.
    pub modified: Option<Timestamp>,
    /// Its `ETag`, with or without quotes.
    pub etag: String,
    /// Its Content-MD5, if it has one that is a digest.
    pub md5: Option<Md5>,
    /// Its Content-Type.
    pub content_type: String,
    /// `BlockBlob`, `PageBlob` or `AppendBlob`.
    pub kind: String,
    /// Its access tier.
    pub tier: String,
}

/// An entry of a list of blobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// A blob.
    Blob(ListedBlob),
    /// The common prefix of names, up to the delimiter.
    Folder(String),
}

/// A block that was staged and is in no blob yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedBlock {
    /// Its id in base64.
    pub id: String,
    /// Bytes.
    pub size: u64,
}

/// A refusal of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorText {
    /// Its code.
    pub code: String,
    /// The first line of its message.
    pub message: String,
}

/// Reads the answer of List Containers.
///
/// # Errors
/// It is not such a list.
pub fn containers(body: &[u8]) -> Result<Page<ListedContainer>, Refusal> {
    let root = xml::parse_long(body, "EnumerationResults", ELEMENTS_MAX)?;
    let list = root.child("Containers").ok_or_else(|| xml::missing("Containers"))?;
    let container = |element: &Element| -> Result<ListedContainer, Refusal> {
        let properties = element.child("Properties");
        let modified = properties.and_then(|found| time(found.child_text("Last-Modified")?));
        Ok(ListedContainer { name: name(element)?, modified })
    };
    let items = list.children.iter().filter(|child| child.name == "Container").map(container);
    Ok(Page { items: items.collect::<Result<_, _>>()?, next: next(&root) })
}

/// Reads the answer of List Blobs.
///
/// # Errors
/// It is not such a list.
pub fn blobs(body: &[u8]) -> Result<Page<Listed>, Refusal> {
    let root = xml::parse_long(body, "EnumerationResults", ELEMENTS_MAX)?;
    let list = root.child("Blobs").ok_or_else(|| xml::missing("Blobs"))?;
    let items = list.children.iter().filter_map(|child| match child.name.as_str() {
        "Blob" => Some(blob(child).map(Listed::Blob)),
        "BlobPrefix" => Some(name(child).map(Listed::Folder)),
        _ => None,
    });
    Ok(Page { items: items.collect::<Result<_, _>>()?, next: next(&root) })
}

fn blob(element: &Element) -> Result<ListedBlob, Refusal> {
    let properties = element.child("Properties").ok_or_else(|| xml::missing("Properties"))?;
    let text = |name: &str| properties.child_text(name).unwrap_or_default().to_owned();
    let size = text("Content-Length");
    Ok(ListedBlob {
        name: name(element)?,
        size: size.parse().map_err(|_| xml::invalid_value("Content-Length", &size))?,
        modified: time(&text("Last-Modified")),
        etag: text("Etag"),
        md5: Md5::from_base64(&text("Content-MD5")),
        content_type: text("Content-Type"),
        kind: text("BlobType"),
        tier: text("AccessTier"),
    })
}

/// A name, which is percent-encoded if XML cannot have it.
fn name(element: &Element) -> Result<String, Refusal> {
    let name = element.child("Name").ok_or_else(|| xml::missing("Name"))?;
    let encoded = name.attributes.iter().any(|(key, value)| key == "Encoded" && value == "true");
    if !encoded {
        return Ok(name.text.clone());
    }
    let decoded = percent_decode_str(&name.text).decode_utf8();
    decoded.map(Into::into).map_err(|_| xml::invalid_value("Name", &name.text))
}

fn next(root: &Element) -> Option<String> {
    root.child_text("NextMarker").filter(|marker| !marker.is_empty()).map(str::to_owned)
}

/// Reads a date of a header or a list.
#[must_use]
pub fn time(text: &str) -> Option<Timestamp> {
    let time = httpdate::parse_http_date(text.trim()).ok()?;
    time.duration_since(std::time::UNIX_EPOCH).ok().map(Timestamp::from_unix)
}

/// Reads the staged blocks in the answer of Get Block List.
///
/// # Errors
/// It is not such a list.
pub fn staged_blocks(body: &[u8]) -> Result<Vec<StagedBlock>, Refusal> {
    let root = xml::parse_long(body, "BlockList", ELEMENTS_MAX)?;
    let Some(list) = root.child("UncommittedBlocks") else { return Ok(Vec::new()) };
    let block = |element: &Element| -> Result<StagedBlock, Refusal> {
        let id = element.child_text("Name").ok_or_else(|| xml::missing("Name"))?;
        let size = element.child_text("Size").unwrap_or_default();
        let bytes = size.parse().map_err(|_| xml::invalid_value("Size", size))?;
        Ok(StagedBlock { id: id.to_owned(), size: bytes })
    };
    list.children.iter().filter(|child| child.name == "Block").map(block).collect()
}

/// Reads the answer of Get Blob Tags.
///
/// # Errors
/// It is not a set of tags.
pub fn tags(body: &[u8]) -> Result<Vec<(String, String)>, Refusal> {
    let root = xml::parse_long(body, "Tags", ELEMENTS_MAX)?;
    let Some(set) = root.child("TagSet") else { return Ok(Vec::new()) };
    let tag = |element: &Element| -> Result<(String, String), Refusal> {
        let text = |name: &str| element.child(name).map(|child| child.text.clone());
        let key = text("Key").ok_or_else(|| xml::missing("Key"))?;
        Ok((key, text("Value").unwrap_or_default()))
    };
    set.children.iter().filter(|child| child.name == "Tag").map(tag).collect()
}

/// Writes the body of Put Block List: these blocks in this order, each the latest of its id.
#[must_use]
pub fn block_list(ids: &[String]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    // Base64 has no character that XML would escape.
    ids.iter().for_each(|id| out.extend(["<Latest>", id, "</Latest>"]));
    out.push_str("</BlockList>");
    out
}

/// Reads a refusal; `None` if the body has none.
#[must_use]
pub fn refusal(body: &[u8]) -> Option<ErrorText> {
    let root = xml::parse_long(body, "Error", ELEMENTS_MAX).ok()?;
    let text = |name: &str| root.child_text(name).unwrap_or_default();
    let message = text("Message").lines().next().unwrap_or_default();
    Some(ErrorText { code: text("Code").to_owned(), message: message.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_of_blobs_has_folders_encoded_names_and_a_marker() {
        let body = "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults><Blobs>\
            <Blob><Name> a&amp;b </Name><Properties><Content-Length>7</Content-Length>\
            <Last-Modified>Sat, 21 Nov 2026 05:00:00 GMT</Last-Modified><Etag>0x8D</Etag>\
            <Content-MD5>1B2M2Y8AsgTpgAmY7PhCfg==</Content-MD5><BlobType>BlockBlob</BlobType>\
            </Properties></Blob><BlobPrefix><Name Encoded=\"true\">p/%01</Name></BlobPrefix>\
            </Blobs><NextMarker>m</NextMarker></EnumerationResults>";
        let page = blobs(body.as_bytes()).unwrap();
        assert_eq!(page.next.as_deref(), Some("m"));
        let [Listed::Blob(blob), Listed::Folder(folder)] = &page.items[..] else {
            panic!("{page:?}")
        };
        assert_eq!((blob.name.as_str(), blob.size, folder.as_str()), (" a&b ", 7, "p/\u{1}"));
        assert_eq!(blob.md5, Some(Md5::of(b"")));
        assert_eq!(blob.modified, Timestamp::from_iso("2026-11-21T05:00:00Z"));
    }

    #[test]
    fn lists_that_are_none_are_refused() {
        for body in [
            "",
            "<Error/>",
            "<EnumerationResults/>",
            "<EnumerationResults><Blobs><Blob/></Blobs></EnumerationResults>",
            "<EnumerationResults><Blobs><Blob><Name>a</Name><Properties>\
             <Content-Length>-1</Content-Length></Properties></Blob></Blobs></EnumerationResults>",
            "<!DOCTYPE x [<!ENTITY y SYSTEM \"file:///\">]><EnumerationResults/>",
        ] {
            blobs(body.as_bytes()).unwrap_err();
        }
    }

    #[test]
    fn staged_blocks_tags_containers_and_refusals_are_read() {
        let list = "<BlockList><CommittedBlocks><Block><Name>AA==</Name><Size>1</Size></Block>\
            </CommittedBlocks><UncommittedBlocks><Block><Name>AQ==</Name><Size>9</Size></Block>\
            </UncommittedBlocks></BlockList>";
        let staged = staged_blocks(list.as_bytes()).unwrap();
        assert_eq!(staged, [StagedBlock { id: "AQ==".to_owned(), size: 9 }]);
        let set = "<Tags><TagSet><Tag><Key>k</Key><Value>v </Value></Tag></TagSet></Tags>";
        assert_eq!(tags(set.as_bytes()).unwrap(), [("k".to_owned(), "v ".to_owned())]);
        let list = "<EnumerationResults><Containers><Container><Name>c</Name></Container>\
            </Containers><NextMarker/></EnumerationResults>";
        let page = containers(list.as_bytes()).unwrap();
        assert_eq!((page.items[0].name.as_str(), page.next), ("c", None));
        let refused =
            refusal(b"<Error><Code>ServerBusy</Code><Message>Wait.\nId</Message></Error>");
        let refused = refused.unwrap();
        assert_eq!((refused.code.as_str(), refused.message.as_str()), ("ServerBusy", "Wait."));
        assert_eq!(refusal(b"<html>"), None);
    }

    #[test]
    fn block_list_is_one_that_the_service_reads() {
        let ids = ["AA==".to_owned(), "AQ==".to_owned()];
        let body = block_list(&ids);
        assert!(body.ends_with("<Latest>AA==</Latest><Latest>AQ==</Latest></BlockList>"), "{body}");
        assert!(xml::parse(body.as_bytes(), "BlockList").is_ok());
    }
}
