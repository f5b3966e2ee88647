//! The file as a whole: an object with `traceEvents`, or a bare list of events; events become the lists of a trace.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Read;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::event::{RawEvent, numbers};
use super::{
    Annotation, DeviceEvent, DeviceEventKind, Gpu, KinetoError, KinetoTrace, MemoryEvent, Operator,
    ProcessGroup, RuntimeCall,
};

/// Keys of the document, and kinds of events that are skipped, that are told apart: a damaged file may have millions.
const KINDS: usize = 256;

/// Reads a whole document.
pub(super) fn parse<R: Read>(reader: R, most: u64) -> Result<KinetoTrace, KinetoError> {
    let mut builder = Builder { room: most, ..Builder::default() };
    let mut json = serde_json::Deserializer::from_reader(reader);
    let outcome = (&mut json).deserialize_any(Document(&mut builder)).and_then(|()| json.end());
    outcome.map_err(|error| KinetoError::from_json(&error, builder.events))?;
    if !builder.found {
        return Err(KinetoError::Other { hint: builder.hint() });
    }
    let trace = builder.finish();
    if trace.0.operators.is_empty() && trace.0.device_events.is_empty() {
        return Err(KinetoError::Empty { events: trace.1 });
    }
    Ok(trace.0)
}

#[derive(Default)]
struct Builder {
    trace: KinetoTrace,
    /// Events read so far.
    events: u64,
    /// Events that are still kept.
    room: u64,
    /// Whether there was a list of events.
    found: bool,
    /// Whether times are nanoseconds.
    nanoseconds: bool,
    names: BTreeSet<Arc<str>>,
    /// Keys that tell what another file is.
    keys: BTreeSet<String>,
}

struct Document<'a>(&'a mut Builder);

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace: an object with `traceEvents`, or a list of events")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "traceEvents" => {
                    self.0.found = true;
                    map.next_value_seed(Events(self.0))?;
                }
                "distributedInfo" => self.0.distributed(&map.next_value()?),
                "deviceProperties" => self.0.gpus(&map.next_value()?),
                "baseTimeNanoseconds" => {
                    self.0.trace.base_time_ns = map.next_value::<super::number::Loose>()?.0;
                }
                _ => {
                    if self.0.keys.len() < KINDS {
                        self.0.keys.insert(key);
                    }
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.0.found = true;
        Events(self.0).visit_seq(list)
    }
}

struct Events<'a>(&'a mut Builder);

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(event) = list.next_element::<RawEvent>()? {
            self.0.events += 1;
            self.0.add(event);
        }
        Ok(())
    }
}

/// What distinguishes kinds of events, over the years.
enum Category {
    Device(DeviceEventKind),
    Runtime,
    Driver,
    Operator,
    Annotation { on_device: bool },
}

fn category(name: &str) -> Option<Category> {
    Some(match name {
        "kernel" | "Kernel" => Category::Device(DeviceEventKind::Kernel),
        "gpu_memcpy" | "Memcpy" => Category::Device(DeviceEventKind::Copy),
        "gpu_memset" | "Memset" => Category::Device(DeviceEventKind::Fill),
        "cuda_sync" => Category::Device(DeviceEventKind::Synchronization),
        "cuda_runtime" | "Runtime" => Category::Runtime,
        "cuda_driver" => Category::Driver,
        "cpu_op" | "Operator" => Category::Operator,
        "user_annotation" => Category::Annotation { on_device: false },
        "gpu_user_annotation" => Category::Annotation { on_device: true },
        _ => return None,
    })
}

impl Builder {
    fn add(&mut self, event: RawEvent) {
        if event.phase == "i" && event.name == "[memory]" {
            self.memory(&event);
            return;
        }
        let kind = event.category.as_deref().and_then(category).filter(|_| event.phase == "X");
        let (Some(kind), Some((start_ns, duration_ns))) = (kind, self.times(&event)) else {
            let label = event.category.unwrap_or_else(|| format!("phase {}", event.phase));
            let skipped = &mut self.trace.skipped;
            let label = if skipped.len() < KINDS || skipped.contains_key(&label) {
                label
            } else {
                "others".to_owned()
            };
            *skipped.entry(label).or_insert(0) += 1;
            return;
        };
        if self.room == 0 {
            self.trace.left += 1;
            return;
        }
        self.room -= 1;
        let name = self.name(event.name);
        let arguments = event.arguments;
        let thread = event.thread.0.unwrap_or(-1);
        let external_id = arguments.external_id.unsigned();
        match kind {
            Category::Device(kind) => self.trace.device_events.push(DeviceEvent {
                kind,
                name,
                start_ns,
                duration_ns,
                device: arguments.device.0.or(event.process.0),
                stream: arguments.stream.0.or(event.thread.0),
                correlation: arguments.correlation.unsigned(),
                external_id,
                grid: arguments.grid,
                block: arguments.block,
                registers: arguments.registers.small(),
                shared_memory: arguments.shared_memory.unsigned(),
                bytes: arguments.bytes.unsigned(),
                waits_for: arguments.waits_for.unsigned(),
                collective: arguments.collective.filter(|collective| !collective.name.is_empty()),
            }),
            Category::Runtime | Category::Driver => self.trace.runtime_calls.push(RuntimeCall {
                name,
                driver: matches!(kind, Category::Driver),
                thread,
                start_ns,
                duration_ns,
                correlation: arguments.correlation.unsigned(),
                external_id,
            }),
            Category::Operator => {
                let types = arguments.types.into_iter().map(|name| self.name(name)).collect();
                self.trace.operators.push(Operator {
                    name,
                    thread,
                    start_ns,
                    duration_ns,
                    external_id,
                    sequence: arguments.sequence.unsigned(),
                    forward_thread: arguments.forward_thread.0,
                    shapes: arguments.shapes,
                    strides: arguments.strides,
                    types,
                    values: arguments.values,
                    collective: arguments.collective.filter(|collective| !collective.name.is_empty()),
                });
            }
            Category::Annotation { on_device } => self.trace.annotations.push(Annotation {
                name,
                on_device,
                thread,
                start_ns,
                duration_ns,
                external_id,
            }),
        }
    }

    /// Start and duration; `None` when one is missing or is no time.
    fn times(&mut self, event: &RawEvent) -> Option<(i64, u64)> {
        let (start, duration) = (event.start?, event.duration?);
        self.nanoseconds |= start.counts_nanoseconds();
        let start = start.nanoseconds(self.nanoseconds)?;
        let duration = u64::try_from(duration.nanoseconds(self.nanoseconds)?).ok()?;
        self.trace.has_nanoseconds |= start % 1_000 != 0 || duration % 1_000 != 0;
        Some((start, duration))
    }

    fn memory(&mut self, event: &RawEvent) {
        let arguments = &event.arguments;
        let Some(start) = event.start else { return };
        self.nanoseconds |= start.counts_nanoseconds();
        let (Some(at_ns), Some(bytes)) = (start.nanoseconds(self.nanoseconds), arguments.bytes.0) else {
            return;
        };
        self.trace.memory.push(MemoryEvent {
            at_ns,
            // PyTorch's `DeviceType`: 0 is the host.
            device: arguments.device_id.small().filter(|_| arguments.device_type.0 != Some(0)),
            bytes,
            total_allocated: arguments.total_allocated.unsigned(),
            total_reserved: arguments.total_reserved.unsigned(),
        });
    }

    fn name(&mut self, name: String) -> Arc<str> {
        if let Some(known) = self.names.get(name.as_str()) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        name
    }

    fn distributed(&mut self, value: &Value) {
        let small = |key: &str| value.get(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        self.trace.rank = small("rank");
        self.trace.world_size = small("world_size");
        self.trace.backend = text(value, "backend");
        self.trace.nccl_version = text(value, "nccl_version");
        for group in value.get("pg_config").and_then(Value::as_array).into_iter().flatten() {
            self.trace.groups.push(ProcessGroup {
                name: text(group, "pg_name").unwrap_or_default(),
                description: text(group, "pg_desc").unwrap_or_default(),
                ranks: group.get("ranks").map(numbers).unwrap_or_default(),
                size: group.get("pg_size").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()),
            });
        }
    }

    fn gpus(&mut self, value: &Value) {
        for gpu in value.as_array().into_iter().flatten() {
            let number = |key: &str| gpu.get(key).and_then(Value::as_u64);
            let small = |key: &str| number(key).and_then(|n| u32::try_from(n).ok());
            self.trace.gpus.push(Gpu {
                id: small("id").unwrap_or_default(),
                name: gpu.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
                total_memory: number("totalGlobalMem").unwrap_or_default(),
                capability: (
                    small("computeMajor").unwrap_or_default(),
                    small("computeMinor").unwrap_or_default(),
                ),
                sm_count: small("numSms"),
            });
        }
    }

    fn hint(&self) -> &'static str {
        let has = |key: &str| self.keys.contains(key);
        if has("nodes") && has("schema") {
            "this is an execution trace (of `ExecutionTraceObserver`), not a profiler's; import it as a Chakra trace"
        } else if has("workload_graph") {
            "this is a Chakra workload graph, not a profiler's trace; import it as a Chakra trace"
        } else {
            "give a trace that `torch.profiler` exported (`export_chrome_trace` or `tensorboard_trace_handler`)"
        }
    }

    /// The trace in order, and the number of events.
    fn finish(self) -> (KinetoTrace, u64) {
        let mut trace = self.trace;
        trace.device_events.sort_by_key(|event| event.start_ns);
        trace.runtime_calls.sort_by_key(|call| call.start_ns);
        // Of operators that start together the outer comes first.
        trace.operators.sort_by_key(|operator| (operator.start_ns, std::cmp::Reverse(operator.duration_ns)));
        trace.annotations.sort_by_key(|range| (range.start_ns, std::cmp::Reverse(range.duration_ns)));
        trace.memory.sort_by_key(|event| event.at_ns);
        (trace, self.events)
    }
}
