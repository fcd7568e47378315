//! What an encoder has to do: texts, or pictures, of all clients share its batches.

use super::inspect::tell;
use crate::job::{Encode, Inspect, Subject};
use crate::model::{EncoderModel, PictureModel, Ready};
use crate::refusal::Refusal;
use attentive_generate::Inspection;
use attentive_tasks::{Error, Kind, PictureKind, Texts};
use attentive_text::tokenizer::Encoding;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// A model that makes numbers of what it reads, batch by batch.
pub(super) trait Encodes {
    /// What can be done.
    type Kind: Copy + PartialEq;
    /// What it reads: a text or a picture.
    type Input;

    /// How large a batch may be, unless it has one input alone.
    fn most(&self) -> usize;

    /// How much of that an input takes.
    fn size(&self, input: &Self::Input) -> usize;

    /// The numbers of each input.
    fn compute(&self, kind: Self::Kind, inputs: &[&Self::Input]) -> Result<Vec<Vec<f32>>, Error>;

    /// All attentions within a text or a picture, if it is one that this model reads.
    fn inspect(&self, subject: &Subject) -> Option<Inspection>;
}

/// A batch has so many tokens.
impl Encodes for EncoderModel {
    type Kind = Kind;
    type Input = Encoding;

    fn most(&self) -> usize {
        self.encoder().batch_tokens()
    }

    fn size(&self, text: &Encoding) -> usize {
        text.len()
    }

    fn compute(&self, kind: Kind, texts: &[&Encoding]) -> Result<Vec<Vec<f32>>, Error> {
        let encodings = texts.iter().map(|&text| text.clone()).collect();
        EncoderModel::compute(self, kind, &Texts { encodings })
    }

    fn inspect(&self, subject: &Subject) -> Option<Inspection> {
        let Subject::Text(text) = subject else { return None };
        Some(self.encoder().inspect(text))
    }
}

/// A batch has so many pictures.
impl Encodes for PictureModel {
    type Kind = PictureKind;
    type Input = Ready;

    fn most(&self) -> usize {
        self.batch()
    }

    fn size(&self, _: &Ready) -> usize {
        1
    }

    fn compute(&self, kind: PictureKind, pictures: &[&Ready]) -> Result<Vec<Vec<f32>>, Error> {
        let pixels: Vec<_> = pictures.iter().map(|picture| &picture.pixels).collect();
        PictureModel::compute(self, kind, &pixels)
    }

    fn inspect(&self, subject: &Subject) -> Option<Inspection> {
        let Subject::Picture(pixels) = subject else { return None };
        Some(self.encoder()?.inspect(pixels))
    }
}

/// An encoder and what it has to do.
pub(super) struct EncoderWorker<M: Encodes> {
    model: Arc<M>,
    /// By their numbers.
    jobs: HashMap<u64, Open<M>>,
    /// The jobs that have inputs left, in the order of their turns. A batch takes one input of each job in turn, so that a request with
    /// one text need not wait for all texts of one that came before it.
    turns: VecDeque<u64>,
    /// The number of the next job.
    next: u64,
}

/// A job that is being done.
struct Open<M: Encodes> {
    job: Encode<M::Kind, M::Input>,
    /// How many of its inputs have been taken into a batch.
    taken: usize,
    /// What came of each input.
    results: Vec<Option<Vec<f32>>>,
}

/// Inputs that are computed together.
struct Batch<M: Encodes> {
    /// What is to be done.
    kind: M::Kind,
    /// Which job each input is of, and which of its inputs it is.
    of: Vec<(u64, usize)>,
}

impl<M: Encodes> EncoderWorker<M> {
    /// An encoder that has nothing to do yet.
    pub fn new(model: Arc<M>) -> EncoderWorker<M> {
        EncoderWorker { model, jobs: HashMap::new(), turns: VecDeque::new(), next: 0 }
    }

    /// Whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Takes inputs.
    pub fn encode(&mut self, job: Encode<M::Kind, M::Input>) {
        if job.inputs.is_empty() {
            let _ = job.reply.send(Ok(Vec::new()));
            return;
        }
        let results = vec![None; job.inputs.len()];
        self.jobs.insert(self.next, Open { job, taken: 0, results });
        self.turns.push_back(self.next);
        self.next += 1;
    }

    /// Looks into a text or a picture.
    pub fn inspect(&self, job: Inspect) {
        if !job.reply.is_closed()
            && let Some(inspection) = self.model.inspect(&job.subject)
        {
            tell(job, &inspection);
        }
    }

    /// Drops requests whose clients have gone, and computes a batch; returns how many inputs it had.
    pub fn step(&mut self) -> usize {
        self.jobs.retain(|_, open| !open.job.reply.is_closed());
        let Some(Batch { kind, of }) = self.batch() else { return 0 };
        let inputs: Vec<&M::Input> =
            of.iter().map(|(job, place)| &self.jobs[job].job.inputs[*place]).collect();
        match self.model.compute(kind, &inputs) {
            Ok(numbers) => {
                for ((job, place), numbers) in of.iter().zip(numbers) {
                    if let Some(open) = self.jobs.get_mut(job) {
                        open.results[*place] = Some(numbers);
                    }
                }
                self.answer();
            }
            Err(error) => {
                tracing::error!(%error, "a batch failed");
                for (job, _) in &of {
                    if let Some(Open { job, .. }) = self.jobs.remove(job) {
                        drop(job.places);
                        let _ = job.reply.send(Err(Refusal::fault()));
                    }
                }
            }
        }
        of.len()
    }

    /// The next batch, if there is anything to do.
    fn batch(&mut self) -> Option<Batch<M>> {
        let most = self.model.most();
        let (mut of, mut size) = (Vec::new(), 0);
        let mut kind = None;
        while let Some(&number) = self.turns.front() {
            let Some(Open { job, taken, .. }) = self.jobs.get_mut(&number) else {
                // It was given up.
                self.turns.pop_front();
                continue;
            };
            size += self.model.size(&job.inputs[*taken]);
            // A batch does one thing; what else there is waits for the next.
            if !of.is_empty() && (size > most || kind != Some(job.kind)) {
                break;
            }
            kind = Some(job.kind);
            self.turns.pop_front();
            of.push((number, *taken));
            *taken += 1;
            if *taken < job.inputs.len() {
                self.turns.push_back(number);
            }
        }
        Some(Batch { kind: kind?, of })
    }

    /// Answers the jobs of which all inputs are there.
    fn answer(&mut self) {
        for (_, Open { job, results, .. }) in
            self.jobs.extract_if(|_, open| open.results.iter().all(Option::is_some))
        {
            // Whoever reads the answer and asks again at once must find the places free.
            drop(job.places);
            let _ = job.reply.send(Ok(results.into_iter().flatten().collect()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::model::{self, Loaded, ModelPlace};
    use attentive_tensor::CpuBackend;
    use attentive_text::tokenizer::Input;
    use std::path::Path;
    use tokio::sync::Semaphore;
    use tokio::sync::oneshot::{self, Receiver};

    type Reply = Receiver<Result<Vec<Vec<f32>>, Refusal>>;

    fn worker() -> EncoderWorker<EncoderModel> {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden");
        let folder = std::env::temp_dir().join(format!(
            "attentive-worker-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::create_dir_all(&folder).unwrap();
        for file in ["config.json", "model.safetensors"] {
            std::fs::copy(golden.join("bert/hidden").join(file), folder.join(file)).unwrap();
        }
        let answers: serde_json::Value =
            serde_json::from_slice(&std::fs::read(golden.join("tasks.json")).unwrap()).unwrap();
        let words: Vec<String> = serde_json::from_value(answers["words"].clone()).unwrap();
        std::fs::write(folder.join("vocab.txt"), words.join("\n") + "\n").unwrap();
        let engine = Engine::on(CpuBackend::from_env().unwrap().shared());
        let loaded = model::load(&engine, &ModelPlace::folder(&folder)).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        let Loaded::Encoder(model) = loaded else { panic!("a BERT is an encoder") };
        EncoderWorker::new(model)
    }

    /// Hands texts to a worker.
    fn ask(worker: &mut EncoderWorker<EncoderModel>, texts: &[&str]) -> Reply {
        let inputs: Vec<Input> = texts.iter().map(|text| Input::Text(text)).collect();
        let inputs = worker.model.encoder().read(&inputs).unwrap().encodings.into();
        let (reply, receiver) = oneshot::channel();
        let places = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        worker.encode(Encode { model: 0, kind: Kind::Embed, inputs, reply, places });
        receiver
    }

    fn answer(reply: &mut Reply) -> Vec<Vec<f32>> {
        reply.try_recv().expect("an answer").expect("numbers")
    }

    #[test]
    fn texts_that_wait_together_are_one_batch() {
        let mut worker = worker();
        assert_eq!((worker.is_idle(), worker.step()), (true, 0));
        let mut replies = [ask(&mut worker, &["a dog", "zzz"]), ask(&mut worker, &["a dog"])];
        assert_eq!(worker.step(), 3);
        assert!(worker.is_idle());
        let [two, one] = replies.each_mut().map(answer);
        assert_eq!((two.len(), one.len()), (2, 1));
        assert_eq!(two[0], one[0]);
        assert_ne!(two[0], two[1]);
    }

    #[test]
    fn a_text_does_not_wait_for_all_texts_of_a_request_before_it() {
        let mut worker = worker();
        // Each has 16 tokens, and a batch 2048.
        let long = "a dog and a cat and a dog and a cat and a dog and";
        let mut many = ask(&mut worker, &[long; 300]);
        let mut one = ask(&mut worker, &["zzz"]);
        let batch = worker.step();
        assert!(batch > 100 && batch < 200, "{batch}");
        assert_eq!(answer(&mut one).len(), 1);
        assert!(many.try_recv().is_err());
        let mut texts = batch;
        while !worker.is_idle() {
            texts += worker.step();
        }
        assert_eq!((texts, answer(&mut many).len()), (301, 300));
    }

    #[test]
    fn what_nobody_waits_for_is_not_computed() {
        let mut worker = worker();
        let (gone, mut stays) = (ask(&mut worker, &["a dog"; 5]), ask(&mut worker, &["zzz"]));
        drop(gone);
        assert_eq!(worker.step(), 1);
        assert_eq!(answer(&mut stays).len(), 1);
        assert!(worker.is_idle() && worker.turns.is_empty());
    }
}
