//! The page as a browser draws it, where there is one (`chromium` or `google-chrome` on the path).

mod sample;

use std::path::PathBuf;
use std::process::Command;

use trompe_report::html;
use trompe_results::{Report, Timeline};

/// A browser that draws without a screen; `None` when none is installed.
#[expect(clippy::disallowed_methods, reason = "a test may look for a program")]
fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.exists())
}

/// The elements that the page's script has made, as markup; `None` when there is no browser.
fn drawn(page: &str) -> Option<String> {
    let browser = browser().or_else(|| {
        eprintln!("skipped: no browser is installed");
        None
    })?;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(&file, page).unwrap();
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .args([
            "--enable-logging=stderr",
            "--virtual-time-budget=20000",
            "--window-size=1280,2000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    let complaints: Vec<_> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(complaints.is_empty(), "the page's script complains: {complaints:?}");
    let markup = String::from_utf8(output.stdout).unwrap();
    let (_, main) = markup.split_once("<main").expect("the page has a main part");
    Some(main.split_once("<script").expect("the data follow").0.replace("&nbsp;", " "))
}

#[test]
fn every_section_is_drawn() {
    let Some(main) = drawn(&html(&sample::report(), &sample::timeline())) else { return };
    for text in [
        "<strong>Fits</strong>",
        "182.4 ms",
        "165 ms to 203 ms",
        "89.8k",
        "32.2 %",
        "15.5 GiB",
        "id=\"notes\"",
        "id=\"time\"",
        "id=\"memory\"",
        "id=\"timeline\"",
        "id=\"kernels\"",
        "id=\"steps\"",
        "id=\"trust\"",
        "id=\"provenance\"",
        "my_extension::rope&lt;T&gt;",
        "cuptiProfilerInitialize",
        "AMD EPYC 9654",
        "666 spans",
        "All 17 kernels",
        "peak 14.6 GiB",
    ] {
        assert!(main.contains(text), "`{text}` is drawn");
    }
    assert!(!main.contains("undefined") && !main.contains("NaN") && !main.contains("[object"), "{main}");
}

#[test]
fn an_empty_report_is_drawn() {
    let Some(main) = drawn(&html(&Report::default(), &Timeline::default())) else { return };
    assert!(main.contains("<strong>Failed</strong>"));
    assert!(main.contains("no complete step was seen"));
    assert!(!main.contains("undefined") && !main.contains("NaN"), "{main}");
}

#[test]
fn hostile_texts_are_drawn_as_texts() {
    let mut report = sample::report();
    report.job.command = vec!["<img src=x onerror=console.log(1)>".to_owned(), "\u{202e}\x1b".to_owned()];
    report.kernels[0].name = "<b>bold</b>".to_owned();
    report.kernels[0].note = Some("\" onmouseover=\"console.log(2)".to_owned());
    let Some(main) = drawn(&html(&report, &sample::timeline())) else { return };
    assert!(main.contains("&lt;img src=x onerror=console.log(1)&gt; \u{fffd}\u{fffd}"));
    assert!(main.contains("&lt;b&gt;bold&lt;/b&gt;"));
    assert!(main.contains("title=\"&quot; onmouseover=&quot;console.log(2)\""));
}
