//! How a run begins, and how it goes on after it was interrupted.

use super::fresh::Fresh;
use super::{Clock, Run, choose};
use crate::checkpoints::{self, Checkpoints, State, VERSION};
use crate::corpus::{Batches, Examples, Position};
use crate::learner::Learner;
use crate::lock::Lock;
use crate::logs::Log;
use crate::settings::{self, Draft, Settings};
use crate::tasks::{self, Material, Start};
use crate::{Error, Event, publish};
use attentive_tensor::Backend;
use std::path::Path;
use std::sync::Arc;

impl Run {
    /// Begins a run in a folder that has none. Settings that the draft leaves open are chosen first, and reported. Where the run cannot
    /// begin, the folder is left as it was.
    pub fn begin(
        folder: &Path,
        draft: impl Into<Draft>,
        watch: &mut dyn FnMut(&Event),
    ) -> Result<Run, Error> {
        let draft = draft.into().absolute();
        draft.check()?;
        let is_there = |from: &Path| {
            from.canonicalize().ok().is_some_and(|from| folder.canonicalize().ok() == Some(from))
        };
        if draft.settings().from.as_deref().is_some_and(is_there) {
            let problem =
                "the model to start from is in the folder of the run: choose another folder for the run";
            return Err(Error::setting("from", problem));
        }
        let fresh = Fresh::take(folder)?;
        let run = Run::begin_in(folder, draft, fresh.lock(), watch);
        if run.is_err() {
            fresh.leave();
        }
        run
    }

    fn begin_in(
        folder: &Path,
        draft: Draft,
        lock: Arc<Lock>,
        watch: &mut dyn FnMut(&Event),
    ) -> Result<Run, Error> {
        // Settings alone are of a run that failed before it had anything to go on from.
        if has_run(folder)? {
            return Err(Error::Exists { folder: folder.to_owned() });
        }
        if publish::is_model(folder)? {
            return Err(Error::ModelExists { folder: folder.to_owned() });
        }
        let backend = draft.settings().backend()?;
        watch(&Event::Preparing("reading the corpus"));
        let mut material = tasks::read(draft.settings(), folder, false)?;
        let settings = choose::choose(draft, &mut *material, &backend, watch)?;
        // Until here nothing of the run was written: killed before, it begins anew.
        Checkpoints::of(folder).create()?;
        checkpoints::remove_halves(folder)?;
        settings::write(&settings, &settings::path(folder))?;
        material.save_tokens(folder)?;

        let parts = Parts::make(Start::First(folder), &backend, settings, material, watch)?;
        let batches = Batches::new(Arc::clone(&parts.examples), parts.settings.batching())?;
        let state = State::new(batches.next_position().clone());
        let notices = parts.notices.clone();
        let mut run = parts.run(folder, batches, state, Some(lock))?;
        for notice in notices {
            run.notice(notice, watch)?;
        }
        run.save_state()?;
        Ok(run)
    }

    /// Goes on with the run in a folder, from its last checkpoint on; begins it where there is none yet. The
    /// settings must be those that it began with, but for the few that may change; nothing is chosen. A schedule
    /// that was planned for other limits is prolonged to the new ones.
    pub fn resume(
        folder: &Path,
        draft: impl Into<Draft>,
        watch: &mut dyn FnMut(&Event),
    ) -> Result<Run, Error> {
        let draft = draft.into();
        if !has_run(folder)? {
            return Run::begin(folder, draft, watch);
        }
        let settings = draft.into_settings().absolute();
        settings.check()?;
        let lock = Lock::take(folder)?;
        let then = settings::load(folder)?;
        settings.refuse_changes(&then, folder)?;
        let backend = settings.backend()?;
        watch(&Event::Preparing("reading the corpus"));
        let mut material = tasks::read(&settings, folder, true)?;
        material.hold_out(&settings)?;
        checkpoints::remove_halves(folder)?;

        let mut parts = Parts::make(Start::Again(folder), &backend, settings, material, watch)?;
        let state = Checkpoints::of(folder).load(&mut parts.learner)?;
        let examples = Arc::clone(&parts.examples);
        let batches = Batches::from_position(examples, &state.position, parts.settings.batching())?;
        let prolonged = parts.prolong(&then, &state);
        settings::write(&parts.settings, &settings::path(folder))?;
        let mut run = parts.run(folder, batches, state, Some(Arc::new(lock)))?;
        run.saved = Some(run.state.step);
        run.take_up(watch)?;
        if let Some(end) = prolonged {
            run.state.since_best = 0;
            run.notice(format!("the schedule now ends at step {end}"), watch)?;
            run.save_state()?;
        }
        Ok(run)
    }

    /// Takes part in the run that rank 0 has begun, or gone on with, in a folder: reads it and writes nothing.
    pub(super) fn follow(folder: &Path, watch: &mut dyn FnMut(&Event)) -> Result<Run, Error> {
        let settings = settings::load(folder)?;
        let backend = settings.backend()?;
        let mut material = tasks::read(&settings, folder, true)?;
        material.hold_out(&settings)?;
        let mut parts = Parts::make(Start::Again(folder), &backend, settings, material, watch)?;
        let state = Checkpoints::of(folder).load(&mut parts.learner)?;
        let examples = Arc::clone(&parts.examples);
        let batches = Batches::from_position(examples, &state.position, parts.settings.batching())?;
        parts.run(folder, batches, state, None)
    }

    /// Refuses a folder in which these settings can neither begin a run nor go on with one, before anything is
    /// computed.
    pub fn refuse_folder(folder: &Path, settings: &Settings) -> Result<(), Error> {
        if has_run(folder)? {
            return settings.clone().absolute().refuse_changes(&settings::load(folder)?, folder);
        }
        if publish::is_model(folder)? {
            return Err(Error::ModelExists { folder: folder.to_owned() });
        }
        Ok(())
    }

    /// Puts the folder in the order that the last checkpoint left it in.
    fn take_up(&mut self, watch: &mut dyn FnMut(&Event)) -> Result<(), Error> {
        self.checkpoints.clean(Some(&self.state))?;
        self.publish()?;
        let device = super::save::device(&self.learner);
        if self.state.device != device {
            let message = format!(
                "the run continues on `{device}`, but was on `{}` before: the result may differ slightly from that of a run \
                 on one device",
                self.state.device
            );
            self.notice(message, watch)?;
        }
        Ok(())
    }
}

/// What a run is made of once its settings are known.
struct Parts {
    settings: Settings,
    examples: Arc<dyn Examples>,
    /// What a person should know about the examples.
    notices: Vec<String>,
    vocabulary: usize,
    learner: Learner,
}

impl Parts {
    fn make(
        start: Start<'_>,
        backend: &Arc<dyn Backend>,
        settings: Settings,
        mut material: Box<dyn Material>,
        watch: &mut dyn FnMut(&Event),
    ) -> Result<Parts, Error> {
        // The tokenizer that was just saved is read again, too, so that a resumed run has no other.
        if let Start::First(folder) | Start::Again(folder) = start {
            material.load_tokens(folder)?;
        }
        let (examples, notices) = material.examples(&settings)?;
        watch(&Event::Preparing("initializing the model"));
        let task = material.task(backend, &settings, start)?;
        let learner = Learner::new(backend, task, &settings);
        Ok(Parts { vocabulary: material.vocabulary(), settings, examples, notices, learner })
    }

    /// Lets the schedule end later if the limits are others than `then`, and says where.
    fn prolong(&mut self, then: &Settings, state: &State) -> Option<u64> {
        let end = self.settings.prolonged(then, state.step, state.epoch, state.seconds)?;
        self.settings.schedule_steps = Some(end);
        Some(end)
    }

    /// The run; it writes if it has the lock of the folder.
    fn run(
        self,
        folder: &Path,
        batches: Batches,
        state: State,
        lock: Option<Arc<Lock>>,
    ) -> Result<Run, Error> {
        Ok(Run {
            rate: self.settings.learning_rate(self.learner.task.d_model()),
            log: if lock.is_some() { Log::open(folder, state.log_bytes)? } else { Log::silent() },
            clock: Clock::start(state.seconds),
            saved: None,
            folder: folder.to_owned(),
            settings: self.settings,
            vocabulary: self.vocabulary,
            examples: self.examples,
            batches,
            learner: self.learner,
            checkpoints: Checkpoints::of(folder),
            state,
            samples: Vec::new(),
            _lock: lock,
        })
    }
}

impl State {
    /// Before the first step.
    fn new(position: Position) -> State {
        State {
            version: VERSION,
            step: 0,
            position,
            epoch: 0.0,
            seconds: 0.0,
            rate_factor: 1.0,
            recoveries: 0,
            best: None,
            since_best: 0,
            validated: None,
            kept: Vec::new(),
            unlogged: Default::default(),
            course: Default::default(),
            log_bytes: 0,
            device: String::new(),
        }
    }
}

/// Whether there is something to go on from.
fn has_run(folder: &Path) -> Result<bool, Error> {
    Ok(checkpoints::exists(&settings::path(folder))? && Checkpoints::of(folder).exists()?)
}
