//! Bodies of Put Block List.

use crate::bad_input::Case;
use crate::bad_input::case;
use crate::wire::Message;

const DOCUMENT: &str = "InvalidXmlDocument";

const BODIES: &[(&str, &[u8], &str)] = &[
    ("nothing", b"", DOCUMENT),
    ("blanks", b" \n", DOCUMENT),
    ("json", b"{\"BlockList\":[]}", DOCUMENT),
    ("text", b"BlockList", DOCUMENT),
    ("binary", b"\x00\x01\x02\x03", DOCUMENT),
    ("utf-16", b"\xff\xfe<\0B\0l\0o\0", DOCUMENT),
    ("declared utf-16", b"<?xml version='1.0' encoding='utf-16'?><BlockList/>", DOCUMENT),
    ("never closed", b"<BlockList>", DOCUMENT),
    ("entry never closed", b"<BlockList><Latest>YWFh", DOCUMENT),
    ("closed only", b"</BlockList>", DOCUMENT),
    ("closed crosswise", b"<BlockList><Latest>YWFh</BlockList></Latest>", DOCUMENT),
    ("closed in another case", b"<BlockList></blocklist>", DOCUMENT),
    ("two roots", b"<BlockList/><BlockList/>", DOCUMENT),
    ("text after the root", b"<BlockList/>more", DOCUMENT),
    ("another root", b"<Tags/>", DOCUMENT),
    ("root in lower case", b"<blocklist/>", DOCUMENT),
    ("attribute without quotes", b"<BlockList a=1/>", DOCUMENT),
    ("attribute twice", b"<BlockList a='1' a='2'/>", DOCUMENT),
    ("double hyphen in a comment", b"<BlockList><!-- a -- b --></BlockList>", DOCUMENT),
    ("document type", b"<!DOCTYPE BlockList><BlockList/>", DOCUMENT),
    (
        "entity bomb",
        b"<!DOCTYPE b [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;&a;'>]><BlockList><Latest>&b;</Latest></BlockList>",
        DOCUMENT,
    ),
    (
        "external entity",
        b"<!DOCTYPE b [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><BlockList><Latest>&a;</Latest></BlockList>",
        DOCUMENT,
    ),
    ("unknown entity", b"<BlockList><Latest>&a;</Latest></BlockList>", DOCUMENT),
    ("reference to NUL", b"<BlockList><Latest>&#0;</Latest></BlockList>", DOCUMENT),
    ("bytes that are not UTF-8", b"<BlockList><Latest>YW\xff</Latest></BlockList>", DOCUMENT),
    ("text among entries", b"<BlockList>YWFh</BlockList>", "InvalidXmlNodeValue"),
    ("empty entry", b"<BlockList><Latest></Latest></BlockList>", "InvalidXmlNodeValue"),
    ("empty element", b"<BlockList><Committed/></BlockList>", "InvalidXmlNodeValue"),
    ("unknown entry", b"<BlockList><Newest>YWFh</Newest></BlockList>", "UnsupportedXmlNode"),
    ("nested entry", b"<BlockList><Latest><Latest>YWFh</Latest></Latest></BlockList>", "UnsupportedXmlNode"),
    ("id not base64", b"<BlockList><Latest>***</Latest></BlockList>", "InvalidBlockId"),
    ("id without padding", b"<BlockList><Latest>YQ</Latest></BlockList>", "InvalidBlockId"),
    ("id with a blank", b"<BlockList><Latest>YW Fh</Latest></BlockList>", "InvalidBlockId"),
    ("id never staged", b"<BlockList><Latest>bmV2ZXIx</Latest></BlockList>", "InvalidBlockList"),
    ("committed id that is only staged", b"<BlockList><Committed>c3RhZ2Vk</Committed></BlockList>", "InvalidBlockList"),
    (
        "one good and one unknown id",
        b"<BlockList><Latest>c3RhZ2Vk</Latest><Latest>bmV2ZXIx</Latest></BlockList>",
        "InvalidBlockList",
    ),
];

fn commit(body: impl Into<Vec<u8>>) -> Message {
    Message::new("PUT /acct1/con1/staged?comp=blocklist").body(body)
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, body, code) in BODIES {
        cases.push(case(&format!("block list: {name}"), commit(*body), 400, code));
    }
    let many = format!("<BlockList>{}</BlockList>", "<Latest>c3RhZ2Vk</Latest>".repeat(50_001));
    cases.push(case("block list: 50,001 entries", commit(many), 400, "BlockListTooLong"));
    let long = format!("<BlockList><Latest>{}</Latest></BlockList>", "YWFh".repeat(10_000));
    cases.push(case("block list: an endless id", commit(long), 400, "InvalidBlockId"));
    let deep = format!("<BlockList>{}", "<Latest>".repeat(100_000));
    cases.push(case("block list: deep nesting", commit(deep), 400, "UnsupportedXmlNode"));
    let good = "<BlockList><Latest>c3RhZ2Vk</Latest></BlockList>";
    let md5 = commit(good).header("content-md5: AAAAAAAAAAAAAAAAAAAAAA==");
    cases.push(case("block list: wrong MD5 of the body", md5, 400, "Md5Mismatch"));
    let crc64 = commit(good).header("x-ms-content-crc64: AAAAAAAAAAE=");
    cases.push(case("block list: wrong CRC-64 of the body", crc64, 400, "Crc64Mismatch"));
    let guarded = commit(good).header("if-match: *");
    cases.push(case("block list: condition on a new blob", guarded, 412, "ConditionNotMet"));
    cases
}
