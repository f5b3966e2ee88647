//! A study says what was found, as text, as a page and as a table.

use trompe_report::{Style, study_html, study_table, study_text};
use trompe_results::study::{
    Counts, KnobReport, KnobValue, Metrics, Parts, Progress, Study, Trial, TrialJob, TrialOrigin, TrialStatus,
};
use trompe_results::{NamedValue, Note, Severity};

fn trial(number: u32, tp: u32, seconds: Option<f64>) -> Trial {
    let metrics = seconds.map(|seconds| Metrics {
        step_seconds: seconds,
        step_seconds_low: seconds * 0.9,
        step_seconds_high: seconds * 1.1,
        memory_bytes: (60 - 4 * u64::from(tp)) << 30,
        capacity_bytes: 80 << 30,
        tokens_per_second_per_gpu: Some(1e5 / seconds),
        mfu: Some(0.4 / seconds),
        parts: Parts {
            compute: seconds * 0.7,
            bubble: seconds * 0.2,
            communication: seconds * 0.1,
            ..Parts::default()
        },
        ..Metrics::default()
    });
    Trial {
        number,
        knobs: vec![NamedValue { name: "tp".into(), value: tp.to_string() }],
        job: TrialJob {
            command: vec!["python".into(), "x.py".into(), format!("--tp={tp}")],
            ..TrialJob::default()
        },
        status: if seconds.is_some() { TrialStatus::Fits } else { TrialStatus::OutOfMemory },
        missing_bytes: seconds.is_none().then_some(3 << 30),
        why: match (seconds, number) {
            (None, _) => Some("lacks 3.0 GiB".into()),
            (_, 1) => None,
            _ => Some("+50 % bubble".into()),
        },
        metrics,
        ..Trial::default()
    }
}

fn study() -> Study {
    let value =
        |value: &str, best, out_of_memory| KnobValue { value: value.into(), best, fits: 1, out_of_memory };
    let mut pruned = trial(3, 8, None);
    pruned.origin = TrialOrigin::Pruned;
    pruned.rule = Some("recompute".into());
    pruned.because_of = Some(2);
    Study {
        name: "GPT </script><b>".into(),
        cluster: "dgx-h100:4".into(),
        strategy: "auto".into(),
        objectives: vec!["step_time".into()],
        knobs: vec![KnobReport {
            name: "tp".into(),
            values: vec![
                value("1", Some(1.5), 0),
                value("2", Some(1.0), 0),
                value("4", None, 1),
                value("8", None, 1),
            ],
            spread: Some(0.5),
            explained_share: Some(1.0),
        }],
        counts: Counts {
            combinations: 4,
            feasible: 4,
            executed: 3,
            pruned: 1,
            fits: 2,
            out_of_memory: 2,
            ..Counts::default()
        },
        seconds: 12.0,
        ended: "every point of the space is known".into(),
        trials: vec![trial(0, 1, Some(1.5)), trial(1, 2, Some(1.0)), trial(2, 4, None), pruned],
        ranking: vec![1, 0],
        pareto: vec![1],
        convergence: vec![
            Progress { trials: 1, seconds: 3.0, best: 1.5 },
            Progress { trials: 2, seconds: 6.0, best: 1.0 },
        ],
        notes: vec![Note {
            severity: Severity::Warning,
            code: "x".into(),
            text: "Look here.".into(),
            action: None,
        }],
        ..Study::default()
    }
}

/// A text without its line breaks and columns: where lines end is not what the tests are about.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_text_says_the_best_and_why_others_lose() {
    let text = study_text(&study(), Style::default());
    for part in [
        "Best: 1.000 s  tp=2",
        "python x.py --tp=2",
        "3 executed, 0 simulated, 0 cached, 1 pruned; 2 fit, 2 out of memory",
        "tp=1; +50 % bubble",
        "tp=4; lacks 3.0 GiB",
        "spread   50 %   1: 1.500 s · 2: 1.000 s · 4: out of memory",
        "Look here.",
    ] {
        let found = words(&text).contains(&words(part));
        assert!(found, "`{part}` is not in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    let nothing = study_text(&Study::default(), Style::default());
    assert!(nothing.contains("No configuration has a result"));
}

#[test]
fn the_page_carries_the_whole_study_and_cannot_be_broken() {
    let page = study_html(&study());
    let (_, rest) = page.split_once("<script id=\"study\" type=\"application/json\">").unwrap();
    let (block, _) = rest.split_once("</script>").unwrap();
    assert_eq!(serde_json::from_str::<Study>(block).unwrap(), study());
    assert!(!page.contains("{{") && !page.contains("<b>"));
    let outside = page.replace("http://www.w3.org/2000/svg", "");
    assert!(["http:", "https:", "fetch(", "import "].iter().all(|word| !outside.contains(word)));
    assert!(study_html(&Study::default()).contains("<main"));
}

#[test]
fn the_table_has_a_row_for_every_trial() {
    let table = study_table(&study());
    assert_eq!(table.rows.len(), 4);
    let column = |name: &str| table.columns.iter().position(|column| column == name).unwrap();
    let cells = |name: &str| table.rows.iter().map(|row| row[column(name)].as_str()).collect::<Vec<_>>();
    assert_eq!(cells("rank"), ["2", "1", "", ""]);
    assert_eq!(cells("tp"), ["1", "2", "4", "8"]);
    assert_eq!(cells("origin"), ["executed", "executed", "executed", "pruned"]);
    assert_eq!(cells("step_seconds"), ["1.5", "1", "", ""]);
    assert_eq!(cells("command")[1], "python x.py --tp=2");
}
