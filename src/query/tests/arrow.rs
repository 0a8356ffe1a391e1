//! Arrow out.

use std::io::Cursor;

use arrow_array::Array;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_array::types::Float64Type;
use arrow_array::types::Int64Type;
use arrow_array::types::TimestampMillisecondType;
use arrow_ipc::reader::StreamReader;

use super::csv;
use super::refusal;
use super::run;
use crate::query::ArrowField;
use crate::query::ArrowKind;
use crate::query::Output;
use crate::query::Request;
use crate::query::Sink;

fn field(kind: ArrowKind, name: &str) -> ArrowField {
    let name = (!name.is_empty()).then(|| name.to_owned());
    ArrowField { kind, name, precision: Some(10), scale: Some(2) }
}

fn request(expression: &str, fields: Vec<ArrowField>) -> Request {
    Request { output: Output::Arrow(fields), ..csv(expression) }
}

fn batches(sink: &Sink) -> Vec<RecordBatch> {
    let reader = StreamReader::try_new(Cursor::new(&sink.data), None).unwrap();
    reader.map(Result::unwrap).collect()
}

#[test]
fn values_have_the_types_of_the_schema() {
    let fields = vec![
        field(ArrowKind::Int64, "i"),
        field(ArrowKind::Bool, ""),
        field(ArrowKind::TimestampMillis, "t"),
        field(ArrowKind::String, "s"),
        field(ArrowKind::Double, "d"),
        field(ArrowKind::Decimal, "n"),
    ];
    let blob = b"1,true,2024-05-06T07:08:09.1Z,x,1.5,400\nx,,,,,\n2,0,1970,,-2,0.005\n";
    let sink = run(request("SELECT * FROM BlobStorage", fields), blob, 10).unwrap();
    assert_eq!(sink.faults.len(), 1);
    assert_eq!(
        (sink.faults[0].name.as_str(), sink.faults[0].position),
        ("InvalidTypeConversion", 40)
    );
    let batches = batches(&sink);
    let [batch] = batches.as_slice() else { panic!("{batches:?}") };
    let names: Vec<String> = batch.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["i", "_2", "t", "s", "d", "n"]);
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().values(), &[1, 2]);
    assert!(batch.column(1).as_boolean().value(0) && !batch.column(1).as_boolean().value(1));
    let times = batch.column(2).as_primitive::<TimestampMillisecondType>();
    assert_eq!(times.values(), &[1_714_979_289_100, 0]);
    assert_eq!(batch.column(3).as_string::<i32>().value(0), "x");
    assert_eq!(batch.column(4).as_primitive::<Float64Type>().values(), &[1.5, -2.0]);
    assert_eq!(batch.column(5).as_primitive::<Decimal128Type>().values(), &[40_000, 1]);
}

#[test]
fn many_records_are_several_batches() {
    let blob: String = (0..10_000).map(|row| format!("{row},\n")).collect();
    let fields = vec![field(ArrowKind::Int64, "i"), field(ArrowKind::String, "n")];
    let query = "SELECT _1, NULLIF(_2, '') FROM BlobStorage";
    let sink = run(request(query, fields), blob.as_bytes(), 1 << 20).unwrap();
    let batches = batches(&sink);
    assert_eq!(batches.len(), 3);
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 10_000);
    assert_eq!(batches[0].column(1).null_count(), 4096);
}

#[test]
fn records_before_a_fatal_fault_are_there() {
    let fields = vec![field(ArrowKind::Int64, "a")];
    let request =
        Request { input: super::json("").input, ..request("SELECT a FROM BlobStorage", fields) };
    let sink = run(request, b"{\"a\":1}\n{\"a\":}\n", 100).unwrap();
    assert!(sink.faults[0].fatal);
    assert_eq!(batches(&sink)[0].num_rows(), 1);
}

#[test]
fn nothing_is_still_a_stream() {
    let fields = vec![field(ArrowKind::Int64, "i")];
    let sink = run(request("SELECT COUNT(*) FROM BlobStorage", fields.clone()), b"", 1).unwrap();
    assert_eq!(batches(&sink)[0].column(0).as_primitive::<Int64Type>().values(), &[0]);
    let sink = run(request("SELECT _1 FROM BlobStorage", fields.clone()), b"", 1).unwrap();
    assert!(batches(&sink).is_empty());
    assert_eq!(refusal(request("SELECT _1, _2 FROM BlobStorage", fields)), "InvalidArgument");
    assert_eq!(refusal(request("SELECT * FROM BlobStorage", Vec::new())), "InvalidArgument");
    let wide = ArrowField { precision: Some(39), ..field(ArrowKind::Decimal, "n") };
    assert_eq!(refusal(request("SELECT _1 FROM BlobStorage", vec![wide])), "InvalidArgument");
}
