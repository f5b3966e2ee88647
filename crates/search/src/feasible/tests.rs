//! Feasible points, and the reasons for there being none.

use super::*;
use crate::space::MachineFacts;

fn machines(space: &Space) -> Machines {
    Machines::look_up(
        space,
        Some("dgx-h100:2"),
        || (),
        |spec| {
            let nodes = spec.split(':').nth(1).and_then(|text| text.parse().ok()).unwrap_or(1);
            let facts = MachineFacts {
                gpus: 8 * nodes,
                gpus_per_node: 8,
                nodes,
                memory_bytes: 80 << 30,
                ..MachineFacts::default()
            };
            Ok::<_, ()>(MachineFacts { cluster: spec.to_owned(), ..facts })
        },
    )
    .unwrap()
}

fn space(text: &str) -> Space {
    Space::read(&format!("command = 'x {{gpus}}'\n{text}")).unwrap()
}

#[track_caller]
fn count(text: &str, expect: usize) {
    let space = space(text);
    let found = Feasible::of(&space, &machines(&space)).unwrap();
    assert_eq!(found.points.len(), expect);
    for (index, point) in found.points.iter().enumerate() {
        assert_eq!(found.position(point), Some(index));
        values(&space, &machines(&space), point).unwrap();
    }
}

#[track_caller]
fn empty(text: &str, expect: &str) {
    let space = space(text);
    let error = Feasible::of(&space, &machines(&space)).unwrap_err().to_string();
    assert!(error.contains(expect), "{error}");
}

#[test]
fn points_that_meet_the_constraints_are_found() {
    count("constraints = []\n[knobs]\na = [1, 2]\nb = 'boolean'\n", 4);
    count("constraints = ['tp * pp <= gpus']\n[knobs]\ntp = [1, 2, 4, 8]\npp = [1, 2, 4, 8]\n", 13);
    count("constraints = ['dp >= 4']\n[knobs]\ntp = [1, 2, 4, 8]\n[derived]\ndp = 'gpus // tp'\n", 3);
    // The derived value cannot be computed where the constraint before it does not hold.
    count("constraints = ['tp > 0']\n[knobs]\ntp = [0, 1]\n[derived]\ndp = 'gpus // tp'\n", 1);
    count("[knobs]\ntp = [0, 1]\n[derived]\ndp = 'gpus // tp'\n", 1);
    count("constraints = ['tp <= gpus']\n[knobs]\ntp = [8, 16, 32]\n[hardware]\nnodes = [1, 2, 4]\n", 6);
    let hardware = "[hardware]\ncluster = ['dgx-h100', 'dgx-a100']\nnodes = [1, 2]\n";
    count(&format!("constraints = ['cluster == \"dgx-a100:2\"']\n[knobs]\ntp = [1, 2]\n{hardware}"), 2);
}

#[test]
fn an_empty_space_names_its_reason() {
    empty("constraints = ['a > 5']\n[knobs]\na = [1, 2]\n", "`a > 5` never holds; the nearest is a=1");
    empty(
        "constraints = ['a > 1', 'b > 1', 'a + b < 4']\n[knobs]\na = [1, 2]\nb = [1, 2]\n",
        "`a > 1` and `b > 1` and `a + b < 4` contradict each other",
    );
    empty("constraints = ['a > 1', 'a < 2']\n[knobs]\na = [1, 2]\n", "`a > 1` and `a < 2` contradict");
    empty("constraints = ['a + 1']\n[knobs]\na = [1, 2]\n", "not true or false");
    empty("[knobs]\na = [0]\n[derived]\nb = '1 // a'\n", "derived values");
}
