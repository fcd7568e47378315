//! `POST /v1/summarize`: short texts for long ones, asked and answered as by the Inference API of Hugging Face.
//!
//! A text that is longer than the model reads is summarized in parts.

use crate::app::App;
use crate::aside::{self, aside};
use crate::body::json;
use crate::model::LanguageModel;
use crate::options::{SamplingAsk, SearchAsk};
use crate::prompts::{Prompt, PromptOrder};
use crate::refusal::Refusal;
use crate::texts::OneOrMany;
use attentive_generate::Hypothesis;
use attentive_tasks::StopStrings;
use axum::extract::{Request, State};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The request, and `model`, which is ours.
#[derive(Debug, Deserialize)]
pub(in crate::routes) struct Ask {
    inputs: OneOrMany,
    parameters: Option<Map<String, Value>>,
    model: Option<String>,
}

/// How to search, in the words of transformers. What would change the answer, and cannot be had, is refused. Lengths count the token
/// that a summary begins with, as there.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Parameters {
    min_length: Option<usize>,
    max_length: Option<usize>,
    max_new_tokens: Option<usize>,
    num_beams: Option<usize>,
    length_penalty: Option<f32>,
    do_sample: Option<bool>,
    temperature: Option<f32>,
    top_k: Option<usize>,
    top_p: Option<f32>,
    seed: Option<u64>,
}

/// A summary, and in how many parts the text was read.
#[derive(Debug, Serialize)]
struct Summary {
    summary_text: String,
    parts: usize,
}

pub(in crate::routes) async fn summarize(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, Refusal> {
    let ask: Ask = json(&app, request).await?;
    let (place, model) = app.summarizer(ask.model.as_deref())?;
    let own = model.summaries.as_ref().ok_or_else(Refusal::fault)?;
    let search = Parameters::read(ask.parameters.unwrap_or_default())?.search()?;
    let options = search.options(&own.options, &app.settings.limits).map_err(in_their_words)?;
    let texts = ask.inputs.into_vec();
    app.check("inputs", &texts)?;
    if app.settings.log_texts {
        tracing::info!(?texts, "to be summarized");
    }
    let reader = Arc::clone(&model);
    let (prompts, counts) = aside(move || read(&reader, &texts)).await?;
    let stops = StopStrings::default();
    let order = PromptOrder { place, model, options, stops, top: 0, judges: false, field: "inputs" };
    let found = app.begin_prompts(&order, &prompts, false)?.wait(&app).await?.found;
    let best: Vec<Hypothesis> =
        found.into_iter().filter_map(|found| Some(found.into_iter().next()?.hypothesis)).collect();
    let read = prompts.iter().map(|prompt| prompt.tokens.len()).sum();
    app.metrics.written(read, best.iter().map(|best| best.tokens.len()).sum());
    let summaries = aside(move || join(&order.model, &best, &counts)).await?;
    aside::json(move || summaries).await
}

impl Parameters {
    /// What a request says, beside each other or under `generate_parameters`. Nothing is cut off here, so that it does not matter how
    /// that would be done.
    fn read(mut asked: Map<String, Value>) -> Result<Parameters, Refusal> {
        if let Some(Value::Object(more)) = asked.remove("generate_parameters") {
            asked.extend(more);
        }
        for without_effect in ["truncation", "clean_up_tokenization_spaces"] {
            asked.remove(without_effect);
        }
        serde_json::from_value(Value::Object(asked)).map_err(|error| Refusal::field("parameters", error))
    }

    fn search(self) -> Result<SearchAsk, Refusal> {
        for (field, said, least) in
            [("max_length", self.max_length, 2), ("max_new_tokens", self.max_new_tokens, 1)]
        {
            if let Some(said) = said.filter(|&said| said < least) {
                let problem = format!("must be at least {least}, not {said}");
                return Err(Refusal::field(format!("parameters.{field}"), problem));
            }
        }
        if let (Some(least), Some(most)) = (self.min_length, self.max_length)
            && least > most
        {
            let problem = format!("must be at most `max_length`, which is {most}, not {least}");
            return Err(Refusal::field("parameters.min_length", problem));
        }
        // The first token, with which the decoder begins, counts there.
        let theirs = |length: usize| length.saturating_sub(1);
        let sampling = SamplingAsk {
            temperature: self.temperature,
            // The default of transformers.
            top_k: Some(self.top_k.unwrap_or(50)),
            top_p: self.top_p,
            min_p: None,
            seed: self.seed,
        };
        Ok(SearchAsk {
            beam: self.num_beams,
            length_penalty: self.length_penalty,
            min_length: self.min_length.map(theirs),
            max_length: self.max_new_tokens.or(self.max_length.map(theirs)),
            sampling: (self.do_sample == Some(true)).then_some(sampling),
            ..SearchAsk::default()
        })
    }
}

/// A refusal by the name that the field has here.
fn in_their_words(refusal: Refusal) -> Refusal {
    let Some(ours) = refusal.field.clone() else { return refusal };
    let theirs = match ours.trim_start_matches("sampling.") {
        "beam" => "num_beams",
        other => other,
    };
    let theirs = format!("parameters.{theirs}");
    Refusal { message: refusal.message.replacen(&ours, &theirs, 1), field: Some(theirs), ..refusal }
}

/// The parts of all texts, and how many each has.
fn read(model: &LanguageModel, texts: &[String]) -> Result<(Vec<Prompt>, Vec<usize>), Refusal> {
    let codec = &model.summaries.as_ref().ok_or_else(Refusal::fault)?.codec;
    let (mut prompts, mut counts) = (Vec::new(), Vec::with_capacity(texts.len()));
    for text in texts {
        let parts = codec.parts(text)?;
        counts.push(parts.len());
        prompts.extend(parts.into_iter().map(|tokens| Prompt { text: String::new(), tokens }));
    }
    Ok((prompts, counts))
}

/// The summary of each text, of what was written for its parts.
fn join(model: &LanguageModel, best: &[Hypothesis], counts: &[usize]) -> Result<Vec<Summary>, Refusal> {
    let codec = &model.summaries.as_ref().ok_or_else(Refusal::fault)?.codec;
    let mut rest = best;
    let summary = |&parts: &usize| {
        let (own, others) = rest.split_at(parts.min(rest.len()));
        rest = others;
        Ok(Summary { summary_text: codec.join(own)?, parts })
    };
    counts.iter().map(summary).collect()
}
