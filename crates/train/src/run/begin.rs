//! How a run begins, and how it goes on after it was interrupted.

use super::{Clock, Run};
use crate::checkpoints::{self, Checkpoints, State, VERSION};
use crate::corpus::Corpus;
use crate::learner::Learner;
use crate::lock::Lock;
use crate::logs::Log;
use crate::settings::{self, Settings};
use crate::validation::Validation;
use crate::vocabulary::Vocabulary;
use crate::{Error, Event, model_folder};
use attentive_generate::source_language;
use attentive_text::tokenizer::Side;
use std::path::Path;
use std::sync::Arc;

impl Run {
    /// Begins a run in a folder that has none.
    pub fn begin(folder: &Path, settings: Settings, watch: &mut dyn FnMut(&Event)) -> Result<Run, Error> {
        let settings = settings.absolute();
        settings.check()?;
        std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
        let lock = Lock::take(folder)?;
        // Settings alone are of a run that failed before it had anything to go on from.
        if has_run(folder) {
            return Err(Error::Exists { folder: folder.to_owned() });
        }
        if model_folder::is_model(folder) {
            return Err(Error::ModelExists { folder: folder.to_owned() });
        }
        Run::open(folder, settings, lock, watch)
    }

    /// Goes on with the run in a folder, from its last checkpoint on; begins it where there is none yet. The
    /// settings must be those that it began with, but for the few that may change.
    pub fn resume(folder: &Path, settings: Settings, watch: &mut dyn FnMut(&Event)) -> Result<Run, Error> {
        if !has_run(folder) {
            return Run::begin(folder, settings, watch);
        }
        let settings = settings.absolute();
        settings.check()?;
        let lock = Lock::take(folder)?;
        settings.refuse_changes(&settings::load(folder)?, folder)?;
        Run::open(folder, settings, lock, watch)
    }

    fn open(
        folder: &Path,
        settings: Settings,
        lock: Lock,
        watch: &mut dyn FnMut(&Event),
    ) -> Result<Run, Error> {
        let backend = settings.backend()?;
        watch(&Event::Preparing("reading the corpus"));
        let cache = folder.join("corpus");
        let corpus = Arc::new(Corpus::open(&settings.corpus(), &cache)?);
        let validation_corpus =
            settings.validation().map(|files| Corpus::open(&files, &cache)).transpose()?;

        let checkpoints = Checkpoints::of(folder);
        checkpoints.create()?;
        checkpoints::remove_halves(folder)?;
        settings::write(&settings, &settings::path(folder))?;
        let resumes = checkpoints.exists();
        if !resumes {
            watch(&Event::Preparing("making the tokenizer"));
            Vocabulary::make(&settings, &corpus)?.tokenizer().save(folder)?;
        }
        // The one that was just saved is read again, too, so that a resumed run has no other.
        let vocabulary = Vocabulary::load(folder)?;
        if settings.bpe_dropout > 0.0 && !vocabulary.merges() {
            let problem = "the tokenizer has no merges to skip: leave it at 0, or take a SentencePiece BPE";
            return Err(Error::setting("bpe_dropout", problem));
        }
        let config = vocabulary.apply(settings.model(vocabulary.size())?);
        let share = corpus.multi_sentence_share(source_language(folder).as_deref())?;
        model_folder::write_configs(folder, &config, share)?;

        watch(&Event::Preparing("making the model"));
        let validation = validation_corpus
            .map(|corpus| Validation::new(&corpus, &vocabulary, &settings, config.max_positions))
            .transpose()?;
        let mut learner = Learner::new(&backend, &config, &settings)?;
        let encoder = |side| vocabulary.encoder(side, settings.bpe_dropout);
        let (batching, source, target) = (settings.batching(), encoder(Side::Source), encoder(Side::Target));
        let (state, batches) = if resumes {
            let state = checkpoints.load(&mut learner)?;
            let batches = corpus.batches_from(&state.position, batching, source, target)?;
            (state, batches)
        } else {
            let batches = corpus.batches(batching, source, target)?;
            (State::new(batches.next_position().clone()), batches)
        };
        let mut run = Run {
            rate: settings.learning_rate(config.d_model),
            log: Log::open(folder, state.log_bytes)?,
            clock: Clock::start(state.seconds),
            saved: resumes.then_some(state.step),
            folder: folder.to_owned(),
            settings,
            vocabulary,
            corpus,
            batches,
            validation,
            learner,
            checkpoints,
            state,
            samples: Vec::new(),
            _lock: lock,
        };
        if resumes {
            run.take_up(watch)?
        } else {
            run.save_state()?
        }
        Ok(run)
    }

    /// Puts the folder in the order that the last checkpoint left it in.
    fn take_up(&mut self, watch: &mut dyn FnMut(&Event)) -> Result<(), Error> {
        self.checkpoints.clean(Some(&self.state))?;
        self.publish()?;
        let device = super::save::device(&self.learner);
        if self.state.device != device {
            let message = format!(
                "the run goes on with `{device}` and was made with `{}`: from here on it is not the same to \
                 the bit",
                self.state.device
            );
            self.notice(message, watch)?;
        }
        Ok(())
    }
}

impl State {
    /// Before the first step.
    fn new(position: crate::corpus::Position) -> State {
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
fn has_run(folder: &Path) -> bool {
    settings::path(folder).exists() && Checkpoints::of(folder).exists()
}
