//! One record in words.

use trompe_base::Bytes;
use trompe_trace::reader::Names;
use trompe_trace::record::{MarkerKind, NameTable, Record};
use trompe_trace::values::{self, Value};

/// The kind of a record, as `--kind` takes it.
#[must_use]
pub(super) const fn kind(record: &Record<'_>) -> &'static str {
    match record {
        Record::Clock { .. } => "clock",
        Record::Meta { .. } => "meta",
        Record::Name { .. } | Record::Kernel { .. } => "name",
        Record::Stream { .. } => "stream",
        Record::Communicator { .. } => "communicator",
        Record::Call { .. } => "call",
        Record::Launch { .. } => "launch",
        Record::Gemm { .. } => "gemm",
        Record::Convolution { .. } => "convolution",
        Record::Attention { .. } => "attention",
        Record::Rnn { .. } => "rnn",
        Record::Library { .. } => "library",
        Record::Collective { .. } => "collective",
        Record::Copy { .. } => "copy",
        Record::Set { .. } => "set",
        Record::Malloc { .. } | Record::Free { .. } | Record::Charge { .. } => "memory",
        Record::EventRecord { .. }
        | Record::StreamWaitEvent { .. }
        | Record::EventSynchronize { .. }
        | Record::EventQuery { .. }
        | Record::StreamSynchronize { .. }
        | Record::DeviceSynchronize { .. } => "event",
        Record::HostFunction { .. }
        | Record::CaptureBegin { .. }
        | Record::CaptureEnd { .. }
        | Record::GraphInstantiate { .. }
        | Record::GraphLaunch { .. } => "graph",
        Record::OperatorBegin { .. } | Record::OperatorEnd { .. } => "operator",
        Record::Allocator { .. } => "allocator",
        Record::Marker { .. } => "marker",
        Record::Place { .. } => "place",
        Record::Give { .. } | Record::Take { .. } => "thread",
        Record::ApiCount { .. } => "count",
        Record::Dropped { .. } => "dropped",
        Record::End => "end",
    }
}

/// A record in words, without its kind, thread and time.
#[must_use]
pub(super) fn text(record: &Record<'_>, names: &Names<'_>) -> String {
    let api = |api: &u16| api_name(names, *api);
    match record {
        Record::Clock { monotonic_ns, .. } => format!("monotonic clock {monotonic_ns} ns"),
        Record::Meta { key, value } => format!("{key} = {}", shortened(value, 200)),
        Record::Name { table, id, name } => {
            let table = match table {
                NameTable::Api => "function",
                NameTable::Operator => "operator",
                NameTable::Place => "place",
            };
            format!("{table} {id} is {name}")
        }
        Record::Kernel { id, name, registers, parameters, from_module, .. } => {
            let (count, origin) =
                (parameters.len() / 2, if *from_module { ", loaded at run time" } else { "" });
            format!("kernel {id} is {name} ({registers} registers, {count} parameters{origin})")
        }
        Record::Stream { id, device, priority, kind } => {
            format!("stream {id} on device {device}, priority {priority}, {kind:?}").to_lowercase()
        }
        Record::Communicator { id, size, rank, .. } => format!("communicator {id}: rank {rank} of {size}"),
        Record::Call { api: id, arguments } => {
            let arguments: Vec<_> = arguments.iter().map(|value| format!("{value:#x}")).collect();
            format!("{}({})", api(id), arguments.join(", "))
        }
        Record::Launch { kernel, stream, grid, block, shared, .. } => {
            let name = names.kernels.get(kernel).map_or("an unannounced kernel", |kernel| kernel.name);
            let shared =
                if *shared > 0 { format!(" + {} shared", Bytes(u64::from(*shared))) } else { String::new() };
            format!("stream {stream}: {name} <<<{}, {}{shared}>>>", triple(*grid), triple(*block))
        }
        Record::Gemm { stream, gemm, .. } => {
            let t = |transposed| if transposed { 'T' } else { 'N' };
            format!(
                "stream {stream}: {}{} {} × {} × {}, batch {}, {} → {}, compute {}",
                t(gemm.transpose_a),
                t(gemm.transpose_b),
                gemm.m,
                gemm.n,
                gemm.k,
                gemm.batch,
                gemm.a,
                gemm.c,
                gemm.compute
            )
        }
        Record::Convolution { stream, convolution: c, .. } => format!(
            "stream {stream}: {:?}, {} × {} × {:?} → {} × {:?}, kernel {:?}, groups {}, {}",
            c.direction,
            c.batch,
            c.in_channels,
            c.input,
            c.out_channels,
            c.output,
            c.kernel,
            c.groups,
            c.dtype
        ),
        Record::Attention { stream, attention: a, .. } => format!(
            "stream {stream}: {:?} {:?}, batch {}, heads {}/{}, sequence {} × {}, width {}, {}{}",
            a.kind,
            a.direction,
            a.batch,
            a.heads,
            a.kv_heads,
            a.seq_q,
            a.seq_kv,
            a.head_dim,
            a.dtype,
            if a.causal { ", causal" } else { "" }
        ),
        Record::Rnn { stream, rnn, .. } => format!(
            "stream {stream}: {:?}, {} gates, {} layers, {} → {}, batch {}, {} steps, {}",
            rnn.direction, rnn.gates, rnn.layers, rnn.input, rnn.hidden, rnn.batch, rnn.steps, rnn.dtype
        ),
        Record::Library { api: id, stream, read, written, detail } => {
            let (read, written) = (Bytes(*read), Bytes(*written));
            format!("stream {stream}: {} reads {read}, writes {written}; {detail}", api(id))
        }
        Record::Collective { stream, collective: c, .. } => format!(
            "stream {stream}: {:?} of {} × {} on communicator {}, call {}",
            c.kind, c.count, c.dtype, c.communicator, c.sequence
        ),
        Record::Copy { stream, copy, blocking, .. } => {
            let waits = if *blocking { ", the host waits" } else { "" };
            format!("stream {stream}: {} from {:?} to {:?}{waits}", copy.bytes, copy.from, copy.to)
                .to_lowercase()
        }
        Record::Set { stream, bytes, value, .. } => {
            format!("stream {stream}: {} to {value:#x}", Bytes(*bytes))
        }
        Record::Malloc { device, address, bytes, .. } if *address == 0 => {
            format!("device {device}: {} asked for, out of memory", Bytes(*bytes))
        }
        Record::Malloc { device, address, bytes, .. } => {
            format!("device {device}: {} taken at {address:#x}", Bytes(*bytes))
        }
        Record::Free { device, address, bytes, .. } => {
            format!("device {device}: {} given back at {address:#x}", Bytes(*bytes))
        }
        Record::Charge { device, owner, bytes } => {
            let (sign, size) = (if *bytes < 0 { "-" } else { "" }, Bytes(bytes.unsigned_abs()));
            format!("device {device}: {owner} {sign}{size}")
        }
        Record::EventRecord { event, version, stream, .. } => {
            format!("event {event}, recording {version}, on stream {stream}")
        }
        Record::StreamWaitEvent { event, version, stream, .. } => {
            format!("stream {stream} waits for {}", recording(*event, *version))
        }
        Record::EventSynchronize { event, version, .. } => {
            format!("the host waits for {}", recording(*event, *version))
        }
        Record::EventQuery { event, version, .. } => {
            format!("the host asks for {}", recording(*event, *version))
        }
        Record::StreamSynchronize { stream, .. } => format!("the host waits for stream {stream}"),
        Record::DeviceSynchronize { device, .. } => format!("the host waits for device {device}"),
        Record::HostFunction { stream, .. } => format!("host function on stream {stream}"),
        Record::CaptureBegin { stream, graph } => format!("stream {stream} begins to record graph {graph}"),
        Record::CaptureEnd { stream, graph } => format!("stream {stream} ends graph {graph}"),
        Record::GraphInstantiate { graph, executable } => {
            format!("graph {graph} becomes executable {executable}")
        }
        Record::GraphLaunch { executable, stream, .. } => format!("stream {stream}: executable {executable}"),
        Record::OperatorBegin { name, sequence, values: packed, .. } => {
            let name = names.operators.get(name).copied().unwrap_or("an unannounced operator");
            let sequence = if *sequence >= 0 { format!(" #{sequence}") } else { String::new() };
            format!("{name}{sequence}({})", arguments(packed))
        }
        Record::OperatorEnd { values: packed } => format!("returns ({})", arguments(packed)),
        Record::Allocator { action, address, bytes, .. } => {
            format!("{} {} at {address:#x}", allocator_action(*action), Bytes(*bytes))
        }
        Record::Marker { kind, text } => match kind {
            MarkerKind::Instant => format!("mark {text}"),
            MarkerKind::Push => format!("range {text} begins"),
            MarkerKind::Pop => "range ends".to_owned(),
        },
        Record::Place { place: 0 } => "no place".to_owned(),
        Record::Place { place } => names.places.get(place).map_or("unnamed place", |name| *name).to_owned(),
        Record::Give { token } => format!("hands over {token}"),
        Record::Take { token } => format!("has taken {token}"),
        Record::ApiCount { api: id, calls } => format!("{} called {calls} times", api(id)),
        Record::Dropped { records, reason } => format!("{records} records lost: {reason}"),
        Record::End => "the process ended in an orderly way".to_owned(),
    }
}

/// The function's own name, without library and class.
pub(super) fn api_name(names: &Names<'_>, api: u16) -> String {
    let name = names.apis.get(&u32::from(api)).copied().unwrap_or("an unannounced function");
    name.split('/').nth(1).unwrap_or(name).to_owned()
}

fn recording(event: trompe_base::EventId, version: u32) -> String {
    if version == u32::MAX {
        format!("event {event}, which was never recorded")
    } else {
        format!("event {event}, recording {version}")
    }
}

/// `c10::cuda::CUDACachingAllocator::TraceEntry::Action` by number.
const fn allocator_action(action: u8) -> &'static str {
    match action {
        0 => "alloc",
        1 => "free requested",
        2 => "free completed",
        3 => "segment alloc",
        4 => "segment free",
        5 => "segment map",
        6 => "segment unmap",
        7 => "snapshot",
        8 => "out of memory",
        _ => "other",
    }
}

fn triple([x, y, z]: [u32; 3]) -> String {
    match (y, z) {
        (1, 1) => x.to_string(),
        (_, 1) => format!("{x}×{y}"),
        _ => format!("{x}×{y}×{z}"),
    }
}

fn arguments(packed: &[u8]) -> String {
    let values: Vec<_> = values::decode(packed).iter().map(value).collect();
    shortened(&values.join(", "), 300)
}

fn value(value: &Value) -> String {
    match value {
        Value::Tensor(tensor) => {
            let sizes: Vec<_> = tensor.sizes.iter().map(u64::to_string).collect();
            let dtype = tensor.dtype.map_or("?".to_owned(), |dtype| dtype.to_string());
            let place = if tensor.on_device { "" } else { " on the host" };
            format!("{dtype}[{}]{place}", sizes.join("×"))
        }
        Value::List(list) => {
            let shown: Vec<_> = list.iter().take(4).map(self::value).collect();
            let more = if list.len() > 4 { format!(", … {} in all", list.len()) } else { String::new() };
            format!("[{}{more}]", shown.join(", "))
        }
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Text(text) => format!("{text:?}"),
        Value::Undefined | Value::None => "none".to_owned(),
        Value::Opaque => "…".to_owned(),
    }
}

/// At most `limit` characters of a text, on one line.
fn shortened(text: &str, limit: usize) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(limit).collect();
    if text.chars().nth(limit).is_some() { line + "…" } else { line }
}
