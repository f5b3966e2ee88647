//! The validation as one self-contained page: a table and two plots per family.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Group, Validation, plot, runs_page};

const STYLE: &str = "body{font:14px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:1200px;padding:0 1rem;\
color:#1b1b1b;background:#fff}h1{font-size:1.5rem}h2{margin-top:2.5rem;border-bottom:1px solid #ccc}\
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\
th,td{padding:.2rem .5rem;text-align:right;border-bottom:1px solid #e6e6e6;white-space:nowrap}\
th{font-weight:600;color:#555}td:nth-child(-n+4),th:nth-child(-n+4){text-align:left}\
.plots{display:flex;flex-wrap:wrap;gap:1rem}.plots svg{width:360px;max-width:100%}\
svg text{font-size:10px;fill:#555}.grid{stroke:#e6e6e6}.same{stroke:#999;stroke-dasharray:4 3}\
.legend span{margin-right:1rem}.legend i{display:inline-block;width:.7rem;height:.7rem;margin-right:.3rem}\
details{margin:.5rem 0}.scroll{overflow-x:auto}p.note{color:#555}\
@media(prefers-color-scheme:dark){body{background:#15171a;color:#e4e4e4}th,svg text,p.note{color:#aaa;fill:#aaa}\
th,td{border-color:#333}.grid{stroke:#333}h2{border-color:#444}}";

/// The page.
#[must_use]
pub fn page(validation: &Validation) -> String {
    let mut html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>trompe validate</title><style>{STYLE}</style><h1>Predictions against measurements</h1>\
         <p class=note>trompe {}. Errors are |prediction / measurement − 1|. <b>known</b>: the shape occurs among \
         training rows. <b>inside</b>: measurements within the interval, meant to be 80 %. <b>noise</b>: mean \
         difference of another measurement of the same operation. <b>physics</b>, <b>roofline</b>: median error of \
         these alone. Plots show at most 200 rows of each group.</p>",
        escape(&validation.trompe_version)
    );
    if let Some(runs) = &validation.runs {
        runs_page::write(&mut html, runs);
    }
    if !validation.summary.is_empty() {
        html.push_str("<h2>Families by device</h2>");
        summary(&mut html, &validation.summary);
    }
    let mut families = BTreeMap::<&str, Vec<&Group>>::new();
    for group in validation.kernels.iter().chain(&validation.collectives) {
        families.entry(&group.family).or_default().push(group);
    }
    for (family, groups) in &families {
        let _ = write!(html, "<h2>{}</h2>", escape(&family.replace('_', " ")));
        let plots = (plot::scatter(groups), plot::cumulative(groups), plot::legend(groups));
        let _ = write!(html, "<div class=plots>{}{}</div>{}", plots.0, plots.1, plots.2);
        table(&mut html, groups);
        worst(&mut html, groups);
    }
    if !validation.left_out.is_empty() {
        html.push_str("<h2>Notes, and rows that were not compared</h2><ul>");
        for line in &validation.left_out {
            let _ = write!(html, "<li>{}</li>", escape(line));
        }
        html.push_str("</ul>");
    }
    html + "</html>\n"
}

fn summary(html: &mut String, groups: &[Group]) {
    html.push_str(
        "<div class=scroll><table><tr><th>family<th>device<th>sources<th><th>rows<th>median<th>mean<th>p90<th>inside\
         <th>noise<th>physics<th>roofline</tr>",
    );
    for group in groups {
        let _ = write!(
            html,
            "<tr><td>{}<td>{}<td>{}<td><td>{}<td>{}<td>{}<td>{}{}</tr>",
            escape(&group.family.replace('_', " ")),
            escape(&group.gpu),
            escape(&group.source),
            group.rows,
            percent(group.median),
            percent(group.mean),
            percent(group.p90),
            beside(group)
        );
    }
    html.push_str("</table></div>");
}

fn table(html: &mut String, groups: &[&Group]) {
    html.push_str(
        "<div class=scroll><table><tr><th>what<th>device<th>source<th>known<th>rows<th>median<th>mean<th>p90<th>bias\
         <th>inside<th>noise<th>physics<th>roofline</tr>",
    );
    for group in groups {
        let known = match group.shape_in_train {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        let _ = write!(
            html,
            "<tr><td>{}<td>{}<td>{}<td>{known}<td>{}<td>{}<td>{}<td>{}<td>{:+.1} %{}</tr>",
            escape(&group.label),
            escape(&group.gpu),
            escape(&group.source),
            group.rows,
            percent(group.median),
            percent(group.mean),
            percent(group.p90),
            group.bias * 100.0,
            beside(group)
        );
    }
    html.push_str("</table></div>");
}

/// The cells that a group's own errors are compared with: how many rows its intervals hold, the noise of the rows, and
/// the two simpler models.
fn beside(group: &Group) -> String {
    let noise = group.noise.map_or_else(|| "–".to_owned(), percent);
    let (inside, physics, roofline) =
        (percent(group.inside), percent(group.physics_median), percent(group.roofline_median));
    format!("<td>{inside}<td>{noise}<td>{physics}<td>{roofline}")
}

fn worst(html: &mut String, groups: &[&Group]) {
    html.push_str(
        "<details><summary>Worst rows of each group</summary><div class=scroll><table><tr><th>device",
    );
    html.push_str("<th>operation<th>why<th>line<th>measured<th>predicted<th>error</tr>");
    for group in groups {
        for row in &group.worst {
            let _ = write!(
                html,
                "<tr><td>{}<td>{}<td>{}<td>{}<td>{:.2} us<td>{:.2} us<td>{:+.0} %</tr>",
                escape(&group.gpu),
                escape(&row.operation),
                escape(&row.reason),
                row.line,
                row.measured_us,
                row.predicted_us,
                row.error * 100.0
            );
        }
    }
    html.push_str("</table></div></details>");
}

pub(super) fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", share * 100.0) } else { "–".to_owned() }
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
