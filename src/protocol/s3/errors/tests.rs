//! The published table is the table.

use serde_json::Value;

use super::*;

#[test]
fn published_table_has_every_row_and_no_other() {
    let table: Vec<Value> =
        serde_json::from_str(include_str!("../../../../api-spec/errors.json")).unwrap();
    let published: Vec<(&str, &str, u64, &str)> = table
        .iter()
        .map(|row| {
            let s3 = &row["s3"];
            (
                row["reason"].as_str().unwrap(),
                s3["code"].as_str().unwrap(),
                s3["status"].as_u64().unwrap(),
                s3["message"].as_str().unwrap(),
            )
        })
        .collect();
    let coded: Vec<(&str, &str, u64, &str)> = Reason::ALL
        .iter()
        .map(|reason| {
            let row = error_row(*reason);
            (reason.name(), row.code, u64::from(row.status), row.message)
        })
        .collect();
    assert_eq!(published, coded, "api-spec/errors.json differs from src/protocol/s3/errors.rs");
}

#[test]
fn a_code_has_one_status() {
    let mut statuses = std::collections::BTreeMap::new();
    for reason in Reason::ALL {
        let row = error_row(*reason);
        assert!(matches!(row.status, 304 | 400..=599), "{row:?}");
        assert_eq!(*statuses.entry(row.code).or_insert(row.status), row.status, "{row:?}");
    }
}
