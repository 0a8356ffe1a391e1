//! A stream of Arrow: its schema, batches of records, its end.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::RecordBatch;
use arrow_array::builder::ArrayBuilder;
use arrow_array::builder::BooleanBuilder;
use arrow_array::builder::Decimal128Builder;
use arrow_array::builder::Float64Builder;
use arrow_array::builder::Int64Builder;
use arrow_array::builder::StringBuilder;
use arrow_array::builder::TimestampMillisecondBuilder;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use arrow_schema::DataType;
use arrow_schema::Field;
use arrow_schema::Schema;
use arrow_schema::SchemaRef;
use arrow_schema::TimeUnit;

use crate::query::output::bound::WRITTEN_MAX;
use crate::query::output::bound::bounded;
use crate::query::request::ArrowField;
use crate::query::request::ArrowKind;
use crate::query::request::Fault;
use crate::query::trouble::INVALID_ARGUMENT;
use crate::query::trouble::NOT_SUPPORTED;
use crate::query::trouble::Trouble;
use crate::query::value::Value;
use crate::query::value::cast;
use crate::query::value::decimal::Decimal;
use crate::query::value::decimal::PRECISION_MAX;

/// Records of a batch.
const ROWS_MAX: usize = 4096;
/// Bytes of a batch. A record that would take it above is the first one of the next batch.
const BATCH_MAX: usize = 1 << 20;
/// Bytes that a value takes beside those of its text: those of the longest number.
const VALUE: usize = 16;
/// Columns of a schema.
const FIELDS_MAX: usize = 1024;

/// The values of a column of a batch.
#[derive(Debug)]
enum Column {
    Int(Int64Builder),
    Bool(BooleanBuilder),
    Time(TimestampMillisecondBuilder),
    Text(StringBuilder),
    Float(Float64Builder),
    Decimal(Decimal128Builder, u8, u8),
}

/// A value of a column in its type.
#[derive(Debug)]
enum Typed {
    Null,
    Int(i64),
    Bool(bool),
    Text(String),
    Float(f64),
    Decimal(Decimal),
}

impl Typed {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Null | Self::Int(_) | Self::Bool(_) | Self::Float(_) | Self::Decimal(_) => "",
        }
    }
}

/// The digits of a decimal, and how many of them are behind the point.
fn digits(field: &ArrowField) -> Result<(u8, u8), Fault> {
    let precision = field.precision.unwrap_or(PRECISION_MAX);
    let scale = u8::try_from(field.scale.unwrap_or(0)).ok();
    let scale =
        scale.filter(|scale| (1..=PRECISION_MAX).contains(&precision) && *scale <= precision);
    let text = "A decimal has 1 to 38 digits, and not more of them behind the point.";
    scale.map(|scale| (precision, scale)).ok_or_else(|| Fault::fatal(INVALID_ARGUMENT, text, 0))
}

impl Column {
    /// Without room for values: a schema may have many columns.
    fn new(field: &ArrowField) -> Result<(Self, DataType), Fault> {
        Ok(match field.kind {
            ArrowKind::Int64 => (Self::Int(Int64Builder::with_capacity(0)), DataType::Int64),
            ArrowKind::Bool => (Self::Bool(BooleanBuilder::with_capacity(0)), DataType::Boolean),
            ArrowKind::TimestampMillis => {
                let kind = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
                let builder =
                    TimestampMillisecondBuilder::with_capacity(0).with_data_type(kind.clone());
                (Self::Time(builder), kind)
            }
            ArrowKind::String => (Self::Text(StringBuilder::with_capacity(0, 0)), DataType::Utf8),
            ArrowKind::Double => (Self::Float(Float64Builder::with_capacity(0)), DataType::Float64),
            ArrowKind::Decimal => {
                let (precision, scale) = digits(field)?;
                let signed = i8::try_from(scale).unwrap_or(0);
                let kind = DataType::Decimal128(precision, signed);
                let builder = Decimal128Builder::with_capacity(0).with_data_type(kind.clone());
                (Self::Decimal(builder, precision, scale), kind)
            }
        })
    }

    fn typed(&self, value: &Value<'_>) -> Result<Typed, Trouble> {
        if value.is_null() {
            return Ok(Typed::Null);
        }
        Ok(match self {
            Self::Int(_) => Typed::Int(cast::int(value)?),
            Self::Bool(_) => value.truth()?.map_or(Typed::Null, Typed::Bool),
            Self::Time(_) => Typed::Int(value.time()?.micros().div_euclid(1000)),
            Self::Text(_) => Typed::Text(value.written().into_owned()),
            Self::Float(_) => Typed::Float(value.number()?.to_f64()),
            Self::Decimal(_, precision, scale) => {
                let fitted = cast::decimal(value)?.fitted(*precision, *scale);
                Typed::Decimal(fitted.ok_or_else(Trouble::conversion)?)
            }
        })
    }

    fn push(&mut self, value: Typed) {
        match (self, value) {
            (Self::Int(column), Typed::Int(value)) => column.append_value(value),
            (Self::Time(column), Typed::Int(value)) => column.append_value(value),
            (Self::Bool(column), Typed::Bool(value)) => column.append_value(value),
            (Self::Text(column), Typed::Text(value)) => column.append_value(value),
            (Self::Float(column), Typed::Float(value)) => column.append_value(value),
            (Self::Decimal(column, ..), Typed::Decimal(value)) => {
                column.append_value(value.unscaled());
            }
            (Self::Int(column), _) => column.append_null(),
            (Self::Time(column), _) => column.append_null(),
            (Self::Bool(column), _) => column.append_null(),
            (Self::Text(column), _) => column.append_null(),
            (Self::Float(column), _) => column.append_null(),
            (Self::Decimal(column, ..), _) => column.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Int(column) => column as &mut dyn ArrayBuilder,
            Self::Bool(column) => column,
            Self::Time(column) => column,
            Self::Text(column) => column,
            Self::Float(column) => column,
            Self::Decimal(column, ..) => column,
        }
        .finish()
    }
}

/// Writes a stream of Arrow. Values are matched with the columns of the schema by their position. A
/// record with fewer values has nulls; values beyond the schema are left out.
pub(crate) struct Arrow {
    schema: SchemaRef,
    columns: Vec<Column>,
    /// Of the record that is being written.
    values: Vec<Typed>,
    /// Bytes of them.
    record: usize,
    rows: usize,
    /// Bytes of the rows.
    batch: usize,
    stream: StreamWriter<Vec<u8>>,
}

impl std::fmt::Debug for Arrow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arrow").field("schema", &self.schema).finish_non_exhaustive()
    }
}

fn broken(error: &ArrowError) -> Fault {
    Fault::fatal(NOT_SUPPORTED, format!("The answer cannot be written as Arrow: {error}."), 0)
}

impl Arrow {
    pub(crate) fn new(fields: &[ArrowField], count: Option<usize>) -> Result<Self, Fault> {
        let is_right = count.is_none_or(|count| count == fields.len());
        if !is_right || fields.is_empty() || fields.len() > FIELDS_MAX {
            let text = "The schema has another number of columns than the statement.";
            return Err(Fault::fatal(INVALID_ARGUMENT, text, 0));
        }
        let (mut columns, mut described) = (Vec::new(), Vec::new());
        for (at, field) in fields.iter().enumerate() {
            let (column, kind) = Column::new(field)?;
            columns.push(column);
            let name = field.name.clone().unwrap_or_else(|| format!("_{}", at + 1));
            described.push(Field::new(name, kind, true));
        }
        let schema = Arc::new(Schema::new(described));
        let stream = StreamWriter::try_new(Vec::new(), &schema).map_err(|error| broken(&error))?;
        let values = Vec::new();
        Ok(Self { schema, columns, values, record: 0, rows: 0, batch: 0, stream })
    }

    pub(crate) fn begin(&mut self) {
        self.values.clear();
        self.record = 0;
    }

    pub(crate) fn cell(&mut self, value: &Value<'_>) -> Result<(), Trouble> {
        if let Some(column) = self.columns.get(self.values.len()) {
            let typed = column.typed(value)?;
            self.record += VALUE + typed.text().len();
            bounded(self.record, WRITTEN_MAX)?;
            self.values.push(typed);
        }
        Ok(())
    }

    pub(crate) fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        // Values that the record lacks are nulls, which take as much as others.
        let size = self.record + VALUE * (self.columns.len() - self.values.len());
        if self.batch + size > BATCH_MAX {
            self.flush(out)?;
        }
        self.batch += size;
        let mut values = self.values.drain(..);
        for column in &mut self.columns {
            column.push(values.next().unwrap_or(Typed::Null));
        }
        drop(values);
        self.rows += 1;
        if self.rows >= ROWS_MAX || self.batch >= BATCH_MAX { self.flush(out) } else { Ok(()) }
    }

    /// Moves the bytes that the stream has written.
    fn take(&mut self, out: &mut Vec<u8>) {
        out.append(self.stream.get_mut());
    }

    fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        if self.rows > 0 {
            let arrays = self.columns.iter_mut().map(Column::finish).collect();
            let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays);
            let written = batch.and_then(|batch| self.stream.write(&batch));
            written.map_err(|error| broken(&error))?;
            (self.rows, self.batch) = (0, 0);
        }
        self.take(out);
        Ok(())
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.flush(out)?;
        self.stream.finish().map_err(|error| broken(&error))?;
        self.take(out);
        Ok(())
    }
}
