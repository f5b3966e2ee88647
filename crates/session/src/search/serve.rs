//! A study that is driven from outside, in lines of JSON: what `trompe.search` in Python speaks to.
//!
//! | question | answer |
//! |---|---|
//! | `{"ask": null}` | `{"number": n, "values": {...}, "command": [...]}`, or `{"done": true}` |
//! | `{"tell": {"number": n, "outcome": {...}}}` | `{"told": n}` |
//! | `{"run": {"number": n}}` | the trial, run here, and told |
//! | `{"evaluate": {"tp": 4, ...}}` | the trial of these knob values, run or known, and told |
//! | `{"verify": null}` | a list of such points: near the best, told by a rule, to be run or told after all |
//! | `{"best": null}` | the best trial so far, or `null` |
//! | `{"study": null}` | everything, as in `study.json` |
//!
//! The first line says that it is ready: `{"ready": points, "knobs": [[name, [values]], ...]}`. A trial is that of
//! `study.json` with its `loss`, which is smaller for better trials and `null` without a result.
//! An answer to something that makes no sense is `{"error": "..."}`; the study goes on.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use trompe_results::study::TrialOrigin;
use trompe_search::memo::Memo;
use trompe_search::space;
use trompe_search::study::{Asked, Proposal, StudyError};
use trompe_search::summary::{self, Circumstances};
use trompe_search::{Outcome, Point, Study, Value};

use super::files::StudyFiles;
use super::{Plan, Pool, Request, SearchError, local, measure, order, plan, strategy};
use crate::clock::Stopwatch;
use crate::output::OutputFolder;
use crate::{SessionError, cache};

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Question {
    Ask(()),
    Tell { number: u32, outcome: Box<Outcome> },
    Run { number: u32 },
    Evaluate(BTreeMap<String, Value>),
    Verify(()),
    Best(()),
    Study(()),
}

struct Server<'a> {
    plan: &'a Plan,
    study: Study,
    pool: local::Local,
    memo: Option<Memo>,
    proposals: BTreeMap<u32, Proposal>,
    request: &'a Request,
    watch: Stopwatch,
}

/// Answers questions until they end.
///
/// # Errors
/// What is wrong with the space or the folder.
pub fn serve(
    request: &Request,
    questions: impl BufRead,
    mut answers: impl Write,
) -> Result<(), SessionError> {
    let plan = plan(&request.space, request.cluster.as_deref(), &request.estimators)?;
    let folder = OutputFolder::take(&request.out, request.existing)?;
    let files = StudyFiles::of(&folder.path);
    let study = Study::new(
        plan.space.clone(),
        plan.machines.clone(),
        plan.feasible.clone(),
        strategy(&request.strategy, &plan, request.seed, 1)?,
        1,
    );
    let memo = if request.memo { memo(&cache::open()?.folder) } else { None };
    let pool = local::Local::start(1, &plan, &files)?;
    let watch = Stopwatch::start();
    let mut server = Server { plan: &plan, study, pool, memo, proposals: BTreeMap::new(), request, watch };
    let gone = |error: std::io::Error| SessionError::from(SearchError::Pool(error.to_string()));
    let knobs: Vec<(&String, &Vec<Value>)> =
        plan.space.knobs.iter().map(|knob| (&knob.name, &knob.values)).collect();
    let ready = json!({ "ready": plan.feasible.points.len(), "knobs": knobs });
    writeln!(answers, "{ready}").and_then(|()| answers.flush()).map_err(gone)?;
    for line in questions.lines() {
        let line = line.map_err(gone)?;
        let answer = match server.answer(&line) {
            Ok(answer) => answer,
            Err(error) => json!({ "error": error.to_string(), "hint": error.hint() }),
        };
        writeln!(answers, "{answer}").and_then(|()| answers.flush()).map_err(gone)?;
    }
    files.write(&server.report())
}

fn memo(folder: &Path) -> Option<Memo> {
    Memo::open(&folder.join("search")).ok()
}

impl Server<'_> {
    fn answer(&mut self, line: &str) -> Result<Json, SessionError> {
        let wrong = |reason: String| SessionError::from(SearchError::Question(reason));
        let question: Question = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        match question {
            Question::Ask(_) => self.ask(),
            Question::Tell { number, outcome } => {
                self.tell(number, *outcome, TrialOrigin::Told)?;
                Ok(json!({ "told": number }))
            }
            Question::Run { number } => {
                let proposal = self.proposals.get(&number).cloned();
                let proposal =
                    proposal.ok_or_else(|| wrong(format!("there is no trial {number} under way")))?;
                self.run(&proposal)?;
                Ok(self.trial(number))
            }
            Question::Evaluate(values) => {
                let point = self.point(&values).map_err(wrong)?;
                let known =
                    self.study.trials().iter().find(|trial| trial.point == point && trial.outcome.is_some());
                if let Some(number) = known.map(|trial| trial.number) {
                    return Ok(self.trial(number));
                }
                let proposal = match self.study.enqueue(point) {
                    // Libraries that know no constraints ask for such points too.
                    Err(StudyError::NotFeasible { point }) => return Ok(json!({ "infeasible": point })),
                    other => other.map_err(SearchError::from)?,
                };
                match proposal {
                    Some(proposal) => {
                        self.run(&proposal)?;
                        Ok(self.trial(proposal.number))
                    }
                    None => Ok(self.trial(self.study.trials().len() as u32 - 1)),
                }
            }
            Question::Verify(_) => {
                let proposals = self.study.verify(self.request.verify).map_err(SearchError::from)?;
                let answers: Vec<Json> = proposals.iter().map(|proposal| self.asked(proposal)).collect();
                self.proposals.extend(proposals.into_iter().map(|proposal| (proposal.number, proposal)));
                Ok(json!(answers))
            }
            Question::Best(_) => Ok(self.study.best().map_or(Json::Null, |number| self.trial(number))),
            Question::Study(_) => Ok(json!(self.report())),
        }
    }

    fn ask(&mut self) -> Result<Json, SessionError> {
        match self.study.ask().map_err(SearchError::from)? {
            Asked::Run(proposal) => {
                let answer = self.asked(&proposal);
                self.proposals.insert(proposal.number, *proposal);
                Ok(answer)
            }
            Asked::Wait => Err(SearchError::Question(
                "the outcome of an earlier trial is needed before the next one is asked for".to_owned(),
            )
            .into()),
            Asked::Done => Ok(json!({ "done": true })),
        }
    }

    fn asked(&self, proposal: &Proposal) -> Json {
        let knobs = self.plan.space.knobs.iter();
        let knobs =
            knobs.filter_map(|knob| Some((knob.name.clone(), proposal.values.get(&knob.name)?.clone())));
        let knobs: BTreeMap<String, Value> = knobs.collect();
        json!({ "number": proposal.number, "values": knobs, "command": proposal.job.command })
    }

    fn tell(&mut self, number: u32, outcome: Outcome, origin: TrialOrigin) -> Result<(), SessionError> {
        self.study.tell(number, outcome, origin).map_err(SearchError::from)?;
        self.proposals.remove(&number);
        Ok(())
    }

    /// Runs a trial here, or takes its result from an earlier study.
    fn run(&mut self, proposal: &Proposal) -> Result<(), SessionError> {
        let order = order::of(self.plan, proposal)?;
        let key = self.plan.grounds.key(&order);
        let facts = self.plan.machines.of(&proposal.point);
        let whole = |outcome| measure::completed(outcome, &self.plan.space, &proposal.values, facts);
        if let Some(outcome) = self.memo.as_ref().and_then(|memo| memo.get(&key)) {
            return self.tell(proposal.number, whole(outcome), TrialOrigin::Cached);
        }
        self.pool.submit(order)?;
        let reply = loop {
            if let Some(reply) = self.pool.next(Duration::from_millis(500))? {
                break reply.usable()?;
            }
        };
        if let Some(memo) = self.memo.as_ref().filter(|_| reply.is_lasting()) {
            let _ = memo.put(&key, &reply.outcome);
        }
        self.tell(proposal.number, whole(reply.outcome), reply.origin)
    }

    /// The point with these knob values.
    fn point(&self, values: &BTreeMap<String, Value>) -> Result<Point, String> {
        let knobs = &self.plan.space.knobs;
        if let Some(name) = values.keys().find(|name| knobs.iter().all(|knob| knob.name != **name)) {
            return Err(format!("there is no knob `{name}`"));
        }
        let position = |knob: &trompe_search::space::Knob| {
            let value = match values.get(&knob.name) {
                Some(Value::Real(number)) => Value::of_number(*number),
                Some(value) => value.clone(),
                None if knob.values.len() == 1 => return Ok(0),
                None => return Err(format!("the knob `{}` has no value", knob.name)),
            };
            let found = knob.values.iter().position(|other| *other == value);
            found.map(|at| at as u16).ok_or_else(|| format!("the knob `{}` has no value {value}", knob.name))
        };
        knobs.iter().map(position).collect::<Result<_, _>>().map(Point)
    }

    fn report(&self) -> trompe_results::study::Study {
        summary::report(&self.study, &self.circumstances())
    }

    fn circumstances(&self) -> Circumstances {
        Circumstances {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            space: self.request.space.display().to_string(),
            cluster: self.request.cluster.clone().unwrap_or_default(),
            strategy: self.request.strategy.to_string(),
            seed: self.request.seed,
            directory: self.plan.directory.display().to_string(),
            seconds: self.watch.elapsed().as_secs_f64(),
            ended: "its driver ended it".to_owned(),
            ..Circumstances::default()
        }
    }

    fn trial(&self, number: u32) -> Json {
        let circumstances = self.circumstances();
        let mut trial = json!(summary::trial(&self.study, number, &circumstances));
        let known = self.study.trials().get(number as usize).and_then(|trial| trial.outcome.as_ref());
        let metrics = known.filter(|outcome| outcome.is_fit()).and_then(|outcome| outcome.metrics.as_ref());
        let loss = metrics.and_then(|metrics| space::loss(&self.plan.space.objectives, metrics));
        if let Some(fields) = trial.as_object_mut() {
            fields.insert("loss".to_owned(), json!(loss));
        }
        trial
    }
}
