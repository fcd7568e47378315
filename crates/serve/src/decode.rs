//! Texts on their way to the thread that computes, and back.

use crate::app::App;
use crate::aside::aside;
use crate::draft::Writing;
use crate::job::{Decode, Decoded, Draft, Inspect, Inspected, Job, Sentence, Subject, Views};
use crate::order::{Done, Order};
use crate::refusal::Refusal;
use attentive_generate::{Alternatives, Hypothesis, Options, Request};
use attentive_tasks::{Cut, Part, Translated};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

/// A text that is being translated.
pub(crate) struct Pending {
    order: Order,
    cut: Cut,
    reply: oneshot::Receiver<Result<Decoded, Refusal>>,
    /// The drafts that come, if somebody watches, and what they say so far.
    progress: Option<mpsc::Receiver<Draft>>,
    writing: Writing,
    until: Instant,
}

/// What helps against a translation that takes too long.
const ADVICE: &str = "send less text, or use a smaller beam";

/// Drafts that may wait for whoever watches.
const PROGRESS_BUFFER: usize = 64;

impl App {
    /// Cuts texts, or pieces of texts, and puts them into the queue; all of them or none.
    pub async fn begin(
        self: &Arc<App>,
        order: &Order,
        texts: &[impl AsRef<str>],
        watched: bool,
    ) -> Result<Vec<Pending>, Refusal> {
        let texts: Vec<String> = texts.iter().map(|text| text.as_ref().to_owned()).collect();
        let (chosen, split) = (order.chosen.clone(), order.split);
        let cuts = aside(move || {
            texts.iter().map(|text| chosen.cut(text, split)).collect::<Result<Vec<Cut>, Refusal>>()
        });
        let cuts = cuts.await?;
        let mut places = self.queue.enter("text", cuts.iter().map(|cut| cut.parts.len()).sum())?;
        let until = self.until();
        let begin = |(number, cut): (usize, Cut)| {
            let own = places.split(cut.parts.len()).ok_or_else(Refusal::fault)?;
            let (reply, receiver) = oneshot::channel();
            // There is always room for the last draft of each part.
            let (sender, progress) =
                watched.then(|| mpsc::channel(PROGRESS_BUFFER + cut.parts.len())).unzip();
            let sentence = |(place, part): (usize, &Part)| Sentence {
                request: Request {
                    source: part.source.clone(),
                    prefix: if place == 0 { order.prefix.clone() } else { Vec::new() },
                },
                options: order.options.clone(),
                stream: ((number as u64) << 32) | place as u64,
                align: order.align || part.wants_alignment(),
                top: order.top,
                stops: Vec::new(),
            };
            let sentences = cut.parts.iter().enumerate().map(sentence).collect();
            let model = order.chosen.place;
            let job = Decode { model, sentences, progress: sender, reply, places: own };
            self.queue.push(Job::Decode(job))?;
            let writing = Writing::new(cut.parts.len(), order.max_tokens);
            Ok(Pending { order: order.clone(), cut, reply: receiver, progress, writing, until })
        };
        cuts.into_iter().enumerate().map(begin).collect()
    }

    /// Translates texts.
    pub async fn translate(
        self: &Arc<App>,
        order: &Order,
        field: &str,
        texts: &[impl AsRef<str>],
    ) -> Result<Vec<Done>, Refusal> {
        self.check(field, texts)?;
        self.all(self.begin(order, texts, false).await?).await
    }

    /// Waits for texts.
    pub async fn all(&self, pending: Vec<Pending>) -> Result<Vec<Done>, Refusal> {
        let mut done = Vec::with_capacity(pending.len());
        for pending in pending {
            done.push(pending.wait(self).await?);
        }
        Ok(done)
    }

    /// The most probable ways in which the translation of a text can go on behind the prefix.
    pub async fn alternatives(
        self: &Arc<App>,
        order: &Order,
        field: &str,
        text: &str,
        count: usize,
    ) -> Result<Done, Refusal> {
        let Order { chosen, options, prefix, split, .. } = order;
        let model = &chosen.model;
        self.check(field, &[text])?;
        let cut = chosen.cut_aside(text, *split).await?;
        let first = match &cut.parts[..] {
            [] => return Err(Refusal::field(field, "there is nothing to translate")),
            [one] => one,
            parts => {
                let problem = format!(
                    "alternatives need a text that the model reads at once, but this one is split into {} parts: send one sentence",
                    parts.len()
                );
                return Err(Refusal::field(field, problem));
            }
        };
        let request = Request { source: first.source.clone(), prefix: prefix.clone() };
        let mut search = Alternatives::new(request, options.clone(), count, model.codec.spec())?;
        let until = self.until();
        let (request, few) = search.first();
        let mut found = self.sentences(chosen.place, &few, vec![request], until).await?;
        let requests = search.second(found.pop().unwrap_or_default());
        let second = self.sentences(chosen.place, options, requests, until).await?;
        let found = search.finish(second.into_iter().filter_map(|best| best.into_iter().next()).collect());
        let ended = found.iter().map(|one| one.ended).collect();
        let whole = |one| -> Result<Translated, Refusal> {
            let mut whole = model.codec.translated(first, one)?;
            whole.text = [cut.gap(0, "", &whole.text), &whole.text, cut.end()].concat();
            Ok(whole)
        };
        let best = found.into_iter().map(whole).collect::<Result<Vec<_>, _>>()?;
        Ok(Done { cut, best, ended, top: Vec::new() })
    }

    /// Decodes sentences with the same options.
    async fn sentences(
        &self,
        model: usize,
        options: &Options,
        requests: Vec<Request>,
        until: Instant,
    ) -> Result<Vec<Vec<Hypothesis>>, Refusal> {
        let places = self.queue.enter("text", requests.len())?;
        let (reply, receiver) = oneshot::channel();
        let sentence = |request| Sentence {
            request,
            options: options.clone(),
            stream: 0,
            align: false,
            top: 0,
            stops: Vec::new(),
        };
        let sentences = requests.into_iter().map(sentence).collect();
        self.queue.push(Job::Decode(Decode { model, sentences, progress: None, reply, places }))?;
        let Decoded(found) = self.answer(receiver, until, ADVICE).await?;
        Ok(found.into_iter().map(|found| found.into_iter().map(|one| one.hypothesis).collect()).collect())
    }

    /// Looks into a sentence and its translation, or into a text.
    pub async fn inspect(
        &self,
        model: usize,
        subject: Subject,
        views: Views,
        until: Instant,
    ) -> Result<Inspected, Refusal> {
        let places = self.queue.enter("text", 1)?;
        let (reply, receiver) = oneshot::channel();
        self.queue.push(Job::Inspect(Inspect { model, subject, views, reply, places }))?;
        self.answer(receiver, until, ADVICE).await
    }
}

impl Pending {
    /// The next draft of the text, and how many of its bytes are certain; none when no more will come, or not in time.
    pub async fn draft(&mut self) -> Option<(&str, usize)> {
        let codec = &self.order.chosen.model.codec;
        loop {
            let draft = timeout_at(self.until, self.progress.as_mut()?.recv()).await.ok()??;
            // A draft that cannot be read ends them; the answer will say why.
            if self.writing.take(codec, &self.cut, draft).ok()? {
                return Some(self.writing.text());
            }
        }
    }

    /// Waits until it is translated. Whoever stops waiting costs nothing any more.
    pub async fn wait(self, app: &App) -> Result<Done, Refusal> {
        let Pending { order, cut, reply, until, .. } = self;
        let decoded = app.answer(reply, until, ADVICE).await?;
        app.metrics.written(cut.source_tokens(), decoded.best_tokens());
        aside(move || decoded.finish(&order, cut)).await
    }
}
