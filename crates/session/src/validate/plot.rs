//! Plots as SVG: predicted over measured times, and the share of rows below each error.

use std::fmt::Write;

use super::Group;

const SIDE: f64 = 360.0;
const MARGIN: f64 = 44.0;
/// Colours that stay apart for most people with a colour-vision deficiency (Okabe and Ito, 2008).
const COLOURS: [&str; 7] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#5b5b5b"];

/// Predicted over measured times of `groups`, one colour per device.
pub(super) fn scatter(groups: &[&Group]) -> String {
    let named: Vec<(&str, &[[f64; 2]])> =
        groups.iter().map(|group| (group.gpu.as_str(), &group.points[..])).collect();
    scatter_of(&named)
}

/// The same for any points (seconds) under names: one colour per name.
pub(super) fn scatter_of(groups: &[(&str, &[[f64; 2]])]) -> String {
    let points = || groups.iter().flat_map(|(_, points)| *points);
    let times = || points().flatten().map(|seconds| seconds * 1e6);
    let low = times().fold(f64::INFINITY, f64::min).max(1e-3).log10().floor();
    let high = times().fold(0.0, f64::max).max(1.0).log10().ceil().max(low + 1.0);
    let place = |seconds: f64| {
        MARGIN + ((seconds * 1e6).max(1e-3).log10() - low) / (high - low) * (SIDE - 2.0 * MARGIN)
    };
    let mut svg = open("predicted over measured time");
    let (first, last) = (MARGIN, SIDE - MARGIN);
    for decade in low as i32..=high as i32 {
        let at = place(10f64.powi(decade) * 1e-6);
        let name = microseconds(decade);
        let _ = write!(
            svg,
            "<line class=grid x1={at:.1} y1={first} x2={at:.1} y2={last} /><line class=grid x1={first} y1={0:.1} \
             x2={last} y2={0:.1} /><text x={at:.1} y={1} text-anchor=middle>{name}</text><text x={2} y={0:.1} \
             text-anchor=end>{name}</text>",
            SIDE - at,
            last + 14.0,
            first - 4.0
        );
    }
    let _ = write!(svg, "<line class=same x1={first} y1={last} x2={last} y2={first} />");
    let mut names: Vec<&str> = Vec::new();
    for (name, points) in groups {
        if !names.contains(name) {
            names.push(name);
        }
        let at = names.iter().position(|known| known == name).unwrap_or(0);
        let colour = COLOURS[at % COLOURS.len()];
        for [measured, predicted] in *points {
            let (x, y) = (place(*measured), SIDE - place(*predicted));
            let _ = write!(svg, "<circle cx={x:.1} cy={y:.1} r=1.6 fill=\"{colour}\" />");
        }
    }
    let middle = SIDE / 2.0;
    let _ = write!(
        svg,
        "<text x={middle} y={} text-anchor=middle>measured</text><text transform=\"translate(10,{middle}) \
         rotate(-90)\" text-anchor=middle>predicted</text></svg>",
        SIDE - 6.0
    );
    svg
}

/// A name per colour.
pub(super) fn legend(groups: &[&Group]) -> String {
    legend_of(&groups.iter().map(|group| group.gpu.as_str()).collect::<Vec<_>>())
}

/// The same for any names, in the order in which they first occur.
pub(super) fn legend_of(all: &[&str]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in all {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let mut html = String::from("<p class=legend>");
    for (at, name) in names.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let _ = write!(html, "<span><i style=\"background:{colour}\"></i>{name}</span> ");
    }
    html + "</p>"
}

/// The share of the plotted rows whose error is at most so large.
pub(super) fn cumulative(groups: &[&Group]) -> String {
    let points: Vec<[f64; 2]> = groups.iter().flat_map(|group| &group.points).copied().collect();
    cumulative_of(&points)
}

/// The same for any points.
pub(super) fn cumulative_of(points: &[[f64; 2]]) -> String {
    const MOST: f64 = 0.5;
    let mut errors: Vec<f64> =
        points.iter().map(|[measured, predicted]| (predicted / measured - 1.0).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let (first, last) = (MARGIN, SIDE - MARGIN);
    let x = |error: f64| first + error.min(MOST) / MOST * (last - first);
    let y = |share: f64| last - share * (last - first);
    let mut svg = open("share of rows below each error");
    for tenth in 0..=5 {
        let error = f64::from(tenth) / 10.0;
        let _ = write!(
            svg,
            "<line class=grid x1={0:.1} y1={first} x2={0:.1} y2={last} /><text x={0:.1} y={1} \
             text-anchor=middle>{2:.0} %</text>",
            x(error),
            last + 14.0,
            error * 100.0
        );
        let share = f64::from(tenth) / 5.0;
        let _ = write!(
            svg,
            "<line class=grid x1={first} y1={0:.1} x2={last} y2={0:.1} /><text x={1} y={0:.1} \
             text-anchor=end>{2:.0} %</text>",
            y(share),
            first - 4.0,
            share * 100.0
        );
    }
    let count = errors.len().max(1) as f64;
    let step = errors.len().div_ceil(200).max(1);
    let mut path = format!("M{:.1},{:.1}", x(0.0), y(0.0));
    for (at, error) in errors.iter().enumerate().step_by(step).filter(|(_, error)| **error <= MOST) {
        let _ = write!(path, "L{:.1},{:.1}", x(*error), y((at as f64 + 1.0) / count));
    }
    let _ = write!(
        svg,
        "<path d=\"{path}\" fill=none stroke=\"{}\" stroke-width=2 /><text x={} y={} text-anchor=middle>absolute \
         error</text></svg>",
        COLOURS[0],
        SIDE / 2.0,
        SIDE - 6.0
    );
    svg
}

fn open(title: &str) -> String {
    format!("<svg viewBox=\"0 0 {SIDE} {SIDE}\" role=img aria-label=\"{title}\">")
}

/// `10^decade` microseconds for people.
fn microseconds(decade: i32) -> String {
    match decade {
        ..0 => format!("{} ns", 10i64.pow((3 + decade).max(0) as u32)),
        0..3 => format!("{} us", 10i64.pow(decade as u32)),
        3..6 => format!("{} ms", 10i64.pow(decade as u32 - 3)),
        _ => format!("{} s", 10i64.pow(decade as u32 - 6)),
    }
}
