//! A study as a person reads it: terminal text, one self-contained page, and the trials as a table.

mod page;
mod table;
mod text;

pub use page::study_html;
pub use table::{Table, study_table};
pub use text::study_text;

use trompe_results::study::{Metrics, Trial};

use crate::quantity::{self, significant};

/// The value of an objective (by its name in a space file) as people read it.
fn objective(name: &str, metrics: &Metrics) -> String {
    let value = |value: Option<f64>, show: fn(f64) -> String| value.map_or("–".to_owned(), show);
    match name {
        "tokens_per_second_per_gpu" => {
            value(metrics.tokens_per_second_per_gpu, |x| quantity::rate(x, "tok/s/GPU"))
        }
        "cost_per_million_tokens" => value(metrics.cost_per_million_tokens, |x| {
            format!("{}{}per M tokens", significant(x, 3), quantity::NO_BREAK)
        }),
        "mfu" => value(metrics.mfu, quantity::percent),
        "memory" => quantity::bytes(metrics.memory_bytes),
        _ => quantity::seconds(metrics.step_seconds, 4),
    }
}

/// What an objective is called.
fn title(name: &str) -> &str {
    match name {
        "step_time" => "step time",
        "tokens_per_second_per_gpu" => "tokens/s/GPU",
        "cost_per_million_tokens" => "cost per million tokens",
        "mfu" => "MFU",
        other => other,
    }
}

/// The knobs of a trial as people write them.
fn point(trial: &Trial) -> String {
    let pairs = trial.knobs.iter().map(|knob| format!("{}={}", knob.name, knob.value));
    pairs.collect::<Vec<_>>().join(" ")
}
