//! One event as it stands in the file, before it is known what it is.
//!
//! Read by hand rather than derived: an argument may stand twice, may be written as a number or as text, and most are not
//! kept. Whatever has an unexpected form is taken as not stated.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::number::{Decimal, Loose};
use super::{Collective, Shape};

/// An event of any kind.
#[derive(Debug, Default)]
pub(super) struct RawEvent {
    pub(super) phase: String,
    pub(super) category: Option<String>,
    pub(super) name: String,
    pub(super) process: Loose,
    pub(super) thread: Loose,
    pub(super) start: Option<Decimal>,
    pub(super) duration: Option<Decimal>,
    pub(super) arguments: Arguments,
}

/// The arguments that are kept.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) external_id: Loose,
    pub(super) correlation: Loose,
    pub(super) device: Loose,
    pub(super) stream: Loose,
    pub(super) grid: Option<[u32; 3]>,
    pub(super) block: Option<[u32; 3]>,
    pub(super) registers: Loose,
    pub(super) shared_memory: Loose,
    pub(super) bytes: Loose,
    pub(super) waits_for: Loose,
    pub(super) sequence: Loose,
    pub(super) forward_thread: Loose,
    pub(super) shapes: Vec<Shape>,
    pub(super) strides: Vec<Shape>,
    pub(super) types: Vec<String>,
    pub(super) values: Vec<String>,
    pub(super) device_type: Loose,
    pub(super) device_id: Loose,
    pub(super) total_allocated: Loose,
    pub(super) total_reserved: Loose,
    pub(super) collective: Option<Box<Collective>>,
}

impl<'de> Deserialize<'de> for RawEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Event;
        impl<'de> Visitor<'de> for Event {
            type Value = RawEvent;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an event (an object)")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawEvent, A::Error> {
                let mut event = RawEvent::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "ph" => event.phase = map.next_value()?,
                        "cat" => event.category = map.next_value()?,
                        "name" => event.name = text(&map.next_value()?),
                        "pid" => event.process = map.next_value()?,
                        "tid" => event.thread = map.next_value()?,
                        "ts" => event.start = Decimal::parse(&map.next_value::<Box<RawValue>>()?),
                        "dur" => event.duration = Decimal::parse(&map.next_value::<Box<RawValue>>()?),
                        "args" => {
                            event.arguments = map.next_value::<Option<Arguments>>()?.unwrap_or_default()
                        }
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(event)
            }
        }
        deserializer.deserialize_map(Event)
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Arguments;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the arguments of an event (an object)")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Arguments, A::Error> {
                let mut all = Arguments::default();
                while let Some(key) = map.next_key::<String>()? {
                    all.take(&key, &mut map)?;
                }
                Ok(all)
            }
        }
        deserializer.deserialize_map(List)
    }
}

impl Arguments {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "External id" | "external id" => self.external_id = map.next_value()?,
            "correlation" => self.correlation = map.next_value()?,
            "device" => self.device = map.next_value()?,
            "stream" => self.stream = map.next_value()?,
            "grid" => self.grid = triple(&map.next_value()?),
            "block" => self.block = triple(&map.next_value()?),
            "registers per thread" => self.registers = map.next_value()?,
            "shared memory" => self.shared_memory = map.next_value()?,
            "bytes" | "Bytes" => self.bytes = map.next_value()?,
            "wait_on_cuda_event_record_corr_id" => self.waits_for = map.next_value()?,
            "Sequence number" => self.sequence = map.next_value()?,
            "Fwd thread id" => self.forward_thread = map.next_value()?,
            "Input Dims" | "Input dims" => self.shapes = shapes(&map.next_value()?),
            "Input Strides" | "Input strides" => self.strides = shapes(&map.next_value()?),
            "Input type" | "Input Types" => self.types = texts(&map.next_value()?),
            "Concrete Inputs" => self.values = texts(&map.next_value()?),
            "Device Type" => self.device_type = map.next_value()?,
            "Device Id" => self.device_id = map.next_value()?,
            "Total Allocated" => self.total_allocated = map.next_value()?,
            "Total Reserved" => self.total_reserved = map.next_value()?,
            "Collective name" => self.of_collective().name = text(&map.next_value()?),
            "dtype" => self.of_collective().dtype = Some(text(&map.next_value()?)),
            "In msg nelems" => self.of_collective().in_elements = map.next_value::<Loose>()?.unsigned(),
            "Out msg nelems" => self.of_collective().out_elements = map.next_value::<Loose>()?.unsigned(),
            "Group size" => self.of_collective().group_size = map.next_value::<Loose>()?.small(),
            "Process Group Name" => self.of_collective().group = Some(text(&map.next_value()?)),
            "Process Group Description" => {
                self.of_collective().group_description = Some(text(&map.next_value()?));
            }
            "Process Group Ranks" => self.of_collective().ranks = numbers(&map.next_value()?),
            "In split size" => self.of_collective().in_split = numbers(&map.next_value()?),
            "Out split size" => self.of_collective().out_split = numbers(&map.next_value()?),
            "Seq" => self.of_collective().sequence = map.next_value::<Loose>()?.unsigned(),
            "Dst Rank" => self.of_collective().destination = map.next_value::<Loose>()?.0,
            "Src Rank" => self.of_collective().source = map.next_value::<Loose>()?.0,
            _ => {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn of_collective(&mut self) -> &mut Collective {
        self.collective.get_or_insert_default()
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().map(|list| list.iter().map(text).collect()).unwrap_or_default()
}

fn triple(value: &Value) -> Option<[u32; 3]> {
    let list = value.as_array()?;
    let at = |index: usize| list.get(index)?.as_u64().and_then(|value| u32::try_from(value).ok());
    Some([at(0)?, at(1)?, at(2)?])
}

fn shapes(value: &Value) -> Vec<Shape> {
    let sizes = |value: &Value| -> Vec<i64> {
        value.as_array().map(|list| list.iter().filter_map(Value::as_i64).collect()).unwrap_or_default()
    };
    let shape = |value: &Value| match value.as_array() {
        Some(list) if list.iter().any(Value::is_array) => Shape::List(list.iter().map(sizes).collect()),
        _ => Shape::Tensor(sizes(value)),
    };
    value.as_array().map(|list| list.iter().map(shape).collect()).unwrap_or_default()
}

/// A list of numbers, also when written as text (`"[0, 1]"`); empty when it is cut short (`"[0, 1, ..., 7]"`).
pub(super) fn numbers<T: TryFrom<u64>>(value: &Value) -> Vec<T> {
    let number = |value: u64| T::try_from(value).ok();
    let list = match value {
        Value::Array(list) => {
            list.iter().map(|value| value.as_u64().and_then(number)).collect::<Option<Vec<T>>>()
        }
        Value::String(text) => {
            let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
            let parts = inner.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(|part| part.parse().ok().and_then(number)).collect()
        }
        _ => None,
    };
    list.unwrap_or_default()
}
