//! What a model that writes has to do: sentences and prompts of all clients are rows of the same step.

use super::inspect::tell;
use crate::error::Error;
use crate::job::{Decode, Decoded, Draft, Found, Inspect, Judge, Sentence, Subject};
use crate::model::Copies;
use crate::refusal::Refusal;
use attentive_generate::{
    AttentionMatrix, AttentionSelector, Generator, Hypothesis, Judged, Options, Seq2Seq,
};
use attentive_tasks::Codec;
use std::collections::{HashMap, VecDeque};

/// A model and what it has to do.
pub(super) struct DecoderWorker {
    /// What words are aligned with, of a model that translates.
    codec: Option<Codec>,
    generator: Generator,
    /// By the number of their first sentence.
    jobs: HashMap<u64, Open>,
    /// Which job a sentence belongs to, and its place there, of those that are watched.
    sentences: HashMap<u64, (u64, usize)>,
    /// Texts that are to be judged, and what was found of those before.
    judging: VecDeque<(Judge, Vec<Vec<Judged>>)>,
}

/// A job that is being done.
struct Open {
    job: Decode,
    /// The numbers of its sentences, and what came of each.
    results: Vec<(u64, Option<Outcome>)>,
}

/// The translations of a sentence.
type Outcome = Result<Vec<Found>, Refusal>;

impl DecoderWorker {
    /// A model that has nothing to do yet. Each copy decodes `batch` sentences at once.
    pub fn new(
        name: &str,
        options: &Options,
        codec: Option<Codec>,
        copies: Copies,
        batch: usize,
    ) -> Result<DecoderWorker, Error> {
        let options = Options { batch: batch * copies.len(), ..options.clone() };
        let generator = Generator::with_copies(copies, options)
            .map_err(|source| Error::Model { name: name.to_owned(), source: Box::new(source.into()) })?;
        let (jobs, sentences, judging) = (HashMap::new(), HashMap::new(), VecDeque::new());
        Ok(DecoderWorker { codec, generator, jobs, sentences, judging })
    }

    /// Whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.judging.is_empty()
    }

    /// Takes sentences.
    pub fn decode(&mut self, mut job: Decode) {
        let mut results = Vec::with_capacity(job.sentences.len());
        for sentence in &mut job.sentences {
            let (request, options) = (sentence.request.clone(), std::mem::take(&mut sentence.options));
            let stops = std::mem::take(&mut sentence.stops);
            match self.generator.push_until(request, options, sentence.stream, stops) {
                Ok(number) => results.push((number, None)),
                Err(error) => {
                    results.iter().for_each(|(number, _)| self.generator.cancel(*number));
                    let _ = job.reply.send(Err(error.into()));
                    return;
                }
            }
        }
        let Some(&(first, _)) = results.first() else {
            let _ = job.reply.send(Ok(Decoded::default()));
            return;
        };
        if job.progress.is_some() {
            self.sentences
                .extend(results.iter().enumerate().map(|(place, (number, _))| (*number, (first, place))));
        }
        self.jobs.insert(first, Open { job, results });
    }

    /// Looks into a sentence.
    pub fn inspect(&self, job: Inspect) {
        if let Subject::Tokens([source, target]) = &job.subject
            && !job.reply.is_closed()
        {
            let inspection = self.generator.model().inspect(source, target);
            tell(job, &inspection);
        }
    }

    /// Takes texts that are to be judged.
    pub fn judge(&mut self, job: Judge) {
        self.judging.push_back((job, Vec::new()));
    }

    /// Judges one text of the first that wait for it; returns how many texts were judged. It takes as long as reading the text does:
    /// others, whose tokens wait for it, get theirs between two texts.
    fn judge_one(&mut self) -> usize {
        let Some((job, mut judged)) = self.judging.pop_front() else { return 0 };
        let Some(text) = job.texts.get(judged.len()) else {
            drop(job.places);
            let _ = job.reply.send(Ok(judged));
            return 0;
        };
        let (first, others) = text.split_at(text.len().min(1));
        let found = match others {
            [] => Vec::new(),
            others => self.generator.model().judge(&[(first, others)], job.top).swap_remove(0),
        };
        judged.push(found);
        self.judging.push_back((job, judged));
        1
    }

    /// Cancels sentences whose clients have gone.
    pub fn give_up(&mut self) {
        self.judging.retain(|(job, _)| !job.reply.is_closed());
        let gone = self.jobs.extract_if(|_, open| open.job.reply.is_closed());
        for (_, open) in gone {
            for (number, result) in open.results {
                self.sentences.remove(&number);
                if result.is_none() {
                    self.generator.cancel(number);
                }
            }
        }
    }

    /// Writes a token of every sentence, and judges a text; returns how many tokens, and sentences and texts, were finished with it.
    pub fn step(&mut self) -> (usize, usize) {
        let (jobs, sentences) = (&self.jobs, &self.sentences);
        let mut tokens = 0;
        self.generator.step_with(&mut |written| {
            tokens += 1;
            if let Some(&(job, place)) = sentences.get(&written.sentence)
                && let Some(Open { job: Decode { progress: Some(progress), .. }, results }) = jobs.get(&job)
                // The last draft of each sentence must find room.
                && progress.capacity() > results.len()
            {
                let (tokens, settled) = (written.tokens.to_vec(), written.settled());
                let _ =
                    progress.try_send(Draft { place, draw: written.draw, tokens, settled, finished: false });
            }
        });
        let mut finished = self.judge_one();
        let mut done = Vec::new();
        for (first, open) in &mut self.jobs {
            for (place, (number, result)) in open.results.iter_mut().enumerate() {
                if result.is_some() {
                    continue;
                }
                let Some(found) = self.generator.take(*number) else { continue };
                finished += 1;
                if let Some(progress) = &open.job.progress {
                    let tokens = found.first().map_or(Vec::new(), |best| best.tokens.clone());
                    let settled = tokens.len();
                    let _ = progress.try_send(Draft { place, draw: 0, tokens, settled, finished: true });
                }
                let sentence = &open.job.sentences[place];
                *result = Some(look_back(self.generator.model(), self.codec.as_ref(), sentence, found));
            }
            if open.results.iter().all(|(_, result)| result.is_some()) {
                done.push(*first);
            }
        }
        for first in done {
            if let Some(open) = self.jobs.remove(&first) {
                self.answer(open);
            }
        }
        (tokens, finished)
    }

    fn answer(&mut self, Open { job, results }: Open) {
        for (number, _) in &results {
            self.sentences.remove(number);
        }
        let found = results.into_iter().filter_map(|(_, result)| result).collect::<Result<Vec<_>, _>>();
        // Whoever reads the answer and asks again at once must find the places free.
        drop(job.places);
        let _ = job.reply.send(found.map(Decoded));
    }
}

/// The translations of a sentence, with all else that is wanted of them.
///
/// Only the model knows the weights that alignments are made from, and how probable other tokens were, and only this thread has the
/// model. Both are computed for each sentence as soon as it is finished, so that nobody waits for all sentences of a document at
/// once. Alignments are made here too: that takes little time beside the weights, which need much more memory.
fn look_back(
    steps: &dyn Seq2Seq,
    codec: Option<&Codec>,
    sentence: &Sentence,
    hypotheses: Vec<Hypothesis>,
) -> Result<Vec<Found>, Refusal> {
    let source = &sentence.request.source[..];
    let pairs: Vec<(&[u32], &[u32])> = hypotheses.iter().map(|one| (source, &one.tokens[..])).collect();
    let mut links = vec![Vec::new(); hypotheses.len()];
    if let Some(codec) = codec.filter(|_| sentence.align) {
        let matrices = steps.attention(&pairs, AttentionSelector::for_alignment(&steps.spec()))?;
        let align = |(matrix, (source, target)): (&AttentionMatrix, &(&[u32], &[u32]))| {
            codec.align(matrix, source, target)
        };
        links = matrices.iter().zip(&pairs).map(align).collect();
    }
    let mut top = vec![Vec::new(); hypotheses.len()];
    if sentence.top > 0 {
        top = steps.top(&pairs, sentence.top);
    }
    let found = hypotheses.into_iter().zip(links).zip(top);
    Ok(found.map(|((hypothesis, links), top)| Found { hypothesis, links, top }).collect())
}
