//! Collectives of nccl-tests-like tables against the network model.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use trompe_base::Bytes;
use trompe_hardware::{BytesPerSecond, NetworkKind, resolve};
use trompe_measure::errors::{ALL, Group, Worst, quantile};
use trompe_measure::{Left, MeasureError, sources::Sources};
use trompe_network::{Fabric, Inside, NetworkModel, Operation, Placement};

use super::{Request, choose};
use crate::SessionError;
use crate::estimate::sources;

/// Columns without which a table says nothing.
const COLUMNS: [&str; 6] = ["gpu", "nodes", "gpus_per_node", "collective", "bytes", "time_us"];

const WORST: usize = 5;
const POINTS: usize = 200;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct System {
    source: String,
    gpu: String,
    system: String,
    node: String,
    adapters: u32,
    gigabits: u32,
    ethernet: bool,
}

#[derive(Deserialize)]
struct Systems {
    system: Vec<System>,
}

/// One row with its prediction; times in seconds.
#[derive(Clone)]
struct Row {
    key: (String, String, String),
    /// What must agree for two rows to be repeats.
    same: String,
    what: String,
    line: u64,
    train: bool,
    measured: f64,
    predicted: f64,
    low: f64,
    high: f64,
    bound: f64,
}

/// Errors by group, by device over all groups, and what was left out.
pub(super) struct Compared {
    pub(super) groups: Vec<Group>,
    pub(super) summary: Vec<Group>,
    pub(super) left_out: Vec<String>,
}

pub(super) fn compare(path: &Path, request: &Request) -> Result<Compared, SessionError> {
    let sources = sources(&request.sheets)?;
    let unreadable = |error: csv::Error| trompe_measure::unreadable(path, &error);
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(trompe_measure::open(path)?);
    let headers = reader.headers().map_err(unreadable)?.clone();
    if let Some(missing) = COLUMNS.iter().find(|column| !headers.iter().any(|header| header == **column)) {
        return Err(MeasureError::OtherColumns {
            path: path.to_owned(),
            found: headers.iter().map(|header| format!("`{header}`")).collect::<Vec<_>>().join(", "),
            needed: format!(
                "one of collectives needs {} (`{missing}` is missing)",
                COLUMNS.map(|column| format!("`{column}`")).join(", ")
            ),
        }
        .into());
    }
    let systems: Systems = toml::from_str(include_str!("systems.toml")).expect("systems.toml is well formed");
    let mut pricer = Pricer { systems: systems.system, sources, models: BTreeMap::new() };
    let (mut rows, mut left) = (Vec::new(), Left::default());
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let line = record.position().map_or(0, csv::Position::line);
        let cell = |column: &str| {
            headers.iter().position(|header| header == column).and_then(|at| record.get(at)).unwrap_or("")
        };
        match pricer.row(&cell, line) {
            Ok(row) => rows.push(row),
            Err(reason) => left.add(reason, line),
        }
    }
    if rows.is_empty() {
        return Err(MeasureError::Empty { path: path.to_owned(), reason: left.commonest() }.into());
    }
    let (groups, summary) = groups(rows, request);
    Ok(Compared { groups, summary, left_out: left.lines(&path.display().to_string()) })
}

/// Prices rows; a model per system is made once.
struct Pricer {
    systems: Vec<System>,
    sources: Sources,
    models: BTreeMap<String, NetworkModel>,
}

impl Pricer {
    fn row<'a>(&mut self, cell: &dyn Fn(&str) -> &'a str, line: u64) -> Result<Row, String> {
        let number =
            |column: &str| cell(column).parse::<f64>().map_err(|_| format!("no number in `{column}`"));
        let operation = operation(cell("collective"))?;
        let (nodes, local) = (number("nodes")? as u32, number("gpus_per_node")? as u32);
        let (bytes, micros) = (number("bytes")?, number("time_us")?);
        if bytes < 1.0 || micros <= 0.0 || !micros.is_finite() {
            return Err("a size or a time that is not positive".to_owned());
        }
        if cell("variant").contains("reg2") {
            return Err("registered symmetric buffers are not modelled".to_owned());
        }
        let (source, gpu) = (cell("source"), cell("gpu"));
        let fits = |known: &&System| {
            source.contains(&known.source)
                && gpu.contains(&known.gpu)
                && cell("system").contains(&known.system)
        };
        let system = self.systems.iter().find(fits).cloned();
        let known_network = system.as_ref().is_none_or(|system| system.adapters > 0);
        if nodes > 1 && !known_network {
            return Err("the network between the nodes of that system is not described".to_owned());
        }
        let model = self.model(system.unwrap_or_default(), gpu)?;
        let placement = Placement::regular(nodes, local);
        let estimate = model.price(operation, Bytes(bytes as u64), &placement);
        let source = source.split('/').next().unwrap_or_default();
        let size = match bytes as u64 {
            0..=65_535 => "< 64 KiB",
            65_536..=33_554_431 => "64 KiB .. 32 MiB",
            _ => ">= 32 MiB",
        };
        let name = cell("collective");
        let where_ = if nodes > 1 { format!("{nodes} x {local}") } else { format!("{local}") };
        Ok(Row {
            key: (format!("{name} {size}"), gpu.to_owned(), source.to_owned()),
            same: format!("{gpu} {} {name} {nodes} {local} {bytes}", cell("system")),
            what: format!("{name} {bytes} B on {where_}"),
            line,
            train: cell("split") == "train",
            measured: micros * 1e-6,
            predicted: estimate.time.as_secs_f64(),
            low: estimate.low.as_secs_f64(),
            high: estimate.high.as_secs_f64(),
            bound: bound(model.fabric(), operation, bytes, nodes, nodes * local),
        })
    }

    fn model(&mut self, system: System, gpu: &str) -> Result<&NetworkModel, String> {
        let node = if system.node.is_empty() {
            let sheet = self.sources.device(gpu).ok_or_else(|| format!("no sheet knows the GPU `{gpu}`"))?;
            sheet.home.clone()
        } else {
            system.node.clone()
        };
        let name = format!("{node} {} {} {}", system.adapters, system.gigabits, system.ethernet);
        if !self.models.contains_key(&name) {
            let sheet = resolve(&node).map_err(|error| error.to_string())?;
            let mut fabric = Fabric::from_cluster(&sheet);
            if system.adapters > 0 {
                fabric.adapters = system.adapters;
                fabric.adapter = BytesPerSecond(f64::from(system.gigabits) * 0.125e9);
                fabric.ethernet = system.ethernet;
                fabric.network = NetworkKind::FatTree;
            }
            self.models.insert(name.clone(), NetworkModel::new(fabric));
        }
        Ok(&self.models[&name])
    }
}

/// The least time that the links allow: what each rank must move over the rate of the narrowest link that it crosses.
fn bound(fabric: &Fabric, operation: Operation, bytes: f64, nodes: u32, ranks: u32) -> f64 {
    let inside = match &fabric.inside {
        Inside::Switch(rate) | Inside::Pcie(rate) => rate.0,
        Inside::Links { links, per_link } => {
            let most = links.iter().map(|row| row.iter().sum::<u32>()).max().unwrap_or(0);
            f64::from(most) * per_link.0
        }
    };
    let across = fabric.adapter.0 * f64::from(fabric.adapters);
    let rate = if nodes > 1 { inside.min(across) } else { inside };
    bytes * operation.bus_factor(ranks) / rate
}

fn operation(name: &str) -> Result<Operation, String> {
    Ok(match name {
        "all_reduce" => Operation::AllReduce,
        "all_gather" => Operation::AllGather,
        "reduce_scatter" => Operation::ReduceScatter,
        "broadcast" => Operation::Broadcast,
        "reduce" => Operation::Reduce,
        "alltoall" => Operation::AllToAll,
        "sendrecv" | "send_recv" => Operation::SendReceive,
        other => return Err(format!("the collective `{other}` is not modelled")),
    })
}

fn groups(rows: Vec<Row>, request: &Request) -> (Vec<Group>, Vec<Group>) {
    let mut repeats = BTreeMap::<String, Vec<f64>>::new();
    for row in &rows {
        repeats.entry(row.same.clone()).or_default().push(row.measured);
    }
    // Every table has systems that the constants were fitted on; rows of tables that do not split count as held out.
    let mut held: Vec<Row> = rows.into_iter().filter(|row| !row.train).collect();
    choose(&mut held, request.limit, request.seed);
    let mut groups = BTreeMap::<(String, String, String), Vec<Row>>::new();
    let mut devices = BTreeMap::<(String, String, String), Vec<Row>>::new();
    for row in held {
        groups.entry(row.key.clone()).or_default().push(row.clone());
        let (_, gpu, source) = row.key.clone();
        devices.entry((ALL.to_owned(), gpu, source)).or_default().push(row);
    }
    let each = |rows: BTreeMap<(String, String, String), Vec<Row>>| -> Vec<Group> {
        rows.into_iter().map(|(key, rows)| group(key, rows, &repeats)).collect()
    };
    (each(groups), each(devices))
}

fn group(
    (label, gpu, source): (String, String, String),
    mut rows: Vec<Row>,
    repeats: &BTreeMap<String, Vec<f64>>,
) -> Group {
    let sorted = |value: &dyn Fn(&Row) -> f64| {
        let mut all: Vec<f64> = rows.iter().map(value).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let error = |row: &Row| row.predicted / row.measured - 1.0;
    let absolute = sorted(&|row| error(row).abs());
    let bounds = sorted(&|row| (row.bound / row.measured - 1.0).abs());
    let bias = sorted(&error);
    let count = rows.len() as f64;
    let inside = rows.iter().filter(|row| (row.low..=row.high).contains(&row.measured)).count() as f64;
    let noise: Vec<f64> = rows
        .iter()
        .filter_map(|row| {
            let others = repeats[&row.same].iter().filter(|other| **other != row.measured);
            others.map(|other| (other / row.measured - 1.0).abs()).reduce(f64::min)
        })
        .collect();
    let step = rows.len().div_ceil(POINTS).max(1);
    let points = rows.iter().step_by(step).map(|row| [row.measured, row.predicted]).collect();
    rows.sort_by(|a, b| error(b).abs().total_cmp(&error(a).abs()).then(a.line.cmp(&b.line)));
    Group {
        source,
        gpu,
        family: "collective".to_owned(),
        label,
        shape_in_train: None,
        rows: rows.len() as u64,
        median: quantile(&absolute, 0.5),
        mean: absolute.iter().sum::<f64>() / count,
        p90: quantile(&absolute, 0.9),
        bias: quantile(&bias, 0.5),
        inside: inside / count,
        physics_median: f64::NAN,
        roofline_median: quantile(&bounds, 0.5),
        noise: (!noise.is_empty()).then(|| noise.iter().sum::<f64>() / noise.len() as f64),
        noise_rows: noise.len() as u64,
        basis: BTreeMap::new(),
        worst: rows
            .iter()
            .take(WORST)
            .map(|row| Worst {
                line: row.line,
                operation: row.what.clone(),
                measured_us: row.measured * 1e6,
                predicted_us: row.predicted * 1e6,
                error: error(row),
                reason: if (row.low..=row.high).contains(&row.measured) {
                    "inside the interval".to_owned()
                } else if row.measured > 3.0 * row.predicted {
                    "a single slow run, or a network that the table does not state".to_owned()
                } else {
                    "another algorithm or protocol was chosen, or a software version that the table does not state"
                        .to_owned()
                },
            })
            .collect(),
        points,
    }
}
