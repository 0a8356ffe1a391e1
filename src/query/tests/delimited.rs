//! Delimited text in and out.

use super::answer;
use super::csv;
use super::faulty;
use super::refusal;
use super::run;
use super::with_header;
use crate::query::Delimited;
use crate::query::Input;
use crate::query::Output;
use crate::query::Request;

const NUMBERS: &str = "100,200,300,400\n150,250,350,450\n";

fn delimited(signs: [&str; 4]) -> Delimited {
    let [column, record, quote, escape] = signs.map(str::to_owned);
    Delimited {
        column_separator: column,
        record_separator: record,
        field_quote: quote,
        escape_char: escape,
        has_headers: false,
    }
}

#[test]
fn all_columns_come_back() {
    assert_eq!(answer(csv("SELECT * FROM BlobStorage"), NUMBERS), NUMBERS);
    assert_eq!(answer(csv("select * from blobstorage;"), "a,b\r\nc\r\n\r\nd,e"), "a,b\nc\nd,e\n");
    assert_eq!(answer(csv("SELECT s.* FROM BlobStorage s"), NUMBERS), NUMBERS);
    assert_eq!(answer(csv("SELECT * FROM BlobStorage"), ""), "");
}

#[test]
fn text_compares_with_a_number_as_one() {
    let query = "SELECT _2 from BlobStorage WHERE _1 > 100";
    assert_eq!(answer(csv(query), NUMBERS), "250\n");
    let query = "SELECT _2 from BlobStorage WHERE _1 > 200";
    assert_eq!(answer(csv(query), NUMBERS), "");
    let (out, faults) = faulty(
        csv("select _2 from BlobStorage where _2 > 100"),
        "100,hello,300,400\n150,250,350,450\n",
    );
    assert_eq!(out, "250\n");
    assert_eq!(faults, [(false, "InvalidTypeConversion".to_owned(), 0)]);
}

#[test]
fn record_without_the_column_is_left_out() {
    let (out, faults) = faulty(csv("SELECT _3 FROM BlobStorage"), "1,2,3\n4\n5,6,7\n");
    assert_eq!(out, "3\n7\n");
    assert_eq!(faults, [(false, "InvalidColumnOrdinal".to_owned(), 6)]);
}

#[test]
fn header_names_columns() {
    let blob = "Name,\"The Age\"\nAnn,20\nBob,30\n";
    let query = "SELECT name, \"The Age\" FROM BlobStorage WHERE _2 > 25";
    assert_eq!(answer(with_header(query), blob), "Bob,30\n");
    let mut request = with_header("SELECT s.Name n, 1 + 1, _2 FROM BlobStorage AS s LIMIT 1");
    request.output = Output::Csv(Delimited { has_headers: true, ..Delimited::default() });
    assert_eq!(answer(request.clone(), blob), "n,_2,_3\nAnn,2,20\n");
    request.expression = "SELECT * FROM BlobStorage WHERE FALSE".to_owned();
    assert_eq!(answer(request, blob), "Name,The Age\n");
    let (_, faults) = faulty(with_header("SELECT other FROM BlobStorage"), blob);
    assert_eq!(faults, [(true, "InvalidColumnName".to_owned(), 0)]);
    let (_, faults) = faulty(with_header("SELECT \"name\" FROM BlobStorage"), blob);
    assert_eq!(faults, [(true, "InvalidColumnName".to_owned(), 0)]);
    assert_eq!(refusal(csv("SELECT Name FROM BlobStorage")), "InvalidColumnName");
    assert_eq!(refusal(csv("SELECT _0 FROM BlobStorage")), "InvalidColumnOrdinal");
}

#[test]
fn quotes_and_escapes_are_read_and_written() {
    let blob = "a,\"b,\"\"c\"\"\nd\",e\"f\n\"x\"y,,\"\"\n";
    assert_eq!(answer(csv("SELECT _2 FROM BlobStorage"), blob), "\"b,\"\"c\"\"\nd\"\n\n");
    assert_eq!(answer(csv("SELECT _1, _3 FROM BlobStorage"), blob), "a,\"e\"\"f\"\nxy,\n");
    let request = Request {
        input: Input::Csv(delimited([",", "\n", "\"", "\\"])),
        output: Output::Csv(delimited([";", ".", "'", "\\"])),
        ..csv("SELECT * FROM BlobStorage")
    };
    assert_eq!(answer(request.clone(), "1.0;\\,a,it's\n"), "'1.0;,a';'it\\'s'.");
    let output = Output::Csv(delimited(["|", "\n", "", "\\"]));
    assert_eq!(answer(Request { output, ..request.clone() }, "a|b,c\n"), "a\\|b|c\n");
    let output = Output::Csv(delimited(["|", "\n", "", ""]));
    assert_eq!(answer(Request { output, ..request }, "a|b,c\n"), "a|b|c\n");
}

#[test]
fn separators_are_chosen() {
    let input = Delimited { has_headers: true, ..delimited([".", "!", "", ""]) };
    let request = Request {
        input: Input::Csv(input),
        output: Output::Csv(delimited([".", "!", "", ""])),
        ..csv("select _1 from BlobStorage")
    };
    assert_eq!(answer(request, "100.200!150.\"250!180.280!"), "150!180!");
    let request = Request {
        input: Input::Csv(delimited([",", "\r\n", "\"", ""])),
        ..csv("SELECT _2 FROM BlobStorage")
    };
    assert_eq!(answer(request, "a,b\nc\r\nd,e\r\n"), "\"b\nc\"\ne\n");
    for signs in [["ab", "\n", "", ""], [",", ",", "", ""], [",", "\n", "\"", "\n"]] {
        let input = Input::Csv(delimited(signs));
        let request = Request { input, ..csv("SELECT * FROM BlobStorage") };
        assert_eq!(refusal(request), "InvalidArgument", "{signs:?}");
    }
}

#[test]
fn json_of_text_numbers_columns_by_position() {
    let output = Output::Json { record_separator: ";".to_owned() };
    let request = Request { output, ..csv("SELECT _2, _1 AS b FROM BlobStorage WHERE _1 > 100") };
    assert_eq!(answer(request.clone(), NUMBERS), "{\"_1\":\"250\",\"b\":\"150\"};");
    let expression = "SELECT * FROM BlobStorage LIMIT 1".to_owned();
    let request = Request { expression, ..request };
    assert_eq!(
        answer(request, NUMBERS),
        "{\"_1\":\"100\",\"_2\":\"200\",\"_3\":\"300\",\"_4\":\"400\"};"
    );
}

#[test]
fn bytes_that_are_no_text_pass_but_are_not_evaluated() {
    let blob = b"\xef\xbb\xbfa,\xff\nb,c\n";
    let sink = run(csv("SELECT * FROM BlobStorage"), blob, 1).unwrap();
    assert_eq!(sink.data, b"a,\xff\nb,c\n");
    let sink = run(csv("SELECT _2 FROM BlobStorage"), blob, 1).unwrap();
    assert_eq!(sink.data, b"c\n");
    assert_eq!(sink.faults.len(), 1);
    assert_eq!((sink.faults[0].position, sink.faults[0].fatal), (3, false));
}

#[test]
fn parts_of_a_split_end_behind_records() {
    let line = format!("{},1\n", "x".repeat(97));
    let blob = line.repeat(250_000);
    let out = answer(csv("SELECT sys.split(10485760)FROM BlobStorage"), &blob);
    let sizes: Vec<usize> = out.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), blob.len());
    assert_eq!(sizes[..2], [10_485_800, 10_485_800]);
    assert_eq!(sizes.len(), 3);
    assert!(sizes.iter().all(|size| size.is_multiple_of(100)));
    assert_eq!(refusal(csv("SELECT sys.split(1048576) FROM BlobStorage")), "InvalidArgument");
}

#[test]
fn records_that_need_quotes_elsewhere_are_not_copied() {
    let output = Output::Csv(delimited([",", ";", "'", ""]));
    let request = Request { output, ..csv("SELECT * FROM BlobStorage") };
    assert_eq!(answer(request.clone(), "a;b,c\nit's,d\ne\rf,g\n"), "'a;b',c;'it''s',d;e\rf,g;");
    let output = Output::Csv(delimited(["|", "\n", "\"", ""]));
    assert_eq!(
        answer(Request { output, ..request }, "a,b|c\nd\"e,f\n"),
        "a|\"b|c\"\n\"d\"\"e\"|f\n"
    );
}
