//! What a statement and its records may cost.

use super::csv;
use super::refusal;
use super::value;

#[test]
fn nested_cases_do_not_multiply() {
    // The parser's own limit of depth is 40.
    let nested = format!("{}1{}", "CASE ".repeat(35), " WHEN 1 THEN 1 ELSE 0 END".repeat(35));
    assert_eq!(value(&nested), "1");
    let nested =
        format!("{}1{}", "CASE ".repeat(35), " WHEN 1 THEN 1 WHEN 2 THEN 2 END".repeat(35));
    assert_eq!(value(&nested), "1");
    let nested = format!("{}1{}", "CASE 1 WHEN 1 THEN ".repeat(35), " ELSE 2 END".repeat(35));
    assert_eq!(value(&nested), "1");
    let nested = format!("{}1{}", "CASE 1 WHEN ".repeat(35), " THEN 1 ELSE 2 END".repeat(35));
    assert_eq!(value(&nested), "1");
}

#[test]
fn a_case_compares_its_operand() {
    assert_eq!(value("CASE _1 WHEN 'y' THEN 1 WHEN 'x' THEN 2 END"), "2");
    assert_eq!(value("CASE NULL WHEN NULL THEN 1 ELSE 2 END"), "2");
    assert_eq!(value("CASE 5 WHEN 1 THEN 1 END IS NULL"), "true");
}

#[test]
fn expressions_of_a_statement_are_counted() {
    let list = vec!["1"; 120_000].join(",");
    assert_eq!(
        refusal(csv(&format!("SELECT 1 FROM BlobStorage WHERE 1 IN ({list})"))),
        "ParseError"
    );
}
