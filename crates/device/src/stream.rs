//! Streams and events of one process.
//!
//! What is kept is what a program can ask about, and the ids by which records name streams and events. How far their
//! work has come is [`crate::progress`]'s.

use trompe_base::{DeviceIndex, EventId, StreamId};

use crate::handle::{HandleTable, Kind, NotLive};
use crate::progress::Position;

/// Handle values with a meaning of their own (`cudaStreamLegacy`, `cudaStreamPerThread`).
pub const LEGACY: u64 = 1;
/// The per-thread default stream's handle value.
pub const PER_THREAD: u64 = 2;

/// Ids below this are the default streams of up to 64 devices, four ids each.
const FIRST_CREATED: u32 = 256;

/// The id of a device's legacy default stream.
#[must_use]
pub const fn legacy_id(device: DeviceIndex) -> StreamId {
    StreamId(device.0 % 64 * 4)
}

/// The id of a device's per-thread default stream.
#[must_use]
pub const fn per_thread_id(device: DeviceIndex) -> StreamId {
    StreamId(device.0 % 64 * 4 + 2)
}

/// A created stream.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Id in records.
    pub id: StreamId,
    /// Its device.
    pub device: DeviceIndex,
    /// Priority; lower is more urgent.
    pub priority: i32,
    /// Created with the non-blocking flag.
    pub non_blocking: bool,
    /// Capture that it takes part in.
    pub capture: Option<u32>,
}

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Id in records.
    pub id: EventId,
    /// How often it was recorded.
    pub recordings: u32,
    /// Host time of the last recording in nanoseconds.
    pub recorded_ns: u64,
    /// Created without timing.
    pub timing_disabled: bool,
    /// The device that was current.
    pub device: DeviceIndex,
    /// Where it was last recorded: the stream, and what was before it there.
    pub place: Option<(StreamId, Position)>,
    /// Capture that it was last recorded in, with the nodes that it stands for.
    pub captured: Option<(u32, Vec<u64>)>,
}

/// Streams by handle.
#[derive(Debug)]
pub struct Streams {
    table: HandleTable<Stream>,
    next: u32,
}

/// Events by handle.
#[derive(Debug)]
pub struct Events {
    table: HandleTable<Event>,
    next: u32,
}

impl Default for Streams {
    fn default() -> Self {
        Self { table: HandleTable::new(Kind::Stream), next: FIRST_CREATED }
    }
}

impl Default for Events {
    fn default() -> Self {
        Self { table: HandleTable::new(Kind::Event), next: 1 }
    }
}

impl Streams {
    /// Creates a stream and returns its handle.
    pub fn create(&mut self, device: DeviceIndex, priority: i32, non_blocking: bool) -> u64 {
        let id = StreamId(self.next);
        self.next += 1;
        self.table.insert(Stream { id, device, priority, non_blocking, capture: None }).0
    }

    /// A created stream.
    ///
    /// # Errors
    /// When the handle is not one of a live, created stream.
    pub fn get(&self, handle: u64) -> Result<&Stream, NotLive> {
        self.table.get(handle)
    }

    /// A created stream, to change it.
    ///
    /// # Errors
    /// When the handle is not one of a live, created stream.
    pub fn get_mut(&mut self, handle: u64) -> Result<&mut Stream, NotLive> {
        self.table.get_mut(handle)
    }

    /// Destroys a stream.
    ///
    /// # Errors
    /// When the handle is not one of a live, created stream.
    pub fn destroy(&mut self, handle: u64) -> Result<Stream, NotLive> {
        self.table.remove(handle)
    }

    /// All created streams.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.table.values_mut()
    }
}

impl Events {
    /// Creates an event and returns its handle.
    pub fn create(&mut self, device: DeviceIndex, timing_disabled: bool) -> u64 {
        let id = EventId(self.next);
        self.next += 1;
        let event =
            Event { id, recordings: 0, recorded_ns: 0, timing_disabled, device, place: None, captured: None };
        self.table.insert(event).0
    }

    /// An event.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn get(&self, handle: u64) -> Result<&Event, NotLive> {
        self.table.get(handle)
    }

    /// An event, to change it.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn get_mut(&mut self, handle: u64) -> Result<&mut Event, NotLive> {
        self.table.get_mut(handle)
    }

    /// Destroys an event.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn destroy(&mut self, handle: u64) -> Result<Event, NotLive> {
        self.table.remove(handle)
    }
}
