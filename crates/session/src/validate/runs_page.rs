//! Whole runs on the page: the published errors of others, tables by source, plots, memories.

use std::fmt::Write;

use trompe_measure::runs::{Compared, Group, Ordering};

use super::page::{escape, percent};
use super::plot;
use super::runs::{Fit, MemoryCompared, RunErrors};

/// A simulator's error as its authors published it.
pub struct Published {
    /// The simulator.
    pub name: &'static str,
    /// What the number is about.
    pub what: &'static str,
    /// The number, as published.
    pub error: &'static str,
    /// Sources of rows that it is about, when rows of it are public.
    pub source: &'static str,
}

/// Errors that the authors of other simulators published. None of them is computed here, and most are about other runs
/// than the rows of a table; those of vTrain are about the rows of the sources `vtrain_single` and `vtrain_multi`.
pub const PUBLISHED: [Published; 5] = [
    Published {
        name: "vTrain (Bang et al., MICRO 2024)",
        what: "step time, one node of 8 A100, mean, kernels profiled on the same GPU",
        error: "8.37 %",
        source: "vtrain_single",
    },
    Published {
        name: "vTrain",
        what: "step time, 64 nodes and fewer, mean",
        error: "14.73 %",
        source: "vtrain_multi",
    },
    Published {
        name: "Phantora (Qin et al., 2025)",
        what: "step time of torchtitan, mean, kernels profiled on a GPU",
        error: "2.9 %",
        source: "",
    },
    Published {
        name: "SimuMax",
        what: "peak memory, calibrated systems",
        error: "≤ 1.4 %",
        source: "simumax_b200",
    },
    Published {
        name: "Maya (Yarlagadda et al., 2025)",
        what: "step time, mean, kernels profiled on the same GPU",
        error: "< 5 %",
        source: "",
    },
];

/// Writes the part about whole runs.
pub(super) fn write(html: &mut String, runs: &RunErrors) {
    html.push_str("<h2>Whole runs</h2><p class=note>Each row's job was emulated with the framework's own code (stand-ins \
                   where fused kernels are not installed) and simulated. <b>host-bound</b>: the device waits for the host \
                   in more than a tenth of the predicted step. <b>noise</b>: median difference of other runs of the same \
                   configuration. <b>roofline</b>: median error of the arithmetic at peak, stretched by the pipeline's \
                   bubble.</p>");
    if !runs.rows.is_empty() {
        let _ = write!(html, "<h3>Nothing fitted (host: {})</h3>", escape(&runs.host));
        plots(html, &runs.rows);
        table(html, &runs.groups);
        orders(html, &runs.orderings);
        worst(html, &runs.groups);
        for fit in &runs.fitted {
            fitted(html, fit);
        }
        for clock in &runs.clocks {
            let _ = write!(html, "<p>{}</p>", escape(&clock.text()));
        }
        let f = &runs.fits;
        let _ = write!(
            html,
            "<h3>Does it fit?</h3><table><tr><th><th>predicted to fit<th>predicted not to fit</tr><tr><td>ran<td>{}<td>{}\
             </tr><tr><td>out of memory<td>{}<td>{}</tr></table>",
            f.ran_fits, f.ran_full, f.full_fits, f.full_full
        );
        published(html);
    }
    if !runs.memory.is_empty() {
        memory(html, &runs.memory);
    }
}

fn plots(html: &mut String, rows: &[Compared]) {
    let mut sources: Vec<&str> = rows.iter().map(|row| row.source.as_str()).collect();
    sources.sort_unstable();
    sources.dedup();
    let points: Vec<(&str, Vec<[f64; 2]>)> = sources
        .iter()
        .map(|source| {
            let own = rows.iter().filter(|row| row.source == *source);
            (*source, own.map(|row| [row.measured, row.predicted]).collect())
        })
        .collect();
    let named: Vec<(&str, &[[f64; 2]])> = points.iter().map(|(name, points)| (*name, &points[..])).collect();
    let all: Vec<[f64; 2]> = rows.iter().map(|row| [row.measured, row.predicted]).collect();
    let _ = write!(
        html,
        "<div class=plots>{}{}</div>{}",
        plot::scatter_of(&named),
        plot::cumulative_of(&all),
        plot::legend_of(&sources)
    );
}

fn table(html: &mut String, groups: &[Group]) {
    html.push_str(
        "<div class=scroll><table><tr><th>source<th>device<th>rows of<th><th>rows<th>median<th>p90<th>bias<th>inside\
         <th>noise<th>roofline</tr>",
    );
    for group in groups {
        let _ = write!(
            html,
            "<tr><td>{}<td>{}<td>{}<td><td>{}<td>{}<td>{}<td>{:+.1} %<td>{}<td>{}<td>{}</tr>",
            escape(&group.source),
            escape(&group.gpu),
            escape(&group.label),
            group.rows,
            percent(group.median),
            percent(group.p90),
            group.bias * 100.0,
            percent(group.inside),
            group.noise.map_or_else(|| "–".to_owned(), percent),
            percent(group.roofline_median)
        );
    }
    html.push_str("</table></div>");
}

fn orders(html: &mut String, orderings: &[Ordering]) {
    html.push_str(
        "<h4>Order of alternatives</h4><div class=scroll><table><tr><th>source<th><th><th><th>pairs<th>right\
         <th>more than 10 % apart<th>right<th>Kendall's tau<th>choices<th>best found<th>regret<th>most</tr>",
    );
    for o in orderings.iter().filter(|o| o.pairs > 0) {
        let _ = write!(
            html,
            "<tr><td>{}<td><td><td><td>{}<td>{}<td>{}<td>{}<td>{:.3}<td>{}<td>{}<td>{}<td>{}</tr>",
            escape(&o.source),
            o.pairs,
            percent(o.right),
            o.pairs_apart,
            percent(o.right_apart),
            o.tau,
            o.choices,
            percent(o.best_found),
            percent(o.regret),
            percent(o.regret_most)
        );
    }
    html.push_str("</table></div>");
}

fn worst(html: &mut String, groups: &[Group]) {
    html.push_str(
        "<details><summary>Worst rows of each source</summary><div class=scroll><table><tr><th>source<th>row",
    );
    html.push_str("<th>configuration<th>why<th>measured<th>predicted<th>error</tr>");
    for group in groups.iter().filter(|group| group.by == "all") {
        for row in &group.worst {
            let _ = write!(
                html,
                "<tr><td>{}<td>{}<td>{}<td>{}<td>{:.4} s<td>{:.4} s<td>{:+.0} %</tr>",
                escape(&group.source),
                escape(&row.id),
                escape(&row.what),
                escape(&row.reason),
                row.measured,
                row.predicted,
                row.error * 100.0
            );
        }
    }
    html.push_str("</table></div></details>");
}

fn fitted(html: &mut String, fit: &Fit) {
    let _ = write!(
        html,
        "<h3>{}: {} fitted on other rows</h3><p class=note>Judged with {}.</p>",
        escape(format!("{} {}", fit.source, fit.gpu).trim_end()),
        fit.what.text(),
        fit.how()
    );
    plots(html, &fit.rows);
    table(html, &fit.groups);
    orders(html, &fit.orderings);
    worst(html, &fit.groups);
}

fn published(html: &mut String) {
    html.push_str(
        "<h3>What others published</h3><table><tr><th>simulator<th>what<th>rows here<th><th>error</tr>",
    );
    for published in &PUBLISHED {
        let _ = write!(
            html,
            "<tr><td>{}<td>{}<td>{}<td><td>{}</tr>",
            published.name, published.what, published.source, published.error
        );
    }
    html.push_str("</table>");
}

fn memory(html: &mut String, rows: &[MemoryCompared]) {
    html.push_str("<h3>Peak memory</h3>");
    let mut errors: Vec<f64> = rows.iter().map(|row| row.error().abs()).collect();
    errors.sort_by(f64::total_cmp);
    let below = |most: f64| errors.iter().filter(|error| **error <= most).count();
    let _ = write!(
        html,
        "<p>{} rows; {} within 0.5 %, {} within 1.5 %.</p><div class=scroll><table><tr><th>row<th>what<th>device<th>why\
         <th>measured<th>predicted<th>difference<th>error</tr>",
        rows.len(),
        below(0.005),
        below(0.015)
    );
    let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
    for row in rows {
        let _ = write!(
            html,
            "<tr><td>{}<td>{} ({})<td>{}<td>{}<td>{:.1} MiB<td>{:.1} MiB<td>{:+.1} MiB<td>{:+.2} %</tr>",
            escape(&row.id),
            escape(&row.what),
            escape(&row.kind),
            escape(&row.gpu),
            escape(&row.reason),
            mib(row.measured),
            mib(row.predicted),
            mib(row.predicted) - mib(row.measured),
            row.error() * 100.0
        );
    }
    html.push_str("</table></div>");
}
