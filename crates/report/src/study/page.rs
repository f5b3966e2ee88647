//! The study as one self-contained page: the template and scripts of `study/`, and the study as data.

use trompe_results::study::Study;

use crate::clean;
use crate::page::filled;
use crate::study::{objective, study_text};
use crate::text::Style;

const TEMPLATE: &str = include_str!("../../study/study.html");
const STYLES: [&str; 2] = [include_str!("../../page/palette.css"), include_str!("../../study/study.css")];
const SCRIPTS: [&str; 5] = [
    include_str!("../../study/dom.js"),
    include_str!("../../study/plots.js"),
    include_str!("../../study/maps.js"),
    include_str!("../../study/table.js"),
    include_str!("../../study/main.js"),
];

/// The study as one self-contained HTML page.
///
/// # Panics
/// Never: every value of a study has a JSON form.
#[must_use]
pub fn study_html(study: &Study) -> String {
    let plain = Style { color: false, width: Style::WIDEST };
    let value = |name: &str| match name {
        "title" => clean::html(&clean::line(&title(study))),
        "style" => STYLES.join("\n"),
        "script" => SCRIPTS.join("\n"),
        "plain" => clean::html(&study_text(study, plain)),
        "study" => clean::script_json(&serde_json::to_string(study).expect("plain data has a JSON form")),
        other => unreachable!("the template has an unknown place `{other}`"),
    };
    filled(TEMPLATE, value)
}

/// The title of the window: the answer, then the space.
fn title(study: &Study) -> String {
    let best =
        study.ranking.first().and_then(|number| study.trials.iter().find(|trial| trial.number == *number));
    let name = study.objectives.first().map_or("step_time", String::as_str);
    let answer = best.and_then(|best| best.metrics.as_ref()).map(|metrics| objective(name, metrics));
    format!("{} · {} · trompe search", answer.unwrap_or_else(|| "no result".to_owned()), study.name)
}
