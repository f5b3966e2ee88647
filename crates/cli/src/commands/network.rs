//! `trompe network`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use trompe_session::NetworkSource;
use trompe_session::network::explain::{self, Explained};
use trompe_session::network::fit::{self, Fitted};

use crate::commands;

/// Explain and fit the times of collectives.
#[derive(Debug, Args)]
pub(crate) struct NetworkArguments {
    #[command(subcommand)]
    command: NetworkCommand,
}

#[derive(Debug, Subcommand)]
enum NetworkCommand {
    /// Fit constants to the output of nccl-tests.
    Fit(FitArguments),
    /// Say by which algorithm an operation runs, how long it takes and which link it fills.
    Explain(ExplainArguments),
}

const FIT_EXAMPLES: &str = "\
Examples:
  all_reduce_perf -b 8 -e 4G -f 2 -g 8 | tee all_reduce.log
  trompe network fit all_reduce.log all_gather.log --cluster dgx-h100 --out mine.toml
  trompe run --cluster dgx-h100 --network mine.toml -- torchrun --nproc-per-node 8 train.py

Logs may be the text of any nccl-tests binary, its JSON (-J), or CSV with the columns collective,ranks,nodes,bytes,time_us;
plain or gzip.";

#[derive(Debug, Args)]
#[command(after_help = FIT_EXAMPLES)]
struct FitArguments {
    /// Logs of nccl-tests.
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// The device, node or cluster that they were measured on.
    #[arg(long, value_name = "SPEC")]
    cluster: String,
    /// Where the constants go.
    #[arg(long, value_name = "FILE", default_value = "network.toml")]
    out: PathBuf,
    /// topology=FILE, when the machine's links are not those of its sheet.
    #[arg(long, value_name = "SOURCE")]
    network: Option<NetworkSource>,
    /// The operation, when the logs do not say it.
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,
    /// Ranks, when the logs do not say how many.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks: Option<u32>,
    /// Nodes, when the logs do not say how many.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    nodes: Option<u32>,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  trompe network explain all_reduce --cluster dgx-h100
  trompe network explain all_gather --cluster dgx-h100:4 --bytes 64M,1G
  trompe network explain send_receive --cluster dgx-a100:2 --devices 0,8 --json
  trompe network explain all_to_all --cluster dgx-h100 --pairs tokens.txt
  trompe network explain all_reduce --cluster a100-sxm:4 --network topology=topo.txt";

#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
struct ExplainArguments {
    /// all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all or send_receive.
    operation: String,
    /// Device, node or cluster.
    #[arg(long, value_name = "SPEC", default_value = "dgx-h100")]
    cluster: String,
    /// Which devices take part, as in 0-7 or 0,8,16; all when not given.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = devices)]
    devices: Vec<Devices>,
    /// Sizes as nccl-tests counts them, with K, M or G for powers of 1024; a sweep from 8 bytes to 8 GiB when not given.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = size)]
    bytes: Vec<u64>,
    /// For all_to_all with unequal parts: a file with a row per sending device and in it the bytes for each receiving one
    /// (numbers as for --bytes, blanks or commas between).
    #[arg(long, value_name = "FILE", conflicts_with = "bytes")]
    pairs: Option<PathBuf>,
    /// Constants that `trompe network fit` wrote, topology=FILE (nvidia-smi topo -m, NCCL's XML, ASTRA-sim's network), or both
    /// with a comma between.
    #[arg(long, value_name = "SOURCE")]
    network: Option<NetworkSource>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Devices from one number to another.
#[derive(Clone, Copy, Debug)]
struct Devices(u32, u32);

fn devices(text: &str) -> Result<Devices, String> {
    let bad = || format!("`{text}` is no device or range of devices; write 3 or 0-7");
    let number = |text: &str| text.trim().parse::<u32>().map_err(|_| bad());
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(text)?, number(text)?),
    };
    if first <= last && last - first < 1 << 20 { Ok(Devices(first, last)) } else { Err(bad()) }
}

fn size(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is no size; write 4096, 64K, 16M or 1G");
    let plain = text.trim().trim_end_matches(['B', 'b']).trim_end_matches('i');
    let (digits, shift) = match plain.char_indices().last() {
        Some((at, 'K' | 'k')) => (&plain[..at], 10),
        Some((at, 'M' | 'm')) => (&plain[..at], 20),
        Some((at, 'G' | 'g')) => (&plain[..at], 30),
        _ => (plain, 0),
    };
    let number: u64 = digits.trim().parse().map_err(|_| bad())?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(bad)
}

/// The table of bytes by pair in a file.
fn pairs(path: &Path) -> anyhow::Result<Vec<Vec<u64>>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    table_of_bytes(&text).map_err(|error| anyhow::anyhow!("`{}`, {error}", path.display()))
}

fn table_of_bytes(text: &str) -> Result<Vec<Vec<u64>>, String> {
    let number = |word: &str| if word.trim_matches('0').is_empty() { Ok(0) } else { size(word) };
    let row = |(at, line): (usize, &str)| {
        let words = line.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        let numbers: Result<Vec<u64>, String> = words.filter(|word| !word.is_empty()).map(number).collect();
        numbers.map_err(|error| format!("line {}: {error}", at + 1))
    };
    let lines = text.lines().enumerate().map(|(at, line)| (at, line.split('#').next().unwrap_or_default()));
    lines.filter(|(_, line)| !line.trim().is_empty()).map(row).collect()
}

pub(crate) fn run(arguments: &NetworkArguments) -> anyhow::Result<ExitCode> {
    let text = match &arguments.command {
        NetworkCommand::Fit(arguments) => {
            let hints = trompe_session::network::fit::Hints {
                operation: arguments.operation.clone(),
                ranks: arguments.ranks,
                nodes: arguments.nodes,
            };
            let request = fit::Request {
                logs: arguments.logs.clone(),
                cluster: arguments.cluster.clone(),
                hints,
                network: arguments.network.clone(),
                out: arguments.out.clone(),
            };
            let fitted = fit::fit(&request)?;
            format!("{}\n{}\n", scores(&fitted), commands::nearby(&request.out).display())
        }
        NetworkCommand::Explain(arguments) => {
            let explained = explain::explain(&explain::Request {
                operation: arguments.operation.clone(),
                cluster: arguments.cluster.clone(),
                devices: arguments.devices.iter().flat_map(|range| range.0..=range.1).collect(),
                sizes: arguments.bytes.clone(),
                pairs: arguments.pairs.as_deref().map(pairs).transpose()?,
                network: arguments.network.clone(),
            })?;
            if arguments.json {
                format!("{}\n", serde_json::to_string_pretty(&explained)?)
            } else {
                table(&explained)
            }
        }
    };
    commands::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn scores(fitted: &Fitted) -> String {
    let mut text = format!(
        "{} measured times; median error of the predicted time, and the worst:\n\n{:<15} {:>5} {:>5} {:>6} {:>9} {:>9} {:>13}  worst\n",
        fitted.rows, "operation", "nodes", "ranks", "times", "built-in", "fitted", "unseen sizes"
    );
    for row in &fitted.scores {
        text.push_str(&format!(
            "{:<15} {:>5} {:>5} {:>6} {:>7.1} % {:>7.1} % {:>11.1} %  {:.1} % at {}\n",
            format!("{:?}", row.operation),
            row.nodes,
            row.ranks,
            row.rows,
            row.before * 100.0,
            row.after * 100.0,
            row.unseen * 100.0,
            row.worst * 100.0,
            bytes(row.worst_bytes)
        ));
    }
    text
}

fn table(explained: &Explained) -> String {
    let mut text = format!(
        "{:?} among {} devices on {} node{}\n\n{:>9} {:<10} {:<7} {:>8} {:>12} {:>25} {:>8} {:>8}  fills\n",
        explained.operation,
        explained.ranks,
        explained.nodes,
        if explained.nodes == 1 { "" } else { "s" },
        "size",
        "algorithm",
        "proto",
        "channels",
        "time",
        "between",
        "alg GB/s",
        "bus GB/s"
    );
    for row in &explained.rows {
        let fills = row
            .busiest
            .as_ref()
            .map_or(String::new(), |(wire, share)| format!("{:.0} % of {wire}", share * 100.0));
        let between = format!("{} and {}", micros(row.low), micros(row.high));
        text.push_str(&format!(
            "{:>9} {:<10} {:<7} {:>8} {:>12} {between:>25} {:>8.2} {:>8.2}  {fills}\n",
            bytes(row.bytes),
            row.algorithm,
            row.protocol,
            row.channels,
            micros(row.micros),
            row.algorithm_rate,
            row.bus_rate
        ));
    }
    let mut methods: Vec<&str> = explained.rows.iter().map(|row| row.method).collect();
    methods.sort_unstable();
    methods.dedup();
    text.push_str(&format!(
        "\nTimes are {}; intervals are meant to hold nine times in ten.\n",
        methods.join(", or ")
    ));
    text
}

fn micros(micros: f64) -> String {
    match micros {
        ..1e3 => format!("{micros:.1} us"),
        ..1e6 => format!("{:.2} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = UNITS
        .iter()
        .find(|(_, shift)| bytes >> shift > 0 && bytes.trailing_zeros() >= shift.saturating_sub(3));
    unit.map_or_else(
        || format!("{bytes} B"),
        |(name, shift)| {
            let value = bytes as f64 / f64::from(1_u32 << shift);
            if value.fract() == 0.0 { format!("{value:.0} {name}") } else { format!("{value:.2} {name}") }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_devices() {
        let check = |text: &str, expect: Option<u64>| assert_eq!(size(text).ok(), expect, "{text}");
        check("4096", Some(4096));
        check("64K", Some(65_536));
        check("16MiB", Some(16 << 20));
        check("1g", Some(1 << 30));
        check("0", None);
        check("many", None);
        check("99999999999999G", None);
        assert!(matches!(devices("0-7"), Ok(Devices(0, 7))));
        assert!(devices("7-0").is_err() && devices("x").is_err());
        let table = table_of_bytes("# bytes\n0 1K, 2K\n\n3M;0;4\n5 6 00\n");
        assert_eq!(table, Ok(vec![vec![0, 1024, 2048], vec![3 << 20, 0, 4], vec![5, 6, 0]]));
        assert!(table_of_bytes("1 2\n3 x\n").is_err_and(|error| error.contains("line 2")));
    }
}
