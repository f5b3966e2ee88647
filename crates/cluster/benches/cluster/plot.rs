//! A chart with logarithmic axes as SVG: enough for a few lines of points.

use std::fmt::Write;

/// One line of a chart.
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Drawn with dashes.
    pub(crate) reference: bool,
}

/// What stands around the points.
pub(crate) struct Frame<'a> {
    pub(crate) title: &'a str,
    pub(crate) across: &'a str,
    pub(crate) up: &'a str,
    pub(crate) note: &'a str,
}

const COLORS: [&str; 5] = ["#1f5fbf", "#c2410c", "#15803d", "#7e22ce", "#475569"];
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 80.0;

/// The chart; points must be positive.
pub(crate) fn chart(frame: &Frame<'_>, series: &[Series]) -> String {
    let all = || series.iter().flat_map(|series| series.points.iter().copied());
    let range = |value: fn((f64, f64)) -> f64| {
        let low = all().map(value).fold(f64::INFINITY, f64::min);
        let high = all().map(value).fold(0.0, f64::max);
        ((low / 1.25).log10(), (high * 1.25).log10())
    };
    let ((x0, x1), (y0, y1)) = (range(|p| p.0), range(|p| p.1));
    let x = |value: f64| LEFT + (value.log10() - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - (value.log10() - y0) / (y1 - y0) * (HEIGHT - TOP - BOTTOM);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n"
    );
    let mut text = |x: f64, y: f64, anchor: &str, extra: &str, text: &str| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {extra}>{text}</text>")
            .expect("a String takes text");
    };
    text(LEFT, 24.0, "start", "font-weight=\"bold\" font-size=\"15\"", frame.title);
    text(LEFT, HEIGHT - 12.0, "start", "fill=\"#64748b\" font-size=\"11\"", frame.note);
    text((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 38.0, "middle", "", frame.across);
    let turned = format!("transform=\"rotate(-90 20 {:.1})\"", (TOP + HEIGHT - BOTTOM) / 2.0);
    text(20.0, (TOP + HEIGHT - BOTTOM) / 2.0, "middle", &turned, frame.up);
    for (low, high, across) in [(x0, x1, true), (y0, y1, false)] {
        for value in ticks(low, high) {
            let label = if value >= 1.0 { thousands(value) } else { format!("{value}") };
            if across {
                text(x(value), HEIGHT - BOTTOM + 18.0, "middle", "", &label);
            } else {
                text(LEFT - 8.0, y(value) + 4.0, "end", "", &label);
            }
        }
    }
    for (low, high, across) in [(x0, x1, true), (y0, y1, false)] {
        for value in ticks(low, high) {
            let (ax, ay, bx, by) = if across {
                (x(value), TOP, x(value), HEIGHT - BOTTOM)
            } else {
                (LEFT, y(value), WIDTH - RIGHT, y(value))
            };
            writeln!(svg, "<path d=\"M{ax:.1} {ay:.1}L{bx:.1} {by:.1}\" stroke=\"#e2e8f0\" fill=\"none\"/>")
                .expect("a String takes text");
        }
    }
    for (number, series) in series.iter().enumerate() {
        let color = COLORS[number % COLORS.len()];
        let dash = if series.reference { " stroke-dasharray=\"6 4\"" } else { "" };
        let path: Vec<String> =
            series.points.iter().map(|&(a, b)| format!("{:.1} {:.1}", x(a), y(b))).collect();
        writeln!(
            svg,
            "<path d=\"M{}\" stroke=\"{color}\" stroke-width=\"2\" fill=\"none\"{dash}/>",
            path.join("L")
        )
        .expect("a String takes text");
        for &(a, b) in &series.points {
            writeln!(svg, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{color}\"/>", x(a), y(b))
                .expect("a String takes text");
        }
        let (left, row) = (LEFT + 220.0 * number as f64, TOP - 10.0);
        writeln!(
            svg,
            "<path d=\"M{left:.1} {row:.1}h24\" stroke=\"{color}\" stroke-width=\"2\"{dash}/>\n<text x=\"{:.1}\" \
             y=\"{:.1}\">{}</text>",
            left + 30.0,
            row + 4.0,
            series.name
        )
        .expect("a String takes text");
    }
    svg.push_str("</svg>\n");
    svg
}

/// Round numbers between two powers of ten.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let leads: &[f64] = match high - low {
        range if range > 2.5 => &[1.0],
        range if range > 0.8 => &[1.0, 2.0, 5.0],
        _ => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
    };
    let mut found = Vec::new();
    for power in low.floor() as i32..=high.ceil() as i32 {
        for &lead in leads {
            // By division where the power is negative, so that 0.1 prints as such.
            let value = if power < 0 { lead / 10f64.powi(-power) } else { lead * 10f64.powi(power) };
            if (low..=high).contains(&value.log10()) {
                found.push(value);
            }
        }
    }
    found
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
