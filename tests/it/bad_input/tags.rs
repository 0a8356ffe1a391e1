//! Bodies and parameters of tags, service properties and batches.

use crate::bad_input::Case;
use crate::bad_input::case;
use crate::wire::Message;

const DOCUMENT: &str = "InvalidXmlDocument";

const TAGS: &[(&str, &str, &str)] = &[
    ("nothing", "", DOCUMENT),
    ("another root", "<TagSet/>", DOCUMENT),
    ("never closed", "<Tags><TagSet>", DOCUMENT),
    ("document type", "<!DOCTYPE t><Tags><TagSet/></Tags>", DOCUMENT),
    ("unknown entity", "<Tags><TagSet>&x;</TagSet></Tags>", DOCUMENT),
    ("two sets", "<Tags><TagSet/><TagSet/></Tags>", DOCUMENT),
    ("no set", "<Tags/>", "MissingRequiredXmlNode"),
    (
        "no key",
        "<Tags><TagSet><Tag><Value>1</Value></Tag></TagSet></Tags>",
        "MissingRequiredXmlNode",
    ),
    ("no value", "<Tags><TagSet><Tag><Key>1</Key></Tag></TagSet></Tags>", "MissingRequiredXmlNode"),
    ("unknown element", "<Tags><TagSet><Pair/></TagSet></Tags>", "UnsupportedXmlNode"),
    (
        "text in a tag",
        "<Tags><TagSet><Tag>x<Key>a</Key><Value/></Tag></TagSet></Tags>",
        "InvalidXmlNodeValue",
    ),
    ("empty key", "<Tags><TagSet><Tag><Key/><Value/></Tag></TagSet></Tags>", "EmptyTagName"),
    ("bad key", "<Tags><TagSet><Tag><Key>a,b</Key><Value/></Tag></TagSet></Tags>", "InvalidTag"),
    (
        "bad value",
        "<Tags><TagSet><Tag><Key>a</Key><Value>\u{e4}</Value></Tag></TagSet></Tags>",
        "InvalidTag",
    ),
    (
        "key twice",
        "<Tags><TagSet><Tag><Key>a</Key><Value/></Tag><Tag><Key>a</Key><Value/></Tag></TagSet></Tags>",
        "DuplicateTagNames",
    ),
];

const PROPERTIES: &[(&str, &str, &str)] = &[
    ("nothing", "", DOCUMENT),
    ("another root", "<Properties/>", DOCUMENT),
    ("unknown element", "<Nonsense/>", "UnsupportedXmlNode"),
    ("twice", "<Cors/><Cors/>", DOCUMENT),
    ("rule of another name", "<Cors><Rule/></Cors>", "UnsupportedXmlNode"),
    ("rule without parts", "<Cors><CorsRule/></Cors>", "MissingRequiredXmlNode"),
    ("logging without parts", "<Logging/>", "MissingRequiredXmlNode"),
    ("metrics without parts", "<HourMetrics/>", "MissingRequiredXmlNode"),
    (
        "unknown version",
        "<MinuteMetrics><Version>9</Version></MinuteMetrics>",
        "InvalidXmlNodeValue",
    ),
    (
        "default version",
        "<DefaultServiceVersion>soon</DefaultServiceVersion>",
        "InvalidXmlNodeValue",
    ),
    ("website without a flag", "<StaticWebsite/>", "MissingRequiredXmlNode"),
    (
        "website flag",
        "<StaticWebsite><Enabled>yes</Enabled></StaticWebsite>",
        "InvalidXmlNodeValue",
    ),
    (
        "retention of no days",
        "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>0</Days></DeleteRetentionPolicy>",
        "InvalidXmlNodeValue",
    ),
];

const BATCHES: &[(&str, &str, &str, &str)] = &[
    ("no type", "", "--b--", "MissingRequiredHeader"),
    ("another type", "text/plain", "--b--", "InvalidHeaderValue"),
    ("no boundary", "multipart/mixed", "--b--", "InvalidHeaderValue"),
    ("empty boundary", "multipart/mixed; boundary=", "--b--", "InvalidHeaderValue"),
    ("no parts", "multipart/mixed; boundary=b", "--b--", "InvalidInput"),
    ("no end", "multipart/mixed; boundary=b", "--b\r\n", "InvalidInput"),
    (
        "part of another type",
        "multipart/mixed; boundary=b",
        "--b\r\nContent-Type: text/plain\r\n\r\nDELETE /con1/blob HTTP/1.1\r\n\r\n--b--",
        "InvalidInput",
    ),
    (
        "part without a request",
        "multipart/mixed; boundary=b",
        "--b\r\nContent-Type: application/http\r\n\r\n\r\n--b--",
        "InvalidInput",
    ),
    (
        "part with a body",
        "multipart/mixed; boundary=b",
        "--b\r\nContent-Type: application/http\r\n\r\nDELETE /con1/blob HTTP/1.1\r\n\r\nbody\r\n--b--",
        "InvalidInput",
    ),
];

const SEARCHES: &[(&str, &str)] = &[
    ("", "MissingRequiredQueryParameter"),
    ("where=", "MissingRequiredQueryParameter"),
    ("where=a", "InvalidQueryParameterValue"),
    ("where=a%3D1", "InvalidQueryParameterValue"),
    ("where=a%3D'1", "InvalidQueryParameterValue"),
    ("where=a%3D'1'+b%3D'2'", "InvalidQueryParameterValue"),
    ("where=a%3D'1'+OR+b%3D'2'", "InvalidQueryParameterValue"),
    ("where=a%3C%3E'1'", "InvalidQueryParameterValue"),
    ("where=%40container%3D'con1'", "InvalidQueryParameterValue"),
    ("where=%40owner%3D'1'", "InvalidQueryParameterValue"),
    ("where=a%3D'1'&marker=nowhere", "InvalidQueryParameterValue"),
    ("where=a%3D'1'&maxresults=0", "OutOfRangeQueryParameterValue"),
];

pub(super) fn cases() -> Vec<Case> {
    let tags = TAGS.iter().map(|(name, body, code)| {
        let message = Message::new("PUT /acct1/con1/blob?comp=tags").body(*body);
        case(&format!("tags: {name}"), message, 400, code)
    });
    let properties = PROPERTIES.iter().map(|(name, inner, code)| {
        let whole = format!("<StorageServiceProperties>{inner}</StorageServiceProperties>");
        let body =
            if *code == DOCUMENT && !inner.contains("Cors") { (*inner).to_owned() } else { whole };
        let message = Message::new("PUT /acct1/?restype=service&comp=properties").body(body);
        case(&format!("service properties: {name}"), message, 400, code)
    });
    let batches = BATCHES.iter().map(|(name, kind, body, code)| {
        let mut message = Message::new("POST /acct1/?comp=batch").body(*body);
        if !kind.is_empty() {
            message = message.header(&format!("content-type: {kind}"));
        }
        case(&format!("batch: {name}"), message, 400, code)
    });
    let searches = SEARCHES.iter().map(|(query, code)| {
        let line = format!("GET /acct1/?comp=blobs&{query}");
        case(&line, Message::new(&line), 400, code)
    });
    tags.chain(properties).chain(batches).chain(searches).collect()
}
