//! Queries from the statement to the answer.

mod aggregates;
mod arrow;
mod bounds;
mod cost;
mod delimited;
mod hostile;
mod json;
mod language;
mod parquet;

use bytes::Bytes;

use crate::query::Delimited;
use crate::query::Execution;
use crate::query::Fault;
use crate::query::Input;
use crate::query::Output;
use crate::query::Plan;
use crate::query::Request;
use crate::query::Sink;
use crate::query::Step;

/// 2026-01-02T03:04:05.678Z.
const NOW: i64 = 1_767_323_045_678;

/// Runs a request over a blob, of which at most `chunk` bytes are given at once.
pub(super) fn run(request: Request, blob: &[u8], chunk: usize) -> Result<Sink, Fault> {
    let mut execution = Execution::new(Plan::new(request)?, blob.len() as u64, NOW);
    let mut all = Sink::default();
    let mut steps = 0;
    loop {
        let mut sink = Sink::default();
        let step = execution.step(&mut sink);
        all.data.append(&mut sink.data);
        all.faults.append(&mut sink.faults);
        match step {
            Step::Read(range) => {
                let start = usize::try_from(range.start).unwrap();
                let end = usize::try_from(range.end).unwrap().min(start + chunk);
                assert!(start < end && end <= blob.len(), "{range:?} of {}", blob.len());
                execution.feed(Bytes::copy_from_slice(&blob[start..end]));
            }
            Step::Continue => {}
            Step::Done => break,
        }
        steps += 1;
        assert!(steps < 1_000_000, "it ends");
    }
    assert!(execution.scanned() <= blob.len() as u64);
    Ok(all)
}

pub(super) fn csv(expression: &str) -> Request {
    Request {
        expression: expression.to_owned(),
        input: Input::Csv(Delimited::default()),
        output: Output::Csv(Delimited::default()),
    }
}

pub(super) fn with_header(expression: &str) -> Request {
    let input = Input::Csv(Delimited { has_headers: true, ..Delimited::default() });
    Request { input, ..csv(expression) }
}

pub(super) fn json(expression: &str) -> Request {
    let separator = || "\n".to_owned();
    Request {
        expression: expression.to_owned(),
        input: Input::Json { record_separator: separator() },
        output: Output::Json { record_separator: separator() },
    }
}

/// The answer as text, without faults.
pub(super) fn answer(request: Request, blob: &str) -> String {
    let sink = run(request, blob.as_bytes(), usize::MAX >> 1).unwrap();
    assert_eq!(sink.faults, [], "{}", String::from_utf8_lossy(&sink.data));
    String::from_utf8(sink.data).unwrap()
}

/// The answer and its faults by their names and positions.
pub(super) fn faulty(request: Request, blob: &str) -> (String, Vec<(bool, String, u64)>) {
    let sink = run(request, blob.as_bytes(), usize::MAX >> 1).unwrap();
    let faults = sink.faults.into_iter().map(|f| (f.fatal, f.name, f.position)).collect();
    (String::from_utf8(sink.data).unwrap(), faults)
}

/// The name of the fault of a request.
pub(super) fn refusal(request: Request) -> String {
    let fault = Plan::new(request).unwrap_err();
    assert!(fault.fatal && !fault.description.is_empty());
    fault.name
}

/// The value of an expression in the statement alone.
pub(super) fn value(expression: &str) -> String {
    let request = csv(&format!("SELECT {expression} FROM BlobStorage"));
    let sink = run(request, b"x\n", 10).unwrap();
    match sink.faults.as_slice() {
        [] => String::from_utf8(sink.data).unwrap().trim_end_matches('\n').to_owned(),
        [fault] => fault.name.clone(),
        more => panic!("{more:?}"),
    }
}

#[test]
fn executions_move_between_threads() {
    fn is_send<T: Send>() {}
    is_send::<Execution>();
    is_send::<Plan>();
}
