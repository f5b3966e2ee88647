//! A study as terminal text: the answer first, then the ranking, the knobs, and what to be careful about.

use trompe_results::Severity;
use trompe_results::study::{Study, Trial, TrialStatus};

use super::{objective, point, title};
use crate::quantity;
use crate::text::Style;
use crate::text::paper::{Ink, Paper, fit};

/// The rows of the ranking that are shown.
const ROWS: usize = 12;
/// Trials without a result that are shown.
const OTHERS: usize = 6;

/// The study for a terminal, ending in a line break.
#[must_use]
pub fn study_text(study: &Study, style: Style) -> String {
    let mut paper = Paper::new(style);
    answer(&mut paper, study);
    ranking(&mut paper, study);
    others(&mut paper, study);
    pruned(&mut paper, study);
    knobs(&mut paper, study);
    notes(&mut paper, study);
    paper.finish()
}

fn trial(study: &Study, number: u32) -> Option<&Trial> {
    study.trials.iter().find(|trial| trial.number == number)
}

fn answer(paper: &mut Paper, study: &Study) {
    let counts = &study.counts;
    let best = study.ranking.first().and_then(|number| trial(study, *number));
    match best.and_then(|best| Some((best, best.metrics.as_ref()?))) {
        Some((best, metrics)) => {
            let value = objective(study.objectives.first().map_or("step_time", String::as_str), metrics);
            let head = format!("Best: {value}  {}", point(best));
            let head = paper.paint(Ink::Good, &head);
            paper.line(&head);
            paper.fact(
                "step time",
                &format!(
                    "{} ({} to {})",
                    quantity::seconds(metrics.step_seconds, 4),
                    quantity::seconds(metrics.step_seconds_low, 4),
                    quantity::seconds(metrics.step_seconds_high, 4)
                ),
            );
            paper.fact(
                "memory",
                &format!(
                    "{} of {}",
                    quantity::bytes(metrics.memory_bytes),
                    quantity::bytes(metrics.capacity_bytes)
                ),
            );
            let rates = ["tokens_per_second_per_gpu", "mfu", "cost_per_million_tokens"];
            let known = rates.iter().map(|name| (title(name), objective(name, metrics)));
            let known: Vec<String> = known
                .filter(|(_, value)| value != "–")
                .map(|(name, value)| format!("{name} {value}"))
                .collect();
            paper.fact("rates", &known.join(", "));
            paper.fact("command", &best.job.command.join(" "));
        }
        None => {
            let head = paper.paint(Ink::Bad, "No configuration has a result.");
            paper.line(&head);
        }
    }
    paper.fact(
        "trials",
        &format!(
            "{} of {} feasible points ({} combinations): {} executed, {} simulated, {} cached, {} pruned; {} fit, {} out \
             of memory, {} cannot win, {} failed",
            study.trials.len(),
            quantity::count(counts.feasible),
            quantity::count(counts.combinations),
            counts.executed,
            counts.simulated,
            counts.cached,
            counts.pruned,
            counts.fits,
            counts.out_of_memory,
            counts.stopped,
            counts.failed
        ),
    );
    let time = quantity::seconds(study.seconds, 3);
    paper.fact(
        "search",
        &format!("{} with seed {}, {time}; it ended because {}", study.strategy, study.seed, study.ended),
    );
}

fn ranking(paper: &mut Paper, study: &Study) {
    if study.ranking.is_empty() {
        return;
    }
    let several = study.objectives.len() > 1;
    paper.section(if several { "Ranking (* on the Pareto front)" } else { "Ranking" });
    let wanted: Vec<&str> = study
        .objectives
        .iter()
        .map(String::as_str)
        .filter(|name| !["step_time", "memory"].contains(name))
        .collect();
    let mut head =
        format!("  {:>3}  {:>6}  {:>10}  {:>17}  {:>9}", "#", "trial", "step", "80 % interval", "memory");
    for name in &wanted {
        head.push_str(&format!("  {:>16}", title(name)));
    }
    let room = paper.width().saturating_sub(head.chars().count() + 2);
    let head = paper.paint(Ink::Faint, &format!("{head}  configuration; why not"));
    paper.line(&head);
    // Trials that a rule gave another one's numbers would only repeat it.
    let own =
        study.ranking.iter().filter_map(|number| trial(study, *number)).filter(|trial| trial.rule.is_none());
    for (rank, trial) in own.take(ROWS).enumerate() {
        let Some(metrics) = &trial.metrics else { continue };
        let mark = if several && study.pareto.contains(&trial.number) { "*" } else { " " };
        let interval = interval(metrics.step_seconds_low, metrics.step_seconds_high);
        let mut line = format!(
            "  {:>3}{mark} {:>6}  {:>10}  {interval:>17}  {:>9}",
            rank + 1,
            trial.number,
            quantity::seconds(metrics.step_seconds, 4),
            quantity::bytes(metrics.memory_bytes)
        );
        for name in &wanted {
            line.push_str(&format!("  {:>16}", objective(name, metrics)));
        }
        let why = trial.why.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
        let text = format!("{}{why}", point(trial));
        if room >= 40 {
            paper.line(&format!("{line}  {}", fit(&text, room)));
        } else {
            paper.line(&line);
            paper.wrapped("               ", "               ", &text);
        }
    }
}

/// An interval, both ends in the unit of the upper one.
fn interval(low: f64, high: f64) -> String {
    let (scale, unit) = match high {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e3, "ms"),
        _ => (1e6, "µs"),
    };
    format!("{} – {} {unit}", quantity::significant(low * scale, 3), quantity::significant(high * scale, 3))
}

/// Trials that have no result, a few of each kind.
fn others(paper: &mut Paper, study: &Study) {
    let kinds = [TrialStatus::OutOfMemory, TrialStatus::Failed, TrialStatus::OverLimit];
    let mut begun = false;
    for status in kinds {
        let mut all: Vec<&Trial> =
            study.trials.iter().filter(|trial| trial.status == status && trial.rule.is_none()).collect();
        all.sort_by_key(|trial| (trial.missing_bytes.unwrap_or(u64::MAX), trial.number));
        if all.is_empty() {
            continue;
        }
        if !begun {
            paper.section("Without a result");
            begun = true;
        }
        for trial in all.iter().take(OTHERS) {
            let why = trial.why.clone().unwrap_or_default();
            let head = format!("  {:>6}  {:<13} ", trial.number, status.label());
            paper.wrapped(&head, "                         ", &format!("{}; {why}", point(trial)));
        }
        if all.len() > OTHERS {
            paper.line(&format!("          … and {} more {}", all.len() - OTHERS, status.label()));
        }
    }
}

fn knobs(paper: &mut Paper, study: &Study) {
    paper.section("What the knobs are worth (best result with each value)");
    let mut knobs: Vec<_> = study.knobs.iter().collect();
    knobs.sort_by(|a, b| {
        b.spread.unwrap_or(0.0).total_cmp(&a.spread.unwrap_or(0.0)).then(a.name.cmp(&b.name))
    });
    let name = study.objectives.first().map_or("step_time", String::as_str);
    let widest = knobs.iter().map(|knob| knob.name.chars().count()).max().unwrap_or(0).clamp(8, 28);
    for knob in knobs {
        let spread = knob.spread.map_or("–".to_owned(), |spread| format!("{:.0} %", spread * 100.0));
        let values = knob.values.iter().map(|value| {
            let best = value.best.map_or_else(
                || without(study, &knob.name, &value.value).to_owned(),
                |best| number(name, best),
            );
            format!("{}: {best}", value.value)
        });
        let text = format!("spread {spread:>6}   {}", values.collect::<Vec<_>>().join(" · "));
        let head = format!("  {}  ", fit(&knob.name, widest));
        paper.wrapped(&head, &" ".repeat(widest + 4), &text);
    }
}

/// Why no trial with this value of a knob has a result.
fn without(study: &Study, knob: &str, value: &str) -> &'static str {
    let with = |trial: &&Trial| trial.knobs.iter().any(|own| own.name == knob && own.value == value);
    let all: Vec<TrialStatus> = study.trials.iter().filter(with).map(|trial| trial.status).collect();
    if all.contains(&TrialStatus::Stopped) {
        "cannot win"
    } else if !all.is_empty() && all.iter().all(|status| *status == TrialStatus::OutOfMemory) {
        "out of memory"
    } else {
        "–"
    }
}

/// How many trials each rule made needless, with one of them.
fn pruned(paper: &mut Paper, study: &Study) {
    let mut rules = std::collections::BTreeMap::<&str, Vec<&Trial>>::new();
    for trial in &study.trials {
        if let Some(rule) = &trial.rule {
            rules.entry(rule).or_default().push(trial);
        }
    }
    if rules.is_empty() {
        return;
    }
    paper.section("Pruned by rules");
    for (rule, trials) in rules {
        let first = trials[0];
        let because = first.because_of.map_or(String::new(), |number| format!(" because of trial {number}"));
        let text = format!("{rule}: for example trial {} ({}){because}", first.number, point(first));
        paper.wrapped(&format!("  {:>6}  ", trials.len()), "          ", &text);
    }
}

/// A value of an objective.
fn number(name: &str, value: f64) -> String {
    match name {
        "step_time" => quantity::seconds(value, 4),
        "mfu" => quantity::percent(value),
        "memory" => quantity::bytes(value as u64),
        _ => quantity::significant(value, 4),
    }
}

fn notes(paper: &mut Paper, study: &Study) {
    if study.notes.is_empty() {
        return;
    }
    paper.section("Notes");
    for note in &study.notes {
        let ink = match note.severity {
            Severity::Error => Ink::Bad,
            Severity::Warning => Ink::Warning,
            Severity::Info => Ink::Plain,
        };
        let mark = paper.paint(ink, "  • ");
        let action = note.action.as_ref().map(|action| format!(" ({action})")).unwrap_or_default();
        paper.wrapped(&mark, "    ", &format!("{}{action}", note.text));
    }
}
