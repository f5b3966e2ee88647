//! Fits the built-in constants to public measurements, and says how well they predict.
//!
//! `cargo run --release --example collectives -- table collectives.csv.gz` prints the tables of the crate's README;
//! `… fit collectives.csv.gz` prints `constants/fitted.toml`; `… errors …` prints every row with its error. The file has the columns `source, split, gpu, system, nodes, ranks,
//! gpus_per_node, collective, bytes, time_us, variant` with bytes as nccl-tests counts them. Rows with split `dev` are never
//! fitted; for the lines "held out" the fit is repeated without the rows of every fourth power of two.

#[path = "collectives/fitting.rs"]
mod fitting;
#[path = "collectives/rows.rs"]
mod rows;
#[path = "collectives/systems.rs"]
mod systems;
#[path = "collectives/tables.rs"]
mod tables;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [mode, path] = arguments.as_slice() else {
        return Err("usage: collectives (fit|table|errors) FILE.csv.gz".into());
    };
    let rows = rows::read(path.as_ref())?;
    match mode.as_str() {
        "fit" => print!("{}", fitting::constants(&rows).to_toml()),
        "errors" => print!("{}", tables::errors(&rows, &trompe_network::Constants::builtin())),
        "table" => print!("{}", tables::write(&rows, &trompe_network::Constants::builtin())),
        other => return Err(format!("`{other}` is neither `fit`, `table` nor `errors`").into()),
    }
    Ok(())
}
