//! One simulated kernel, for a terminal and as a page.

use trompe_results::KernelRun;

use crate::{clean, page, quantity};

/// Instructions of the critical path that the text shows.
const SHOWN: usize = 10;

/// The run for a terminal, ending in a line break.
#[must_use]
pub fn text(run: &KernelRun) -> String {
    let mut out = String::new();
    let line = |out: &mut String, text: std::fmt::Arguments<'_>| {
        out.push_str(clean::line(&text.to_string()).trim_end());
        out.push('\n');
    };
    line(
        &mut out,
        format_args!(
            "{} on {} ({} {}, {} MHz), profile {}",
            run.program,
            run.device,
            run.cores,
            if run.cores == 1 { "core" } else { "cores" },
            run.clock_mhz,
            run.profile
        ),
    );
    line(
        &mut out,
        format_args!(
            "makespan   {} cycles = {:.3} µs; {} tasks, {} control instructions",
            run.cycles,
            run.seconds * 1e6,
            run.tasks,
            run.instructions
        ),
    );
    for used in &run.matrix {
        line(
            &mut out,
            format_args!(
                "matrix     {:<10} {:>14} multiply-adds, {:>8.2} per cycle and core: {:>5.1} % of {}",
                used.dtype,
                used.multiply_adds,
                used.per_cycle,
                100.0 * used.share,
                used.peak_per_cycle
            ),
        );
    }
    for used in &run.paths {
        line(
            &mut out,
            format_args!(
                "moved      {:<10} {:>14} bytes,         {:>8.2} per cycle and core: {:>5.1} % of {}",
                used.path,
                used.bytes,
                used.per_cycle,
                100.0 * used.share,
                used.peak_per_cycle
            ),
        );
    }
    for memory in &run.memories {
        line(
            &mut out,
            format_args!(
                "memory     {:<10} {:>14} bytes of {} ({:.1} %)",
                memory.memory,
                memory.used_bytes,
                memory.capacity_bytes,
                100.0 * memory.used_bytes as f64 / memory.capacity_bytes.max(1) as f64
            ),
        );
    }
    out.push('\n');
    line(
        &mut out,
        format_args!(
            "{:<12} {:>6} {:>14} {:>7} {:>14}  longest waits (cycles, all cores)",
            "pipe", "tasks", "busy cycles", "busy", "waiting"
        ),
    );
    for pipe in &run.pipes {
        let waits: Vec<String> =
            pipe.waits.iter().take(3).map(|wait| format!("{} {}", wait.what, wait.cycles)).collect();
        line(
            &mut out,
            format_args!(
                "{:<12} {:>6} {:>14} {:>5.1} % {:>14}  {}",
                pipe.pipe,
                pipe.tasks,
                pipe.busy_cycles,
                100.0 * pipe.busy_share,
                pipe.waiting_cycles,
                waits.join(", ")
            ),
        );
    }
    out.push('\n');
    line(&mut out, format_args!("critical path: {} tasks", run.critical_tasks));
    for row in run.critical_path.iter().take(SHOWN) {
        line(
            &mut out,
            format_args!(
                "  {:>12} cycles {:>5.1} %  {:>6} x {}",
                row.cycles,
                100.0 * row.share,
                row.tasks,
                row.instruction
            ),
        );
    }
    if run.critical_path.len() > SHOWN {
        line(&mut out, format_args!("  and {} more instructions", run.critical_path.len() - SHOWN));
    }
    for printed in &run.prints {
        line(&mut out, format_args!("printed: {printed}"));
    }
    out
}

/// The run as one self-contained HTML page.
///
/// # Panics
/// Never: plain data has a JSON form.
#[must_use]
pub fn html(run: &KernelRun) -> String {
    let value = |name: &str| match name {
        "title" => {
            let time = quantity::seconds(run.seconds, 3);
            clean::html(&clean::line(&format!("{time} · {} · trompe npu", run.program)))
        }
        "version" => clean::html(&clean::line(&run.trompe_version)),
        "style" => page::STYLES.join("\n"),
        "script" => page::KERNEL_SCRIPTS.join("\n"),
        "plain" => clean::html(&text(run)),
        "report" => clean::script_json(&serde_json::to_string(run).expect("plain data has a JSON form")),
        "timeline" => "null".to_owned(),
        other => unreachable!("the template has an unknown place `{other}`"),
    };
    page::filled(page::TEMPLATE, value)
}
