//! Whatever a program sets, asks and finalizes: it gets an answer or an error, never a panic.

use proptest::prelude::*;

use super::backend::TYPE_DESCRIPTOR;
use super::legacy::{ConvolutionCall, ConvolutionDescriptor, Descriptor, FilterDescriptor, TensorDescriptor};
use super::recurrent::{RnnData, RnnSettings};
use super::*;
use trompe_trace::descriptor::Direction;

#[derive(Clone, Debug)]
enum Step {
    Create(i32),
    SetNumbers(usize, i32, i32, Vec<i64>),
    SetChildren(usize, i32, Vec<usize>),
    Finalize(usize),
    Get(usize, i32, i64, Vec<usize>),
    Destroy(usize),
}

/// Attributes that some descriptor kind gives a meaning.
fn name() -> impl Strategy<Value = i32> {
    prop_oneof![
        prop::sample::select(vec![
            0, 100, 102, 103, 105, 200, 201, 202, 300, 304, 401, 402, 405, 702, 703, 704, 705, 708, 709, 710,
            711, 750, 751, 752, 753, 801, 802, 901, 902, 903, 906, 907, 1300, 1301, 1303, 1500, 1520, 1521,
            1522, 1523, 2800, 2801, 2802, 2811, 3004, 3007,
        ]),
        any::<i32>(),
    ]
}

fn kind() -> impl Strategy<Value = i32> {
    prop_oneof![
        prop::sample::select(vec![0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 15, 17, 18, 19, 41, 44]),
        any::<i32>()
    ]
}

fn extent() -> impl Strategy<Value = i64> {
    prop_oneof![0_i64..9, any::<i64>(), Just(1 << 40)]
}

fn step() -> impl Strategy<Value = Step> {
    let which = || 0_usize..24;
    prop_oneof![
        2 => kind().prop_map(Step::Create),
        4 => (which(), name(), 0_i32..40, prop::collection::vec(extent(), 0..6))
            .prop_map(|(at, name, kind, numbers)| Step::SetNumbers(at, name, kind, numbers)),
        6 => (which(), name(), prop::collection::vec(which(), 0..4))
            .prop_map(|(at, name, children)| Step::SetChildren(at, name, children)),
        3 => which().prop_map(Step::Finalize),
        2 => (which(), name(), any::<i64>(), prop::collection::vec(which(), 0..3))
            .prop_map(|(at, name, requested, places)| Step::Get(at, name, requested, places)),
        1 => which().prop_map(Step::Destroy),
    ]
}

fn run(steps: Vec<Step>) {
    let mut dnn = Dnn::new(DeviceTraits { compute_capability: 90 });
    let mut handles = vec![0];
    for step in steps {
        let handle = |at: usize| handles[at % handles.len()];
        match step {
            Step::Create(kind) => handles.extend(dnn.create_backend(kind)),
            Step::SetNumbers(at, name, kind, numbers) => {
                let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
                let _ = dnn.set_attribute(handle(at), name, kind, &bytes);
            }
            Step::SetChildren(at, name, children) => {
                let bytes: Vec<u8> = children.iter().flat_map(|child| handle(*child).to_le_bytes()).collect();
                let _ = dnn.set_attribute(handle(at), name, TYPE_DESCRIPTOR, &bytes);
            }
            Step::Finalize(at) => {
                let _ = dnn.finalize(handle(at));
                let _ = dnn.plan(handle(at));
            }
            Step::Get(at, name, requested, places) => {
                let places: Vec<u64> = places.iter().map(|place| handle(*place)).collect();
                let _ = dnn.get_attribute(handle(at), name, requested, &places);
            }
            Step::Destroy(at) => {
                let _ = dnn.destroy_descriptor(handle(at));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn graphs(steps in prop::collection::vec(step(), 1..120)) {
        run(steps);
    }

    #[test]
    fn legacy_convolutions(extents in prop::collection::vec(any::<i32>(), 0..9), groups: i32, dtype in -1_i32..25) {
        let mut dnn = Dnn::new(DeviceTraits { compute_capability: 90 });
        let tensor = TensorDescriptor { dtype, dimensions: extents.clone(), strides: extents.clone() };
        let x = dnn.create_legacy(Descriptor::Tensor(tensor));
        let w = dnn.create_legacy(Descriptor::Filter(FilterDescriptor { dtype, format: 1, dimensions: extents.clone() }));
        let parameters = ConvolutionDescriptor { padding: extents.clone(), stride: extents, groups, ..Default::default() };
        let convolution = dnn.create_legacy(Descriptor::Convolution(parameters));
        let call = ConvolutionCall { direction: Direction::WeightGradient, x, w, convolution, y: x };
        if let Ok(operation) = dnn.convolution(call) {
            let _ = workspace::of(&operation);
        }
        let _ = (dnn.batch_norm_reserve(x, true), dnn.ctc_workspace(x));
    }

    #[test]
    fn recurrent_networks(numbers: [i32; 9], layer: u64, id: u64, steps: u32, batch: u32) {
        let [mode, bias, direction, input_mode, dtype, input, hidden, projection, layers] = numbers;
        let width = |number: i32| number & ((1 << 21) - 1);
        let settings = RnnSettings {
            mode: mode % 5,
            bias: bias % 5,
            direction: direction % 3,
            input_mode: input_mode % 3,
            dtype,
            input: width(input),
            hidden: width(hidden),
            projection: width(projection),
            layers: layers % 64,
        };
        if !settings.are_sane() {
            return Ok(());
        }
        let _ = (settings.weight_bytes(), settings.places(layer % 128, id % 16));
        let _ = settings.scratch(u64::from(steps), u64::from(batch), true);
        let _ = settings.describe(&RnnData { dtype, steps: input, batch: hidden, ..RnnData::default() }, Direction::Forward);
    }
}
