//! Parquet in, delimited text out. `files/make.py` writes the files.

use proptest::prelude::*;

use super::csv;
use super::run;
use crate::query::Input;
use crate::query::Request;

const NONE: &[u8] = include_bytes!("files/none.parquet");
const FILES: [(&str, &[u8]); 6] = [
    ("none", NONE),
    ("snappy", include_bytes!("files/snappy.parquet")),
    ("gzip", include_bytes!("files/gzip.parquet")),
    ("brotli", include_bytes!("files/brotli.parquet")),
    ("zstd", include_bytes!("files/zstd.parquet")),
    ("lz4", include_bytes!("files/lz4.parquet")),
];
const TYPES: &[u8] = include_bytes!("files/types.parquet");
const LISTS: &[u8] = include_bytes!("files/lists.parquet");

fn parquet(expression: &str) -> Request {
    Request { input: Input::Parquet, ..csv(expression) }
}

fn answer(expression: &str, file: &[u8]) -> String {
    let sink = run(parquet(expression), file, usize::MAX >> 1).unwrap();
    assert_eq!(sink.faults, [], "{expression}");
    String::from_utf8(sink.data).unwrap()
}

fn fault(expression: &str, file: &[u8]) -> String {
    let mut sink = run(parquet(expression), file, usize::MAX >> 1).unwrap();
    assert!(sink.faults[0].fatal);
    sink.faults.remove(0).name
}

#[test]
fn every_compression_is_read() {
    for (codec, file) in FILES {
        let query = "SELECT * FROM BlobStorage WHERE id > 199 AND price < 50.75";
        let rows = "200,,50\n201,name 5,50.25\n202,name 6,50.5\n";
        assert_eq!(answer(query, file), rows, "{codec}");
        let query = "SELECT COUNT(*), COUNT(name), SUM(id), MAX(name) FROM BlobStorage";
        assert_eq!(answer(query, file), "300,200,44850,name 6\n", "{codec}");
    }
}

#[test]
fn only_the_columns_of_the_statement_are_read() {
    let count = |expression: &str| {
        let plan = crate::query::Plan::new(parquet(expression)).unwrap();
        let mut execution = crate::query::Execution::new(plan, NONE.len() as u64, 0);
        let mut sink = crate::query::Sink::default();
        loop {
            match execution.step(&mut sink) {
                crate::query::Step::Read(range) => {
                    let start = usize::try_from(range.start).unwrap();
                    let end = usize::try_from(range.end).unwrap();
                    execution.feed(bytes::Bytes::copy_from_slice(&NONE[start..end]));
                }
                crate::query::Step::Continue => {}
                crate::query::Step::Done => return execution.scanned(),
            }
        }
    };
    let nothing = count("SELECT COUNT(*) FROM BlobStorage");
    let name = count("SELECT name FROM BlobStorage");
    let first = count("SELECT id FROM BlobStorage LIMIT 1");
    let all = count("SELECT * FROM BlobStorage");
    assert!(nothing < first && name < all && first < all, "{nothing} {first} {name} {all}");
}

#[test]
fn types_become_values() {
    let row = "true,-1,18446744073709551615,0.1,2024-05-06T00:00:00Z,2024-05-06T07:08:09.123Z,\
               2024-05-06T07:08:09.123Z,-12.50,0.05,Bern,1,";
    let query = "SELECT * FROM BlobStorage LIMIT 1";
    assert_eq!(answer(query, TYPES).trim_end_matches('\n').trim_end_matches(|c| c < ','), row);
    let query = "SELECT yes, small, place.city FROM BlobStorage WHERE \"large\" IS NULL";
    assert_eq!(answer(query, TYPES), ",,\n");
    let query = "SELECT s.place.at.x, _2 FROM BlobStorage s WHERE day < millis";
    assert_eq!(answer(query, TYPES), "1,-1\n");
}

#[test]
fn what_cannot_be_read_is_said() {
    assert_eq!(answer("SELECT id FROM BlobStorage", LISTS), "1\n2\n");
    assert_eq!(fault("SELECT * FROM BlobStorage", LISTS), "NotSupported");
    assert_eq!(fault("SELECT nothing FROM BlobStorage", NONE), "InvalidColumnName");
    assert_eq!(fault("SELECT _4 FROM BlobStorage", NONE), "InvalidColumnName");
    for file in [&b""[..], b"PAR1", b"\xff\xff\xff\xffPAR1", b"\0\0\0\0PAR1", &NONE[..900]] {
        assert_eq!(fault("SELECT * FROM BlobStorage", file), "ParseError");
    }
}

proptest! {
    #[test]
    fn damaged_files_are_no_danger(
        of in 0_usize..6,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = FILES[of].1.to_vec();
        for (at, byte) in damage {
            let at = at.index(file.len());
            file[at] = byte;
        }
        let query = parquet("SELECT * FROM BlobStorage WHERE id >= 0");
        run(query.clone(), &file, 100).unwrap();
        // The end stays, so that the columns are looked for.
        let from = cut.index(file.len());
        run(query, &file[from..], 1 << 20).unwrap();
    }
}
