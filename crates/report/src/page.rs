//! The page: one HTML file with its style, its script and its data inside.
//!
//! The script draws everything from two blocks of JSON (the report as `report.json` has it, and the timeline in
//! columns), so nothing of a report is ever parsed as markup. Readers without scripts get the terminal text. A content
//! security policy in the page forbids every connection.

mod thin;
mod timeline;

use trompe_results::{Report, Timeline};

use crate::text::{Style, text};
use crate::{clean, page};

pub(crate) const TEMPLATE: &str = include_str!("../page/page.html");
pub(crate) const STYLES: [&str; 4] = [
    include_str!("../page/palette.css"),
    include_str!("../page/layout.css"),
    include_str!("../page/parts.css"),
    include_str!("../page/narrow.css"),
];
const SCRIPTS: [&str; 18] = [
    include_str!("../page/format.js"),
    include_str!("../page/dom.js"),
    include_str!("../page/chart.js"),
    include_str!("../page/kinds.js"),
    include_str!("../page/summary.js"),
    include_str!("../page/breakdown.js"),
    include_str!("../page/path.js"),
    include_str!("../page/ranks.js"),
    include_str!("../page/memory.js"),
    include_str!("../page/memory_chart.js"),
    include_str!("../page/kernels.js"),
    include_str!("../page/steps.js"),
    include_str!("../page/trust.js"),
    include_str!("../page/timeline_model.js"),
    include_str!("../page/timeline_view.js"),
    include_str!("../page/timeline_draw.js"),
    include_str!("../page/timeline_gestures.js"),
    include_str!("../page/main.js"),
];

/// The scripts of the page of one kernel.
pub(crate) const KERNEL_SCRIPTS: [&str; 3] = [
    include_str!("../page/format.js"),
    include_str!("../page/dom.js"),
    include_str!("../page/kernel_run.js"),
];

/// The report as one self-contained HTML page.
///
/// Very long memory curves are thinned (peaks stay) and of very many spans the shortest are left out, which the page
/// says; `report.json` and `timeline.json` have everything.
///
/// # Panics
/// Never: every value of a report has a JSON form.
#[must_use]
pub fn html(report: &Report, timeline: &Timeline) -> String {
    let mut shown = report.clone();
    for rank in &mut shown.memory.ranks {
        rank.samples = page::thin::samples(&rank.samples);
    }
    let json =
        |text: serde_json::Result<String>| clean::script_json(&text.expect("plain data has a JSON form"));
    let plain = Style { color: false, width: Style::WIDEST };
    let value = |name: &str| match name {
        "title" => clean::html(&clean::line(&title(report))),
        "version" => clean::html(&clean::line(&report.trompe_version)),
        "style" => STYLES.join("\n"),
        "script" => SCRIPTS.join("\n"),
        "plain" => clean::html(&text(report, plain)),
        "report" => json(serde_json::to_string(&shown)),
        "timeline" => json(serde_json::to_string(&page::timeline::pack(timeline))),
        other => unreachable!("the template has an unknown place `{other}`"),
    };
    filled(TEMPLATE, value)
}

/// The title of the window: the answer, then the job.
fn title(report: &Report) -> String {
    let script = report.job.command.iter().find(|argument| argument.ends_with(".py"));
    let job = script.or(report.job.command.first()).map_or("trompe", String::as_str);
    let answer = match &report.step_time {
        Some(step) => crate::quantity::seconds(step.seconds, 3),
        None => report.verdict.status.label().to_owned(),
    };
    format!("{answer} · {job} · trompe")
}

/// `template` with each `{{name}}` replaced by its value; values are not searched again.
pub(crate) fn filled(template: &str, value: impl Fn(&str) -> String) -> String {
    let mut pieces = template.split("{{");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once("}}").expect("every place in the template is closed");
        out.push_str(&value(name));
        out.push_str(rest);
    }
    out
}
