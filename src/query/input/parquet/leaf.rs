//! Values of a column without repetition.

use parquet::basic::ConvertedType;
use parquet::basic::LogicalType;
use parquet::basic::TimeUnit;
use parquet::basic::Type as Physical;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::BoolType;
use parquet::data_type::ByteArrayType;
use parquet::data_type::DataType;
use parquet::data_type::DoubleType;
use parquet::data_type::FixedLenByteArrayType;
use parquet::data_type::FloatType;
use parquet::data_type::Int32Type;
use parquet::data_type::Int64Type;
use parquet::data_type::Int96;
use parquet::data_type::Int96Type;
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescPtr;
use parquet::schema::types::ColumnDescriptor;

use crate::query::input::parquet::pages::Pages;
use crate::query::trouble::Trouble;
use crate::query::value::Value;
use crate::query::value::decimal::Decimal;
use crate::query::value::timestamp::Timestamp;

/// Records that are decoded together.
pub(crate) const BATCH: usize = 1024;

/// The logical type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Plain,
    Unsigned,
    Decimal(u8),
    Date,
    Millis,
    Micros,
    Nanos,
    Uuid,
}

fn decimal(scale: i32) -> Meaning {
    u8::try_from(scale).map_or(Meaning::Plain, Meaning::Decimal)
}

impl Meaning {
    #[expect(clippy::wildcard_enum_match_arm, reason = "all other types mean nothing more")]
    fn of(column: &ColumnDescriptor) -> Self {
        match column.logical_type_ref() {
            Some(LogicalType::Decimal(kind)) => return decimal(kind.scale),
            Some(LogicalType::Date) => return Self::Date,
            Some(LogicalType::Timestamp(kind)) => {
                return match kind.unit {
                    TimeUnit::MILLIS => Self::Millis,
                    TimeUnit::MICROS => Self::Micros,
                    TimeUnit::NANOS => Self::Nanos,
                };
            }
            Some(LogicalType::Integer(kind)) if !kind.is_signed => return Self::Unsigned,
            Some(LogicalType::Uuid) => return Self::Uuid,
            _ => {}
        }
        match column.converted_type() {
            ConvertedType::DECIMAL => decimal(column.type_scale()),
            ConvertedType::DATE => Self::Date,
            ConvertedType::TIMESTAMP_MILLIS => Self::Millis,
            ConvertedType::TIMESTAMP_MICROS => Self::Micros,
            ConvertedType::UINT_8 | ConvertedType::UINT_16 => Self::Unsigned,
            ConvertedType::UINT_32 | ConvertedType::UINT_64 => Self::Unsigned,
            _ => Self::Plain,
        }
    }
}

/// A value of a page as a value of the language.
trait Stored {
    fn value(&self, meaning: Meaning) -> Result<Value<'_>, Trouble>;

    /// Bytes of it, if it has any number of them.
    fn size(&self) -> usize {
        0
    }
}

fn time(micros: Option<i64>) -> Result<Value<'static>, Trouble> {
    let time = micros.and_then(|micros| Timestamp::new(micros, 0));
    time.map(Value::Time).ok_or_else(Trouble::conversion)
}

fn scaled(unscaled: i128, scale: u8) -> Result<Value<'static>, Trouble> {
    Decimal::new(unscaled, scale).map(Value::Decimal).ok_or_else(Trouble::conversion)
}

impl Stored for bool {
    fn value(&self, _meaning: Meaning) -> Result<Value<'_>, Trouble> {
        Ok(Value::Bool(*self))
    }
}

impl Stored for i32 {
    fn value(&self, meaning: Meaning) -> Result<Value<'_>, Trouble> {
        match meaning {
            Meaning::Unsigned => Ok(Value::Int(i64::from(self.cast_unsigned()))),
            Meaning::Date => time(i64::from(*self).checked_mul(86_400_000_000)),
            Meaning::Plain
            | Meaning::Decimal(_)
            | Meaning::Millis
            | Meaning::Micros
            | Meaning::Nanos
            | Meaning::Uuid => i64::from(*self).value(meaning).map(Value::into_owned),
        }
    }
}

impl Stored for i64 {
    fn value(&self, meaning: Meaning) -> Result<Value<'_>, Trouble> {
        match meaning {
            Meaning::Unsigned => match u64::try_from(*self) {
                Ok(_) => Ok(Value::Int(*self)),
                Err(_) => scaled(i128::from(self.cast_unsigned()), 0),
            },
            Meaning::Decimal(scale) => scaled(i128::from(*self), scale),
            Meaning::Millis => time(self.checked_mul(1000)),
            Meaning::Micros => time(Some(*self)),
            Meaning::Nanos => time(Some(self.div_euclid(1000))),
            Meaning::Plain | Meaning::Date | Meaning::Uuid => Ok(Value::Int(*self)),
        }
    }
}

impl Stored for Int96 {
    fn value(&self, _meaning: Meaning) -> Result<Value<'_>, Trouble> {
        time(Some(self.to_micros()))
    }
}

impl Stored for f32 {
    fn value(&self, _meaning: Meaning) -> Result<Value<'_>, Trouble> {
        // By way of its text: 0.1 in 32 bits is not the 0.1 of 64 bits.
        self.to_string().parse().map(Value::Float).map_err(|_| Trouble::conversion())
    }
}

impl Stored for f64 {
    fn value(&self, _meaning: Meaning) -> Result<Value<'_>, Trouble> {
        Ok(Value::Float(*self))
    }
}

fn bytes(bytes: &[u8], meaning: Meaning) -> Result<Value<'_>, Trouble> {
    match meaning {
        Meaning::Decimal(scale) => {
            let mut number: i128 =
                if bytes.first().is_some_and(|first| *first >= 0x80) { -1 } else { 0 };
            for byte in bytes {
                number = number.checked_mul(256).ok_or_else(Trouble::conversion)?;
                number |= i128::from(*byte);
            }
            scaled(number, scale)
        }
        Meaning::Uuid => {
            let mut text = String::new();
            for (at, byte) in bytes.iter().enumerate() {
                let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
                text.push_str(&format!("{dash}{byte:02x}"));
            }
            Ok(Value::Text(text.into()))
        }
        Meaning::Plain
        | Meaning::Unsigned
        | Meaning::Date
        | Meaning::Millis
        | Meaning::Micros
        | Meaning::Nanos => {
            std::str::from_utf8(bytes).map(Value::text).map_err(|_| Trouble::conversion())
        }
    }
}

impl Stored for parquet::data_type::ByteArray {
    fn value(&self, meaning: Meaning) -> Result<Value<'_>, Trouble> {
        bytes(self.data(), meaning)
    }

    fn size(&self) -> usize {
        self.len()
    }
}

impl Stored for parquet::data_type::FixedLenByteArray {
    fn value(&self, meaning: Meaning) -> Result<Value<'_>, Trouble> {
        bytes(self.data(), meaning)
    }

    fn size(&self) -> usize {
        self.len()
    }
}

/// A column, of which a batch of values is in memory.
pub(crate) trait Leaf: Send {
    /// Decodes the next values. There must be as many.
    fn advance(&mut self, count: usize) -> Result<(), ParquetError>;

    /// A value of the batch.
    fn value(&self, row: usize) -> Result<Value<'_>, Trouble>;

    /// Bytes of a value of the batch, if it has any number of them.
    fn size(&self, row: usize) -> usize;
}

struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    meaning: Meaning,
    is_always_there: bool,
    level: i16,
    levels: Vec<i16>,
    values: Vec<T::T>,
    /// The position of the value of a record, unless it is null.
    places: Vec<Option<usize>>,
}

impl<T: DataType> Leaf for Typed<T>
where
    T::T: Stored,
{
    fn advance(&mut self, count: usize) -> Result<(), ParquetError> {
        self.levels.clear();
        self.values.clear();
        self.places.clear();
        let levels = (!self.is_always_there).then_some(&mut self.levels);
        let (records, values, _) =
            self.reader.read_records(count, levels, None, &mut self.values)?;
        if records != count {
            return Err(ParquetError::General("a column has too few values".to_owned()));
        }
        if self.is_always_there {
            self.places.extend((0..count).map(Some));
        } else {
            let mut next = 0..values;
            let level = self.level;
            let place = |of: &i16| if *of == level { next.next() } else { None };
            self.places.extend(self.levels.iter().map(place));
        }
        Ok(())
    }

    fn value(&self, row: usize) -> Result<Value<'_>, Trouble> {
        self.stored(row).map_or(Ok(Value::Null), |value| value.value(self.meaning))
    }

    fn size(&self, row: usize) -> usize {
        self.stored(row).map_or(0, Stored::size)
    }
}

impl<T: DataType> Typed<T> {
    fn stored(&self, row: usize) -> Option<&T::T> {
        self.places.get(row).copied().flatten().and_then(|at| self.values.get(at))
    }
}

fn typed<T: DataType + 'static>(column: ColumnDescPtr, pages: Pages) -> Box<dyn Leaf>
where
    T::T: Stored,
{
    Box::new(Typed::<T> {
        meaning: Meaning::of(&column),
        level: column.max_def_level(),
        is_always_there: column.max_def_level() == 0,
        reader: ColumnReaderImpl::new(column, Box::new(pages)),
        levels: Vec::new(),
        values: Vec::new(),
        places: Vec::new(),
    })
}

/// The column with its pages. It has no repetition.
pub(crate) fn leaf(column: ColumnDescPtr, pages: Pages) -> Box<dyn Leaf> {
    match column.physical_type() {
        Physical::BOOLEAN => typed::<BoolType>(column, pages),
        Physical::INT32 => typed::<Int32Type>(column, pages),
        Physical::INT64 => typed::<Int64Type>(column, pages),
        Physical::INT96 => typed::<Int96Type>(column, pages),
        Physical::FLOAT => typed::<FloatType>(column, pages),
        Physical::DOUBLE => typed::<DoubleType>(column, pages),
        Physical::BYTE_ARRAY => typed::<ByteArrayType>(column, pages),
        Physical::FIXED_LEN_BYTE_ARRAY => typed::<FixedLenByteArrayType>(column, pages),
    }
}
