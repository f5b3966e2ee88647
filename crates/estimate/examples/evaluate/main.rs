//! Compares the estimator with measurements: `cargo run --release -p trompe-estimate --example evaluate -- FOLDER
//! [train]` prints one table row per family, device and source.
//!
//! FOLDER holds `gemm.csv.gz`, `attention.csv.gz`, `pointwise.csv.gz` and `conv.csv.gz` (any may be missing) with the
//! columns that `rows.rs` names. Rows of the `dev` split are compared unless `train` is given.

mod rows;
mod table;

use std::error::Error;
use std::path::Path;

use trompe_estimate::{KernelEstimator, Physics};

use rows::{Devices, Measured, Row};
use table::Table;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next() else {
        return Err("usage: evaluate FOLDER [train|dev]".into());
    };
    let split = arguments.next().unwrap_or_else(|| "dev".to_owned());
    let physics = Physics::new();
    let devices = Devices::new()?;
    let mut table = Table::default();
    for file in ["gemm", "attention", "pointwise", "conv"] {
        let path = Path::new(&folder).join(format!("{file}.csv.gz"));
        if !path.exists() {
            eprintln!("{} is missing, left out", path.display());
            continue;
        }
        let mut reader =
            csv::Reader::from_reader(flate2::read::MultiGzDecoder::new(std::fs::File::open(path)?));
        let headers = reader.headers()?.clone();
        for record in reader.records() {
            let record = record?;
            let row = Row::new(&headers, &record);
            if row.text("split") != split {
                continue;
            }
            if let Some(Measured { group, operations, device, seconds }) =
                rows::measured(file, &row, &devices)
            {
                let estimates =
                    operations.iter().map(|operation| physics.estimate(operation, device)).collect();
                let roofline = operations.iter().map(|operation| table::roofline(operation, device)).sum();
                table.add(group, estimates, seconds, roofline);
            }
        }
    }
    print!("{table}");
    Ok(())
}
