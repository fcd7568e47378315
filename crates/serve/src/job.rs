//! Messages to the thread that computes, and its answers.

use crate::attention::Part;
use crate::model::Ready;
use crate::refusal::Refusal;
use attentive_generate::{
    AttentionMatrix, AttentionSelector, HeadVectors, Hypothesis, Judged, Link, Options, Request, Step, Stop,
};
use attentive_image::Pixels;
use attentive_tasks::{Kind, PictureKind};
use attentive_tensor::Best;
use attentive_text::tokenizer::Encoding;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

/// The places of sentences in the server. Whoever has one gives it back by dropping it.
pub(crate) type Places = OwnedSemaphorePermit;

/// Something to be computed.
pub(crate) enum Job {
    Decode(Decode),
    Inspect(Inspect),
    Judge(Judge),
    Encode(Encode<Kind, Encoding>),
    See(Encode<PictureKind, Ready>),
    /// No more will come.
    Leave,
}

/// Sentences that belong to one text, or the prompts of one request.
pub(crate) struct Decode {
    /// The place of the model among all.
    pub model: usize,
    pub sentences: Vec<Sentence>,
    /// Who wants to see how far they are. Whoever reads too slowly misses drafts: the next one has all that they had.
    pub progress: Option<Sender<Draft>>,
    pub reply: oneshot::Sender<Result<Decoded, Refusal>>,
    pub places: Places,
}

/// One sentence, and how to decode it.
pub(crate) struct Sentence {
    pub request: Request,
    pub options: Options,
    /// What numbers its draws.
    pub stream: u64,
    /// Whether its words are to be aligned.
    pub align: bool,
    /// How many of the most probable tokens are wanted in the place of each token.
    pub top: usize,
    /// What else ends it.
    pub stops: Vec<Arc<dyn Stop>>,
}

/// What has been written of a sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Draft {
    /// Which of the sentences.
    pub place: usize,
    /// Which of its draws; always 0 where nothing is drawn.
    pub draw: usize,
    pub tokens: Vec<u32>,
    /// How many of the tokens cannot change any more.
    pub settled: usize,
    /// Whether it is the last.
    pub finished: bool,
}

/// What is looked into.
pub(crate) enum Subject {
    /// A source, and what was written for it.
    Tokens([Vec<u32>; 2]),
    /// A text that an encoder reads.
    Text(Encoding),
    /// A picture.
    Picture(Pixels),
}

/// What is wanted of a look into something.
#[derive(Debug, Clone)]
pub(crate) struct Views {
    /// The attentions whose weights are wanted.
    pub selectors: Vec<AttentionSelector>,
    /// The part of their scores that the weights are of, where not all of them count.
    pub part: Option<Part>,
    /// The head whose vectors are wanted.
    pub vectors: Option<AttentionSelector>,
    /// The step whose hidden states are wanted.
    pub hidden: Option<Step>,
}

/// A look into a sentence or a text.
pub(crate) struct Inspect {
    pub model: usize,
    pub subject: Subject,
    pub views: Views,
    pub reply: oneshot::Sender<Result<Inspected, Refusal>>,
    pub places: Places,
}

/// What was seen.
#[derive(Debug)]
pub(crate) struct Inspected {
    pub weights: Vec<AttentionMatrix>,
    pub vectors: Option<HeadVectors>,
    /// A vector for each token.
    pub hidden: Option<Vec<Vec<f32>>>,
}

/// Texts of which the model is to tell what it thinks of each token.
pub(crate) struct Judge {
    /// The place of the model among all.
    pub model: usize,
    /// The tokens of each; none has more than the model reads.
    pub texts: Vec<Vec<u32>>,
    /// How many of the most probable tokens are wanted in the place of each token.
    pub top: usize,
    /// Of each text, what is thought of each token but the first, before which there is nothing.
    pub reply: oneshot::Sender<Result<Vec<Vec<Judged>>, Refusal>>,
    pub places: Places,
}

/// Texts for an encoder, or pictures.
pub(crate) struct Encode<K, I> {
    /// The place of the model among all.
    pub model: usize,
    /// What is to be done.
    pub kind: K,
    /// One at least.
    pub inputs: Arc<[I]>,
    /// The numbers of each: its vector, or a logit for each class, or for each label of each word.
    pub reply: oneshot::Sender<Result<Vec<Vec<f32>>, Refusal>>,
    pub places: Places,
}

/// What came of the sentences of a text: the translations of each, best first.
#[derive(Debug, Default)]
pub(crate) struct Decoded(pub Vec<Vec<Found>>);

/// One translation of a sentence.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub hypothesis: Hypothesis,
    /// Which word comes from which; none if nobody wants to know.
    pub links: Vec<Link>,
    /// The most probable tokens in the place of each of its tokens; none if nobody wants to know.
    pub top: Vec<Vec<Best>>,
}
