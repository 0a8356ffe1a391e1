//! The request of a client, and its errors.

/// A query of one blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The statement in SQL.
    pub expression: String,
    /// How the blob is written.
    pub input: Input,
    /// How the answer is written.
    pub output: Output,
}

/// The format of the blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Delimited text.
    Csv(Delimited),
    /// JSON values, each followed by a separator.
    Json {
        /// The separator of records; empty means a line feed.
        record_separator: String,
    },
    /// Apache Parquet.
    Parquet,
}

/// The format of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Delimited text.
    Csv(Delimited),
    /// JSON objects, each followed by a separator.
    Json {
        /// The end of each record; empty means a line feed.
        record_separator: String,
    },
    /// A stream of Arrow with these columns.
    Arrow(Vec<ArrowField>),
}

/// The dialect of delimited text. An empty separator is the default one. An empty quote or escape
/// character, or a null character, means none; SDKs send both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delimited {
    /// Between two columns; `,` by default.
    pub column_separator: String,
    /// After a record; a line feed by default, before which a carriage return is dropped on input.
    pub record_separator: String,
    /// Around a field that contains separators; `"` by default.
    pub field_quote: String,
    /// Takes the meaning from the character that follows it; none by default.
    pub escape_char: String,
    /// The first record has the names of the columns.
    pub has_headers: bool,
}

impl Default for Delimited {
    fn default() -> Self {
        Self {
            column_separator: ",".to_owned(),
            record_separator: "\n".to_owned(),
            field_quote: "\"".to_owned(),
            escape_char: String::new(),
            has_headers: false,
        }
    }
}

/// A column of an answer in Arrow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrowField {
    /// Its type.
    pub kind: ArrowKind,
    /// Its name; without one it has that of the column of the query.
    pub name: Option<String>,
    /// Digits of a decimal.
    pub precision: Option<u8>,
    /// Digits of a decimal behind the point.
    pub scale: Option<i8>,
}

/// The type of a column of an answer in Arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrowKind {
    /// 64 bits with a sign.
    Int64,
    /// True or false.
    Bool,
    /// Milliseconds since 1970 in UTC.
    TimestampMillis,
    /// UTF-8.
    String,
    /// 64 bits.
    Double,
    /// 128 bits with a precision and a scale.
    Decimal,
}

/// Something wrong with the query or with the blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Nothing follows it. After another, the record is left out and the query goes on.
    pub fatal: bool,
    /// A short name for programs.
    pub name: String,
    /// A sentence for people.
    pub description: String,
    /// Where in the blob the record begins; in the statement or the request, zero.
    pub position: u64,
}

impl Fault {
    /// A fault that ends the query.
    pub(crate) fn fatal(name: &str, description: impl Into<String>, position: u64) -> Self {
        Self { fatal: true, name: name.to_owned(), description: description.into(), position }
    }

    /// A fault of one record.
    #[cfg(feature = "query")]
    pub(crate) fn of_record(name: &str, description: impl Into<String>, position: u64) -> Self {
        Self { fatal: false, name: name.to_owned(), description: description.into(), position }
    }
}

/// The next step of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// These bytes of the blob: feed them, then step again.
    Read(std::ops::Range<u64>),
    /// To be called again.
    Continue,
    /// Nothing: the query is over.
    Done,
}

/// The output of an execution. The caller takes it out between two steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sink {
    /// Bytes of the answer.
    pub data: Vec<u8>,
    /// Faults in the order in which they were found.
    pub faults: Vec<Fault>,
}
