//! What the program does to gradients between the backward pass and the parameter update (unscaling, clipping) belongs
//! to the update: no range says so, but nothing else can stand there.

use trompe_trace::job::{HostEvent, Phase, StepSource, Steps};

use crate::intern::Sites;

/// Gives the events between the last backward event and the first of the optimizer, in each step, to the optimizer.
///
/// `own` says which events are the program's own, if not all of them are.
pub(crate) fn settle(events: &mut [HostEvent], sites: &mut Sites, steps: &Steps, own: Option<&[bool]>) {
    if steps.source != StepSource::Optimizer {
        return;
    }
    for range in steps.boundaries.windows(2) {
        let phase = |event: &HostEvent| sites.list[event.site as usize].phase;
        let step = &events[range[0]..range[1]];
        let Some(last) = step.iter().rposition(|event| phase(event) == Phase::Backward) else { continue };
        let Some(update) = step[last..].iter().position(|event| phase(event) == Phase::Optimizer) else {
            continue;
        };
        for row in range[0] + last + 1..range[0] + last + update {
            if own.is_some_and(|own| !own[row]) {
                continue;
            }
            let event = &mut events[row];
            let site = sites.list[event.site as usize].clone();
            if site.phase == Phase::Forward {
                event.site = sites.named(&site.operator, &site.scope, Phase::Optimizer);
            }
        }
    }
}
