//! What is wrong with a space file is said precisely.

use trompe_search::Space;

#[track_caller]
fn check(text: &str, expect: &str) {
    let error = Space::read(text).expect_err("the space is wrong").to_string();
    assert!(error.contains(expect), "{error}");
}

const GOOD: &str = "command = 'x {a} {b}'\n[knobs]\na = [1, 2]\nb = 'boolean'\n";

#[test]
fn a_space_is_read_in_the_order_of_the_file() {
    let space =
        Space::read("command = 'x'\n[knobs]\nz = [1]\na = [2.0, 0.5]\nm = { from = 1, to = 8, times = 2 }\n")
            .unwrap();
    let names: Vec<&str> = space.knobs.iter().map(|knob| knob.name.as_str()).collect();
    assert_eq!(names, ["z", "a", "m"]);
    assert_eq!(space.knobs[1].values[0].to_string(), "2");
    assert_eq!(space.size(), 8);
    assert!(Space::read(GOOD).is_ok());
}

#[test]
fn names_must_exist() {
    check("command = 'x {tp}'\n[knobs]\ntpp = [1]\n", "`tp`, which is no knob");
    check("command = 'x {tpp2}'\n[knobs]\ntpp = [1]\n", "did you mean `tpp`?");
    check("command = 'x'\nconstraints = ['q > 1']\n[knobs]\na = [1]\n", "the constraint `q > 1` names `q`");
    check("command = 'x'\n[knobs]\na = [1]\n[derived]\nb = 'c'\n", "`b` in [derived] names `c`");
    check("command = 'x {f}'\n[knobs]\na = [1]\n[files.f]\ncontent = '{{ q }}'\n", "the file `f` names `q`");
    check("command = 'x'\n[knobs]\na = [1]\n[environment]\nX = '{q}'\n", "`X` in [environment] names `q`");
}

#[test]
fn parts_must_make_sense() {
    check("[knobs]\na = [1]\n", "missing field `command`");
    check("command = 'x'\nknob = 1\n", "unknown field `knob`");
    check("command = 'x'\n", "no knob to turn");
    check("command = ''\n[knobs]\na = [1]\n", "it is empty");
    check("command = 'x {a'\n[knobs]\na = [1]\n", "never closed");
    check("command = 'x'\n[knobs]\na = []\n", "no values");
    check("command = 'x'\n[knobs]\na = [1, 1]\n", "given twice");
    check("command = 'x'\n[knobs]\na = 'bool'\n", "no kind of knob");
    check("command = 'x'\n[knobs]\na = { from = 1 }\n", "`from` and `to`");
    check("command = 'x'\n[knobs]\na = { values = [1], memory = 'up' }\n", "`increases` or `decreases`");
    check("command = 'x'\n[knobs]\ngpus = [1]\n", "has this name already");
    check("command = 'x'\n[knobs]\na = [1]\n[derived]\nb = 'c'\nc = 'b'\n", "in a circle");
    check("command = 'x'\nobjective = []\n[knobs]\na = [1]\n", "the list is empty");
    check("command = 'x'\n[knobs]\na = [1]\n[sampling]\nfirst = 1\nsecond = 2\n", "there is no [batch]");
}

#[test]
fn rules_name_values_that_exist() {
    let rule = |rest: &str| format!("{GOOD}[[prune]]\nname = 'r'\nwhen = 'fits'\neffect = 'same'\n{rest}");
    check(&rule("knob = 'c'\ntried = 1\nthen = 2\n"), "there is no knob `c`");
    check(&rule("knob = 'a'\ntried = 1\nthen = 3\n"), "has no value 3");
    check(&rule("knob = 'a'\ntried = 1\n"), "give either");
    check(&rule("knob = 'a'\nothers = 'later'\nif = 'q'\n"), "names `q`");
    assert!(Space::read(&rule("knob = 'a'\ntried = 1\nthen = 2\n")).is_ok());
}
