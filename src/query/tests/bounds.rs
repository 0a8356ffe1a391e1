//! Bounds of memory and of work.

use std::io::Cursor;
use std::sync::Arc;

use arrow_ipc::reader::StreamReader;
use bytes::Bytes;
use parquet::basic::Compression;
use parquet::basic::Encoding;
use parquet::basic::ZstdLevel;
use parquet::data_type::ByteArray;
use parquet::data_type::ByteArrayType;
use parquet::data_type::DataType;
use parquet::data_type::DoubleType;
use parquet::data_type::Int32Type;
use parquet::data_type::Int96;
use parquet::data_type::Int96Type;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::metadata::ParquetMetaDataWriter;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use super::answer;
use super::csv;
use super::faulty;
use super::json;
use super::run;
use crate::query::ArrowField;
use crate::query::ArrowKind;
use crate::query::Delimited;
use crate::query::Execution;
use crate::query::Input;
use crate::query::Output;
use crate::query::Plan;
use crate::query::Request;
use crate::query::Sink;
use crate::query::Step;
use crate::query::input::parquet::codec::decompress;
use crate::query::input::parquet::zstd::Lengths;

fn arrow(expression: &str, columns: usize) -> Request {
    let kind = ArrowKind::String;
    let field = ArrowField { kind, name: None, precision: None, scale: None };
    Request { output: Output::Arrow(vec![field; columns]), ..csv(expression) }
}

/// How many records each batch has.
fn batches(sink: &Sink) -> Vec<usize> {
    let reader = StreamReader::try_new(Cursor::new(&sink.data), None).unwrap();
    reader.map(|batch| batch.unwrap().num_rows()).collect()
}

#[test]
fn records_of_arrow_are_bounded() {
    let query = format!("SELECT {} FROM BlobStorage", ["_1||_1||_1||_1"; 5].join(","));
    let blob = format!("x\n{}\ny\n", "x".repeat(1 << 20));
    let sink = run(arrow(&query, 5), blob.as_bytes(), 1 << 20).unwrap();
    assert_eq!(batches(&sink), [2]);
    let [fault] = sink.faults.as_slice() else { panic!("{}", sink.faults.len()) };
    assert_eq!((fault.name.as_str(), fault.fatal, fault.position), ("RecordTooLarge", false, 2));
}

#[test]
fn batches_of_arrow_are_bounded() {
    let line = format!("{}\n", "x".repeat(300_000));
    let sink = run(arrow("SELECT _1 FROM BlobStorage", 1), line.repeat(7).as_bytes(), 1 << 20);
    assert_eq!(batches(&sink.unwrap()), [3, 3, 1]);
    let large = format!("x\n{}\nx\n", "x".repeat(2 << 20));
    let sink = run(arrow("SELECT _1 FROM BlobStorage", 1), large.as_bytes(), 1 << 20);
    assert_eq!(batches(&sink.unwrap()), [1, 1, 1]);
    let sink = run(arrow("SELECT * FROM BlobStorage", 1000), "x\n".repeat(200).as_bytes(), 1 << 20);
    assert_eq!(batches(&sink.unwrap()), [65, 65, 65, 5]);
}

/// How many records each step with records has written.
fn steps(request: Request, blob: &[u8]) -> Vec<usize> {
    let mut execution = Execution::new(Plan::new(request).unwrap(), blob.len() as u64, 0);
    let mut counts = Vec::new();
    loop {
        let mut sink = Sink::default();
        let step = execution.step(&mut sink);
        assert_eq!(sink.faults, []);
        let count = sink.data.iter().filter(|byte| **byte == b'\n').count();
        counts.extend((count > 0).then_some(count));
        match step {
            Step::Read(range) => {
                let start = usize::try_from(range.start).unwrap();
                let end = usize::try_from(range.end).unwrap();
                execution.feed(Bytes::copy_from_slice(&blob[start..end]));
            }
            Step::Continue => {}
            Step::Done => return counts,
        }
    }
}

#[test]
fn records_of_a_list_are_several_steps() {
    let blob = format!("{{\"a\":[{}0]}}\n{{\"a\":[1]}}", "1,".repeat(100_000));
    let counts = steps(json("SELECT _1 FROM BlobStorage[*].a[*]"), blob.as_bytes());
    assert_eq!(counts.iter().sum::<usize>(), 100_002);
    assert!(counts.len() > 5 && counts.iter().all(|count| *count < 20_000), "{counts:?}");
    let counts = steps(json("SELECT _1 FROM BlobStorage[*].a[*] LIMIT 3"), blob.as_bytes());
    assert_eq!(counts, [3]);
}

#[test]
fn paths_lead_to_values() {
    let blob =
        r#"{"x":"]}","\u0061":[ [{"b":[1, 2]}, 5 , {"B":[]}] ,[], "s", [{"b" : ["x,]"]}]],"a":0}"#;
    let all = |path: &str| {
        answer(json(&format!("SELECT _1 FROM BlobStorage[*].{path}")), blob).replace('\n', "")
    };
    assert_eq!(all("a[*][*].b[*]"), r#"{"_1":1}{"_1":2}{"_1":"x,]"}"#);
    assert_eq!(all("a[*][1]"), r#"{"_1":5}"#);
    assert_eq!(all("a[0][2].b"), r#"{"_1":[]}"#);
    assert_eq!(all("a[2]"), r#"{"_1":"s"}"#);
    assert_eq!(all("a[9]") + &all("b") + &all("a.b") + &all("x[*]"), "");
    let (data, faults) = faulty(json("SELECT _1 FROM BlobStorage[*].a[*]"), "{\"a\":[1,2}");
    assert_eq!((data.as_str(), faults), ("", vec![(true, "ParseError".to_owned(), 0)]));
}

#[test]
fn values_of_a_record_are_bounded() {
    let fault = |name: &str| vec![(false, name.to_owned(), 0)];
    let blob = format!("{{\"a\":[{}0]}}\n{{\"a\":1}}\n", "1,".repeat(200_000));
    let found = faulty(json("SELECT a FROM BlobStorage"), &blob);
    assert_eq!(found, ("{\"a\":1}\n".to_owned(), fault("RecordTooLarge")));
    let (_, faults) = faulty(json("SELECT b FROM BlobStorage"), &blob);
    assert_eq!(faults, []);
    let blob = format!("{}\n1\n", ",".repeat(70_000));
    let found = faulty(csv("SELECT * FROM BlobStorage"), &blob);
    assert_eq!(found, ("1\n".to_owned(), fault("RecordTooLarge")));
    assert_eq!(answer(csv("SELECT _65536 FROM BlobStorage LIMIT 1"), &blob), "\n");
}

#[test]
fn texts_are_bounded_before_they_are_escaped() {
    let output = json("").output;
    let request = Request { output, ..csv("SELECT _1 FROM BlobStorage") };
    let blob = format!("{}\n{}\n", "\u{1}".repeat(3 << 20), "\"".repeat(2));
    let (data, faults) = faulty(request.clone(), &blob);
    assert_eq!(
        (data.as_str(), faults),
        ("{\"_1\":\"\"}\n", vec![(false, "RecordTooLarge".to_owned(), 0)])
    );
    let blob = format!("{}\n", "x".repeat(3 << 20));
    assert_eq!(answer(request, &blob).len(), (3 << 20) + 10);
}

#[test]
fn numbers_out_of_range_are_faults_of_a_record() {
    let found = faulty(json("SELECT a FROM BlobStorage"), "{\"a\":1e400}\n{\"a\":2,\"b\":1e400}");
    let faults = vec![(false, "InvalidTypeConversion".to_owned(), 0)];
    assert_eq!(found, ("{\"a\":2}\n".to_owned(), faults));
}

#[test]
fn lists_that_are_cut_off_are_faults() {
    for (blob, position) in [("[{\"a\":1},", 9), ("[{\"a\":1}", 8), ("[{\"a\":1} \n ", 11)] {
        for chunk in [1, 100] {
            let sink = run(json("SELECT a FROM BlobStorage"), blob.as_bytes(), chunk).unwrap();
            assert_eq!(sink.data, b"{\"a\":1}\n");
            let [fault] = sink.faults.as_slice() else { panic!("{blob}") };
            assert_eq!((fault.name.as_str(), fault.fatal), ("ParseError", true));
            assert_eq!(fault.position, position, "{blob}");
        }
    }
}

#[test]
fn escape_characters_are_escaped() {
    let escaped = Delimited { escape_char: "\\".to_owned(), ..Delimited::default() };
    let quoted = Delimited { field_quote: "\"".to_owned(), ..escaped };
    for query in ["SELECT * FROM BlobStorage", "SELECT _1, _2 FROM BlobStorage"] {
        let request = Request { output: Output::Csv(quoted.clone()), ..csv(query) };
        let written = answer(request, "C:\\temp,x\n");
        assert_eq!(written, "\"C:\\\\temp\",x\n");
        let request = Request { input: Input::Csv(quoted.clone()), ..csv(query) };
        assert_eq!(answer(request, &written), "C:\\temp,x\n");
    }
}

fn parquet(expression: &str) -> Request {
    Request { input: Input::Parquet, ..csv(expression) }
}

/// The values of a column of a group, and its levels if there can be nulls.
type Values<'a, T> = (&'a [<T as DataType>::T], Option<&'a [i16]>);

/// A file of one column, with a group for each list of values.
fn file<T: DataType>(
    column: &str,
    groups: &[Values<'_, T>],
    properties: WriterProperties,
) -> Vec<u8> {
    let schema = parse_message_type(&format!("message m {{ {column}; }}")).unwrap();
    let (schema, properties) = (Arc::new(schema), Arc::new(properties));
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    for (values, levels) in groups {
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<T>().write_batch(values, *levels, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

/// The file with metadata that claims so many rows in each group, and values in each column.
fn claims(file: &[u8], rows: i64, values: i64) -> Vec<u8> {
    let (rest, tail) = file.split_at(file.len() - 8);
    let length = u32::from_le_bytes(tail[..4].try_into().unwrap()) as usize;
    let (data, metadata) = rest.split_at(rest.len() - length);
    let mut builder = ParquetMetaDataReader::decode_metadata(metadata).unwrap().into_builder();
    let mut groups = Vec::new();
    for group in builder.take_row_groups() {
        let columns = group.columns().iter().cloned();
        let claim = |column: parquet::file::metadata::ColumnChunkMetaData| {
            column.into_builder().set_num_values(values).build().unwrap()
        };
        let columns = columns.map(claim).collect();
        let builder = group.into_builder().set_column_metadata(columns);
        groups.push(builder.set_num_rows(rows).build().unwrap());
    }
    let metadata = builder.set_row_groups(groups).build();
    let mut out = data.to_vec();
    ParquetMetaDataWriter::new(&mut out, &metadata).finish().unwrap();
    out
}

fn rows(expression: &str, file: &[u8]) -> String {
    let sink = run(parquet(expression), file, 1 << 20).unwrap();
    assert_eq!(sink.faults, [], "{expression}");
    String::from_utf8(sink.data).unwrap()
}

fn fatal(expression: &str, file: &[u8]) -> String {
    let mut sink = run(parquet(expression), file, 1 << 20).unwrap();
    let fault = sink.faults.remove(0);
    assert!(fault.fatal);
    fault.description
}

#[test]
fn rows_are_counted_that_are_there() {
    let plain = WriterProperties::default();
    let none: Values<'_, Int32Type> = (&[], Some(&[]));
    let groups = [(&[1, 2][..], Some(&[1, 0, 1][..])), none, (&[7], Some(&[1]))];
    let good = file::<Int32Type>("optional int32 a", &groups, plain);
    assert_eq!(rows("SELECT COUNT(*), COUNT(a), SUM(a) FROM BlobStorage", &good), "4,3,10\n");
    assert_eq!(rows("SELECT COUNT(*) FROM BlobStorage", &good), "4\n");
    assert_eq!(rows("SELECT 1 FROM BlobStorage LIMIT 2", &good), "1\n1\n");
    assert_eq!(rows("SELECT * FROM BlobStorage", &good), "1\n\n2\n7\n");
    let one = file::<Int32Type>("optional int32 a", &groups[..1], WriterProperties::default());
    for (rows, values) in [(i64::MAX, 3), (i64::MAX, i64::MAX), (3, 4), (-1, -1), (0, 3)] {
        let bad = claims(&one, rows, values);
        for query in ["SELECT COUNT(*) FROM BlobStorage", "SELECT 1 FROM BlobStorage"] {
            assert!(fatal(query, &bad).starts_with("Malformed Parquet"), "{rows} {values}");
        }
    }
}

#[test]
fn files_of_lists_alone_are_not_counted() {
    let lists = include_bytes!("files/lists.parquet");
    assert_eq!(rows("SELECT COUNT(*) FROM BlobStorage", lists), "2\n");
    let plain = WriterProperties::default();
    let alone = file::<Int32Type>("repeated int32 a", &[], plain);
    assert_eq!(rows("SELECT COUNT(*) FROM BlobStorage", &alone), "0\n");
}

#[test]
fn values_of_a_dictionary_count_as_work() {
    let large = ByteArray::from(vec![b'x'; 300_000]);
    let values = vec![large; 40];
    let properties = WriterProperties::builder().set_dictionary_enabled(true).build();
    let file = file::<ByteArrayType>("required binary a (UTF8)", &[(&values, None)], properties);
    let query = "SELECT CHAR_LENGTH(a) FROM BlobStorage";
    // Each is looked at and counted: a step has room for two of them, not for its 1 MiB of rows.
    assert_eq!(steps(parquet(query), &file), [2; 20]);
}

#[test]
fn many_columns_and_groups_are_refused() {
    let plain = WriterProperties::default();
    let groups = vec![(&[1][..], None); 20_000];
    let many = file::<Int32Type>("required int32 a", &groups, plain);
    assert!(fatal("SELECT * FROM BlobStorage", &many).contains("columns and groups"));
}

#[test]
fn old_and_rare_types_are_read() {
    let mut time = Int96::new();
    // 2024-05-06, and a second of it.
    time.set_data(1_000_000_000, 0, 2_460_437);
    let plain = WriterProperties::builder;
    let times = file::<Int96Type>("required int96 t", &[(&[time], None)], plain().build());
    assert_eq!(rows("SELECT t FROM BlobStorage", &times), "2024-05-06T00:00:01Z\n");
    let split = plain().set_dictionary_enabled(false).set_encoding(Encoding::BYTE_STREAM_SPLIT);
    let floats = file::<DoubleType>("required double d", &[(&[1.5, -2.25], None)], split.build());
    assert_eq!(rows("SELECT d FROM BlobStorage", &floats), "1.5\n-2.25\n");
}

#[test]
fn old_encodings_of_levels_are_refused() {
    let plain = WriterProperties::default();
    let mut file = file::<Int32Type>("optional int32 a", &[(&[7], Some(&[1, 0]))], plain);
    // The encodings of the levels in the header of the page.
    let at = file.windows(4).position(|bytes| bytes == [0x15, 6, 0x15, 6]).unwrap();
    file[at + 1] = 8;
    assert!(fatal("SELECT a FROM BlobStorage", &file).contains("BIT_PACKED"));
    (file[at + 1], file[at + 3]) = (6, 8);
    assert_eq!(rows("SELECT a FROM BlobStorage", &file), "7\n\n");
}

/// A frame of Zstandard with a window of 64 MiB, of blocks of one byte and its count.
fn zstd(blocks: &[u32]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x80];
    for (at, count) in blocks.iter().enumerate() {
        let is_last = u32::from(at + 1 == blocks.len());
        frame.extend(&(is_last | 2 | count << 3).to_le_bytes()[..3]);
        frame.push(b'x');
    }
    frame
}

#[test]
fn windows_are_no_larger_than_pages() {
    let codec = Compression::ZSTD(ZstdLevel::default());
    assert_eq!(decompress(codec, &zstd(&[100, 7]), 107), Some(vec![b'x'; 107]));
    assert_eq!(decompress(codec, &zstd(&[100, 7]), 106), None);
    assert_eq!(decompress(codec, &zstd(&[100, 7]), 108), None);
    assert_eq!(decompress(codec, &zstd(&[128 * 1024; 100_000]), 100), None);
    assert_eq!(decompress(codec, &zstd(&[1])[..7], 1), None);
    // Brotli with a window of 1 GiB.
    let brotli = Compression::BROTLI(parquet::basic::BrotliLevel::default());
    assert_eq!(decompress(brotli, &[0x11, 0x1e, 0x03], 0), None);
}

#[test]
fn blocks_have_the_length_that_they_say() {
    // Twenty literals, and ten matches of 64 KiB with an offset of one.
    let mut block = vec![20 << 3];
    block.extend([b'x'; 20]);
    block.extend([10, 0x54, 1, 0, 52]);
    block.extend([0; 20]);
    block.push(1);
    assert_eq!(Lengths::default().of_block(&block), Some(20 + 10 * 65_539));
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x80];
    let header = u32::try_from(block.len() << 3 | 2 << 1 | 1).unwrap();
    frame.extend(&header.to_le_bytes()[..3]);
    frame.extend(&block);
    let codec = Compression::ZSTD(ZstdLevel::default());
    assert_eq!(decompress(codec, &frame, 20 + 10 * 65_539), None);
    block[21] = 1;
    block.truncate(26 + 2);
    block.push(1);
    frame.truncate(6);
    let header = u32::try_from(block.len() << 3 | 2 << 1 | 1).unwrap();
    frame.extend(&header.to_le_bytes()[..3]);
    frame.extend(&block);
    assert!(decompress(codec, &frame, 20 + 65_539) == Some(vec![b'x'; 20 + 65_539]));
}
