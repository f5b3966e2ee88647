//! What nccl-tests prints: rows of sizes and times, as text, JSON (`-J`) or CSV.
//!
//! The text of every binary (`all_reduce_perf` … `sendrecv_perf`) and version is read: columns for reduction and root come and
//! go, the last eight are always time, two rates and errors, first out of place, then in place. Sizes are the `size` column,
//! which is the large buffer of an all-gather or reduce-scatter. Which operation it was and among how many ranks is taken from
//! what the log says of itself, else told by the caller ([`Hints`]), and checked by the two rates of each row, whose ratio
//! depends on both.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::operation::Operation;

/// What a caller knows of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// The operation, or a text that names it (a file name).
    pub operation: Option<String>,
    /// Ranks.
    pub ranks: Option<u32>,
    /// Nodes.
    pub nodes: Option<u32>,
}

/// One measured size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Operation.
    pub operation: Operation,
    /// Ranks.
    pub ranks: u32,
    /// Nodes.
    pub nodes: u32,
    /// Bytes, as [`Operation`] counts them.
    pub bytes: u64,
    /// Microseconds.
    pub micros: f64,
}

/// Why a text is no such log.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LogError {
    /// No row at all.
    #[error(
        "there is no row of sizes and times; give the whole output of a nccl-tests binary such as `all_reduce_perf`, its JSON \
         (`-J`), or CSV with the columns `collective,ranks,nodes,bytes,time_us`"
    )]
    Empty,
    /// A row that is cut or has other columns.
    #[error("line {line}: `{text}` is no row of nccl-tests: {reason}")]
    Row {
        /// Line.
        line: usize,
        /// The row.
        text: String,
        /// What is wrong.
        reason: String,
    },
    /// Times in another unit.
    #[error("line {line}: times are given in `{unit}`, not `us`; nccl-tests prints microseconds")]
    Unit {
        /// Line.
        line: usize,
        /// The unit.
        unit: String,
    },
    /// Not said which operation.
    #[error("the log does not say which operation it measured; name it (`--operation all_reduce`)")]
    NoOperation,
    /// Not said among how many.
    #[error("the log does not say how many ranks took part; say so (`--ranks 8`)")]
    NoRanks,
    /// The two rates of a row do not fit operation and ranks.
    #[error(
        "line {line}: the bus rate is {found:.3} times the algorithm's, but for {operation:?} among {ranks} ranks it is \
         {expected:.3}; say which operation and how many ranks it was (`--operation`, `--ranks`)"
    )]
    Mismatch {
        /// Line.
        line: usize,
        /// Ratio in the row.
        found: f64,
        /// Ratio of the operation.
        expected: f64,
        /// Operation.
        operation: Operation,
        /// Ranks.
        ranks: u32,
    },
    /// JSON that is none.
    #[error("this is no JSON of nccl-tests: {0}")]
    Json(String),
}

/// Reads a log.
///
/// # Errors
/// When the text is no such log, or does not say enough.
pub fn read_nccl_tests(text: &str, hints: &Hints) -> Result<Vec<Measured>, LogError> {
    let first = text.trim_start();
    if first.starts_with('{') || first.starts_with('[') {
        return json(first, hints);
    }
    if let Some(header) = first.lines().next().filter(|line| !line.starts_with('#') && line.contains(',')) {
        return csv(first, header, hints);
    }
    table(text, hints)
}

/// The operation that a text names.
#[must_use]
pub fn operation_in(text: &str) -> Option<Operation> {
    let text = text.to_lowercase().replace(['-', ' '], "_");
    const NAMES: [(&str, Operation); 14] = [
        ("all_reduce", Operation::AllReduce),
        ("allreduce", Operation::AllReduce),
        ("all_gather", Operation::AllGather),
        ("allgather", Operation::AllGather),
        ("reduce_scatter", Operation::ReduceScatter),
        ("reducescatter", Operation::ReduceScatter),
        ("all_to_all", Operation::AllToAll),
        ("alltoall", Operation::AllToAll),
        ("sendrecv", Operation::SendReceive),
        ("send_receive", Operation::SendReceive),
        ("send_recv", Operation::SendReceive),
        ("broadcast", Operation::Broadcast),
        ("reduce_perf", Operation::Reduce),
        ("reduce", Operation::Reduce),
    ];
    NAMES.iter().find(|(name, _)| text.contains(name)).map(|(_, operation)| *operation)
}

/// One row before operation and ranks are known: bytes, microseconds of each way, the ratio of its rates.
struct Row {
    line: usize,
    bytes: u64,
    micros: Vec<f64>,
    ratio: Option<f64>,
}

fn table(text: &str, hints: &Hints) -> Result<Vec<Measured>, LogError> {
    let mut rows = Vec::new();
    let mut hosts = BTreeSet::new();
    let mut ranks: u32 = 0;
    let mut named = None;
    for (index, raw) in text.lines().enumerate() {
        let line = index + 1;
        // Launchers put a prefix before each line (`[1,0]<stdout>:`, `0: `).
        let plain = raw.rsplit_once("<stdout>:").map_or(raw, |(_, rest)| rest).trim();
        if let Some(comment) = plain.strip_prefix('#') {
            let words: Vec<&str> = comment.split_whitespace().collect();
            if words.first() == Some(&"Rank") {
                let number = words.get(1).and_then(|word| word.parse::<u32>().ok());
                ranks = ranks.max(number.map_or(0, |number| number.saturating_add(1)));
                if let Some(on) = words.iter().position(|word| *word == "on") {
                    hosts.extend(words.get(on + 1).map(|host| (*host).to_owned()));
                }
            }
            // The line of units: (B) (elements) (us) (GB/s).
            if words.first() == Some(&"(B)")
                && let Some(unit) = words.iter().find(|word| matches!(**word, "(ms)" | "(s)" | "(ns)"))
            {
                return Err(LogError::Unit { line, unit: unit.trim_matches(['(', ')']).to_owned() });
            }
            if comment.contains("test starting") {
                named = operation_in(comment).or(named);
            }
            continue;
        }
        if plain.contains("_perf") && rows.is_empty() {
            named = operation_in(plain).or(named);
        }
        let words: Vec<&str> = plain.split_whitespace().collect();
        let begins = words.len() > 2 && words[0].parse::<u64>().is_ok() && words[1].parse::<u64>().is_ok();
        if begins {
            rows.extend(row(line, plain, &words)?);
        }
    }
    let operation = hints.operation.as_deref().and_then(operation_in).or(named);
    let ranks = hints.ranks.or((ranks > 0).then_some(ranks));
    let nodes = hints.nodes.or((!hosts.is_empty()).then_some(hosts.len() as u32));
    resolve(&rows, operation, ranks, nodes)
}

/// A row of the table; `None` when it has no time at all.
fn row(line: usize, text: &str, words: &[&str]) -> Result<Option<Row>, LogError> {
    let bad = |reason: String| LogError::Row { line, text: text.chars().take(80).collect(), reason };
    // size count type [redop] [root], then three rates and errors for each of one or two ways.
    let is_number = |word: &&str| word.parse::<f64>().is_ok() || *word == "N/A";
    let after_reduction = 3 + usize::from(words.get(3).is_some_and(|word| !is_number(word)));
    let rest = words.len().saturating_sub(after_reduction);
    // A root stands before the others where their number would not be one of ways.
    let tail = after_reduction + usize::from(matches!(rest, 5 | 7 | 9));
    let numbers = words.get(tail..).unwrap_or_default();
    if numbers.len() < 3 {
        return Err(bad(format!(
            "it has {} columns of times and rates; is the log complete?",
            numbers.len()
        )));
    }
    // With errors counted each way has four columns, without three.
    let way = if numbers.len() % 4 == 0 { 4 } else { 3 };
    if !numbers.len().is_multiple_of(way) || numbers.len() > 2 * way {
        return Err(bad(format!("{} columns of times and rates; 3, 4, 6 or 8 are wanted", numbers.len())));
    }
    let bytes: u64 = words[0].parse().map_err(|_| bad("its size is no whole number".to_owned()))?;
    let mut micros = Vec::new();
    let mut ratio = None;
    for part in numbers.chunks(way) {
        if part[0] == "N/A" {
            continue;
        }
        let number = |word: &str, what: &str| -> Result<f64, LogError> {
            word.parse::<f64>().map_err(|_| bad(format!("its {what} is `{word}`, not a number")))
        };
        let time = number(part[0], "time")?;
        if !(time.is_finite() && time > 0.0) {
            return Err(bad(format!("its time is {time} us; a run takes longer than nothing")));
        }
        micros.push(time);
        let (algorithm, bus) = (number(part[1], "algorithm bandwidth")?, number(part[2], "bus bandwidth")?);
        if bytes > 0 && algorithm > 5.0 {
            let stated = bytes as f64 / time / 1e3;
            if (stated / algorithm - 1.0).abs() > 0.2 {
                return Err(bad(format!(
                    "{bytes} bytes in {time} us are {stated:.2} GB/s, not {algorithm}: are its units mixed, or its columns others?"
                )));
            }
            ratio = Some(bus / algorithm);
        }
    }
    Ok((bytes > 0 && !micros.is_empty()).then_some(Row { line, bytes, micros, ratio }))
}

fn resolve(
    rows: &[Row],
    operation: Option<Operation>,
    ranks: Option<u32>,
    nodes: Option<u32>,
) -> Result<Vec<Measured>, LogError> {
    if rows.is_empty() {
        return Err(LogError::Empty);
    }
    let operation = operation.ok_or(LogError::NoOperation)?;
    let ranks = ranks.ok_or(LogError::NoRanks)?;
    let expected = operation.bus_factor(ranks);
    if let Some((line, found)) = rows.iter().find_map(|row| {
        let ratio = row.ratio.filter(|ratio| (ratio / expected - 1.0).abs() > 0.05)?;
        Some((row.line, ratio))
    }) {
        return Err(LogError::Mismatch { line, found, expected, operation, ranks });
    }
    let nodes = nodes.unwrap_or(1).clamp(1, ranks);
    let measured = |row: &Row| {
        let bytes = row.bytes;
        row.micros
            .iter()
            .map(move |&micros| Measured { operation, ranks, nodes, bytes, micros })
            .collect::<Vec<_>>()
    };
    Ok(rows.iter().flat_map(measured).collect())
}

fn json(text: &str, hints: &Hints) -> Result<Vec<Measured>, LogError> {
    let value: Value = serde_json::from_str(text).map_err(|error| LogError::Json(error.to_string()))?;
    let list = value.get("results").or(Some(&value)).and_then(Value::as_array);
    let results = list.ok_or_else(|| LogError::Json("there is no list `results`".to_owned()))?;
    let devices = value.get("devices").and_then(Value::as_array);
    let hosts: Option<BTreeSet<&str>> =
        devices.map(|list| list.iter().filter_map(|d| d.get("hostname")?.as_str()).collect());
    let number = |value: &Value, names: &[&str]| names.iter().find_map(|name| value.get(name)?.as_f64());
    let named = ["test", "collective", "name", "binary", "args"]
        .iter()
        .find_map(|key| operation_in(&value.get(key)?.to_string()));
    let mut rows = Vec::new();
    for (index, result) in results.iter().enumerate() {
        let bad = |reason: &str| LogError::Row {
            line: index + 1,
            text: result.to_string().chars().take(80).collect(),
            reason: reason.to_owned(),
        };
        let bytes = number(result, &["size", "bytes"]).ok_or_else(|| bad("it has no `size`"))?;
        let ways = [result.get("out_of_place"), result.get("in_place")].into_iter().flatten();
        let mut micros = Vec::new();
        let mut ratio = None;
        for way in ways.chain(result.get("time").map(|_| result)) {
            let Some(time) = number(way, &["time", "time_us"]) else { continue };
            if time <= 0.0 {
                return Err(bad("its time is not above zero"));
            }
            micros.push(time);
            let rate = |names: &[&str]| number(way, names).filter(|rate| *rate > 5.0);
            if let (Some(algorithm), Some(bus)) = (rate(&["alg_bw", "algbw"]), rate(&["bus_bw", "busbw"])) {
                ratio = Some(bus / algorithm);
            }
        }
        if bytes > 0.0 && !micros.is_empty() {
            rows.push(Row { line: index + 1, bytes: bytes as u64, micros, ratio });
        }
    }
    let config = value.get("config").unwrap_or(&value);
    let stated = number(config, &["nranks", "ranks", "nRanks"]).map(|ranks| ranks as u32);
    let ranks = hints.ranks.or(stated).or(devices.map(|list| list.len() as u32));
    let nodes = hints.nodes.or(hosts.filter(|hosts| !hosts.is_empty()).map(|hosts| hosts.len() as u32));
    resolve(&rows, hints.operation.as_deref().and_then(operation_in).or(named), ranks, nodes)
}

fn csv(text: &str, header: &str, hints: &Hints) -> Result<Vec<Measured>, LogError> {
    let names: Vec<String> = header
        .split(',')
        .map(|name| name.trim().trim_matches('"').to_lowercase().replace(' ', "_"))
        .collect();
    let find = |wanted: &[&str]| names.iter().position(|name| wanted.contains(&name.as_str()));
    let missing = |what: &str| LogError::Row {
        line: 1,
        text: header.chars().take(80).collect(),
        reason: format!("there is no column {what}"),
    };
    if let Some(name) = names.iter().find(|name| name.contains("ms") && name.contains("time")) {
        return Err(LogError::Unit { line: 1, unit: name.clone() });
    }
    let size = find(&["bytes", "size", "size_b", "size(b)"]).ok_or_else(|| missing("`bytes` or `size`"))?;
    let time = find(&["time_us", "time", "time(us)", "latency_us", "oop_time", "out_of_place_time"])
        .ok_or_else(|| missing("`time_us`"))?;
    let [operations, ranks, nodes] = [
        find(&["collective", "operation", "op", "test"]),
        find(&["ranks", "nranks", "gpus", "n_ranks"]),
        find(&["nodes", "nnodes", "n_nodes"]),
    ];
    let mut measured = Vec::new();
    for (index, text) in text.lines().enumerate().skip(1).filter(|(_, text)| !text.trim().is_empty()) {
        let cells: Vec<&str> = text.split(',').map(|cell| cell.trim().trim_matches('"')).collect();
        let bad =
            |reason: String| LogError::Row { line: index + 1, text: text.chars().take(80).collect(), reason };
        let cell = |at: usize| cells.get(at).copied().unwrap_or_default();
        if cells.len() != names.len() {
            return Err(bad(format!("{} cells for {} columns", cells.len(), names.len())));
        }
        let number = |at: usize| {
            let text = cell(at);
            let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
            value.ok_or_else(|| bad(format!("`{text}` in column `{}` is no number above zero", names[at])))
        };
        let count =
            |at: Option<usize>| at.map(number).transpose().map(|value| value.map(|value| value as u32));
        let operation =
            operations.map_or(hints.operation.as_deref(), |at| Some(cell(at))).and_then(operation_in);
        let row =
            Row { line: index + 1, bytes: number(size)? as u64, micros: vec![number(time)?], ratio: None };
        measured.extend(resolve(
            &[row],
            operation,
            hints.ranks.or(count(ranks)?),
            hints.nodes.or(count(nodes)?),
        )?);
    }
    if measured.is_empty() { Err(LogError::Empty) } else { Ok(measured) }
}
