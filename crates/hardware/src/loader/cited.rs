//! Numbers that carry their unit and their source.
//!
//! In a sheet a number is written `{ value = 3.35, unit = "TB/s", source = "datasheet" }`. `source` is a key of the
//! sheet's `[sources]` table, or the citation itself (recognised by its spaces). A bare number is refused.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::HardwareError;
use super::schema::{Dimension, Kind};

/// Where one number of a sheet comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cited {
    /// The value and unit as the sheet has them.
    pub written: String,
    /// The citation in full.
    pub source: String,
}

/// Sources of all numbers of a sheet by dotted path.
pub type Provenance = BTreeMap<String, Cited>;

/// A sheet's table without `kind`, `base` and `sources`, its numbers bare and in base units.
pub(crate) fn plain(sheet: &str, kind: Kind, table: &Table) -> Result<(Table, Provenance), HardwareError> {
    let empty = Table::new();
    let sources = table.get("sources").and_then(Value::as_table).unwrap_or(&empty);
    let mut walk = Walk { sheet, kind, sources, provenance: Provenance::new() };
    let mut result = Table::new();
    for (key, value) in table {
        if !["kind", "base", "sources"].contains(&key.as_str()) {
            result.insert(key.clone(), walk.value(key, value)?);
        }
    }
    Ok((result, walk.provenance))
}

struct Walk<'a> {
    sheet: &'a str,
    kind: Kind,
    sources: &'a Table,
    provenance: Provenance,
}

impl Walk<'_> {
    fn value(&mut self, path: &str, value: &Value) -> Result<Value, HardwareError> {
        match value {
            Value::Table(table) if table.contains_key("value") => self.cited(path, table),
            Value::Table(table) => {
                let mut result = Table::new();
                for (key, value) in table {
                    result.insert(key.clone(), self.value(&format!("{path}.{key}"), value)?);
                }
                Ok(Value::Table(result))
            }
            Value::String(_) if self.kind.texts().contains(&path) => Ok(value.clone()),
            Value::Array(names) if path == "aliases" && names.iter().all(Value::is_str) => Ok(value.clone()),
            _ if self.dimension(path).is_some() => {
                Err(HardwareError::Unsourced { sheet: self.sheet.to_owned(), path: path.to_owned() })
            }
            _ => Err(self.unknown(path)),
        }
    }

    fn cited(&mut self, path: &str, table: &Table) -> Result<Value, HardwareError> {
        let dimension = self.dimension(path).ok_or_else(|| self.unknown(path))?;
        if let Some(key) = table.keys().find(|key| !["value", "unit", "source"].contains(&key.as_str())) {
            return Err(self.unknown(&format!("{path}.{key}")));
        }
        let value = &table["value"];
        let unit = table.get("unit").and_then(Value::as_str).unwrap_or("");
        let source = self.source(path, table)?;
        let Some((_, factor)) = dimension.units().iter().find(|(name, _)| *name == unit) else {
            return Err(HardwareError::Unit {
                sheet: self.sheet.to_owned(),
                path: path.to_owned(),
                unit: unit.to_owned(),
                expected: dimension.units().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
            });
        };
        let written = if unit.is_empty() { value.to_string() } else { format!("{value} {unit}") };
        let result = convert(dimension, value, *factor).map_err(|expected| HardwareError::Value {
            sheet: self.sheet.to_owned(),
            path: path.to_owned(),
            value: written.clone(),
            expected,
        })?;
        self.provenance.insert(path.to_owned(), Cited { written, source });
        Ok(result)
    }

    fn source(&self, path: &str, table: &Table) -> Result<String, HardwareError> {
        let key = table.get("source").and_then(Value::as_str).map(str::trim).unwrap_or_default();
        if key.is_empty() {
            return Err(HardwareError::Unsourced { sheet: self.sheet.to_owned(), path: path.to_owned() });
        }
        match self.sources.get(key).and_then(Value::as_str).map(str::trim) {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            _ if key.contains(' ') => Ok(key.to_owned()),
            _ => Err(HardwareError::UnknownSource {
                sheet: self.sheet.to_owned(),
                path: path.to_owned(),
                cited: key.to_owned(),
            }),
        }
    }

    fn dimension(&self, path: &str) -> Option<Dimension> {
        self.kind.fields().iter().find(|(name, _)| *name == path).map(|(_, dimension)| *dimension)
    }

    fn unknown(&self, path: &str) -> HardwareError {
        HardwareError::UnknownField {
            sheet: self.sheet.to_owned(),
            path: path.to_owned(),
            kind: self.kind.name(),
            known: self.kind.fields().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
        }
    }
}

/// `value` times `factor`, or what it must be.
fn convert(dimension: Dimension, value: &Value, factor: f64) -> Result<Value, &'static str> {
    if dimension == Dimension::Flag {
        return value.as_bool().map(Value::Boolean).ok_or("`true` or `false`");
    }
    let number = match value {
        Value::Integer(n) => *n as f64,
        Value::Float(x) => *x,
        _ => return Err("a number"),
    };
    if !number.is_finite() || number < 0.0 {
        return Err("finite and not negative");
    }
    match dimension {
        Dimension::Count => match value {
            Value::Integer(n) if u32::try_from(*n).is_ok() => Ok(value.clone()),
            _ => Err("a whole number below 2^32"),
        },
        Dimension::Bytes | Dimension::Duration => {
            let whole = (number * factor).round();
            if whole < i64::MAX as f64 {
                Ok(Value::Integer(whole as i64))
            } else {
                Err("below 2^63 base units")
            }
        }
        _ => Ok(Value::Float(number * factor)),
    }
}
