//! HTML documents: their sentences are translated like texts, and their tags follow the words that they were around.

use crate::app::App;
use crate::aside::aside;
use crate::order::{Done, Order};
use crate::refusal::Refusal;
use attentive_tasks::{Cut, Translated};
use attentive_text::html::{Block, Document};
use serde::Deserialize;
use std::sync::Arc;

/// What a text is.
#[derive(Debug, Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    #[default]
    Text,
    Html,
}

impl App {
    /// Translates texts or documents.
    pub async fn translate_as(
        self: &Arc<App>,
        format: Format,
        order: &Order,
        field: &str,
        texts: &[String],
    ) -> Result<Vec<Done>, Refusal> {
        match format {
            Format::Text => self.translate(order, field, texts).await,
            Format::Html => self.translate_documents(order, field, texts).await,
        }
    }

    /// Translates the sentences of all documents together.
    async fn translate_documents(
        self: &Arc<App>,
        order: &Order,
        field: &str,
        documents: &[String],
    ) -> Result<Vec<Done>, Refusal> {
        self.check(field, documents)?;
        let documents: Arc<[String]> = documents.into();
        let lines = {
            let documents = Arc::clone(&documents);
            let lines = |html: &String| Document::parse(html).blocks().iter().map(Block::line).collect();
            aside(move || Ok(documents.iter().flat_map::<Vec<String>, _>(lines).collect::<Vec<String>>()))
                .await?
        };
        // Tags are placed by alignment.
        let order = Order { align: true, ..order.clone() };
        let done = self.all(self.begin(&order, &lines, false).await?).await?;
        aside(move || {
            let mut done = done.into_iter();
            let whole = |html: &String| {
                // A document borrows its text, which no thread can take along: it is parsed again.
                let document = Document::parse(html);
                let blocks: Vec<Done> = done.by_ref().take(document.blocks().len()).collect();
                render(&document, &blocks, order.options.n_best)
            };
            Ok(documents.iter().map(whole).collect())
        })
        .await
    }
}

/// A document of its blocks. Its second best translation has the second best of each block; a block that has fewer repeats its
/// last.
fn render(document: &Document, blocks: &[Done], count: usize) -> Done {
    let mut cut = Cut::default();
    cut.parts = blocks.iter().flat_map(|block| block.cut.parts.iter().cloned()).collect();
    let most = blocks.iter().map(|block| block.best.len()).max().unwrap_or(1).min(count);
    let (best, ended) = (0..most).map(|rank| render_rank(document, blocks, rank)).unzip();
    Done { cut, best, ended, top: Vec::new() }
}

fn render_rank(document: &Document, blocks: &[Done], rank: usize) -> (Translated, bool) {
    let place = |block: &Done| rank.min(block.best.len().saturating_sub(1));
    let found: Vec<&Translated> = blocks.iter().filter_map(|block| block.best.get(place(block))).collect();
    let whole = Translated {
        text: document.render(found.iter().map(|best| (&best.text[..], &best.alignment[..]))),
        score: found.iter().map(|best| best.score).sum(),
        tokens: found.iter().flat_map(|best| best.tokens.iter().copied()).collect(),
        token_scores: found.iter().flat_map(|best| best.token_scores.iter().copied()).collect(),
        // Words of a document are not counted.
        alignment: Vec::new(),
        lost: found.iter().map(|best| best.lost.as_str()).collect(),
    };
    let ended = blocks.iter().all(|block| block.ended.get(place(block)).is_none_or(|ended| *ended));
    (whole, ended)
}
