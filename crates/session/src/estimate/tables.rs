//! Tables of features out, trained trees in: the two ends of a trainer outside.

use std::collections::BTreeMap;
use std::io::BufWriter;
use std::path::Path;

use trompe_estimate::Physics;
use trompe_estimate::features::Family;
use trompe_estimate::model::Model;
use trompe_measure::table;

use super::{Data, bytes, write};
use crate::SessionError;

/// The rows of each family that was written.
pub type RowCounts = Vec<(Family, usize)>;

/// Writes `FAMILY.csv` for each family that has rows, and `licences.json` by source, to the folder `out`.
///
/// Gives the rows per family, and what was left out.
///
/// # Errors
/// When a table cannot be read or a file cannot be written.
pub fn write_tables(data: &Data, out: &Path) -> Result<(RowCounts, Vec<String>), SessionError> {
    let read = data.read()?;
    let samples = read.samples();
    std::fs::create_dir_all(out).map_err(|error| SessionError::writing(out, error))?;
    let mut licences = BTreeMap::new();
    for sample in &samples {
        let licence = read.sources.source(&sample.source, "").licence;
        if !licence.is_empty() {
            licences.insert(sample.origin().to_owned(), licence);
        }
    }
    let text = serde_json::to_vec_pretty(&licences).expect("text serialises");
    write(&out.join("licences.json"), &text)?;
    let physics = Physics::new();
    let mut counts = Vec::new();
    for family in Family::ALL {
        let path = out.join(format!("{}.csv", family.name()));
        let file = std::fs::File::create(&path).map_err(|error| SessionError::writing(&path, error))?;
        let mut file = BufWriter::new(file);
        let rows = table::write(&samples, family, &physics, &mut file)
            .and_then(|rows| std::io::Write::flush(&mut file).map(|()| rows))
            .map_err(|error| SessionError::writing(&path, error))?;
        counts.push((family, rows));
    }
    Ok((counts, read.left_out()))
}

/// Makes the model file `out` of the trees in `trained` and the table of features that they were trained on.
///
/// # Errors
/// When a file cannot be read, the trees make no sense, or nothing can be written.
pub fn pack(trained: &Path, features: &Path, out: &Path) -> Result<Model, SessionError> {
    let model = table::pack(&bytes(trained)?, &bytes(features)?)
        .map_err(|reason| SessionError::BadModel { path: trained.to_owned(), reason })?;
    write(out, &model.to_bytes())?;
    Ok(model)
}
