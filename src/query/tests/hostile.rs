//! Blobs and statements that mean harm, or were damaged.

use proptest::prelude::*;

use super::csv;
use super::json;
use super::refusal;
use super::run;
use crate::query::Plan;
use crate::query::Request;

const STATEMENTS: [&str; 9] = [
    "SELECT * FROM BlobStorage",
    "SELECT _1, _2 FROM BlobStorage WHERE _1 > 1",
    "SELECT COUNT(*), MAX(_1) FROM BlobStorage",
    "SELECT UPPER(_1) || SUBSTRING(_2, 1, 2) FROM BlobStorage LIMIT 3",
    "SELECT sys.split(10485760) FROM BlobStorage",
    "SELECT CAST(_1 AS TIMESTAMP) FROM BlobStorage",
    "SELECT * FROM BlobStorage[*].a[*]",
    "SELECT a.b[0], a FROM BlobStorage WHERE a IS NOT MISSING",
    "SELECT SUM(a) FROM BlobStorage",
];

fn deep(statement: &str) {
    assert_eq!(refusal(csv(statement)), "ParseError");
}

#[test]
fn deep_statements_are_refused() {
    deep(&format!("SELECT {}1{} FROM BlobStorage", "(".repeat(5000), ")".repeat(5000)));
    deep(&format!("SELECT 1{} FROM BlobStorage", " IS NULL".repeat(5000)));
    deep(&format!("SELECT 1{} FROM BlobStorage", " IS NULL".repeat(900)));
    deep(&format!("SELECT {}1 FROM BlobStorage", "NOT ".repeat(1000)));
    deep(&format!("SELECT {}1 FROM BlobStorage", "- ".repeat(1000)));
    deep(&format!("SELECT _1{} FROM BlobStorage", "+1".repeat(5000)));
    deep(&format!("SELECT _1{} FROM BlobStorage", "[".repeat(1000)));
    deep(&format!("SELECT {} FROM BlobStorage", "LOWER(".repeat(1000)));
    deep(&format!("SELECT {} FROM BlobStorage", "CASE WHEN ".repeat(1000)));
    deep(&format!("SELECT 1 FROM BlobStorage WHERE a{}", " = a".repeat(1000)));
    deep(&"SELECT 1 ".repeat(100_000));
}

#[test]
fn long_statements_are_not_deep() {
    let list: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    let query = format!("SELECT _1 FROM BlobStorage WHERE _1 IN ({})", list.join(","));
    assert_eq!(run(csv(&query), b"19999\n20000\n", 100).unwrap().data, b"19999\n");
    let query = format!("SELECT 1{} FROM BlobStorage", "+1".repeat(1000));
    assert_eq!(run(csv(&query), b"x\n", 100).unwrap().data, b"1001\n");
    let query = format!("SELECT 1 FROM BlobStorage WHERE _1 = 0{}", " OR _1 = 1".repeat(400));
    assert_eq!(run(csv(&query), b"1\n", 100).unwrap().data, b"1\n");
}

#[test]
fn large_records_are_refused() {
    let blob = vec![b'x'; 6 << 20];
    let sink = run(csv("SELECT COUNT(*) FROM BlobStorage"), &blob, 1 << 20).unwrap();
    assert_eq!((sink.faults[0].name.as_str(), sink.faults[0].fatal), ("RecordTooLarge", true));
    let mut blob = b"{\"a\":\"".to_vec();
    blob.resize(6 << 20, b'x');
    let sink = run(json("SELECT * FROM BlobStorage"), &blob, 1 << 20).unwrap();
    assert_eq!((sink.faults[0].name.as_str(), sink.faults[0].fatal), ("RecordTooLarge", true));
}

#[test]
fn deep_json_is_refused() {
    let blob = format!("{}{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let sink = run(json("SELECT a FROM BlobStorage"), blob.as_bytes(), 1 << 20).unwrap();
    assert_eq!(sink.faults[0].name, "ParseError");
}

/// Text that is often near to what the formats have.
fn blob() -> impl Strategy<Value = Vec<u8>> {
    let csv = "[ab1,\n\r\"\\\\]{0,60}".prop_map(String::into_bytes);
    let lines =
        prop::collection::vec(r#"\{"a": ?([0-9]|"x\\""|\[1,"b"\]|\{"b":\[1\]\})\}\n"#, 0..6)
            .prop_map(|lines| lines.concat().into_bytes());
    let near = r#"[\[\]{}:,"ab1 \n\\]{0,40}"#.prop_map(String::into_bytes);
    prop_oneof![csv, lines, near, prop::collection::vec(any::<u8>(), 0..60)]
}

fn request() -> impl Strategy<Value = Request> {
    let statement = prop::sample::select(&STATEMENTS[..]);
    let formats = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (statement, formats).prop_map(|(statement, (is_json, to_json, has_headers, has_escape))| {
        let (mut text, objects) = (csv(statement), json(statement));
        if let (crate::query::Input::Csv(input), crate::query::Output::Csv(output)) =
            (&mut text.input, &mut text.output)
        {
            (input.has_headers, output.has_headers) = (has_headers, has_headers);
            if has_escape {
                "\\".clone_into(&mut input.escape_char);
            }
        }
        let input = if is_json { objects.input } else { text.input };
        let output = if to_json { objects.output } else { text.output };
        Request { input, output, ..text }
    })
}

proptest! {
    #[test]
    fn pieces_do_not_matter(request in request(), blob in blob(), chunk in 1_usize..20) {
        let whole = run(request.clone(), &blob, 1 << 20);
        let pieces = run(request, &blob, chunk);
        prop_assert_eq!(whole, pieces);
    }

    #[test]
    fn any_statement_is_parsed_or_refused(
        words in prop::collection::vec(prop::sample::select(&[
            "SELECT", "FROM", "BlobStorage", "WHERE", "LIMIT", "*", "_1", "(", ")", ",", "IN", "NOT",
            "IS", "MISSING", "NULL", "CAST", "AS", "INT", "1", "'a'", "[", "]", ".", "LIKE", "CASE",
            "WHEN", "THEN", "END", "BETWEEN", "AND", "COUNT", "TRIM", "SUBSTRING", "EXTRACT", "-", ";",
        ][..]), 0..30),
        text in ".{0,40}",
    ) {
        let words = words.join(" ");
        for statement in [format!("SELECT {words} FROM BlobStorage"), words, text] {
            if let Err(fault) = Plan::new(json(&statement)) {
                prop_assert!(fault.fatal);
            }
        }
    }
}
