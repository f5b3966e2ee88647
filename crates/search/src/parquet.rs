//! A table of trials as a Parquet file, for tools that read no CSV: each column with a type of its own.
//!
//! The type of a column is the narrowest that all of its cells have (whole numbers, numbers, booleans, text); an empty
//! cell has no value. One row group, not compressed: a study is small.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

/// A column's values, those that there are.
enum Values {
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Boolean(Vec<bool>),
    Text(Vec<ByteArray>),
}

impl Values {
    /// The narrowest type that all cells with a value have.
    fn of(cells: &[&str]) -> Self {
        fn all<T: std::str::FromStr>(cells: &[&str]) -> Option<Vec<T>> {
            cells.iter().map(|cell| cell.parse().ok()).collect()
        }
        if cells.is_empty() {
            return Self::Text(Vec::new());
        }
        if let Some(values) = all(cells) {
            Self::Whole(values)
        } else if let Some(values) = all(cells) {
            Self::Real(values)
        } else if let Some(values) = all(cells) {
            Self::Boolean(values)
        } else {
            Self::Text(cells.iter().map(|cell| ByteArray::from(*cell)).collect())
        }
    }

    fn schema(&self, name: &str) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match self {
            Self::Whole(_) => (Physical::INT64, None),
            Self::Real(_) => (Physical::DOUBLE, None),
            Self::Boolean(_) => (Physical::BOOLEAN, None),
            Self::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let column = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()?;
        Ok(Arc::new(column))
    }
}

/// The file with these columns and rows; an empty cell has no value.
///
/// # Errors
/// When two columns have the same name, or rows are shorter than the list of columns.
pub fn table(columns: &[String], rows: &[Vec<String>]) -> Result<Vec<u8>, ParquetError> {
    let column = |at: usize| -> Result<(Values, Vec<i16>), ParquetError> {
        let cell = |row: &Vec<String>| row.get(at).map(String::len);
        let present: Option<Vec<i16>> =
            rows.iter().map(|row| cell(row).map(|length| i16::from(length > 0))).collect();
        let present = present.ok_or_else(|| ParquetError::General(format!("a row has no column {at}")))?;
        let cells: Vec<&str> =
            rows.iter().map(|row| row[at].as_str()).filter(|cell| !cell.is_empty()).collect();
        Ok((Values::of(&cells), present))
    };
    let values = (0..columns.len()).map(column).collect::<Result<Vec<_>, _>>()?;
    let fields = columns.iter().zip(&values).map(|(name, (values, _))| values.schema(name));
    let schema = Type::group_type_builder("trials").with_fields(fields.collect::<Result<_, _>>()?).build()?;
    let mut file = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut file, Arc::new(schema), Arc::new(WriterProperties::default()))?;
    let mut group = writer.next_row_group()?;
    for (values, present) in &values {
        match values {
            Values::Whole(values) => put::<Int64Type>(&mut group, values, present)?,
            Values::Real(values) => put::<DoubleType>(&mut group, values, present)?,
            Values::Boolean(values) => put::<BoolType>(&mut group, values, present)?,
            Values::Text(values) => put::<ByteArrayType>(&mut group, values, present)?,
        }
    }
    group.close()?;
    writer.close()?;
    Ok(file)
}

fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    values: &[T::T],
    present: &[i16],
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has fewer columns than the table".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, Some(present), None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    #[test]
    fn cells_come_back_with_types_of_their_own() {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let columns = texts(&["trial", "tp", "recompute", "step_seconds", "status", "rule"]);
        let rows = [
            texts(&["0", "2", "true", "0.25", "fits", ""]),
            texts(&["1", "4", "false", "", "out_of_memory", ""]),
        ];
        let file = table(&columns, &rows).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(file)).unwrap();
        let read: Vec<String> =
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        let expect = [
            "{trial: 0, tp: 2, recompute: true, step_seconds: 0.25, status: \"fits\", rule: null}",
            "{trial: 1, tp: 4, recompute: false, step_seconds: null, status: \"out_of_memory\", rule: null}",
        ];
        assert_eq!(read, expect);
        assert!(table(&columns, &[texts(&["0"])]).is_err());
    }

    #[test]
    fn a_study_without_trials_is_a_file_too() {
        assert!(table(&["trial".to_owned()], &[]).unwrap().starts_with(b"PAR1"));
    }
}
