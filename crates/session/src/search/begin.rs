//! The beginning of a study: what its journal must agree with, what an earlier session left, and the memo.

use trompe_search::journal::{self, Header, Journal, Kept};
use trompe_search::memo::{Key, Memo};

use super::{Earlier, Plan, Request, SearchError, SearchProgress, StudyFiles};
use crate::{SessionError, cache};

pub(super) fn header(request: &Request, plan: &Plan) -> Header {
    let clusters: Vec<String> = plan
        .machines
        .all()
        .map(|facts| {
            let sheet = trompe_hardware::resolve(&facts.cluster).ok();
            let content = sheet.and_then(|sheet| serde_json::to_vec(&sheet).ok()).unwrap_or_default();
            format!("{} {}", facts.cluster, Key::of([content.as_slice()]).text())
        })
        .collect();
    Header {
        trompe_version: plan.grounds.program.clone(),
        space: format!("{:016x}", plan.space.digest),
        code: plan.grounds.code.clone(),
        cluster: clusters.join(", "),
        estimators: plan.grounds.estimators.clone(),
        strategy: request.strategy.to_string(),
        seed: request.seed,
    }
}

/// The journal, and what an earlier session left in it.
pub(super) fn open_journal(
    files: &StudyFiles,
    header: &Header,
    earlier: Earlier,
    progress: &mut dyn SearchProgress,
) -> Result<(Journal, Option<Kept>), SessionError> {
    let failed = |error| SessionError::from(SearchError::from(error));
    let path = &files.journal;
    let found = match (journal::read(path), earlier) {
        (Ok(found), _) => found,
        (Err(_), Earlier::Restart) => None,
        (Err(error), _) => return Err(failed(error)),
    };
    match (found, earlier) {
        (Some(kept), Earlier::Resume) => {
            let changed = kept.header.differences(header);
            if !changed.is_empty() {
                let changed = changed.join(", ");
                return Err(SearchError::Changed { path: path.clone(), changed }.into());
            }
            progress.note(&format!("going on with {} trials of `{}`", kept.entries.len(), path.display()));
            Ok((Journal::resume(path, &kept).map_err(failed)?, Some(kept)))
        }
        (Some(kept), Earlier::Refuse) if !kept.entries.is_empty() => {
            Err(SearchError::StudyExists { path: path.clone(), trials: kept.entries.len() }.into())
        }
        (_, earlier) => {
            if earlier == Earlier::Restart && path.exists() {
                let aside = path.with_extension("journal.old");
                std::fs::rename(path, &aside).map_err(|source| SessionError::writing(&aside, source))?;
            }
            Ok((Journal::create(path, header).map_err(failed)?, None))
        }
    }
}

pub(super) fn memo(
    request: &Request,
    progress: &mut dyn SearchProgress,
) -> Result<Option<Memo>, SessionError> {
    if !request.memo {
        return Ok(None);
    }
    let folder = cache::open()?.folder.join("search");
    match Memo::open(&folder) {
        Ok(memo) => Ok(Some(memo)),
        Err(error) => {
            progress.note(&format!(
                "results of earlier studies in `{}` cannot be used: {error}",
                folder.display()
            ));
            Ok(None)
        }
    }
}
