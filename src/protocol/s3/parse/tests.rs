//! The published table of operations is the table.

use std::collections::BTreeSet;

use super::*;
use crate::protocol::s3::routes::published;
use crate::protocol::s3::settings;

/// Method, path, operation and answer of each line of the description.
fn described() -> BTreeSet<[String; 4]> {
    let text = include_str!("../../../../api-spec/s3.yaml");
    let (mut path, mut found) = (String::new(), BTreeSet::new());
    for line in text.lines() {
        if let Some(quoted) = line.strip_prefix("  '") {
            quoted.strip_suffix("':").unwrap().clone_into(&mut path);
        } else if let Some((method, rest)) = line.trim().split_once(": { operationId: ") {
            let (name, answer) = rest.split_once(", x-answer: ").unwrap();
            let answer = answer.strip_suffix(" }").unwrap();
            let row = [method.to_uppercase(), path.clone(), name.to_owned(), answer.to_owned()];
            assert!(found.insert(row), "twice: {line}");
        }
    }
    found
}

fn answer(operation: S3Operation) -> &'static str {
    let parser = served().find(|(served, _)| *served == operation).map(|(_, parser)| *parser);
    let is = |other: Parser| parser.is_some_and(|parser| std::ptr::fn_addr_eq(parser, other));
    match parser {
        None => "not-implemented",
        Some(_) if is(settings::get_fixed) => "fixed",
        Some(_) if is(settings::get_absent) || is(settings::absent_of_id) => "absent",
        Some(_) if is(settings::remove_absent) || is(settings::torrent) => "absent",
        Some(_) => "served",
    }
}

#[test]
fn description_has_every_operation_and_no_other() {
    let coded: BTreeSet<[String; 4]> = published()
        .map(|(method, path, operation)| {
            [method.to_owned(), path, operation.name().to_owned(), answer(operation).to_owned()]
        })
        .collect();
    let described = described();
    let wrong: Vec<_> = coded.symmetric_difference(&described).collect();
    assert!(wrong.is_empty(), "api-spec/s3.yaml differs from src/protocol/s3: {wrong:#?}");
}
