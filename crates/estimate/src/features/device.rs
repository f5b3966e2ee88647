//! The device as a model sees it: rates per multiprocessor and cycle, so that devices of one generation look alike.

use trompe_base::DType;
use trompe_hardware::DeviceSheet;

use super::Row;

pub(super) const NAMES: &[&str] = &[
    "device_generation",
    "device_multiprocessors",
    "device_matrix_per_cycle",
    "device_vector_per_cycle",
    "device_bandwidth",
    "device_bandwidth_per_cycle",
    "device_cache",
    "device_clock",
    "device_balance",
    "device_watts_per_peak",
];

pub(super) fn fill(row: &mut Row, device: &DeviceSheet, dtype: DType) {
    let compute = &device.compute;
    let sm = f64::from(compute.sm_count);
    let cycles = sm * compute.boost_clock.0;
    let matrix = device.matrix_peak(dtype).0;
    let bandwidth = device.memory.bandwidth.0;
    row.push(f64::from(compute.capability_major * 10 + compute.capability_minor));
    row.push(sm);
    row.log(matrix / cycles);
    row.log(device.vector_peak(DType::F32).0 / cycles);
    row.log(bandwidth);
    row.log(bandwidth / cycles);
    row.log(device.memory.l2.as_f64());
    row.log(compute.boost_clock.0);
    row.log(matrix / bandwidth);
    row.log(device.power.board.0 / matrix);
}
