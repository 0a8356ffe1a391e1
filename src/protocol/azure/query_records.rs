//! The answer of Query Blob Contents: an Avro object container file whose records are results,
//! errors, progress and an end.
//!
//! The schema is one union of four records, so that the encoding of a value is all that is needed
//! of Avro; the clients' own readers test it.
//!
//! Source: "Query Blob Contents"; Avro specification 1.8.2, "Object Container Files".

use bytes::Bytes;

use crate::query::Fault;

/// Names and fields as the service writes them.
const SCHEMA: &str = concat!(
    r#"[{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.resultData","#,
    r#""fields":[{"name":"data","type":"bytes"}]},"#,
    r#"{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.error","#,
    r#""fields":[{"name":"fatal","type":"boolean"},{"name":"name","type":"string"},"#,
    r#"{"name":"description","type":"string"},{"name":"position","type":"long"}]},"#,
    r#"{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.progress","#,
    r#""fields":[{"name":"bytesScanned","type":"long"},{"name":"totalBytes","type":"long"}]},"#,
    r#"{"type":"record","name":"com.microsoft.azure.storage.queryBlobContents.end","#,
    r#""fields":[{"name":"totalBytes","type":"long"}]}]"#,
);

/// Places of the records in the union.
const RESULT: u64 = 0;
const ERROR: u64 = 1;
const PROGRESS: u64 = 2;
const END: u64 = 3;

/// Encodes the answer. Each record is a block of the file, so that a reader gets it immediately.
#[derive(Debug)]
pub struct QueryRecords {
    sync: [u8; 16],
}

impl QueryRecords {
    /// An answer with blocks that end with `sync`, 16 random bytes.
    #[must_use]
    pub const fn new(sync: [u8; 16]) -> Self {
        Self { sync }
    }

    /// The beginning of the file.
    #[must_use]
    pub fn begin(&self) -> Bytes {
        let mut out = b"Obj\x01".to_vec();
        // A map of one entry, and its end.
        long(&mut out, 1);
        text(&mut out, b"avro.schema");
        text(&mut out, SCHEMA.as_bytes());
        long(&mut out, 0);
        out.extend_from_slice(&self.sync);
        out.into()
    }

    /// Bytes of the result.
    #[must_use]
    pub fn result(&self, data: &[u8]) -> Bytes {
        self.block(RESULT, |out| text(out, data))
    }

    /// Something wrong with the query or the blob.
    #[must_use]
    pub fn error(&self, fault: &Fault) -> Bytes {
        self.block(ERROR, |out| {
            out.push(u8::from(fault.fatal));
            text(out, fault.name.as_bytes());
            text(out, fault.description.as_bytes());
            long(out, fault.position);
        })
    }

    /// How many bytes of all were scanned.
    #[must_use]
    pub fn progress(&self, scanned: u64, total: u64) -> Bytes {
        self.block(PROGRESS, |out| {
            long(out, scanned);
            long(out, total);
        })
    }

    /// The end of the answer.
    #[must_use]
    pub fn end(&self, total: u64) -> Bytes {
        self.block(END, |out| long(out, total))
    }

    fn block(&self, record: u64, fields: impl FnOnce(&mut Vec<u8>)) -> Bytes {
        let mut content = Vec::new();
        long(&mut content, record);
        fields(&mut content);
        let mut out = Vec::with_capacity(content.len() + 32);
        long(&mut out, 1);
        text(&mut out, &content);
        out.extend_from_slice(&self.sync);
        out.into()
    }
}

/// A number from 0 as Avro's `long`: zigzag, then seven bits in a byte, the lowest first.
fn long(out: &mut Vec<u8>, number: u64) {
    let mut rest = u128::from(number) << 1;
    loop {
        let low = rest.to_le_bytes()[0] & 0x7f;
        rest >>= 7;
        if rest == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

/// Avro's `string` or `bytes`.
fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    long(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_those_of_a_recorded_answer() {
        let sync: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        let records = QueryRecords::new(sync);
        let block = |content: &[u8]| [content, &sync].concat();
        // Recorded: data of 120 bytes has a block of 123 bytes.
        let data = vec![b'x'; 120];
        let begin = [&[0x02, 0xf6, 0x01, 0x00, 0xf0, 0x01][..], &data].concat();
        assert_eq!(records.result(&data), block(&begin));
        let fault = Fault {
            fatal: true,
            name: "InternalError".to_owned(),
            description: "Internal parse exception.".to_owned(),
            position: 0,
        };
        let recorded =
            [b"\x02\x56\x02\x01\x1aInternalError".as_slice(), b"\x32Internal parse exception.\x00"]
                .concat();
        assert_eq!(records.error(&fault), block(&recorded));
        assert_eq!(records.progress(43, 43), block(&[0x02, 0x06, 0x04, 0x56, 0x56]));
        assert_eq!(records.end(43), block(&[0x02, 0x04, 0x06, 0x56]));
    }

    #[test]
    fn the_file_begins_with_its_schema() {
        let begin = QueryRecords::new([7; 16]).begin();
        assert!(begin.starts_with(b"Obj\x01\x02\x16avro.schema"));
        assert!(begin.ends_with(&[&[0][..], &[7; 16]].concat()));
        let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
        let names: Vec<_> = schema.as_array().unwrap().iter().map(|r| r["name"].as_str()).collect();
        assert_eq!(names.len(), 4);
    }

    #[test]
    fn numbers_have_as_many_bytes_as_they_need() {
        for (number, bytes) in [
            (0, &[0][..]),
            (63, &[0x7e]),
            (64, &[0x80, 0x01]),
            (i64::MAX as u64, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
        ] {
            let mut out = Vec::new();
            long(&mut out, number);
            assert_eq!(out, bytes, "{number}");
        }
    }
}
