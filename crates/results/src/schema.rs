//! The published JSON schema of `report.json`.

use schemars::Schema;
use schemars::generate::SchemaSettings;

use crate::Report;

/// The JSON schema (draft 2020-12) of `report.json` as this version writes it.
///
/// `docs/report.schema.json` is this value; a test keeps the two equal.
#[must_use]
pub fn schema() -> Schema {
    let mut schema =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Report>();
    schema.insert("title".to_owned(), "trompe report".into());
    schema
}
