//! The language: operators, functions, and what it does not have.

use super::csv;
use super::refusal;
use super::value;
use crate::query::Plan;

#[test]
fn numbers_are_calculated() {
    for (expression, result) in [
        ("1 + 2 * 3 - 4", "3"),
        ("7 / 2", "3"),
        ("7.0 / 2", "3.5"),
        ("7 % 4", "3"),
        ("-7 % 4", "-3"),
        ("'5' + '6'", "11"),
        ("'a' || 1 || NULL", ""),
        ("'a' || 1.5", "a1.5"),
        ("1 / 0", "DivideByZero"),
        ("9223372036854775807 + 1", "ArithmeticOverflow"),
        ("1 + 'x'", "InvalidTypeConversion"),
        ("CAST('1.25' AS DECIMAL(10,2)) * 3", "3.75"),
        ("CAST('1.00' AS DECIMAL(10,2)) / 3", "0.33333333"),
        ("CAST('-1.005' AS DECIMAL(10,2))", "-1.01"),
        ("6 AND 3", "2"),
        ("4 OR 1", "5"),
        ("TIMESTAMP '2024-02-28' + 2", "2024-03-01T00:00:00Z"),
        ("-(-5)", "5"),
        ("1e300 * 1e300", "ArithmeticOverflow"),
        ("1e30", "1e30"),
    ] {
        assert_eq!(value(expression), result, "{expression}");
    }
}

#[test]
fn conditions_have_three_values() {
    for (expression, result) in [
        ("1 < 2 AND NOT 2 <= 1", "true"),
        ("NULL = NULL", ""),
        ("NULL AND FALSE", "false"),
        ("NULL OR TRUE", "true"),
        ("NOT NULL", ""),
        ("1 <> 1 OR 1 != 1", "false"),
        ("'10' > 9", "true"),
        ("'10' > '9'", "false"),
        ("'true' = TRUE", "true"),
        ("5 BETWEEN 1 AND '7'", "true"),
        ("5 NOT BETWEEN 1 AND 7", "false"),
        ("2 IN (1, 2, NULL)", "true"),
        ("3 IN (1, NULL)", ""),
        ("3 NOT IN (1, 2)", "true"),
        ("NULL IS NULL", "true"),
        ("'' IS NOT NULL", "true"),
        ("'abc' LIKE 'a%c'", "true"),
        ("'abc' LIKE '_b_'", "true"),
        ("'abc' NOT LIKE '%d%'", "true"),
        ("'50%' LIKE '50!%' ESCAPE '!'", "true"),
        ("'505' LIKE '50!%' ESCAPE '!'", "false"),
        ("'aXbXc' LIKE '%X%X_'", "true"),
        ("CASE WHEN FALSE THEN 1 WHEN 1 = 1 THEN 2 ELSE 3 END", "2"),
        ("CASE 3 WHEN 1 THEN 'a' END", ""),
        ("COALESCE(NULL, 'x', 1 / 0)", "x"),
        ("NULLIF(1, 1)", ""),
        ("NULLIF(1, 2)", "1"),
        ("(1 = 2) IS FALSE", "true"),
    ] {
        assert_eq!(value(expression), result, "{expression}");
    }
}

#[test]
fn text_is_changed() {
    for (expression, result) in [
        ("CHARACTER_LENGTH('abcdefg')", "7"),
        ("CHAR_LENGTH(_1)", "1"),
        ("LOWER('AbCdEfG')", "abcdefg"),
        ("UPPER('AbCdEfG')", "ABCDEFG"),
        ("SUBSTRING('123456789', 1, 5)", "23456"),
        ("SUBSTRING('123456789' FROM 1 FOR 5)", "23456"),
        ("SUBSTRING('123', 1)", "23"),
        ("SUBSTRING('123', -1, 2)", "1"),
        ("SUBSTRING('123', 0, -1)", "InvalidArgument"),
        ("TRIM(BOTH '123' FROM '1112211Microsoft22211122')", "Microsoft"),
        ("TRIM(LEADING FROM '  a ') || '.'", "a ."),
        ("TRIM(TRAILING 'a' FROM 'baa')", "b"),
        ("TRIM('  a  ') || '.'", "a."),
    ] {
        assert_eq!(value(expression), result, "{expression}");
    }
}

#[test]
fn values_are_cast() {
    for (expression, result) in [
        ("CAST('12' AS INT)", "12"),
        ("CAST(12.7 AS INT)", "12"),
        ("CAST('x' AS INT)", "InvalidTypeConversion"),
        ("CAST('' AS FLOAT)", "InvalidTypeConversion"),
        ("CAST('inf' AS FLOAT)", "InvalidTypeConversion"),
        ("CAST('1.5' AS FLOAT) + 1", "2.5"),
        ("CAST(15 AS STRING) || 'a'", "15a"),
        ("CAST('1' AS BOOLEAN)", "true"),
        ("CAST('TRUE' AS BOOL)", "true"),
        ("CAST('12345' AS DECIMAL(3,0))", "InvalidTypeConversion"),
        ("CAST('2020-02-30' AS TIMESTAMP)", "InvalidTypeConversion"),
        ("CAST(NULL AS INT)", ""),
    ] {
        assert_eq!(value(expression), result, "{expression}");
    }
    assert_eq!(refusal(csv("SELECT CAST(_1 AS BLOB) FROM BlobStorage")), "ParseError");
}

#[test]
fn dates_are_calculated() {
    for (expression, result) in [
        ("TO_TIMESTAMP('2007T')", "2007-01-01T00:00:00Z"),
        ("TO_TIMESTAMP('1969-07-20T20:18+02:00')", "1969-07-20T20:18:00+02:00"),
        (
            "DATE_ADD('minute', 1, CAST('2017-01-02T03:04:05.006Z' AS TIMESTAMP))",
            "2017-01-02T03:05:05.006Z",
        ),
        ("DATE_ADD(month, 1, '2024-01-31')", "2024-02-29T00:00:00Z"),
        ("DATE_ADD('year', -1, '2024-02-29')", "2023-02-28T00:00:00Z"),
        ("DATE_ADD('day', 1000000000, '2024-02-29')", "ArithmeticOverflow"),
        ("DATE_DIFF('hour','2018-11-09T00:00+05:30','2018-11-09T01:00:23-08:00')", "14"),
        ("DATE_DIFF('month', '2024-01-31', '2024-02-29')", "1"),
        ("DATE_DIFF('month', '2024-01-15', '2024-02-14')", "0"),
        ("DATE_DIFF('year', '2024-01-15', '2020-01-16')", "-3"),
        ("EXTRACT(YEAR FROM '2010-01-01T')", "2010"),
        ("EXTRACT(timezone_hour FROM '2010-01-01T00:00-07:30')", "-7"),
        ("EXTRACT(timezone_minute FROM '2010-01-01T00:00-07:30')", "-30"),
        ("TO_STRING(CAST('1969-07-20T20:18Z' AS TIMESTAMP),  'MMMM d, y')", "\"July 20, 1969\""),
        (
            "TO_STRING(TO_TIMESTAMP('2001-02-03T16:05:06.78+05:30'), 'yy-M-dd h:mm:ss.SS a X xxx')",
            "01-2-03 4:05:06.78 PM +05 +05:30",
        ),
        ("TO_STRING(TO_TIMESTAMP('2001'), 'MMM''T''HH X')", "JanT00 Z"),
        ("TO_STRING(TO_TIMESTAMP('2001'), 'QQ')", "InvalidArgument"),
        ("UTCNOW()", "2026-01-02T03:04:05.678Z"),
        ("'2024-05-06T07:08:09Z' = TO_TIMESTAMP('2024-05-06T09:08:09+02:00')", "true"),
    ] {
        assert_eq!(value(expression), result, "{expression}");
    }
}

#[test]
fn what_is_not_in_the_language_is_refused() {
    for query in [
        "",
        "SELECT",
        "SELECT * FROM other",
        "SELECT DISTINCT _1 FROM BlobStorage",
        "SELECT _1 FROM BlobStorage GROUP BY _1",
        "SELECT _1 FROM BlobStorage ORDER BY _1",
        "SELECT _1 FROM BlobStorage a JOIN BlobStorage b",
        "SELECT _1 FROM BlobStorage, BlobStorage",
        "SELECT _1 FROM BlobStorage UNION SELECT 1 FROM BlobStorage",
        "SELECT _1 FROM BlobStorage WHERE _1 IN (SELECT 1 FROM BlobStorage)",
        "SELECT (SELECT 1 FROM BlobStorage) FROM BlobStorage",
        "SELECT * FROM BlobStorage LIMIT -1",
        "SELECT * FROM BlobStorage LIMIT 1 OFFSET 2",
        "SELECT *, _1 FROM BlobStorage",
        "SELECT nosuch(_1) FROM BlobStorage",
        "SELECT LOWER() FROM BlobStorage",
        "SELECT _1 FROM BlobStorage WHERE _1 IS UNKNOWN",
        "SELECT _1 & 1 FROM BlobStorage",
        "SELECT 'open FROM BlobStorage",
        "INSERT INTO BlobStorage VALUES (1)",
        "SELECT DATE_ADD('timezone_hour', 1, _1) FROM BlobStorage",
        "SELECT * FROM BlobStorage WHERE _1 LIKE 'a' ESCAPE 'ab'",
    ] {
        assert_eq!(refusal(csv(query)), "ParseError", "{query}");
    }
    assert_eq!(refusal(csv("SELECT * FROM BlobStorage[*].a")), "InvalidArgument");
    let many: Vec<String> = (1..=50).map(|at| format!("_{at}")).collect();
    let query = format!("SELECT {} FROM BlobStorage", many.join(","));
    assert_eq!(refusal(csv(&query)), "ParseError");
    let fault = Plan::new(csv("SELECT _1 FROM BlobStorage GROUP BY _1")).unwrap_err();
    assert!(fault.description.contains("'GROUP' at line 1, column 28"), "{}", fault.description);
}
