//! The published table is the table.

use std::collections::HashSet;

use serde_json::Value;

use crate::protocol::ErrorCode;

#[test]
fn published_table_has_every_row_and_no_other() {
    let table: Vec<Value> =
        serde_json::from_str(include_str!("../../../api-spec/errors.json")).unwrap();
    let published: Vec<(&str, u64, &str)> = table
        .iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap();
            (text("code"), row["status"].as_u64().unwrap(), text("message"))
        })
        .collect();
    let coded: Vec<(&str, u64, &str)> = ErrorCode::ALL
        .iter()
        .map(|code| (code.azure(), u64::from(code.status()), code.message()))
        .collect();
    assert_eq!(published, coded, "api-spec/errors.json differs from src/protocol/error.rs");
}

#[test]
fn rows_are_distinct_errors_with_messages() {
    let names: HashSet<&str> = ErrorCode::ALL.iter().map(|code| code.azure()).collect();
    assert_eq!(names.len(), ErrorCode::ALL.len());
    for code in ErrorCode::ALL {
        assert!(matches!(code.status(), 304 | 400..=599), "{code:?}");
        assert!(code.message().ends_with('.'), "{code:?}");
    }
}
