//! Functions that the framework side calls: operators, allocator events, marks and facts.
//!
//! They may be called from any thread at any time; without a record file all but the allocator's do nothing. Found by
//! `dlsym`, so their names and types are the interface; [`trompe_abi_version`] tells which one this is.

#![expect(unsafe_code, unreachable_pub, reason = "exports C functions that take pointers with lengths")]

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use trompe_trace::record::{MarkerKind, NameTable, Record, Stamp};

use crate::clock;
use crate::process::machine;
use crate::sink::{self, Frame};
use crate::thread::Thread;

/// Whether something says when memory changes hands (see [`reuse_is_known`]).
static REUSE_IS_KNOWN: AtomicBool = AtomicBool::new(false);

/// Version of these functions.
const VERSION: u32 = 3;
/// `CUDACachingAllocator::TraceEntry::Action::ALLOC`.
const ALLOC: u8 = 0;
/// `…::FREE_REQUESTED`.
const FREE: u8 = 1;

/// Version of the functions in this module.
#[unsafe(no_mangle)]
pub extern "C" fn trompe_abi_version() -> u32 {
    VERSION
}

/// Whether each block that the program gets is known to this library, so that it can be made fresh: the framework reports
/// its caching allocator's events, or it allocates from this library's pools. Without that, what a kernel once wrote
/// would be read by every later tensor in its place, so no kernel's values are written at all.
pub(crate) fn reuse_is_known() -> bool {
    REUSE_IS_KNOWN.load(Ordering::Relaxed)
}

/// Notes that blocks are reported.
pub(crate) fn know_reuse() {
    REUSE_IS_KNOWN.store(true, Ordering::Relaxed);
}

/// 1 when records are being taken.
#[unsafe(no_mangle)]
pub extern "C" fn trompe_recording() -> i32 {
    catch_unwind(|| i32::from(sink::active())).unwrap_or(0)
}

/// The clock of the records, for [`trompe_op_begin`] and [`trompe_op_end`].
#[unsafe(no_mangle)]
pub extern "C" fn trompe_ticks() -> u64 {
    clock::ticks()
}

/// A framework operator begins on this thread. `values` is described in `trompe_trace::values`. `since` is the time at
/// which the framework's side began to work on this, so that it does not count as the program's own; 0: now.
///
/// # Safety
/// Each pointer must be valid for the length that follows it, or null with length 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trompe_op_begin(
    name: *const u8,
    name_len: u32,
    scope: u8,
    sequence: i64,
    forward_thread: u64,
    values: *const u8,
    values_len: u32,
    since: u64,
) {
    record_since(since, |thread, begin| {
        // SAFETY: the caller's promise.
        let (name, values) = unsafe { (text(name, name_len), bytes(values, values_len)) };
        let name = id(thread, NameTable::Operator, name);
        let record = Record::OperatorBegin { name, scope, sequence, forward_thread, values };
        sink::write(thread, Stamp { begin, ticks: 0 }, &record)
    });
}

/// The innermost operator of this thread ends. `since` as in [`trompe_op_begin`].
///
/// # Safety
/// The pointer must be valid for the length that follows it, or null with length 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trompe_op_end(outputs: *const u8, outputs_len: u32, since: u64) {
    record_since(since, |thread, begin| {
        // SAFETY: the caller's promise.
        let values = unsafe { bytes(outputs, outputs_len) };
        sink::write(thread, Stamp { begin, ticks: 0 }, &Record::OperatorEnd { values })
    });
}

/// Tensors that the framework's caching allocator has given out: bytes by address.
static TENSORS: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

/// The tensor that contains an address: where it begins, and its bytes.
pub(crate) fn tensor_at(address: u64) -> Option<(u64, u64)> {
    let tensors = TENSORS.lock().unwrap_or_else(PoisonError::into_inner);
    let (&start, &bytes) = tensors.range(..=address).next_back()?;
    (address - start < bytes).then_some((start, bytes))
}

/// The framework's caching allocator did something. A block that it hands out reads zero afterwards, as on a device where
/// nothing was ever computed; otherwise the program would see what an earlier tensor left there.
#[unsafe(no_mangle)]
pub extern "C" fn trompe_alloc_event(action: u8, address: u64, size: u64, stream: u64) {
    if action == FREE {
        TENSORS.lock().unwrap_or_else(PoisonError::into_inner).remove(&address);
    }
    if action == ALLOC {
        know_reuse();
        TENSORS.lock().unwrap_or_else(PoisonError::into_inner).insert(address, size);
        let _ = catch_unwind(|| {
            let mut machine = machine();
            if machine.memory.is_accessible(address, size) && machine.memory.device_of(address).is_some() {
                machine.memory.freshen(address, size);
            }
        });
    }
    record(|thread, begin| {
        let record = Record::Allocator { action, address, bytes: size, stream };
        sink::write(thread, Stamp { begin, ticks: 0 }, &record)
    });
}

/// A mark: kind 0 is a point in time, 1 begins a range, 2 ends the innermost range of this thread.
///
/// # Safety
/// The pointer must be valid for the length that follows it, or null with length 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trompe_marker(kind: u8, label: *const u8, len: u32) {
    let kind = match kind {
        0 => MarkerKind::Instant,
        1 => MarkerKind::Push,
        _ => MarkerKind::Pop,
    };
    record(|thread, begin| {
        // SAFETY: the caller's promise.
        let text = unsafe { text(label, len) };
        sink::write(thread, Stamp { begin, ticks: 0 }, &Record::Marker { kind, text })
    });
}

/// The id of a place in the program (`file:line`), for [`trompe_place`]; never zero.
///
/// # Safety
/// The pointer must be valid for the length that follows it, or null with length 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trompe_place_id(name: *const u8, len: u32) -> u32 {
    let named = catch_unwind(AssertUnwindSafe(|| {
        if !sink::active() {
            return 0;
        }
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, len) };
        Thread::with(|thread| id(thread, NameTable::Place, name))
    }));
    named.unwrap_or(0)
}

/// This thread is about to communicate on behalf of a place; zero ends that.
#[unsafe(no_mangle)]
pub extern "C" fn trompe_place(place: u32) {
    record(|thread, begin| sink::write(thread, Stamp { begin, ticks: 0 }, &Record::Place { place }));
}

/// This thread hands something over to other threads of the process; each token is given once.
#[unsafe(no_mangle)]
pub extern "C" fn trompe_give(token: u64) {
    record(|thread, begin| sink::write(thread, Stamp { begin, ticks: 0 }, &Record::Give { token }));
}

/// This thread has taken what another one gave, and waited for it since `since` ([`trompe_ticks`]).
#[unsafe(no_mangle)]
pub extern "C" fn trompe_take(token: u64, since: u64) {
    record_since(since, |thread, begin| {
        sink::write(thread, Stamp { begin, ticks: 0 }, &Record::Take { token })
    });
}

/// A fact about the process, for example `torch.version`.
///
/// # Safety
/// Each pointer must be valid for the length that follows it, or null with length 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trompe_meta(key: *const u8, key_len: u32, value: *const u8, value_len: u32) {
    record(|thread, begin| {
        // SAFETY: the caller's promise.
        let (key, value) = unsafe { (text(key, key_len), text(value, value_len)) };
        sink::write(thread, Stamp { begin, ticks: 0 }, &Record::Meta { key, value })
    });
}

/// Takes one record, if records are taken. A failure in here is none of the framework's.
fn record(body: impl FnOnce(&Thread, u64) -> Option<Frame>) {
    record_since(0, body);
}

fn record_since(since: u64, body: impl FnOnce(&Thread, u64) -> Option<Frame>) {
    let begin = if since == 0 { clock::ticks() } else { since };
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if sink::active() {
            Thread::with(|thread| {
                if let Some(frame) = body(thread, begin) {
                    sink::finish(thread, frame, begin);
                }
            });
        }
    }));
}

/// Ids by name, with the generation of the record file that names them.
type Ids = HashMap<Box<str>, (u32, u32)>;

/// The id of a name, from 1, announced at its first use.
fn id(thread: &Thread, table: NameTable, name: &str) -> u32 {
    static OPERATORS: Mutex<Option<Ids>> = Mutex::new(None);
    static PLACES: Mutex<Option<Ids>> = Mutex::new(None);
    let now = sink::generation();
    let ids = if table == NameTable::Place { &PLACES } else { &OPERATORS };
    let mut ids = ids.lock().unwrap_or_else(PoisonError::into_inner);
    let ids = ids.get_or_insert_default();
    if let Some(&(id, generation)) = ids.get(name)
        && generation == now
    {
        return id;
    }
    let next = ids.len() as u32 + 1;
    let (id, generation) = ids.entry(name.into()).or_insert((next, now));
    *generation = now;
    let id = *id;
    let record = Record::Name { table, id, name };
    sink::write(thread, Stamp { begin: clock::ticks(), ticks: 0 }, &record);
    id
}

/// # Safety
/// `pointer` must be valid for `length` bytes, or null with length 0.
unsafe fn bytes<'a>(pointer: *const u8, length: u32) -> &'a [u8] {
    if pointer.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(pointer, length as usize) }
}

/// The valid UTF-8 part of a text.
///
/// # Safety
/// `pointer` must be valid for `length` bytes, or null with length 0.
unsafe fn text<'a>(pointer: *const u8, length: u32) -> &'a str {
    // SAFETY: the caller's promise.
    let bytes = unsafe { bytes(pointer, length) };
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
    }
}
