//! The machine that trompe runs on, in words.

use std::fs;

/// The processor's model name and the number of processors this process may use, from `/proc/cpuinfo`.
#[must_use]
pub(crate) fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let name = model(&text)?;
    let count = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    Some(if count > 0 { format!("{name} ({count} processors)") } else { name.to_owned() })
}

fn model(text: &str) -> Option<&str> {
    // x86 says `model name`, some Arm kernels `Processor`.
    let line = text.lines().find(|line| line.starts_with("model name") || line.starts_with("Processor"))?;
    Some(line.split_once(':')?.1.trim()).filter(|name| !name.is_empty())
}

/// Operating system and kernel.
#[must_use]
pub(crate) fn system() -> Option<String> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap_or("Linux");
    Some(format!("{}, kernel {}", name.trim_matches('"'), kernel.trim()))
}

/// Runnable processes, averaged over the last minute.
#[must_use]
pub(crate) fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_read_from_either_spelling() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(model(text), expect);
        check("processor\t: 0\nmodel name\t: AMD EPYC 9654\nflags: x\n", Some("AMD EPYC 9654"));
        check("Processor\t: ARMv8\n", Some("ARMv8"));
        check("nothing", None);
    }
}
