//! Everything that one process knows about its emulated node.

use std::collections::BTreeSet;

use trompe_base::DeviceIndex;
use trompe_hardware::{DeviceSheet, EmulatedNode};

use crate::graph::Graphs;
use crate::kernel::Kernels;
use crate::memory::{Backing, Memory, MemoryError};
use crate::pool::Pools;
use crate::progress::Progress;
use crate::stream::{Events, Streams};
use crate::visible::visible_devices;

/// An emulated node as one process sees it.
#[derive(Debug)]
pub struct Machine<B> {
    node: Option<EmulatedNode>,
    /// Index in the node of each visible device.
    visible: Vec<u32>,
    active: Vec<bool>,
    /// Memory.
    pub memory: Memory<B>,
    /// Created streams.
    pub streams: Streams,
    /// Events.
    pub events: Events,
    /// How far streams have come.
    pub progress: Progress,
    /// Captures and graphs.
    pub graphs: Graphs,
    /// Kernels and modules.
    pub kernels: Kernels,
    /// Memory pools.
    pub pools: Pools,
    /// Pairs of devices with enabled peer access: from, to.
    pub peers: BTreeSet<(DeviceIndex, DeviceIndex)>,
}

impl<B: Backing> Machine<B> {
    /// A machine like `node`; without one it has no device. `visible` is the list of `CUDA_VISIBLE_DEVICES`.
    pub fn new(backing: B, node: Option<EmulatedNode>, visible: Option<&str>) -> Self {
        let visible = node.as_ref().map_or_else(Vec::new, |node| visible_devices(node, visible));
        let capacity = node.as_ref().map_or(0, |node| node.device.memory.total.0);
        Self {
            node,
            active: vec![false; visible.len()],
            memory: Memory::new(backing, &vec![capacity; visible.len()]),
            visible,
            streams: Streams::default(),
            events: Events::default(),
            progress: Progress::default(),
            graphs: Graphs::default(),
            kernels: Kernels::default(),
            pools: Pools::default(),
            peers: BTreeSet::new(),
        }
    }

    /// Number of visible devices.
    #[must_use]
    pub fn device_count(&self) -> u32 {
        self.visible.len() as u32
    }

    /// The place in the node of a visible device.
    #[must_use]
    pub fn physical(&self, device: DeviceIndex) -> u32 {
        self.visible.get(device.index()).copied().unwrap_or(device.0)
    }

    /// The number by which this process sees the device at `physical` in the node, if it sees it.
    #[must_use]
    pub fn logical(&self, physical: u32) -> Option<DeviceIndex> {
        self.visible.iter().position(|&device| device == physical).map(|index| DeviceIndex(index as u32))
    }

    /// The node, if there is one.
    #[must_use]
    pub const fn node(&self) -> Option<&EmulatedNode> {
        self.node.as_ref()
    }

    /// The sheet of the devices; `None` without a node.
    #[must_use]
    pub fn sheet(&self) -> Option<&DeviceSheet> {
        self.node.as_ref().map(|node| &node.device)
    }

    /// Whether a device has a context.
    #[must_use]
    pub fn is_active(&self, device: DeviceIndex) -> bool {
        self.active.get(device.index()).copied().unwrap_or(false)
    }

    /// Gives a device its context at first use. Returns the bytes charged for it, if it is new.
    ///
    /// # Errors
    /// When there is no such device, or no room on it.
    pub fn activate(&mut self, device: DeviceIndex) -> Result<Option<u64>, MemoryError> {
        let active = self.active.get_mut(device.index()).ok_or(MemoryError::Invalid)?;
        if *active {
            return Ok(None);
        }
        let bytes = self.node.as_ref().map_or(0, |node| node.device.runtime.context.0);
        self.memory.charge(device, "cuda_context", i64::try_from(bytes).unwrap_or(i64::MAX))?;
        *active = true;
        Ok(Some(bytes))
    }
}
