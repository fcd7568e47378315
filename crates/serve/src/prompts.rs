//! Prompts on their way to the thread that computes, and back.

use crate::app::App;
use crate::aside::aside;
use crate::job::{Decode, Decoded, Draft, Found, Job, Judge, Places, Sentence};
use crate::model::LanguageModel;
use crate::queue::Queue;
use crate::refusal::Refusal;
use crate::texts::Source;
use attentive_generate::{Judged, MaxLength, Options};
use attentive_tasks::StopStrings;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

/// What is wanted of prompts.
#[derive(Debug, Clone)]
pub(crate) struct PromptOrder {
    /// The place of the model among all.
    pub place: usize,
    pub model: Arc<LanguageModel>,
    /// How to continue them: with 0 tokens at most, nothing is written.
    pub options: Options,
    /// What else ends a continuation.
    pub stops: StopStrings,
    /// How many of the most probable tokens are wanted in the place of each token.
    pub top: usize,
    /// Whether the model is to tell what it thinks of the tokens of the prompts, too.
    pub judges: bool,
    /// What prompts are called in the request.
    pub field: &'static str,
}

/// A prompt as the model reads it.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub text: String,
    /// One at least. Without a text, they are what any text begins with.
    pub tokens: Vec<u32>,
}

/// An answer of the thread that computes.
type Reply<T> = oneshot::Receiver<Result<T, Refusal>>;

/// Prompts that are being continued.
pub(crate) struct Continuing {
    /// What is written, if anything is to be.
    decoded: Option<Reply<Decoded>>,
    /// What is thought of the tokens of the prompts, if that is wanted.
    judged: Option<Reply<Vec<Vec<Judged>>>>,
    /// The drafts that come, if somebody watches.
    progress: Option<mpsc::Receiver<Draft>>,
    until: Instant,
}

/// What became of prompts.
#[derive(Debug, Default)]
pub(crate) struct Continued {
    /// What was written for each, best first; nothing if nothing was to be.
    pub found: Vec<Vec<Found>>,
    /// What is thought of the tokens of each but its first, if that was wanted.
    pub judged: Vec<Vec<Judged>>,
}

/// What helps against an answer that takes too long.
const ADVICE: &str = "send fewer or shorter prompts, or ask for fewer tokens";

/// How many drafts may wait in the channel of a stream.
const PROGRESS_BUFFER: usize = 256;

impl PromptOrder {
    fn writes(&self) -> bool {
        self.options.max_length != MaxLength::SourceAnd(0)
    }

    /// A prompt that leaves room for what is to be written.
    fn read(&self, number: usize, source: Source) -> Result<Prompt, Refusal> {
        let (codec, refuse) = (&self.model.codec, |problem: String| Refusal::field(self.field, problem));
        let prompt = match source {
            Source::Tokens(tokens) => {
                let known = codec.spec().source_vocabulary;
                if let Some(token) = tokens.iter().find(|&&token| token as usize >= known) {
                    let problem = format!("the model has {known} tokens, counted from 0");
                    return Err(refuse(format!("prompt {number} has the token {token}, and {problem}")));
                }
                Prompt { text: codec.text(&tokens)?, tokens }
            }
            Source::Text(text) | Source::Pair(text, _) => Prompt { tokens: codec.encode(&text)?, text },
        };
        let tokens = if prompt.tokens.is_empty() { codec.beginning() } else { prompt.tokens };
        if tokens.is_empty() {
            return Err(refuse(format!(
                "prompt {number} is empty, and the model needs a token to begin with"
            )));
        }
        let (count, spec) = (tokens.len(), codec.spec());
        // An answer has positions of its own.
        let must_leave = spec.continues && self.writes();
        let most = if spec.continues { spec.max_target } else { spec.max_source };
        if count + usize::from(must_leave) > most {
            let room = if must_leave { ", and one of them must be left to be written" } else { "" };
            let problem = format!(
                "prompt {number} has {count} tokens, but the model's maximum context length is {most} tokens{room}: \
                 shorten the prompt"
            );
            return Err(refuse(problem));
        }
        Ok(Prompt { tokens, ..prompt })
    }
}

impl App {
    /// Reads prompts, all of them or none.
    pub async fn read_prompts(
        &self,
        order: &PromptOrder,
        sources: Vec<Source>,
    ) -> Result<Vec<Prompt>, Refusal> {
        if sources.is_empty() {
            return Err(Refusal::field(order.field, "there is no prompt"));
        }
        self.check_count(order.field, sources.len())?;
        sources.iter().try_for_each(|source| self.check_lengths(order.field, &source.texts()))?;
        if self.settings.log_texts {
            tracing::info!(prompts = ?sources, "to be continued");
        }
        let order = order.clone();
        let read = move |(place, source)| order.read(place + 1, source);
        aside(move || sources.into_iter().enumerate().map(read).collect()).await
    }

    /// Puts prompts into the queue.
    pub fn begin_prompts(
        &self,
        order: &PromptOrder,
        prompts: &[Prompt],
        watched: bool,
    ) -> Result<Continuing, Refusal> {
        let jobs = usize::from(order.writes()) + usize::from(order.judges);
        let mut places = self.queue.enter(order.field, prompts.len() * jobs)?;
        let mut own = || places.split(prompts.len()).ok_or_else(Refusal::fault);
        let until = self.until();
        let judged = match order.judges {
            true => Some(order.judge(&self.queue, prompts, own()?)?),
            false => None,
        };
        // There is always room for the last draft of each.
        let (sender, progress) = watched.then(|| mpsc::channel(PROGRESS_BUFFER + prompts.len())).unzip();
        let decoded = match order.writes() {
            true => Some(order.decode(&self.queue, prompts, sender, own()?)?),
            false => None,
        };
        Ok(Continuing { decoded, judged, progress, until })
    }
}

impl PromptOrder {
    /// Asks for what follows prompts.
    fn decode(
        &self,
        queue: &Queue,
        prompts: &[Prompt],
        progress: Option<mpsc::Sender<Draft>>,
        places: Places,
    ) -> Result<Reply<Decoded>, Refusal> {
        let stops = self.stops.rules(self.model.codec.tokenizer());
        let sentence = |(number, prompt): (usize, &Prompt)| Sentence {
            request: prompt.tokens.clone().into(),
            options: self.options.clone(),
            stream: number as u64,
            align: false,
            top: self.top,
            stops: stops.clone(),
        };
        let sentences = prompts.iter().enumerate().map(sentence).collect();
        let (reply, receiver) = oneshot::channel();
        queue.push(Job::Decode(Decode { model: self.place, sentences, progress, reply, places }))?;
        Ok(receiver)
    }

    /// Asks what the model thinks of the tokens of prompts.
    fn judge(
        &self,
        queue: &Queue,
        prompts: &[Prompt],
        places: Places,
    ) -> Result<Reply<Vec<Vec<Judged>>>, Refusal> {
        let texts = prompts.iter().map(|prompt| prompt.tokens.clone()).collect();
        let (reply, receiver) = oneshot::channel();
        queue.push(Job::Judge(Judge { model: self.place, texts, top: self.top, reply, places }))?;
        Ok(receiver)
    }
}

impl Continuing {
    /// The next draft of a continuation; none when no more will come, or not in time.
    pub async fn draft(&mut self) -> Option<Draft> {
        loop {
            let draft = timeout_at(self.until, self.progress.as_mut()?.recv()).await.ok()??;
            // The last one of a prompt is that of its best draw, whichever that is: the answer has it.
            if !draft.finished {
                return Some(draft);
            }
        }
    }

    /// Waits until all is there. Whoever stops waiting costs nothing any more.
    pub async fn wait(self, app: &App) -> Result<Continued, Refusal> {
        let mut continued = Continued::default();
        if let Some(reply) = self.decoded {
            continued.found = app.answer(reply, self.until, ADVICE).await?.0;
        }
        if let Some(reply) = self.judged {
            continued.judged = app.answer(reply, self.until, ADVICE).await?;
        }
        Ok(continued)
    }
}
