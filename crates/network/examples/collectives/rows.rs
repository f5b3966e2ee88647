//! Measurements from a gzipped CSV file.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::path::Path;

use trompe_base::Bytes;
use trompe_network::{NetworkModel, Operation, Placement};

use crate::systems::{self, System};

/// One measured operation.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What it was measured on.
    pub(crate) system: &'static System,
    pub(crate) operation: Operation,
    pub(crate) placement: Placement,
    pub(crate) bytes: Bytes,
    pub(crate) micros: f64,
    /// Whether its size is held out of the fit that is scored.
    pub(crate) held_out: bool,
    /// Whether its split is `dev`, which is never fitted.
    pub(crate) dev: bool,
}

impl Row {
    /// The model's time for it in microseconds, without what the system's way of measuring adds.
    pub(crate) fn predicted(&self, model: &NetworkModel) -> f64 {
        model.price(self.operation, self.bytes, &self.placement).time.as_micros_f64()
    }
}

/// The rows that a known system measured.
pub(crate) fn read(path: &Path) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut reader = csv::Reader::from_reader(flate2::read::GzDecoder::new(File::open(path)?));
    let headers = reader.headers()?.clone();
    let column = |name: &str| {
        headers.iter().position(|header| header == name).ok_or_else(|| format!("no column `{name}`"))
    };
    let [source, split, gpu, system] =
        [column("source")?, column("split")?, column("gpu")?, column("system")?];
    let [nodes, local, collective] = [column("nodes")?, column("gpus_per_node")?, column("collective")?];
    let [bytes, micros, variant] = [column("bytes")?, column("time_us")?, column("variant")?];
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        let Some(system) = systems::find(&record[source], &record[gpu], &record[system]) else { continue };
        let Some(operation) = operation(&record[collective]) else { continue };
        // Registered symmetric buffers are another way to call, not modelled.
        if record[variant].contains("reg2") {
            continue;
        }
        let (nodes, local): (u32, u32) = (record[nodes].parse()?, record[local].parse()?);
        let bytes = Bytes(record[bytes].parse::<f64>()? as u64);
        if bytes.0 == 0 || nodes > 1 && system.across == systems::Across::Unknown {
            continue;
        }
        let dev = &record[split] == "dev";
        rows.push(Row {
            system,
            operation,
            placement: system.placement(nodes, local),
            bytes,
            micros: record[micros].parse()?,
            held_out: bytes.0.ilog2() % 4 == 3,
            dev,
        });
    }
    drop_broken(&mut rows);
    Ok(rows)
}

/// One table of the CSCS pages shows a run that fell back to sockets, which no column tells: of rows that differ by more
/// than 2.5 times, the slow ones go.
fn drop_broken(rows: &mut Vec<Row>) {
    let key = |row: &Row| (row.placement.clone(), row.bytes);
    let mut least: BTreeMap<_, f64> = BTreeMap::new();
    let is_cscs = |row: &Row| row.system.name.starts_with("CSCS");
    for row in rows.iter().filter(|row| is_cscs(row)) {
        let least = least.entry(key(row)).or_insert(f64::INFINITY);
        *least = least.min(row.micros);
    }
    rows.retain(|row| !is_cscs(row) || row.micros <= 2.5 * least[&key(row)]);
}

fn operation(name: &str) -> Option<Operation> {
    Some(match name {
        "all_reduce" => Operation::AllReduce,
        "all_gather" => Operation::AllGather,
        "reduce_scatter" => Operation::ReduceScatter,
        "broadcast" => Operation::Broadcast,
        "reduce" => Operation::Reduce,
        "alltoall" => Operation::AllToAll,
        "sendrecv" => Operation::SendReceive,
        _ => return None,
    })
}
