//! Every point once, in random order.

use trompe_base::Rng;

use super::{Ask, Setting, Strategy};

/// See the module.
#[derive(Debug)]
pub(super) struct Random {
    setting: Setting,
    order: Vec<u32>,
    next: usize,
}

impl Random {
    pub(super) fn new(setting: &Setting) -> Self {
        let mut order: Vec<u32> = (0..setting.feasible.points.len() as u32).collect();
        Rng::new(setting.seed).shuffle(&mut order);
        Self { setting: setting.clone(), order, next: 0 }
    }
}

impl Strategy for Random {
    fn ask(&mut self) -> Option<Ask> {
        let index = *self.order.get(self.next)?;
        self.next += 1;
        let vector = self.setting.encoding.vector(&self.setting.feasible.points[index as usize]);
        Some(Ask { id: self.next as u64, vector })
    }

    fn tell(&mut self, _: u64, _: f64) {}
}
