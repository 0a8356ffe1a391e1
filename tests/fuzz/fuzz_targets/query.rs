//! Any statement over any blob: a fault or an answer, and the same one whatever the pieces. The
//! first byte chooses the formats, the second one the size of pieces; a line feed ends the
//! statement.
#![no_main]

use blockyard::query::ArrowField;
use blockyard::query::ArrowKind;
use blockyard::query::Delimited;
use blockyard::query::Execution;
use blockyard::query::Input;
use blockyard::query::Output;
use blockyard::query::Plan;
use blockyard::query::Request;
use blockyard::query::Sink;
use blockyard::query::Step;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

/// Statements for blobs that come without one.
const STATEMENTS: [&str; 4] = [
    "SELECT * FROM BlobStorage",
    "SELECT COUNT(*), MAX(_1) FROM BlobStorage",
    "SELECT _1, UPPER(_2) FROM BlobStorage WHERE _1 > 1 LIMIT 9",
    "SELECT a, a.b[0] FROM BlobStorage[*]",
];

fn request(formats: u8, expression: String) -> Request {
    let delimited = Delimited {
        escape_char: if formats & 32 == 0 { String::new() } else { "\\".to_owned() },
        has_headers: formats & 64 != 0,
        ..Delimited::default()
    };
    let record_separator = "\n".to_owned();
    let kinds = [ArrowKind::Int64, ArrowKind::String, ArrowKind::Decimal, ArrowKind::TimestampMillis];
    let field = |kind| ArrowField { kind, name: None, precision: Some(9), scale: Some(2) };
    Request {
        expression,
        input: match formats % 3 {
            0 => Input::Csv(delimited.clone()),
            1 => Input::Json { record_separator: record_separator.clone() },
            _ => Input::Parquet,
        },
        output: match formats / 4 % 4 {
            0 | 1 => Output::Csv(delimited),
            2 => Output::Json { record_separator },
            _ => Output::Arrow(kinds.map(field).to_vec()),
        },
    }
}

fn run(plan: Plan, blob: &[u8], piece: usize) -> Sink {
    let mut execution = Execution::new(plan, blob.len() as u64, 0);
    let mut sink = Sink::default();
    loop {
        match execution.step(&mut sink) {
            Step::Read(range) => {
                let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
                assert!(!range.is_empty() && range.end <= blob.len());
                let end = range.end.min(range.start + piece);
                execution.feed(Bytes::copy_from_slice(&blob[range.start..end]));
            }
            Step::Continue => {}
            Step::Done => return sink,
        }
        assert!(sink.data.len() < 256 << 20);
    }
}

fuzz_target!(|data: &[u8]| {
    let [formats, piece, rest @ ..] = data else { return };
    let (statement, blob) = match rest.iter().position(|byte| *byte == b'\n') {
        Some(0) => (STATEMENTS[usize::from(*piece % 4)].to_owned(), &rest[1..]),
        Some(end) => (String::from_utf8_lossy(&rest[..end]).into_owned(), &rest[end + 1..]),
        None => return,
    };
    let request = request(*formats, statement);
    let (Ok(one), Ok(other)) = (Plan::new(request.clone()), Plan::new(request)) else { return };
    let whole = run(one, blob, usize::MAX >> 1);
    assert_eq!(whole, run(other, blob, usize::from(*piece).max(1)));
});
