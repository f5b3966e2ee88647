//! What the user should know about the traces.

use trompe_trace::job::{Note, RankTemplate, Severity};
use trompe_trace::reader::Names;

use crate::interpret::Interpreted;
use crate::walk::Walk;

/// Names listed in one note.
const LISTED: usize = 8;

/// Notes about one process.
pub(crate) fn about(walk: &Walk<'_>, names: &Names<'_>, interpreted: &Interpreted) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut add = |severity, text: String, hint: Option<&str>| {
        notes.push(Note { severity, text, hint: hint.map(str::to_owned) });
    };
    if !names.ended {
        add(
            Severity::Warning,
            "the trace stops without an end mark: the process was killed or is still running".into(),
            Some("what was recorded until then is reported"),
        );
    }
    for (reason, records) in &walk.dropped {
        add(
            Severity::Warning,
            format!("{records} records were lost: {reason}"),
            Some("free space for the trace and run again"),
        );
    }
    if let Some(kind) = names.meta.get("python.exception") {
        let message = names.meta.get("python.exception_message").copied().unwrap_or("");
        let first = message.lines().next().unwrap_or("");
        add(Severity::Warning, format!("the script ended with {kind}: {first}"), None);
    }
    if let Some((text, hint)) = unknown_values(names) {
        add(Severity::Warning, text, Some(hint));
    }
    if walk.frames.is_empty() {
        let reason = names.meta.get("hook.observer").and_then(|text| text.strip_prefix("absent: "));
        let why = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        add(
            Severity::Warning,
            format!("no operators were recorded{why}: sizes come from kernel names and parameters alone"),
            Some("install a C++ compiler so that the observer can be built"),
        );
    }
    if !interpreted.unclaimed.is_empty() {
        let launches: u64 = interpreted.unclaimed.values().sum();
        let mut list: Vec<_> = interpreted.unclaimed.iter().collect();
        list.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let shown: Vec<_> = list.iter().take(LISTED).map(|(name, n)| format!("{name} ({n})")).collect();
        let more =
            if list.len() > LISTED { format!(" and {} more", list.len() - LISTED) } else { String::new() };
        add(
            Severity::Info,
            format!(
                "{launches} launches of {} kernels belong to no known family: {}{more}",
                list.len(),
                shown.join(", ")
            ),
            Some("they are charged by their tensors or their geometry"),
        );
    }
    if interpreted.unknown_graphs > 0 {
        add(
            Severity::Warning,
            format!(
                "{} launches of graphs whose capture was not seen are charged nothing",
                interpreted.unknown_graphs
            ),
            None,
        );
    }
    notes
}

/// Integers and truth values that the program read back from the device although nothing that was executed had computed
/// them: `values.unknown/OPERATOR/FILE:LINE` with the number of times.
fn unknown_values(names: &Names<'_>) -> Option<(String, &'static str)> {
    let mut places: Vec<(u64, &str, &str)> = names
        .meta
        .iter()
        .filter_map(|(key, times)| {
            let (operator, site) = key.strip_prefix("values.unknown/")?.split_once('/')?;
            Some((times.parse().unwrap_or(1), operator, site))
        })
        .collect();
    places.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| (a.1, a.2).cmp(&(b.1, b.2))));
    let times: u64 = places.iter().map(|place| place.0).sum();
    let list: Vec<_> = places
        .iter()
        .take(LISTED)
        .map(|(times, operator, site)| format!("{site} ({operator}, {times} ×)"))
        .collect();
    let more =
        if places.len() > LISTED { format!(" and {} more", places.len() - LISTED) } else { String::new() };
    (times > 0).then(|| {
        let text = format!(
            "{times} times the program read an integer or truth value from the GPU that depends on results which are \
             not computed, and went on as if it were 0: {}{more}",
            list.join(", ")
        );
        (text, "what follows from these reads (branches, sizes, stop conditions) may differ from a real run")
    })
}

/// Notes about API functions that the emulation does not offer, over all ranks.
pub(crate) fn unsupported(templates: &[RankTemplate]) -> Option<Note> {
    let mut names: Vec<&str> = templates
        .iter()
        .flat_map(|template| &template.calls)
        .filter(|(name, calls)| name.ends_with("/unsupported") && *calls > 0)
        .filter_map(|(name, _)| name.split('/').nth(1))
        .collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| {
        let shown = names.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
        let more =
            if names.len() > LISTED { format!(" and {} more", names.len() - LISTED) } else { String::new() };
        Note {
            severity: Severity::Warning,
            text: format!("the program called functions that are not emulated: {shown}{more}"),
            hint: Some("what depends on their results may differ from a real run".to_owned()),
        }
    })
}
