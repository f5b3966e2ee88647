//! Memory pools: who allocated what, and the attributes that a program can set.

use std::collections::BTreeMap;

use trompe_base::DeviceIndex;

use crate::handle::{HandleTable, Kind, NotLive};

/// A memory pool.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Its device.
    pub device: DeviceIndex,
    /// Bytes allocated.
    pub used: u64,
    /// Most bytes ever allocated at once.
    pub high: u64,
    /// Bytes that a real pool would keep back.
    pub release_threshold: u64,
    /// The three reuse policies: follow event dependencies, opportunistic, internal dependencies.
    pub reuse: [i32; 3],
}

/// Pools by handle.
#[derive(Debug)]
pub struct Pools {
    table: HandleTable<Pool>,
    defaults: BTreeMap<DeviceIndex, u64>,
    current: BTreeMap<DeviceIndex, u64>,
    blocks: BTreeMap<u64, (u64, u64)>,
}

impl Default for Pools {
    fn default() -> Self {
        Self {
            table: HandleTable::new(Kind::Pool),
            defaults: BTreeMap::new(),
            current: BTreeMap::new(),
            blocks: BTreeMap::new(),
        }
    }
}

impl Pools {
    /// Makes a pool on a device.
    pub fn create(&mut self, device: DeviceIndex) -> u64 {
        self.table.insert(Pool { device, used: 0, high: 0, release_threshold: 0, reuse: [1; 3] }).0
    }

    /// A device's default pool.
    pub fn default_of(&mut self, device: DeviceIndex) -> u64 {
        if let Some(&pool) = self.defaults.get(&device) {
            return pool;
        }
        let pool = self.create(device);
        self.defaults.insert(device, pool);
        pool
    }

    /// The pool that a device allocates from.
    pub fn current_of(&mut self, device: DeviceIndex) -> u64 {
        self.current.get(&device).copied().unwrap_or_else(|| self.default_of(device))
    }

    /// Makes a device allocate from a pool.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn set_current(&mut self, device: DeviceIndex, pool: u64) -> Result<(), NotLive> {
        self.table.get(pool)?;
        self.current.insert(device, pool);
        Ok(())
    }

    /// A pool.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn get(&self, pool: u64) -> Result<&Pool, NotLive> {
        self.table.get(pool)
    }

    /// A pool, to change it.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn get_mut(&mut self, pool: u64) -> Result<&mut Pool, NotLive> {
        self.table.get_mut(pool)
    }

    /// Destroys a pool that is no default one.
    ///
    /// # Errors
    /// When the handle is not live or a default pool's.
    pub fn destroy(&mut self, pool: u64) -> Result<(), NotLive> {
        if self.defaults.values().any(|&default| default == pool) {
            return Err(NotLive(pool));
        }
        self.table.remove(pool)?;
        self.current.retain(|_, current| *current != pool);
        Ok(())
    }

    /// Notes an allocation.
    pub fn took(&mut self, pool: u64, address: u64, bytes: u64) {
        if let Ok(found) = self.table.get_mut(pool) {
            found.used += bytes;
            found.high = found.high.max(found.used);
            self.blocks.insert(address, (pool, bytes));
        }
    }

    /// Notes a free; addresses of no pool are ignored.
    pub fn gave(&mut self, address: u64) {
        if let Some((pool, bytes)) = self.blocks.remove(&address)
            && let Ok(pool) = self.table.get_mut(pool)
        {
            pool.used -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_is_counted_and_default_pools_stay() {
        let mut pools = Pools::default();
        let default = pools.default_of(DeviceIndex(1));
        assert_eq!(pools.current_of(DeviceIndex(1)), default);
        pools.took(default, 0x1000, 100);
        pools.took(default, 0x2000, 50);
        pools.gave(0x1000);
        pools.gave(0x1000);
        let pool = pools.get(default).expect("live");
        assert_eq!((pool.used, pool.high), (50, 150));
        assert!(pools.destroy(default).is_err());
        let own = pools.create(DeviceIndex(1));
        pools.set_current(DeviceIndex(1), own).expect("live");
        pools.destroy(own).expect("no default");
        assert_eq!(pools.current_of(DeviceIndex(1)), default);
    }
}
