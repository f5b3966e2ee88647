//! What carries the step (its critical path), what a gain there would bring, and how ranks differ.

use trompe_results::{GroupKind, PathSort, RankStep, Report};

use super::paper::{Ink, Paper, fit};
use crate::quantity::{count, percent, seconds};

/// Owners that the terminal shows.
const OWNERS: usize = 8;
/// Ranks that the terminal shows.
const RANKS: usize = 8;

pub(super) fn write(paper: &mut Paper, report: &Report) {
    let Some(path) = report.critical_path.as_ref().filter(|path| !path.owners.is_empty()) else { return };
    let faster = format!("{:.0} %", path.faster_share * 100.0);
    paper.section(&format!("What carries the step (gain: if {faster} faster)"));
    let columns = paper.width() - 42;
    let head = format!("  {}      time   share     gain  per step", fit("owner", columns));
    let head = paper.paint(Ink::Faint, &head);
    paper.line(&head);
    for owner in path.owners.iter().take(OWNERS) {
        let name = fit(&owner.what, columns);
        let gain = owner.gain_seconds.map_or_else(|| "-".to_owned(), |gain| seconds(gain, 2));
        let ink = match owner.sort {
            PathSort::Host | PathSort::Collective | PathSort::Latency => Ink::Warning,
            PathSort::Kernel => Ink::Plain,
        };
        let pieces = if owner.pieces > 1 { format!("×{}", count(owner.pieces)) } else { String::new() };
        let name = paper.paint(ink, &name);
        paper.line(&format!(
            "  {name} {:>9} {:>7} {gain:>8}  {pieces}",
            seconds(owner.seconds, 3),
            percent(owner.share)
        ));
    }
    if path.ranks.len() > 1 {
        let over: Vec<_> = path
            .ranks
            .iter()
            .take(4)
            .map(|part| format!("rank {} {}", part.rank, seconds(part.seconds, 3)))
            .collect();
        paper.wrapped("  ", "  ", &format!("It leads over {}.", over.join(", ")));
    }
}

pub(super) fn write_ranks(paper: &mut Paper, report: &Report) {
    let communicates = report.ranks.iter().any(|rank| !rank.groups.is_empty());
    if report.world_size < 2 || !communicates {
        return;
    }
    paper.section("Ranks: waiting and exposed communication, per step");
    let mut kinds: Vec<GroupKind> =
        report.ranks.iter().flat_map(|rank| rank.groups.iter().map(|g| g.kind)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.truncate((paper.width() - 48) / 12);
    let names: String =
        kinds.iter().map(|kind| format!("{:>12}", format!("{} exposed", kind.short()))).collect();
    let head = paper
        .paint(Ink::Faint, &format!("  {:<16}{:>9} {:>9} {:>9}{names}", "rank", "step", "host", "bubble"));
    paper.line(&head);
    let mut shown: Vec<&RankStep> = report.ranks.iter().collect();
    if shown.len() > RANKS {
        shown.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then(a.rank.cmp(&b.rank)));
        shown.truncate(RANKS);
    }
    for rank in shown {
        let others = rank.stands_for.saturating_sub(1);
        let like = if others > 0 { format!(" (+{} alike)", count(u64::from(others))) } else { String::new() };
        let exposed = |kind: &GroupKind| {
            let found = rank.groups.iter().find(|group| group.kind == *kind);
            format!("{:>12}", found.map_or_else(|| "-".to_owned(), |group| seconds(group.exposed_seconds, 3)))
        };
        let exposed: String = kinds.iter().map(exposed).collect();
        paper.line(&format!(
            "  {}{:>9} {:>9} {:>9}{exposed}",
            fit(&format!("{}{like}", rank.rank), 16),
            seconds(rank.seconds, 3),
            seconds(rank.host_bound_seconds, 3),
            seconds(rank.bubble_seconds, 3)
        ));
    }
}
