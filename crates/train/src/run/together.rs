//! A run in which several ranks take part.
//!
//! Rank 0 begins the run, or goes on with it, as if it were alone. The others then read what is in the folder, which all must be able
//! to read, and all go on together. Each step follows from what all of them know, so that little has to be agreed about: when to stop,
//! since each has a clock and signals of its own. All validate together; rank 0 alone writes and tells.

use super::Run;
use crate::ranks::{Same, wait_for_the_first};
use crate::settings::{self, Draft, TaskKind};
use crate::{Error, Event, Reason};
use attentive_ranks::{Group, all_gather};
use std::path::Path;
use std::rc::Rc;

/// Reasons to stop as numbers, from 1 on.
const REASONS: [Reason; 6] =
    [Reason::Interrupted, Reason::Steps, Reason::Schedule, Reason::Epochs, Reason::Minutes, Reason::Patience];

impl Run {
    /// Begins a run of several ranks in a folder that has none, or goes on with the one that it has if it `resumes`. Collective;
    /// rank 0 alone needs a draft.
    pub fn together(
        folder: &Path,
        draft: Option<Draft>,
        resumes: bool,
        group: &Rc<dyn Group>,
        watch: &mut dyn FnMut(&Event),
    ) -> Result<Run, Error> {
        if group.size() > 1 && draft.as_ref().is_some_and(|draft| draft.settings().task == TaskKind::Dino) {
            let problem = "dino cannot be shared among ranks: start it without mpirun or srun";
            return Err(Error::setting("task", problem));
        }
        let mut run = match draft.filter(|_| group.rank() == 0) {
            Some(mut draft) => {
                if let Some(choice) = draft.share_among(group.size())? {
                    watch(&Event::Chosen(choice));
                }
                let run = if resumes {
                    Run::resume(folder, draft, watch)
                } else {
                    Run::begin(folder, draft, watch)
                };
                let run = run?;
                wait_for_the_first(&**group, &[])?;
                run
            }
            None => {
                wait_for_the_first(&**group, &[])?;
                Run::follow(folder, watch)?
            }
        };
        run.same().check(&**group)?;
        run.learner.join(Rc::clone(group));
        run.batches = run.batches.among(run.learner.ranks())?;
        Ok(run)
    }

    /// What all ranks must have in common.
    fn same(&self) -> Same {
        let settings = crate::Settings { threads: None, ..self.settings.clone() };
        Same {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            device: super::save::device(&self.learner),
            corpus: format!("{:?}", self.examples.size()),
            settings: settings::values(&settings),
            step: self.state.step,
        }
    }

    /// Whether this is rank 0, or alone.
    pub(super) fn is_first(&self) -> bool {
        self.learner.group().is_none_or(|group| group.rank() == 0)
    }

    /// What computes, for people.
    pub(super) fn devices(&self) -> String {
        let device = self.learner.backend.name();
        let group = self.learner.group();
        group.map_or(device.clone(), |group| format!("{} ranks of {device}", group.size()))
    }

    /// Collective: lets the others wait for what rank 0 has to do alone.
    pub(super) fn meet(&self) -> Result<(), Error> {
        let Some(group) = self.learner.group() else { return Ok(()) };
        wait_for_the_first(&**group, &[]).map(drop)
    }

    /// Collective: goes on when all ranks have come here.
    pub(super) fn meet_all(&self) -> Result<(), Error> {
        let Some(group) = self.learner.group() else { return Ok(()) };
        Ok(all_gather(&**group, &[0u8], &vec![1; group.size()]).map(drop)?)
    }

    /// Collective: the reason to stop of rank 0, or of any rank that was interrupted.
    pub(super) fn agreed(&self, reason: Option<Reason>) -> Result<Option<Reason>, Error> {
        let Some(group) = self.learner.group() else { return Ok(reason) };
        let reason = reason.filter(|&reason| self.is_first() || reason == Reason::Interrupted);
        let number = REASONS.iter().position(|&known| Some(known) == reason).map_or(0, |at| at as u8 + 1);
        let all = all_gather(&**group, &[number], &vec![1; group.size()])?;
        Ok(all.into_iter().find(|&number| number > 0).map(|number| REASONS[usize::from(number) - 1]))
    }
}
