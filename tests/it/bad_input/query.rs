//! Query Blob Contents.

use crate::bad_input::Case;
use crate::bad_input::case;
use crate::wire::Message;

const LINE: &str = "POST /acct1/con1/blob?comp=query";
const MISSING: &str = "MissingRequiredXmlNode";
const VALUE: &str = "InvalidXmlNodeValue";
const UNKNOWN: &str = "UnsupportedXmlNode";
const INPUT: &str = "InvalidInput";

/// What stands in the root, and the code.
const BODIES: &[(&str, &str)] = &[
    ("", MISSING),
    ("<QueryType>SQL</QueryType>", MISSING),
    ("<Expression>SELECT * FROM BlobStorage</Expression>", MISSING),
    ("<QueryType>SQL</QueryType><Expression> </Expression>", VALUE),
    ("<QueryType>JSON</QueryType><Expression>SELECT * FROM BlobStorage</Expression>", VALUE),
    ("<QueryType>SQL</QueryType><Expression>a</Expression><Limit>1</Limit>", UNKNOWN),
];

/// What follows a good statement, and the code.
const FORMATS: &[(&str, &str)] = &[
    ("<InputSerialization/>", MISSING),
    ("<InputSerialization><Format/></InputSerialization>", MISSING),
    ("<InputSerialization><Format><Type>arrow</Type></Format></InputSerialization>", VALUE),
    ("<OutputSerialization><Format><Type>parquet</Type></Format></OutputSerialization>", VALUE),
    ("<OutputSerialization><Format><Type>arrow</Type></Format></OutputSerialization>", MISSING),
    ("<OutputSerialization><Kind>json</Kind></OutputSerialization>", UNKNOWN),
];

const STATEMENTS: &[&str] = &[
    "SELECT",
    "SELECT * FROM",
    "DELETE FROM BlobStorage",
    "SELECT * FROM Other",
    "SELECT * FROM BlobStorage WHERE",
    "SELECT * FROM BlobStorage; SELECT * FROM BlobStorage",
    "SELECT no_such_function(_1) FROM BlobStorage",
    "SELECT _1 FROM BlobStorage ORDER BY _1",
    "SELECT _1, COUNT(*) FROM BlobStorage GROUP BY _1",
    "SELECT a._1 FROM BlobStorage a JOIN BlobStorage b ON a._1 = b._1",
];

pub(super) fn cases() -> Vec<Case> {
    let statement = |sql: &str, rest: &str| {
        format!("<QueryType>SQL</QueryType><Expression>{sql}</Expression>{rest}")
    };
    let mut cases = Vec::new();
    let mut add = |inner: &str, code| {
        let body = format!("<QueryRequest>{inner}</QueryRequest>");
        cases.push(case(&format!("query {inner}"), Message::new(LINE).body(body), 400, code));
    };
    for (inner, code) in BODIES {
        add(inner, code);
    }
    for (format, code) in FORMATS {
        add(&statement("SELECT * FROM BlobStorage", format), code);
    }
    for sql in STATEMENTS {
        add(&statement(sql, ""), INPUT);
    }
    add(&statement(&"(".repeat(100_000), ""), INPUT);
    add(
        &statement(&format!("SELECT * FROM BlobStorage WHERE {}1", "NOT ".repeat(50_000)), ""),
        INPUT,
    );
    let good =
        format!("<QueryRequest>{}</QueryRequest>", statement("SELECT * FROM BlobStorage", ""));
    for (line, status, code) in [
        ("GET /acct1/con1/blob?comp=query", 405, "UnsupportedHttpVerb"),
        ("PUT /acct1/con1/blob?comp=query", 405, "UnsupportedHttpVerb"),
        ("POST /acct1/con1/none?comp=query", 404, "BlobNotFound"),
        ("POST /acct1/none/none?comp=query", 404, "ContainerNotFound"),
        ("POST /acct1/con1/blob?comp=query&snapshot=now", 400, "InvalidQueryParameterValue"),
    ] {
        let message = Message::new(line);
        let message = if line.starts_with("GET") { message } else { message.body(good.clone()) };
        cases.push(case(line, message, status, code));
    }
    cases
}
