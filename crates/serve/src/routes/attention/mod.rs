//! Our own `POST /v1/attention`: who looks at whom, and with which queries, keys and values.

mod picture;
mod text;

use crate::app::App;
use crate::aside;
use crate::attention::{Attention, Kind, Part};
use crate::body::{WithFiles, with_files};
use crate::chosen::Chosen;
use crate::document::Format;
use crate::hidden::Hidden;
use crate::job::{Inspected, Subject, Views};
use crate::order::Order;
use crate::refusal::Refusal;
use attentive_generate::{AttentionKind, AttentionMatrix, AttentionSelector, Options, Sizes, Step};
use attentive_tasks::Split;
use axum::extract::{Request, State};
use axum::response::Response;
use serde::Deserialize;
use std::sync::Arc;

/// The request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    model: Option<String>,
    text: Option<String>,
    /// A picture in base64, for a model that reads pictures; the file of a form takes its place.
    image: Option<String>,
    /// The patch of the picture that looks; the class token without a word.
    patch: Option<[usize; 2]>,
    /// Whether the picture is wanted as the model sees it.
    return_image: Option<bool>,
    source: Option<String>,
    target: Option<String>,
    /// What the text was translated to; the model translates it otherwise.
    translation: Option<String>,
    translation_tokens: Option<Vec<u32>>,
    /// All if none are given.
    kinds: Option<Vec<Kind>>,
    layers: Option<Vec<usize>>,
    /// Heads; null is the mean of all. All and their mean if none are given.
    heads: Option<Vec<Option<usize>>>,
    /// The part of scores that is weighed, in attentions with a bias; all if none is given.
    part: Option<Part>,
    vectors: Option<VectorsAsk>,
    /// The step whose hidden states are wanted.
    hidden: Option<Step>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct VectorsAsk {
    kind: Kind,
    layer: usize,
    head: usize,
}

/// Weights that one answer may have: as many as a hundred tokens in all heads of a large model.
const MOST: usize = 4_000_000;

/// What is to be looked at.
#[derive(Debug)]
struct Wanted {
    views: Views,
}

impl Wanted {
    /// What a request asks of a model of these sizes.
    fn new(ask: &Ask, sizes: &Sizes) -> Result<Wanted, Refusal> {
        let vectors = ask.vectors.map(|of| selector(of.kind, of.layer, Some(of.head)));
        vectors.map_or(Ok(()), |asked| check(asked, sizes, "vectors"))?;
        let (part, hidden) = (ask.part, ask.hidden);
        Ok(Wanted { views: Views { selectors: selectors(ask, sizes)?, part, vectors, hidden } })
    }

    /// Refuses what would be too much for an answer, by the numbers of tokens.
    fn check(&self, source: usize, target: usize) -> Result<(), Refusal> {
        let weights = |selector: &AttentionSelector| match selector.kind {
            AttentionKind::Encoder | AttentionKind::Causal => source * source,
            AttentionKind::Decoder => target * target,
            AttentionKind::Cross => target * source,
        };
        let weights: usize = self.views.selectors.iter().map(weights).sum();
        self.check_weights("text", weights)
    }

    /// The same of a picture with so many tokens, of which one looks.
    fn check_picture(&self, tokens: usize) -> Result<(), Refusal> {
        self.check_weights("image", self.views.selectors.len() * tokens)
    }

    fn check_weights(&self, field: &str, weights: usize) -> Result<(), Refusal> {
        if weights > MOST {
            let problem = format!(
                "the answer would have {weights} weights, but the maximum is {MOST}: request fewer layers or heads"
            );
            return Err(Refusal::too_large(field, problem));
        }
        Ok(())
    }

    /// The answer: `attention` makes it of the weights that were seen, and what else was seen is put to it.
    fn answer(
        &self,
        seen: Inspected,
        attention: impl FnOnce(Vec<(AttentionSelector, AttentionMatrix)>) -> Attention,
    ) -> Attention {
        let Inspected { weights, vectors, hidden } = seen;
        let weights = self.views.selectors.iter().copied().zip(weights).collect();
        let mut answer = match self.views.part {
            None => attention(weights),
            Some(part) => attention(Vec::new()).with_part(part, weights),
        };
        if let Some((selector, vectors)) = self.views.vectors.zip(vectors) {
            answer = answer.with_vectors(selector, vectors);
        }
        match self.views.hidden.zip(hidden) {
            Some((step, vectors)) => answer.with_hidden(Hidden::new(step, &vectors)),
            None => answer,
        }
    }
}

pub(super) async fn attention(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let WithFiles { fields: ask, files, place } = with_files::<Ask>(&app, request).await?;
    let is_picture = !files.is_empty() || ask.image.is_some();
    if is_picture || app.is_for_pictures(ask.model.as_deref(), |model| model.picture().is_none())? {
        let answer = picture::attention(&app, ask, files).await;
        drop(place);
        return answer;
    }
    for (field, is_asked) in [("patch", ask.patch.is_some()), ("return_image", ask.return_image.is_some())] {
        if is_asked {
            return Err(Refusal::field(field, "not supported: the request has no picture"));
        }
    }
    let text = ask.text.as_deref().ok_or_else(|| Refusal::field("text", "is missing"))?;
    match app.text_model(ask.model.as_deref())? {
        Some((place, model)) => text::attention(&app, &ask, text, place, model).await,
        None => of_translation(&app, &ask, text).await,
    }
}

/// Between a text and its translation.
async fn of_translation(app: &Arc<App>, ask: &Ask, text: &str) -> Result<Response, Refusal> {
    let from = ask.source.as_deref().filter(|source| *source != "auto");
    let chosen = app.model(ask.model.as_deref(), from, ask.target.as_deref())?;
    let chosen = chosen.for_texts(Format::Text, &[text]);
    let wanted = Wanted::new(ask, &chosen.model.sizes)?;
    let source = source(app, &chosen, text).await?;
    let until = app.until();
    let target = target(app, &chosen, ask, text).await?;
    wanted.check(source.len(), target.len())?;
    let subject = Subject::Tokens([source.clone(), target.clone()]);
    let seen = app.inspect(chosen.place, subject, wanted.views.clone(), until).await?;
    aside::json(move || {
        let model = &chosen.model;
        wanted.answer(seen, |weights| Attention::new(&model.name, &model.codec, [&source, &target], weights))
    })
    .await
}

/// The tokens of the source, which must be one that the model reads at once.
async fn source(app: &App, chosen: &Chosen, text: &str) -> Result<Vec<u32>, Refusal> {
    app.check("text", &[text])?;
    let mut cut = chosen.cut_aside(text, Split::Whole).await?;
    match cut.parts.len() {
        0 => Err(Refusal::field("text", "the text is empty")),
        1 => Ok(cut.parts.swap_remove(0).source),
        parts => {
            let problem =
                format!("the text is split into {parts} parts: send one line or sentence at a time");
            Err(Refusal::field("text", problem))
        }
    }
}

/// The tokens of the translation, as they were given or as the model writes them.
async fn target(app: &Arc<App>, chosen: &Chosen, ask: &Ask, text: &str) -> Result<Vec<u32>, Refusal> {
    let spec = chosen.model.codec.spec();
    let target = match (&ask.translation, &ask.translation_tokens) {
        (Some(_), Some(_)) => {
            return Err(Refusal::field("translation", "cannot be used together with `translation_tokens`"));
        }
        (Some(text), None) => {
            app.check("translation", &[text])?;
            let mut tokens = chosen.model.codec.prefix(text)?;
            tokens.push(spec.eos);
            tokens
        }
        (None, Some(tokens)) => tokens.clone(),
        (None, None) => {
            let options = Options { n_best: 1, ..chosen.options() };
            let order = Order::new(chosen.clone(), options, Split::Whole);
            let done = app.translate(&order, "text", &[text]).await?;
            done.into_iter().flat_map(|done| done.best).map(|best| best.tokens).next().unwrap_or_default()
        }
    };
    let field = if ask.translation.is_some() { "translation" } else { "translation_tokens" };
    if target.is_empty() || target.len() > spec.max_target {
        let problem = format!("must have from 1 to {} tokens, not {}", spec.max_target, target.len());
        return Err(Refusal::field(field, problem));
    }
    match target.iter().find(|&&token| token as usize >= spec.vocabulary) {
        Some(token) => Err(Refusal::field(
            field,
            format!(
                "there is no token {token}: the vocabulary has {} tokens, counted from 0",
                spec.vocabulary
            ),
        )),
        None => Ok(target),
    }
}

/// The attentions that are asked for, layer by layer; in each the heads, and then their mean.
fn selectors(ask: &Ask, sizes: &Sizes) -> Result<Vec<AttentionSelector>, Refusal> {
    let all = [Kind::Encoder, Kind::Decoder, Kind::Cross, Kind::Causal];
    let there = || all.into_iter().filter(|&kind| sizes.layers(kind.into()) > 0).collect();
    let kinds = ask.kinds.clone().unwrap_or_else(there);
    let mut selectors = Vec::new();
    for (place, &kind) in kinds.iter().enumerate() {
        if kinds[..place].contains(&kind) {
            return Err(Refusal::field("kinds", "a kind can be requested only once"));
        }
        let (layers_there, count) = (sizes.layers(kind.into()), sizes.heads(kind.into()));
        if layers_there == 0 {
            return Err(Refusal::field("kinds", "the model has no attention of this kind"));
        }
        let heads = ask.heads.clone().unwrap_or_else(|| (0..count).map(Some).chain([None]).collect());
        let layers = ask.layers.clone().unwrap_or_else(|| (0..layers_there).collect());
        if layers.len() > layers_there || heads.len() > count + 1 {
            return Err(Refusal::field(
                "layers",
                "there are more layers or heads in the request than in the model",
            ));
        }
        for &layer in &layers {
            for &head in &heads {
                let selector = selector(kind, layer, head);
                check(selector, sizes, "")?;
                selectors.push(selector);
            }
        }
    }
    Ok(selectors)
}

fn selector(kind: Kind, layer: usize, head: Option<usize>) -> AttentionSelector {
    AttentionSelector { kind: kind.into(), layer, head }
}

/// Whether a model has such a layer and head; `inside` is the field that they are in.
fn check(selector: AttentionSelector, sizes: &Sizes, inside: &str) -> Result<(), Refusal> {
    let layers = sizes.layers(selector.kind);
    let field = |alone: &str, many: &str| {
        if inside.is_empty() { many.to_owned() } else { format!("{inside}.{alone}") }
    };
    if selector.layer >= layers {
        let problem =
            format!("there is no layer {}; the model has {layers} layers, counted from 0", selector.layer);
        return Err(Refusal::field(field("layer", "layers"), problem));
    }
    let heads = sizes.heads(selector.kind);
    match selector.head.filter(|head| *head >= heads) {
        Some(head) => {
            let problem = format!("there is no head {head}; the model has {heads} heads, counted from 0");
            Err(Refusal::field(field("head", "heads"), problem))
        }
        None => Ok(()),
    }
}
