//! What a statement and its records may cost.

use proptest::prelude::*;

use super::answer;
use super::csv;
use super::faulty;
use super::json;
use super::refusal;
use super::run;
use super::value;
use crate::query::Delimited;
use crate::query::Execution;
use crate::query::Output;
use crate::query::Plan;
use crate::query::Request;
use crate::query::Sink;
use crate::query::Step;
use crate::query::eval::Row;
use crate::query::eval::Scope;
use crate::query::eval::aggregate::Aggregate;
use crate::query::eval::aggregate::Kind;
use crate::query::eval::aggregate::State;
use crate::query::eval::fuel::Fuel;
use crate::query::eval::like::Pattern;
use crate::query::trouble::Trouble;
use crate::query::value::Value;

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

/// A query of a record of 4 MiB costs too much.
fn expensive(expression: &str) {
    expensive_for(b'a', expression);
}

/// The same of a record of one character.
fn expensive_for(character: u8, expression: &str) {
    let mut blob = vec![character; (4 << 20) - 10];
    blob.push(b'\n');
    let sink = run(csv(&format!("SELECT {expression} FROM BlobStorage")), &blob, 8 << 20).unwrap();
    let [fault] = sink.faults.as_slice() else { panic!("{expression}: {:?}", sink.faults) };
    let start: String = expression.chars().take(80).collect();
    assert_eq!((fault.name.as_str(), fault.fatal), ("QueryTooExpensive", true), "{start}");
}

#[test]
fn a_record_that_costs_too_much_ends_the_query() {
    expensive(&format!("_1 LIKE '%{}_b%'", "a".repeat(1000)));
    expensive("TRIM(_1 FROM _1)");
    expensive(&format!("COALESCE({})", vec!["NULLIF(_1, _1)"; 200].join(",")));
    expensive(&format!("CHAR_LENGTH(_1){}", " + CHAR_LENGTH(_1)".repeat(100)));
    expensive(&format!("_1 = 1{}", " OR _1 LIKE '%b%'".repeat(100)).replace("_1 = 1", "1 = 2"));
    let list: Vec<String> = (0..30).map(|_| "UPPER(_1)".to_owned()).collect();
    expensive(&format!("'x' IN ({})", list.join(",")));
    let branches: Vec<String> = (1..900).map(|n| format!("WHEN {n} THEN 1")).collect();
    expensive_for(b'0', &format!("CASE _1 {} END = 1", branches.join(" ")));
}

#[test]
fn a_text_that_is_compared_as_a_number_costs_its_length() {
    let digits = "0".repeat((4 << 20) - 100);
    let blob = format!("{{\"a\":\"{digits}\",\"n\":18446744073709551615}}\n");
    let list = vec!["n"; 100].join(",");
    let branches = "WHEN n THEN 1 ".repeat(100);
    let between = "a BETWEEN n AND n OR ".repeat(50);
    for expression in [
        format!("a IN ({list})"),
        format!("CASE a {branches} END = 1"),
        format!("{between} a = n"),
        format!("NULLIF(a, n) IS NULL{}", " OR NULLIF(a, n) IS NULL".repeat(100)),
    ] {
        let request = json(&format!("SELECT 1 FROM BlobStorage[*] WHERE {expression}"));
        let (_, faults) = faulty(request, &blob);
        let [(true, name, _)] = faults.as_slice() else { panic!("{expression}: {faults:?}") };
        assert_eq!(name, "QueryTooExpensive", "{expression}");
    }
}

#[test]
fn a_path_has_a_bounded_length() {
    let from = |steps: usize| json(&format!("SELECT 1 FROM BlobStorage{}", "[*].a".repeat(steps)));
    assert_eq!(answer(from(8), "{}\n"), "");
    assert_eq!(refusal(from(9)), "ParseError");
}

#[test]
fn long_text_has_a_cheap_pattern() {
    let mut blob = vec![b'a'; (4 << 20) - 10];
    blob.push(b'\n');
    let query = format!("SELECT COUNT(*) FROM BlobStorage WHERE _1 LIKE '%{}b'", "a".repeat(1000));
    let sink = run(csv(&query), &blob, 8 << 20).unwrap();
    assert_eq!((sink.data.as_slice(), sink.faults.len()), (b"0\n".as_slice(), 0));
}

#[test]
fn a_chain_of_text_is_not_copied_for_each_part() {
    let chain = vec!["_1"; 1000].join("||");
    let query = csv(&format!("SELECT CHAR_LENGTH({chain}) FROM BlobStorage"));
    assert_eq!(answer(query, &format!("{}\n", "x".repeat(10_000))), "10000000\n");
}

#[test]
fn evaluation_ends_a_step() {
    // Fractions are not looked up in the order of the list, so each item is compared.
    let list: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    let query = format!("SELECT 1 FROM BlobStorage WHERE _1 IN ({})", list.join(","));
    let blob = "1.5\n".repeat(20);
    let mut execution = Execution::new(Plan::new(csv(&query)).unwrap(), blob.len() as u64, 0);
    let (mut sink, mut turns) = (Sink::default(), 0);
    loop {
        match execution.step(&mut sink) {
            Step::Read(_) => execution.feed(bytes::Bytes::copy_from_slice(blob.as_bytes())),
            Step::Continue => turns += 1,
            Step::Done => break,
        }
    }
    assert!(turns >= 4 && sink.faults.is_empty(), "{turns} {:?}", sink.faults);
}

#[test]
fn lists_have_an_order() {
    for (expression, result) in [
        ("_1 IN ('y', 'x')", "true"),
        ("_1 IN ('y', 'z')", "false"),
        ("_1 IN (1, 2)", "InvalidTypeConversion"),
        ("' 2' IN (1, 2)", "true"),
        ("'2.0' IN (3, 2)", "true"),
        ("2.0 IN (3, -2)", "false"),
        ("-2 IN (3, -2)", "true"),
        ("NULL IN (3, 2)", ""),
        ("TRUE IN (3, 1)", "true"),
        ("2 IN ('3', '2.0')", "true"),
        ("CAST('2.0' AS DECIMAL(3,1)) IN (3, 2)", "true"),
    ] {
        assert_eq!(value(expression), result, "{expression}");
    }
}

#[test]
fn patterns_fit() {
    for (text, pattern, fits) in [
        ("", "", true),
        ("", "%", true),
        ("a", "", false),
        ("abcabd", "%ab_", true),
        ("abcabd", "ab%ab%", true),
        ("ab", "ab%b", false),
        ("aab", "%a_", true),
        ("äöü", "_%_", true),
        ("äöü", "%ö%", true),
        ("ä", "_%_", false),
        ("abab", "%%ab%%ab%%", true),
        ("ababa", "%_b_%_", true),
    ] {
        assert_eq!(value(&format!("'{text}' LIKE '{pattern}'")), fits.to_string(), "{pattern}");
    }
}

#[test]
fn aggregates_are_bounded() {
    let many = vec!["COUNT(*)"; 33].join("+");
    assert_eq!(refusal(csv(&format!("SELECT {many},{many} FROM BlobStorage"))), "ParseError");
    let mut blob = vec![b'a'; 3 << 20];
    blob.push(b'\n');
    let query =
        csv("SELECT MAX(_1), MIN(_1), MAX(LOWER(_1)), MAX(_1), MIN(_1), MAX(_1) FROM BlobStorage");
    let sink = run(query, &blob, 8 << 20).unwrap();
    assert_eq!((sink.faults[0].name.as_str(), sink.faults[0].fatal), ("QueryTooExpensive", true));
    assert_eq!(answer(csv("SELECT CHAR_LENGTH(MAX(_1)) FROM BlobStorage"), "aa\nb\n"), "1\n");
}

#[test]
fn a_record_counts_in_all_aggregates_or_in_none() {
    let query = json("SELECT COUNT(*) AS n, MIN(a) AS a FROM BlobStorage");
    let (out, faults) = faulty(query, "{\"a\":1}{\"a\":\"x\"}");
    assert_eq!(out, "{\"n\":1,\"a\":1}\n");
    assert_eq!(faults, [(false, "InvalidTypeConversion".to_owned(), 7)]);
}

#[test]
fn what_is_no_number_is_no_extreme() {
    let aggregate = Aggregate { kind: Kind::Min, operand: None };
    let mut state = State::new(&aggregate);
    let fuel = Fuel::default();
    let scope = Scope { row: &Empty, aggregates: &[], now_unix_millis: 0, fuel: &fuel };
    for number in [f64::NAN, 2.0, f64::NAN, 1.0] {
        let change = state.change(Value::Float(number), scope).unwrap();
        state.commit(change);
    }
    assert_eq!(state.result().unwrap().written(), "1");
}

struct Empty;

impl Row for Empty {
    fn column(&self, _column: usize) -> Result<Value<'_>, Trouble> {
        Ok(Value::Null)
    }
}

#[test]
fn the_header_stays_if_the_first_record_fails() {
    let output = Output::Csv(Delimited { has_headers: true, ..Delimited::default() });
    let request = Request { output, ..csv("SELECT CAST(_1 AS INT) FROM BlobStorage") };
    let (out, faults) = faulty(request, "x\n1\n");
    assert_eq!(out, "_1\n1\n");
    assert_eq!(faults.len(), 1);
}

#[test]
fn decimals_lose_digits_before_they_fail() {
    for (expression, result) in [
        ("CAST(1 AS DECIMAL(38,20)) * CAST(1 AS DECIMAL(38,20))", "1"),
        ("CAST('0.5' AS DECIMAL(38,18)) * CAST('0.5' AS DECIMAL(38,18))", "0.25"),
        ("CAST(1 AS DECIMAL(38,18)) / CAST(4 AS DECIMAL(38,18))", "0.25"),
        ("CAST(1 AS DECIMAL(38,30)) / CAST(4 AS DECIMAL(38,30))", "0.25"),
    ] {
        let is_right = format!("({expression}) = {result}");
        assert_eq!(value(&is_right), "true", "{expression} is {}", value(expression));
    }
    let large = "CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0))";
    assert_eq!(value(&format!("{large} * {large}")), "9.999999999999999e75");
    assert_eq!(value(&format!("{large} / 1")), "1e38");
    let query = csv("SELECT AVG(CAST(_1 AS DECIMAL(38,33))) FROM BlobStorage");
    assert!(answer(query, "1\n2\n").starts_with("1.5"));
}

#[test]
fn faults_quote_little() {
    let name = "n".repeat(5000);
    for expression in [format!("{name}(1)"), name.clone(), format!("1 {name} {name}")] {
        let query = csv(&format!("SELECT {expression} FROM BlobStorage"));
        let fault = Plan::new(query).unwrap_err();
        assert!(fault.description.len() < 400, "{}", fault.description.len());
    }
}

/// Each of these walks, copies or writes a tree that is as deep as the chain is long.
#[test]
fn long_chains_do_not_take_the_stack() {
    let chain = vec!["_1"; 1000].join("||");
    for expression in [
        format!("sys.split({chain})"),
        format!("COUNT(DISTINCT {chain})"),
        format!("nosuch({chain})"),
        format!("({chain}) COLLATE x"),
        format!("({chain})::INT"),
        format!("{chain} IS DISTINCT FROM 1"),
        format!("DATE_ADD({chain}, 1, 2)"),
        format!("_1 LIKE 'a' ESCAPE {chain}"),
        format!("_1[{chain}]"),
        format!("({chain}).a"),
        format!("EXTRACT({chain} FROM _1)"),
        format!("{chain} & 1"),
        format!("COUNT({chain}) OVER ()"),
    ] {
        assert!(Plan::new(csv(&format!("SELECT {expression} FROM BlobStorage"))).is_err());
    }
}

/// `LIKE` by its definition, without a thought about time.
fn fits(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|at| fits(&text[at..], rest)),
        ['_', rest @ ..] => !text.is_empty() && fits(&text[1..], rest),
        [c, rest @ ..] => text.first() == Some(c) && fits(&text[1..], rest),
    }
}

proptest! {
    #[test]
    fn patterns_fit_by_definition(text in "[abä]{0,9}", pattern in "[abä%_]{0,7}") {
        let chars = |text: &str| text.chars().collect::<Vec<char>>();
        let found = Pattern::new(&pattern, None).unwrap().fits(&text, &Fuel::default()).unwrap();
        prop_assert_eq!(found, fits(&chars(&text), &chars(&pattern)));
    }

    #[test]
    fn a_sorted_list_is_as_one_that_is_not(
        value_at in 0_usize..9,
        list in prop::collection::vec(0_usize..9, 1..5),
    ) {
        let values = ["1", "2", "-3", "'1'", "'x'", "' 2'", "'2.0'", "1.5", "TRUE"];
        let (of, items) = (values[value_at], list.iter().map(|at| values[*at]));
        let items: Vec<&str> = items.collect();
        // An item that is no literal keeps a list from being sorted.
        let called: Vec<String> = items.iter().map(|item| format!("COALESCE({item})")).collect();
        let plain = format!("{of} IN ({})", called.join(","));
        let sorted = value(&format!("{of} IN ({})", items.join(",")));
        let plain = value(&plain);
        prop_assert_eq!(sorted, plain);
    }
}
