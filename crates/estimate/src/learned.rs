//! The learned estimator: physics times a trained correction, where training data are near.

use std::sync::OnceLock;

use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::Descriptor;

use crate::coverage::Near;
use crate::features::{Conditions, Family, Features, features};
use crate::implementations;
use crate::model::{Model, Models};
use crate::{Basis, Estimate, KernelEstimator, Physics};

/// Doublings from the nearest training shape up to which a model is asked.
pub const REACH: f64 = 1.5;

/// The same for a model of its own (one that corrects no other) on a device that it was trained on.
///
/// With the largest 15 % of the train rows of each device and kind left out, trees met those one, two, and two to four
/// doublings of work above what they had seen with 9, 13 and 17 % mean error in single precision (physics 29, 29, 29 %),
/// 5, 6, 6 % in half precision (7, 7, 7 %), 10, 16, 24 % on convolutions (21, 25, 35 %), 4, 5, 5 % on passes over memory
/// (15, 16, 19 %) and 7, 9, 10 % on attention (27, 27, 27 %).
pub const FAR_REACH: f64 = 4.0;

/// The models that are part of this build.
static BUILTIN: [&[u8]; 6] = [
    include_bytes!("../models/attention.model"),
    include_bytes!("../models/convolution.model"),
    include_bytes!("../models/gemm.fp8.model"),
    include_bytes!("../models/gemm.half.model"),
    include_bytes!("../models/gemm.lanes.model"),
    include_bytes!("../models/streaming.model"),
];

/// Devices whose half-precision products were measured in all layouts. See [`forward_alone`].
const ALL_LAYOUTS: [&str; 2] = ["a100-pcie-80", "b200-sxm-180"];

/// What the built-in models of half-precision products are asked on devices where only forward products (TN) were
/// measured: the same product as a forward one.
///
/// Gradients were measured on two devices alone, so that to the trees a layout is what tells those devices from the
/// others: the slower A100 of the two made gradients on every device 11 % slower. Pairs of train rows with equal sides say
/// otherwise: the gradient of the input takes 0.994 of the forward product's time (geometric mean of 14 pairs on that
/// A100; 0.991 of 24 on a B200), that of the weight 1.04 (4 pairs) with its single-precision result included.
fn forward_alone(model: &Model, device: &DeviceSheet, values: &mut [f32]) {
    const TN: f32 = 2.0;
    let name = model.card().name.as_str();
    if !matches!(name, "gemm.half" | "gemm.fp8")
        || model.corrects()
        || ALL_LAYOUTS.contains(&device.name.as_str())
    {
        return;
    }
    let names = Family::Gemm.names();
    for (feature, value) in [("transposes", TN), ("accumulate", 0.0)] {
        if let Some(at) = names.iter().position(|known| *known == feature) {
            values[at] = value;
        }
    }
}

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
    /// Sheet of the device.
    pub device: &'a str,
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
    pub fn answer<'a>(
        &'a self,
        operation: &Descriptor,
        device: &'a DeviceSheet,
        conditions: &Conditions,
    ) -> Option<Answer<'a>> {
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
        device: &'a DeviceSheet,
    ) -> Option<Answer<'a>> {
        let mut found = models.iter().filter_map(|model| {
            let near = model.near(&features.values, &device.name)?;
            let far = near.device_seen && !model.corrects();
            if near.distance > if far { FAR_REACH } else { REACH } {
                return None;
            }
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
        let mut features = features.clone();
        forward_alone(model, device, &mut features.values);
        Some(Answer { model, features, device: &device.name, near, behind })
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
    /// The interval is that of rows that were left out in training, wider with the distance from the training shapes and
    /// by what implementations of one operation differ.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let physics = self.features.physics.time.as_secs_f64();
        let seconds = physics * self.residual().exp();
        let [low, high] = self.model.spread(&self.features.values, self.device, self.near, physics * 1e6);
        let wider = 1.0 + self.near.distance;
        let others = implementations::deviation(&self.model.card().name, physics * 1e6);
        let estimate = Estimate::new(
            seconds,
            implementations::widened([low.powf(wider), high.powf(wider)], others),
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

#[cfg(test)]
mod tests {
    use trompe_base::DType;
    use trompe_hardware::Catalogue;
    use trompe_trace::descriptor::{Epilogue, Gemm};

    use super::*;

    /// Seconds of a half-precision product of one size in a layout.
    fn seconds(device: &str, transpose_a: bool, transpose_b: bool) -> f64 {
        let gemm = Gemm {
            m: 2048,
            n: 4096,
            k: 4096,
            batch: 1,
            transpose_a,
            transpose_b,
            a: DType::F16,
            b: DType::F16,
            c: DType::F16,
            compute: DType::F32,
            epilogue: Epilogue::None,
            accumulate: false,
            leading: [4096, 4096, 2048],
            strides: [0; 3],
        };
        let sheet = Catalogue::builtin().device(device).unwrap();
        Learned::builtin().estimate(&Descriptor::Gemm(gemm), &sheet).unwrap().time.as_secs_f64()
    }

    #[test]
    fn gradients_are_not_slower_where_only_forward_products_were_measured() {
        for device in ["a100-sxm4-80", "h100-sxm5-80"] {
            let forward = seconds(device, true, false);
            for (a, b) in [(false, false), (false, true)] {
                let share = seconds(device, a, b) / forward;
                assert!((0.97..1.03).contains(&share), "{device}: {share}");
            }
        }
    }
}
