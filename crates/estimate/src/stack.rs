//! The order of trust: what was measured, else what was learned, else what physics says, else a named fallback.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::Descriptor;

use crate::bundle::Bundle;
use crate::features::Conditions;
use crate::model::Models;
use crate::table::Table;
use crate::{Estimate, KernelEstimator, Learned, Physics};

/// The default estimator. A family may have an estimator of its own, which is asked instead of the learned and the
/// physical one; exact measurements go before all.
pub struct Stack {
    tables: Vec<Table>,
    own: BTreeMap<String, Arc<dyn KernelEstimator>>,
    learned: Option<Learned>,
    physics: Physics,
}

impl Stack {
    /// The built-in models over physics.
    #[must_use]
    pub fn builtin() -> Self {
        Self::new(Some(Learned::builtin()))
    }

    /// Physics alone.
    #[must_use]
    pub fn physics() -> Self {
        Self::new(None)
    }

    /// `learned` over physics.
    #[must_use]
    pub fn new(learned: Option<Learned>) -> Self {
        Self { tables: Vec::new(), own: BTreeMap::new(), learned, physics: Physics::new() }
    }

    /// Adds what a user measured and trained.
    #[must_use]
    pub fn with_bundle(mut self, bundle: Bundle) -> Self {
        let learned = self.learned.get_or_insert_with(|| Learned::new(Models::default()));
        for family in bundle.replaces {
            learned.models_mut().clear(family);
        }
        for model in bundle.models {
            learned.models_mut().put(model);
        }
        if bundle.table.is_empty() { self } else { self.with_table(bundle.table) }
    }

    /// Asks `table` before those that are there.
    #[must_use]
    pub fn with_table(mut self, table: Table) -> Self {
        self.tables.insert(0, table);
        self
    }

    /// Lets `estimator` answer for operations of `family` (the names of [`Descriptor::family`]).
    #[must_use]
    pub fn with_family(mut self, family: &str, estimator: Arc<dyn KernelEstimator>) -> Self {
        self.own.insert(family.to_owned(), estimator);
        self
    }

    /// The learned part.
    #[must_use]
    pub fn learned(&self) -> Option<&Learned> {
        self.learned.as_ref()
    }

    /// The learned part, to be changed.
    pub fn learned_mut(&mut self) -> Option<&mut Learned> {
        self.learned.as_mut()
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack")
            .field("tables", &self.tables.len())
            .field("own", &self.own.keys())
            .field("learned", &self.learned.is_some())
            .finish_non_exhaustive()
    }
}

impl Stack {
    /// The estimate for a measurement that was taken under `conditions`.
    #[must_use]
    pub fn under(&self, operation: &Descriptor, device: &DeviceSheet, conditions: &Conditions) -> Estimate {
        if let Some(measured) = self.tables.iter().find_map(|table| table.estimate(operation, device)) {
            return measured;
        }
        if let Some(own) = self.own.get(operation.family()) {
            return own.estimate(operation, device);
        }
        match &self.learned {
            Some(learned) => learned.or_physics(operation, device, conditions),
            None => self.physics.estimate(operation, device),
        }
    }
}

impl KernelEstimator for Stack {
    fn estimate(&self, operation: &Descriptor, device: &DeviceSheet) -> Estimate {
        self.under(operation, device, &Conditions::default())
    }

    fn prepare(&self, operations: &[&Descriptor], device: &DeviceSheet) {
        let by_family = |family: &str| -> Vec<&Descriptor> {
            operations.iter().filter(|operation| operation.family() == family).copied().collect()
        };
        for (family, own) in &self.own {
            own.prepare(&by_family(family), device);
        }
    }
}
