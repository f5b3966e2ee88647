//! Where the time goes: the kinds of work, and the largest kernels.

use trompe_results::{Kind, Method, Report};

use super::paper::{Ink, Paper, bar, fit};
use crate::quantity::{count, percent, seconds};

/// Kernels that the terminal shows; the page and `report.json` have all of them.
const LARGEST: usize = 10;

pub(super) fn write_breakdown(paper: &mut Paper, report: &Report) {
    if report.breakdown.is_empty() {
        return;
    }
    paper.section("Where the time of a step goes");
    let mut parts: Vec<_> = report.breakdown.iter().filter(|part| part.seconds > 0.0).collect();
    parts.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then(a.kind.cmp(&b.kind)));
    let columns = paper.width().saturating_sub(46).min(40);
    for part in parts {
        let ink = match part.kind {
            Kind::HostBound | Kind::Bubble | Kind::Communication => Ink::Warning,
            _ => Ink::Plain,
        };
        let bar = paper.paint(ink, &bar(part.share, columns));
        let (time, share) = (seconds(part.seconds, 3), percent(part.share));
        paper.line(&format!("  {:<22}{time:>9} {share:>8}  {bar}", part.kind.label()));
    }
}

pub(super) fn write_largest(paper: &mut Paper, report: &Report) {
    if report.kernels.is_empty() {
        return;
    }
    let shown = report.kernels.len().min(LARGEST);
    let total = report.kernels.len();
    let title = if shown < total {
        format!("The {shown} largest of {total} kernels, per step")
    } else {
        "Kernels, per step".to_owned()
    };
    paper.section(&title);
    let columns = paper.width() - 46;
    let head = format!("  {}   calls     total   share     ±  method", fit("kernel", columns));
    let head = paper.paint(Ink::Faint, head.trim_end());
    paper.line(&head);
    for kernel in &report.kernels[..shown] {
        let name = fit(&kernel.name, columns);
        let calls = count(kernel.count);
        let (total, share) = (seconds(kernel.seconds, 3), percent(kernel.share));
        let spread = if kernel.seconds > 0.0 {
            format!("{:.0}%", (kernel.high - kernel.low) / 2.0 / kernel.seconds * 100.0)
        } else {
            String::new()
        };
        let ink = if kernel.method == Method::Fallback { Ink::Warning } else { Ink::Plain };
        let method = paper.paint(ink, kernel.method.name());
        paper.line(&format!("  {name} {calls:>7} {total:>9} {share:>7} {spread:>5}  {method}"));
    }
}
