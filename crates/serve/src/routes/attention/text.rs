//! Attention within a text: of an encoder, or of a language model.

use super::{Ask, Wanted};
use crate::app::App;
use crate::aside::{self, aside};
use crate::attention::Attention;
use crate::job::Subject;
use crate::model::{EncoderModel, LanguageModel, TextModel};
use crate::refusal::Refusal;
use attentive_generate::Sizes;
use attentive_text::tokenizer::{Encoding, Input};
use axum::response::Response;
use std::sync::Arc;

/// A text as a model reads it.
#[derive(Debug, Clone)]
enum Read {
    Encoding(Arc<EncoderModel>, Encoding),
    Tokens(Arc<LanguageModel>, Vec<u32>),
}

/// Looks into a text.
pub(super) async fn attention(
    app: &App,
    ask: &Ask,
    text: &str,
    place: usize,
    model: TextModel,
) -> Result<Response, Refusal> {
    for (field, is_asked) in [
        ("source", ask.source.is_some()),
        ("target", ask.target.is_some()),
        ("translation", ask.translation.is_some()),
        ("translation_tokens", ask.translation_tokens.is_some()),
    ] {
        if is_asked {
            return Err(Refusal::field(field, "not supported: the model does not translate"));
        }
    }
    app.check("text", &[text])?;
    if text.is_empty() {
        return Err(Refusal::field("text", "the text is empty"));
    }
    let wanted = Wanted::new(ask, &sizes(&model))?;
    let until = app.until();
    let text = text.to_owned();
    let read = aside(move || read(model, &text)).await?;
    let (tokens, subject) = match &read {
        Read::Encoding(_, encoding) => (encoding.len(), Subject::Text(encoding.clone())),
        // Of a target, the last token is not read.
        Read::Tokens(_, tokens) => (tokens.len(), Subject::Tokens([tokens.clone(), tokens[..1].to_vec()])),
    };
    wanted.check(tokens, 0)?;
    let seen = app.inspect(place, subject, wanted.views.clone(), until).await?;
    aside::json(move || {
        wanted.answer(seen, |weights| match &read {
            Read::Encoding(model, encoding) => {
                Attention::of_text(&model.name, model.encoder().tokenizer(), encoding, weights)
            }
            Read::Tokens(model, tokens) => {
                Attention::of_tokens(&model.name, model.codec.tokenizer(), tokens, weights)
            }
        })
    })
    .await
}

/// What a model reads; a text that is too long is refused.
fn read(model: TextModel, text: &str) -> Result<Read, Refusal> {
    let too_long = |tokens: usize, most: usize| {
        let problem =
            format!("the text has {tokens} tokens, but the model reads at most {most}: shorten the text");
        Refusal::field("text", problem)
    };
    match model {
        TextModel::Encoder(model) => {
            let texts = model.encoder().read(&[Input::Text(text)]);
            let encoding = texts.map_err(|error| Refusal::of_text("text", error))?.encodings.swap_remove(0);
            match encoding.cut {
                [0, 0] => Ok(Read::Encoding(model, encoding)),
                [first, second] => Err(too_long(encoding.len() + first + second, model.encoder().limit())),
            }
        }
        TextModel::Language(model) => {
            let (tokens, most) = (model.codec.encode(text)?, model.codec.spec().max_target);
            match tokens.len() {
                0 => Err(Refusal::field("text", "the text has no tokens")),
                count if count > most => Err(too_long(count, most)),
                _ => Ok(Read::Tokens(model, tokens)),
            }
        }
    }
}

/// How large a model is. An encoder has no decoder.
fn sizes(model: &TextModel) -> Sizes {
    match model {
        TextModel::Language(model) => model.sizes,
        TextModel::Encoder(model) => model.encoder().sizes(),
    }
}
