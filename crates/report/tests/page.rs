//! The page is whole, self-contained, and cannot be broken by what a stranger's job is called.

mod sample;

use trompe_report::html;
use trompe_results::{Argument, Report, Timeline};

/// The text between `before` and the next `after`.
fn between<'a>(page: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = page.split_once(before).unwrap_or_else(|| panic!("`{before}` is in the page"));
    rest.split_once(after).unwrap_or_else(|| panic!("`{after}` is in the page")).0
}

fn data(page: &str, id: &str) -> serde_json::Value {
    let block = between(page, &format!("<script type=\"application/json\" id=\"{id}\">"), "</script>");
    serde_json::from_str(block).expect("the block is JSON")
}

#[test]
fn the_page_carries_the_whole_report() {
    let page = html(&sample::report(), &sample::timeline());
    let report: Report = serde_json::from_value(data(&page, "report-data")).unwrap();
    assert_eq!(report, sample::report());
    let timeline = data(&page, "timeline-data");
    assert_eq!(timeline["total"], sample::timeline().span_count());
    assert_eq!(timeline["left_out"], 0);
    assert!(!page.contains("{{"), "every place of the template is filled");
    assert!(between(&page, "<noscript><pre>", "</pre></noscript>").contains("step time       182.4 ms"));
    assert_eq!(between(&page, "<title>", "</title>"), "182\u{a0}ms · examples/gpt2/train.py · trompe");
}

#[test]
fn the_page_needs_nothing_from_outside() {
    let page = html(&sample::report(), &sample::timeline());
    assert!(
        page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'")
    );
    let code = between(&page, "\"use strict\";", "</script>").replace("http://www.w3.org/2000/svg", "");
    let style = between(&page, "<style>", "</style>");
    for word in ["http:", "https:", "//cdn", "import ", "fetch(", "XMLHttpRequest", "WebSocket", "sendBeacon"]
    {
        assert!(!code.contains(word), "the script has `{word}`");
    }
    for word in ["url(", "@import", "@font-face"] {
        assert!(!style.contains(word), "the style has `{word}`");
    }
    for tag in ["<link", "<img", "<iframe", "<script src"] {
        assert!(!page.contains(tag), "the page has `{tag}`");
    }
    for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
        assert!(!code.contains(word), "texts must stay texts, but the script has `{word}`");
    }
}

#[test]
fn hostile_texts_stay_texts() {
    const EVIL: &str =
        "</script></pre><script>alert(1)</script><!--<img src=x onerror=alert(1)>\"'&{{script}}";
    let mut report = sample::report();
    report.job.command = vec![EVIL.to_owned()];
    report.job.directory = EVIL.to_owned();
    report.verdict.text = EVIL.to_owned();
    report.trompe_version = EVIL.to_owned();
    report.notes[0].text = EVIL.to_owned();
    report.kernels[0].name = EVIL.to_owned();
    report.software.environment[0].value = EVIL.to_owned();
    let mut timeline = sample::timeline();
    timeline.names[0] = EVIL.to_owned();
    timeline.tracks[0].name = EVIL.to_owned();
    timeline.tracks[0].spans[0].arguments[0].1 = Argument::Text(EVIL.to_owned());

    let (page, harmless) = (html(&report, &timeline), html(&sample::report(), &sample::timeline()));
    for tag in ["<script", "</script", "<!--", "<img", "</pre", "\"use strict\"", "onerror=alert(1)>"] {
        assert_eq!(page.matches(tag).count(), harmless.matches(tag).count(), "`{tag}`");
    }
    assert_eq!(data(&page, "report-data")["job"]["command"][0], EVIL);
    assert_eq!(data(&page, "timeline-data")["names"][0], EVIL);
}

#[test]
fn an_empty_report_makes_a_page() {
    let page = html(&Report::default(), &Timeline::default());
    assert_eq!(data(&page, "timeline-data")["total"], 0);
}
