//! Block lists: every malformation has its code, and none is a panic.

use proptest::prelude::any;
use proptest::prelude::proptest;
use proptest::prop_assert;

use crate::protocol::azure::xml::BLOCK_LIST_BYTES_MAX;
use crate::protocol::azure::xml::block_list;
use crate::protocol::model::Reason;
use crate::types::BLOCKS_COMMITTED_MAX;
use crate::types::BlockSource;

const WHOLE: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<BlockList>\n  <Latest>YWFh</Latest>\n  \
    <Committed>YmJi</Committed><!-- c --><Uncommitted> Y2Nj </Uncommitted></BlockList>\n";

fn code(body: &[u8]) -> Option<Reason> {
    block_list(body).err().map(|error| error.reason)
}

#[test]
fn entries_keep_order_source_and_id() {
    let entries = block_list(WHOLE.as_bytes()).unwrap();
    let seen: Vec<(BlockSource, &[u8])> =
        entries.iter().map(|e| (e.source, e.id.as_bytes())).collect();
    let expected: [(BlockSource, &[u8]); 3] = [
        (BlockSource::Latest, b"aaa"),
        (BlockSource::Committed, b"bbb"),
        (BlockSource::Uncommitted, b"ccc"),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn forms_clients_send_are_read() {
    let bodies: [&[u8]; 7] = [
        b"<BlockList><Latest>YWFh</Latest></BlockList>",
        b"\xef\xbb\xbf<BlockList><Latest>YWFh</Latest></BlockList>",
        b"<?xml version='1.0' encoding='UTF-8' standalone='yes'?><BlockList><Latest>YWFh</Latest></BlockList>",
        b"<BlockList xmlns:x='y' x:z='1'><Latest a='b'>YWFh</Latest></BlockList>",
        b"<BlockList><Latest><![CDATA[YWFh]]></Latest></BlockList>",
        b"<BlockList><Latest>YW&#70;h</Latest></BlockList>",
        b"<BlockList><?pi x?><Latest>YW<!-- in -->Fh</Latest></BlockList>\r\n",
    ];
    for body in bodies {
        let entries = block_list(body).unwrap();
        assert_eq!(entries.len(), 1, "{}", String::from_utf8_lossy(body));
        assert_eq!(entries[0].id.as_bytes(), b"aaa");
    }
}

#[test]
fn an_empty_list_is_legal() {
    for body in ["<BlockList/>", "<BlockList></BlockList>", "<BlockList> </BlockList>"] {
        assert_eq!(block_list(body.as_bytes()), Ok(Vec::new()));
    }
}

/// Bodies and the codes they are refused with; the bad-input suite sends the same kinds over TCP.
const REFUSED: &[(&[u8], Reason)] = &[
    (b"", Reason::InvalidDocument),
    (b" ", Reason::InvalidDocument),
    (b"{}", Reason::InvalidDocument),
    (b"<BlockList>", Reason::InvalidDocument),
    (b"</BlockList>", Reason::InvalidDocument),
    (b"<BlockList></Blocklist>", Reason::InvalidDocument),
    (b"<blocklist/>", Reason::InvalidDocument),
    (b"<BlockList/><BlockList/>", Reason::InvalidDocument),
    (b"<BlockList/>x", Reason::InvalidDocument),
    (b"x<BlockList/>", Reason::InvalidDocument),
    (b"<Tags/>", Reason::InvalidDocument),
    (b"<x:BlockList xmlns:x='y'/>", Reason::InvalidDocument),
    (b"<BlockList a=1/>", Reason::InvalidDocument),
    (b"<BlockList a='1' a='2'/>", Reason::InvalidDocument),
    (b"<BlockList><Latest>YWFh</BlockList></Latest>", Reason::InvalidDocument),
    (b"<BlockList><Latest>YWFh</Latest>", Reason::InvalidDocument),
    (b"<BlockList><Latest>YW\xff</Latest></BlockList>", Reason::InvalidDocument),
    (b"<BlockList><Latest>&unknown;</Latest></BlockList>", Reason::InvalidDocument),
    (b"<BlockList><Latest>&#xFFFFFFF;</Latest></BlockList>", Reason::InvalidDocument),
    (b"<BlockList><Latest>&#0;</Latest></BlockList>", Reason::InvalidDocument),
    (b"<BlockList><!-- a -- b --></BlockList>", Reason::InvalidDocument),
    (b"<?xml version='1.0' encoding='utf-16'?><BlockList/>", Reason::InvalidDocument),
    (b"\xff\xfe<\0B\0", Reason::InvalidDocument),
    (
        b"<!DOCTYPE b [<!ENTITY a 'YWFh'>]><BlockList><Latest>&a;</Latest></BlockList>",
        Reason::InvalidDocument,
    ),
    (b"<BlockList>YWFh</BlockList>", Reason::InvalidElementValue),
    (b"<BlockList><Latest></Latest></BlockList>", Reason::InvalidElementValue),
    (b"<BlockList><Latest/></BlockList>", Reason::InvalidElementValue),
    (b"<BlockList><Latest> \n</Latest></BlockList>", Reason::InvalidElementValue),
    (b"<BlockList><Newest>YWFh</Newest></BlockList>", Reason::UnsupportedElement),
    (b"<BlockList><latest>YWFh</latest></BlockList>", Reason::UnsupportedElement),
    (b"<BlockList><Latest><b>YWFh</b></Latest></BlockList>", Reason::UnsupportedElement),
    (b"<BlockList><BlockList/></BlockList>", Reason::UnsupportedElement),
    (b"<BlockList><Latest>***</Latest></BlockList>", Reason::InvalidBlockId),
    (b"<BlockList><Latest>YWF</Latest></BlockList>", Reason::InvalidBlockId),
    (b"<BlockList><Latest>YW Fh</Latest></BlockList>", Reason::InvalidBlockId),
];

#[test]
fn malformed_bodies_are_refused_with_their_codes() {
    for (body, expected) in REFUSED {
        assert_eq!(code(body), Some(*expected), "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn ids_longer_than_the_limit_are_refused_before_they_are_collected() {
    let long = "YWFh".repeat(22);
    let body = format!("<BlockList><Latest>{long}</Latest></BlockList>");
    assert_eq!(code(body.as_bytes()), Some(Reason::InvalidBlockId));
    let endless = "YWFh".repeat(100_000);
    let body = format!("<BlockList><Latest>{endless}</Latest></BlockList>");
    assert_eq!(code(body.as_bytes()), Some(Reason::InvalidBlockId));
}

#[test]
fn the_longest_list_fits_and_one_more_is_refused() {
    let id = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, [7; 64]);
    let entry = format!("<Uncommitted>{id}</Uncommitted>");
    let body = format!("<BlockList>{}</BlockList>", entry.repeat(BLOCKS_COMMITTED_MAX));
    assert!(u64::try_from(body.len()).unwrap() < BLOCK_LIST_BYTES_MAX);
    assert_eq!(block_list(body.as_bytes()).unwrap().len(), BLOCKS_COMMITTED_MAX);
    let body = format!("<BlockList>{}</BlockList>", entry.repeat(BLOCKS_COMMITTED_MAX + 1));
    assert_eq!(code(body.as_bytes()), Some(Reason::BlockListTooLong));
}

#[test]
fn deep_nesting_and_entity_bombs_cost_nothing() {
    let deep = format!("<BlockList>{}", "<Latest>".repeat(200_000));
    assert_eq!(code(deep.as_bytes()), Some(Reason::UnsupportedElement));
    let bomb = "<!DOCTYPE l [<!ENTITY a 'x'><!ENTITY b '&a;&a;&a;&a;'>]><BlockList>&b;</BlockList>";
    assert_eq!(code(bomb.as_bytes()), Some(Reason::InvalidDocument));
}

#[test]
fn every_truncation_is_refused() {
    let end = WHOLE.trim_end().len();
    for len in 0..end {
        assert!(code(&WHOLE.as_bytes()[..len]).is_some(), "{len}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(block_list(&body).is_err() || body.starts_with(b"<") || body[0] >= 0xef || body[0] <= b' ');
    }

    #[test]
    fn one_changed_byte_never_panics(at in 0..WHOLE.len(), byte in any::<u8>()) {
        let mut body = WHOLE.as_bytes().to_vec();
        body[at] = byte;
        prop_assert!(block_list(&body).map_or(true, |entries| entries.len() <= 3));
    }
}
