//! From a point to a job: command, environment and files.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::expression::{self, Expression};
use crate::template::Template;
use crate::{Value, Values};

/// How a point becomes a job.
#[derive(Debug, Default)]
pub struct JobTemplate {
    /// The words of the command.
    pub command: Vec<Template>,
    /// Options that depend on the point: `true` writes the option alone, `false` and `none` leave it out, another value
    /// follows the option as a word of its own.
    pub arguments: Vec<(String, Expression)>,
    /// Variables; a value of `none` leaves the variable out.
    pub environment: Vec<(String, Template)>,
    /// Files that are written before the job starts.
    pub files: Vec<FileTemplate>,
    /// The working directory, relative to the space file.
    pub directory: Option<String>,
}

/// A file that is written for each trial.
#[derive(Debug)]
pub struct FileTemplate {
    /// Its name; `{NAME}` in the command is where it lies.
    pub name: String,
    /// Its ending, so that the job knows the format.
    pub ending: String,
    /// Its content, a Jinja template.
    pub content: String,
}

/// A job with all values put in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedJob {
    /// The words of the command.
    pub command: Vec<String>,
    /// Variables beside those of the user's own environment.
    pub environment: BTreeMap<String, String>,
    /// Files to write: name (relative to the trial's folder) and content. Words that name them start with
    /// [`FILE_PREFIX`].
    pub files: BTreeMap<String, String>,
    /// The working directory, relative to the space file.
    pub directory: Option<String>,
}

/// What stands for the trial's folder in words of the command.
pub const FILE_PREFIX: &str = "@trial@/";

/// A place and the names that it uses.
type Used = (String, BTreeSet<String>);

impl FileTemplate {
    /// The file's name.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}{}", self.name, self.ending)
    }
}

impl JobTemplate {
    /// Every name that is used, with where.
    ///
    /// # Errors
    /// When a file's template cannot be read: its name and what is wrong.
    pub(super) fn names(&self) -> Result<Vec<Used>, (String, String)> {
        let mut all: Vec<Used> = Vec::new();
        all.extend(
            self.command.iter().map(|word| (format!("the command (`{}`)", word.source), word.names())),
        );
        all.extend(
            self.arguments
                .iter()
                .map(|(name, value)| (format!("`{name}` in [arguments]"), value.names.clone())),
        );
        all.extend(
            self.environment
                .iter()
                .map(|(name, value)| (format!("`{name}` in [environment]"), value.names())),
        );
        for file in &self.files {
            let names = expression::names_in(&file.content).map_err(|error| (file.name.clone(), error))?;
            all.push((format!("the file `{}`", file.name), names));
        }
        Ok(all)
    }

    /// The job at a point.
    ///
    /// # Errors
    /// Which part has no value, and why.
    pub fn resolve(&self, values: &Values) -> Result<ResolvedJob, String> {
        let mut values = values.clone();
        let mut files = BTreeMap::new();
        for file in &self.files {
            let content = expression::fill(&file.content, &values)
                .map_err(|error| format!("the file `{}`: {error}", file.name))?;
            files.insert(file.file_name(), content);
        }
        for file in &self.files {
            values.insert(file.name.clone(), Value::Text(format!("{FILE_PREFIX}{}", file.file_name())));
        }
        let mut command =
            self.command.iter().map(|word| word.fill(&values)).collect::<Result<Vec<_>, _>>()?;
        for (option, value) in &self.arguments {
            let value = value.evaluate(&values).map_err(|error| format!("`{option}`: {error}"))?;
            match value {
                None | Some(Value::Boolean(false)) => {}
                Some(Value::Boolean(true)) => command.push(option.clone()),
                Some(value) => command.extend([option.clone(), value.to_string()]),
            }
        }
        let mut environment = BTreeMap::new();
        for (name, value) in &self.environment {
            let value = value.fill(&values).map_err(|error| format!("`{name}`: {error}"))?;
            environment.insert(name.clone(), value);
        }
        Ok(ResolvedJob { command, environment, files, directory: self.directory.clone() })
    }
}

impl ResolvedJob {
    /// The same with `folder` where the trial's folder is meant.
    #[must_use]
    pub fn in_folder(&self, folder: &str) -> Self {
        let put = |text: &String| text.replace(FILE_PREFIX, &format!("{folder}/"));
        Self {
            command: self.command.iter().map(put).collect(),
            environment: self.environment.iter().map(|(name, value)| (name.clone(), put(value))).collect(),
            files: self.files.iter().map(|(name, content)| (name.clone(), put(content))).collect(),
            directory: self.directory.clone(),
        }
    }
}
