//! Prints what is in profiler traces: `cargo run --release -p trompe-interop --example kineto -- FILE…`.

use std::path::Path;

use trompe_interop::kineto;

fn main() {
    for file in std::env::args().skip(1) {
        match kineto::read(Path::new(&file)) {
            Ok(trace) => {
                let launches = trace.launches();
                let joined =
                    |part: fn(&kineto::Launch) -> bool| launches.iter().filter(|launch| part(launch)).count();
                println!(
                    "{file}: rank {:?} of {:?}, {} on {} devices; {} device events ({} with call, {} with operator), \
                     {} calls, {} operators, {} ranges, {} allocator events, {} steps; {}; passed over: {:?}",
                    trace.rank,
                    trace.world_size,
                    trace.gpus.first().map_or("?", |gpu| gpu.name.as_str()),
                    trace.gpus.len(),
                    trace.device_events.len(),
                    joined(|launch| launch.call.is_some()),
                    joined(|launch| launch.operator.is_some()),
                    trace.runtime_calls.len(),
                    trace.operators.len(),
                    trace.annotations.len(),
                    trace.memory.len(),
                    trace.steps().len(),
                    if trace.has_nanoseconds { "nanoseconds" } else { "microseconds" },
                    trace.skipped
                );
            }
            Err(error) => println!("{error}"),
        }
    }
}
