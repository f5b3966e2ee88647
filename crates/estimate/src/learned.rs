//! The learned estimator: physics times a trained correction, where training data are near.

use std::sync::OnceLock;

use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::Descriptor;

use crate::coverage::Near;
use crate::features::{Conditions, Family, Features, features};
use crate::model::{Model, Models};
use crate::{Basis, Estimate, KernelEstimator, Physics};

/// Doublings from the nearest training shape up to which a model is asked.
pub const REACH: f64 = 1.5;

/// The models that are part of this build.
static BUILTIN: [&[u8]; 6] = [
    include_bytes!("../models/attention.model"),
    include_bytes!("../models/convolution.model"),
    include_bytes!("../models/gemm.fp8.model"),
    include_bytes!("../models/gemm.half.model"),
    include_bytes!("../models/gemm.lanes.model"),
    include_bytes!("../models/streaming.model"),
];

/// Trained models over physics. It answers only where a model knows such operations.
#[derive(Clone, Debug)]
pub struct Learned {
    models: Models,
    physics: Physics,
    conditions: Conditions,
}

/// What a model says about an operation, before it becomes an estimate.
#[derive(Clone, Debug)]
pub struct Answer<'a> {
    /// The model.
    pub model: &'a Model,
    /// What it saw.
    pub features: Features,
    /// Where it is among the training rows.
    pub near: Near,
    /// The residual of the models behind, where this one corrects them.
    pub behind: f64,
}

impl Learned {
    /// The models that are part of this build.
    ///
    /// # Panics
    /// When a built-in model is damaged, which a test rules out.
    #[must_use]
    pub fn builtin() -> Self {
        static MODELS: OnceLock<Models> = OnceLock::new();
        let read = || {
            let mut models = Models::default();
            for bytes in BUILTIN {
                models.put(
                    Model::from_bytes(bytes).unwrap_or_else(|error| panic!("a built-in model: {error}")),
                );
            }
            models
        };
        Self::new(MODELS.get_or_init(read).clone())
    }

    /// The models `models`.
    #[must_use]
    pub fn new(models: Models) -> Self {
        Self { models, physics: Physics::new(), conditions: Conditions::default() }
    }

    /// The same for measurements taken under `conditions`.
    #[must_use]
    pub fn under(mut self, conditions: Conditions) -> Self {
        self.conditions = conditions;
        self
    }

    /// The models.
    #[must_use]
    pub fn models(&self) -> &Models {
        &self.models
    }

    /// The models, to be changed.
    pub fn models_mut(&mut self) -> &mut Models {
        &mut self.models
    }

    /// The model that knows such operations on such a device, and what it sees; `None` where only physics can answer.
    #[must_use]
    pub fn answer(
        &self,
        operation: &Descriptor,
        device: &DeviceSheet,
        conditions: &Conditions,
    ) -> Option<Answer<'_>> {
        let models = self.models.of(Family::of(operation)?);
        if models.is_empty() {
            return None;
        }
        self.choose(models, &features(&self.physics, operation, device, conditions)?, device)
    }

    /// The estimate for `operation`, by physics where no model knows it. The same as [`Learned::answer`], then physics, with
    /// physics asked once.
    #[must_use]
    pub fn or_physics(
        &self,
        operation: &Descriptor,
        device: &DeviceSheet,
        conditions: &Conditions,
    ) -> Estimate {
        let models = Family::of(operation).map_or(&[][..], |family| self.models.of(family));
        let seen = (!models.is_empty()).then(|| features(&self.physics, operation, device, conditions));
        let Some(features) = seen.flatten() else { return self.physics.estimate(operation, device) };
        match self.choose(models, &features, device) {
            Some(answer) => answer.estimate(),
            None => features.physics,
        }
    }

    /// The first of `models` that knows such operations on such a device, with what those behind say if it corrects them.
    fn choose<'a>(
        &self,
        models: &'a [Model],
        features: &Features,
        device: &DeviceSheet,
    ) -> Option<Answer<'a>> {
        let mut found = models.iter().filter_map(|model| {
            let near = model.near(&features.values, &device.name).filter(|near| near.distance <= REACH)?;
            // On a device that the model knows, operations of a kind that was not measured there are left to physics;
            // only devices that it knows nothing about are carried over to.
            let known =
                near.device_seen || !model.knows_device(&device.name) && model.carries_over(&features.values);
            known.then_some((model, near))
        });
        let (model, near) = found.next()?;
        // Each that corrects adds to the one behind it; one that does not ends the chain.
        let (mut behind, mut corrects) = (0.0, model.corrects());
        while corrects && let Some((next, _)) = found.next() {
            behind += next.residual(&features.values);
            corrects = next.corrects();
        }
        Some(Answer { model, features: features.clone(), near, behind })
    }

    /// The estimate for `operation`; `None` where only physics can answer.
    #[must_use]
    pub fn estimate(&self, operation: &Descriptor, device: &DeviceSheet) -> Option<Estimate> {
        Some(self.answer(operation, device, &self.conditions)?.estimate())
    }
}

impl Answer<'_> {
    /// The predicted `ln(time / physics)`, that of the models behind included.
    #[must_use]
    pub fn residual(&self) -> f64 {
        self.behind + self.model.residual(&self.features.values)
    }

    /// The estimate.
    ///
    /// The interval is that of rows that were left out in training, wider with the distance from the training shapes.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let physics = self.features.physics.time.as_secs_f64();
        let seconds = physics * self.residual().exp();
        let [low, high] = self.model.spread(physics * 1e6, self.near.device_seen);
        let wider = 1.0 + self.near.distance;
        let estimate = Estimate::new(
            seconds,
            [low.powf(wider), high.powf(wider)],
            format!("learned.{}", self.model.card().name),
            Basis::Learned,
        )
        .at(Some(self.near.distance));
        if self.near.device_seen {
            return estimate;
        }
        estimate.noted("carried over from measurements of other devices")
    }
}
