//! The tables of whole runs that `trompe validate` prints.

use trompe_session::validate::{Fit, Fits, MemoryCompared, PUBLISHED, RunErrors, RunGroup, RunOrdering};

/// All tables.
pub(crate) fn text(runs: &RunErrors) -> String {
    let mut text = String::new();
    if !runs.rows.is_empty() {
        text.push_str(&format!("\nwhole runs, nothing fitted (host: {})\n", runs.host));
        text.push_str(&table(&runs.groups));
        text.push_str(&orders(&runs.orderings));
        text.push_str(&worst(&runs.groups));
        for fit in &runs.fitted {
            text.push_str(&fitted(fit));
        }
        for clock in &runs.clocks {
            text.push_str(&format!("\n{}\n", clock.text()));
        }
        text.push_str(&fits(&runs.fits));
        text.push_str("\nwhat others published (about their own runs, but where a source is named)\n");
        for published in &PUBLISHED {
            let rows =
                if published.source.is_empty() { String::new() } else { format!("  [{}]", published.source) };
            text.push_str(&format!(
                "  {:<34} {:<9} {}{rows}\n",
                published.name, published.error, published.what
            ));
        }
        text.push_str(
            "\nErrors are |prediction / measurement − 1|. host-bound: the device waits for the host in more than a tenth of \
             the\nstep. noise: median difference of other runs of one configuration. roofline: median error of the \
             arithmetic at\npeak, stretched by the pipeline's bubble.\n",
        );
    }
    if !runs.memory.is_empty() {
        text.push_str(&memory(&runs.memory));
    }
    text
}

fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1}%", share * 100.0) } else { "–".to_owned() }
}

fn table(groups: &[RunGroup]) -> String {
    let mut text = format!(
        "{:<22} {:<16} {:<28} {:>5} {:>7} {:>7} {:>7} {:>7} {:>7} {:>8}\n",
        "source", "device", "rows of", "rows", "median", "p90", "bias", "inside", "noise", "roofline"
    );
    for group in groups {
        text.push_str(&format!(
            "{:<22} {:<16} {:<28} {:>5} {:>7} {:>7} {:>7} {:>7} {:>7} {:>8}\n",
            group.source,
            group.gpu,
            group.label,
            group.rows,
            percent(group.median),
            percent(group.p90),
            format!("{:+.1}%", group.bias * 100.0),
            percent(group.inside),
            group.noise.map_or_else(|| "–".to_owned(), percent),
            percent(group.roofline_median)
        ));
    }
    text
}

fn orders(orderings: &[RunOrdering]) -> String {
    let mut text = String::new();
    for o in orderings.iter().filter(|o| o.pairs > 0) {
        text.push_str(&format!(
            "order of {}: {} of {} pairs right, {} of the {} that differ by more than 10 %; Kendall's tau {:.3}; the \
             fastest of\n  {} sets found in {}, regret {} on average, {} at most\n",
            o.source,
            percent(o.right),
            o.pairs,
            percent(o.right_apart),
            o.pairs_apart,
            o.tau,
            o.choices,
            percent(o.best_found),
            percent(o.regret),
            percent(o.regret_most)
        ));
    }
    text
}

fn worst(groups: &[RunGroup]) -> String {
    let mut text = String::from("worst rows\n");
    for group in groups.iter().filter(|group| group.by == "all") {
        text.push_str(&format!("  {} on {}\n", group.source, group.gpu));
        for row in &group.worst {
            text.push_str(&format!(
                "    row {:<6} {:>9.4} s predicted {:>9.4} s ({:+.0} %)  {}: {}\n",
                row.id,
                row.measured,
                row.predicted,
                row.error * 100.0,
                row.what,
                row.reason
            ));
        }
    }
    text
}

fn fitted(fit: &Fit) -> String {
    format!(
        "\n{}: {}, fitted on other rows:\n{}\n{}{}{}",
        format!("{} {}", fit.source, fit.gpu).trim_end(),
        fit.what.text(),
        fit.how(),
        table(&fit.groups),
        orders(&fit.orderings),
        worst(&fit.groups)
    )
}

fn fits(fits: &Fits) -> String {
    format!(
        "\ndoes it fit? of the rows that ran, {} were predicted to fit and {} not; of those out of memory, {} to fit and {} \
         not\n",
        fits.ran_fits, fits.ran_full, fits.full_fits, fits.full_full
    )
}

fn memory(rows: &[MemoryCompared]) -> String {
    let mut errors: Vec<f64> = rows.iter().map(|row| row.error().abs()).collect();
    errors.sort_by(f64::total_cmp);
    let below = |most: f64| errors.iter().filter(|error| **error <= most).count();
    let mut text = format!(
        "\npeak memory: {} rows, {} within 0.5 %, {} within 1.5 %, median error {:.2} %\n",
        rows.len(),
        below(0.005),
        below(0.015),
        errors[errors.len() / 2] * 100.0
    );
    let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
    for row in rows {
        text.push_str(&format!(
            "  {:<6} {:<52} {:<16} {:>9.1} MiB predicted {:>9.1} MiB ({:+.2} %)  {}\n",
            row.id,
            row.what,
            row.gpu,
            mib(row.measured),
            mib(row.predicted),
            row.error() * 100.0,
            row.reason
        ));
    }
    text
}
