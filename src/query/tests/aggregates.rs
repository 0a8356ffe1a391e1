//! Aggregates and limits.

use super::answer;
use super::csv;
use super::faulty;
use super::json;
use super::refusal;

const BLOB: &str = "1,a\n2,b\n3,\n";

#[test]
fn aggregates_are_one_record() {
    let of = |what: &str| answer(csv(&format!("SELECT {what} FROM BlobStorage")), BLOB);
    assert_eq!(of("COUNT(*)"), "3\n");
    assert_eq!(of("COUNT(NULLIF(_2, ''))"), "2\n");
    assert_eq!(of("SUM(_1), AVG(_1), average(CAST(_1 AS FLOAT))"), "6,2,2\n");
    assert_eq!(of("MIN(_2), MAX(_2), MAX(CAST(_1 AS INT))"), ",b,3\n");
    assert_eq!(of("SUM(_1) / COUNT(*) + 1"), "3\n");
    assert_eq!(of("SUM(CAST(_1 AS DECIMAL(5,2)))"), "6.00\n");
    let none = csv("SELECT COUNT(*), SUM(_1), MIN(_1) FROM BlobStorage WHERE _1 > 9");
    assert_eq!(answer(none, BLOB), "0,,\n");
    assert_eq!(answer(json("SELECT COUNT(*) FROM BlobStorage"), "{}{}"), "{\"_1\":2}\n");
}

#[test]
fn record_that_does_not_fit_an_aggregate_is_left_out() {
    let (out, faults) = faulty(csv("SELECT SUM(_2), COUNT(*) FROM BlobStorage"), "1,2\n3,x\n4,5\n");
    assert_eq!(out, "7,2\n");
    assert_eq!(faults, [(false, "InvalidTypeConversion".to_owned(), 4)]);
    let large = "9223372036854775807\n9223372036854775807\n";
    assert_eq!(answer(csv("SELECT SUM(_1) FROM BlobStorage"), large), "1.8446744073709552e19\n");
}

#[test]
fn limit_ends_the_query() {
    assert_eq!(answer(csv("SELECT _1 FROM BlobStorage LIMIT 2"), BLOB), "1\n2\n");
    assert_eq!(answer(csv("SELECT _1 FROM BlobStorage WHERE _1 > 1 LIMIT 1"), BLOB), "2\n");
    assert_eq!(answer(csv("SELECT _1 FROM BlobStorage LIMIT 0"), BLOB), "");
    assert_eq!(answer(csv("SELECT _1 FROM BlobStorage LIMIT 1"), "1\n"), "1\n");
}

#[test]
fn aggregates_have_their_place() {
    for query in [
        "SELECT _1, COUNT(*) FROM BlobStorage",
        "SELECT COUNT(*) FROM BlobStorage WHERE SUM(_1) > 1",
        "SELECT SUM(MAX(_1)) FROM BlobStorage",
        "SELECT SUM(*) FROM BlobStorage",
        "SELECT COUNT(DISTINCT _1) FROM BlobStorage",
    ] {
        assert_eq!(refusal(csv(query)), "ParseError", "{query}");
    }
}
