//! `trompe search apply`: the exact command of a trial, as the user would type it.

use std::path::{Path, PathBuf};

use trompe_results::study::{Study, Trial, TrialStatus};
use trompe_search::space::FILE_PREFIX;

use super::{SearchError, files};
use crate::{SessionError, disk};

/// A trial's job, ready to be started.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    /// The trial.
    pub trial: Trial,
    /// Lines for a shell: the directory, the variables, the command.
    pub script: String,
    /// Files that were written for it.
    pub written: Vec<PathBuf>,
}

/// The job of the best trial of the study in `folder`, or of trial `number`. Configuration files go to `files_to`.
///
/// # Errors
/// When there is no such study or trial, or a file cannot be written.
pub fn apply(folder: &Path, number: Option<u32>, files_to: &Path) -> Result<Application, SessionError> {
    let study = files::read(folder)?;
    let trial = trial(&study, number)?.clone();
    let files_to = std::path::absolute(files_to).map_err(|source| SessionError::writing(files_to, source))?;
    let put = |text: &str| text.replace(FILE_PREFIX, &format!("{}/", files_to.display()));
    let mut written = Vec::new();
    for (name, content) in &trial.job.files {
        std::fs::create_dir_all(&files_to).map_err(|source| SessionError::writing(&files_to, source))?;
        let path = files_to.join(name);
        disk::write(&path, put(content).as_bytes())?;
        written.push(path);
    }
    let mut script = format!("cd {}\n", quoted(&trial.job.directory));
    for (name, value) in &trial.job.environment {
        script.push_str(&format!("export {name}={}\n", quoted(&put(value))));
    }
    let words: Vec<String> = trial.job.command.iter().map(|word| quoted(&put(word))).collect();
    script.push_str(&words.join(" "));
    script.push('\n');
    Ok(Application { trial, script, written })
}

fn trial(study: &Study, number: Option<u32>) -> Result<&Trial, SearchError> {
    let wanted = match number {
        Some(number) => number,
        None => *study.ranking.first().ok_or_else(|| {
            SearchError::NoTrial("no trial of the study fits, so there is no best one to apply".to_owned())
        })?,
    };
    let trial = study.trials.iter().find(|trial| trial.number == wanted);
    let trial = trial.ok_or_else(|| SearchError::NoTrial(format!("the study has no trial {wanted}")))?;
    if trial.status == TrialStatus::Fits {
        return Ok(trial);
    }
    Err(SearchError::NoTrial(format!("trial {wanted} has no result to apply: {}", trial.status.label())))
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    shell_words::quote(word).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use trompe_results::study::TrialJob;

    fn study() -> Study {
        let job = TrialJob {
            command: ["python", "x y.py", "--config", "@trial@/c.json"].map(str::to_owned).to_vec(),
            environment: [("A".to_owned(), "b c".to_owned())].into(),
            files: [("c.json".to_owned(), "{\"a\": 1}".to_owned())].into(),
            directory: "/job".to_owned(),
            ..TrialJob::default()
        };
        let fits = Trial { number: 1, status: TrialStatus::Fits, job, ..Trial::default() };
        Study {
            schema_version: STUDY,
            trials: vec![Trial::default(), fits],
            ranking: vec![1],
            ..Study::default()
        }
    }

    const STUDY: u32 = trompe_results::study::STUDY_SCHEMA_VERSION;

    #[test]
    fn the_best_trial_is_a_script() {
        let folder = tempfile::tempdir().unwrap();
        let json = serde_json::to_vec(&study()).unwrap();
        std::fs::write(folder.path().join("study.json"), json).unwrap();
        let files_to = folder.path().join("files");
        let applied = apply(folder.path(), None, &files_to).unwrap();
        let config = files_to.join("c.json");
        let expect = format!("cd /job\nexport A='b c'\npython 'x y.py' --config {}\n", config.display());
        assert_eq!(applied.script, expect);
        assert_eq!(std::fs::read_to_string(&config).unwrap(), "{\"a\": 1}");
        let check = |number, expect: &str| {
            let error = apply(folder.path(), Some(number), &files_to).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        };
        check(0, "no result to apply: failed");
        check(9, "no trial 9");
        assert!(
            apply(&folder.path().join("none"), None, &files_to).unwrap_err().to_string().contains("no study")
        );
    }
}
