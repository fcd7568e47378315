//! Token embeddings.

use super::Linear;
use crate::builder::{Builder, Init};
use crate::error::Error;
use attentive_tensor::{Backend, Block, Parameter, Rectangle, Tape, Tensor, Var};

/// The sizes of an embedding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddingConfig {
    /// The number of tokens.
    pub vocab_size: usize,
    /// The width of the table.
    pub d_emb: usize,
    /// The width of the model; where it differs, a dense layer leads from one to the other.
    pub d_model: usize,
    /// The token of padding, if there is one: its row starts as zeros and takes no gradient.
    pub padding: Option<usize>,
    /// Whether rows are multiplied by √d_emb, as in the paper.
    pub scaled: bool,
}

/// `√d_emb` times the row of each token: √d_model in section 3.4 of the paper, where the two widths are the same.
#[derive(Debug, Clone)]
pub struct Embedding {
    table: Parameter,
    /// The table as the output multiplies with it.
    output: Parameter,
    dense: Option<Linear>,
    scale: f32,
    padding: Option<usize>,
}

impl Embedding {
    /// An embedding with rows drawn from N(0, d_emb^-1/2), so that they leave with variance one.
    pub fn new(builder: &Builder, config: &EmbeddingConfig) -> Result<Embedding, Error> {
        let &EmbeddingConfig { vocab_size, d_emb, d_model, padding, scaled } = config;
        let table =
            builder.parameter("weight", [vocab_size, d_emb], Init::Normal((d_emb as f32).powf(-0.5)))?;
        if let Some(padding) = padding.filter(|_| builder.is_random()) {
            table.update(|table| without_row(&**builder.backend(), &table, padding));
        }
        let dense = (d_emb != d_model).then(|| Linear::new(&builder.at("dense"), d_emb, d_model));
        let scale = if scaled { (d_emb as f32).sqrt() } else { 1.0 };
        Ok(Embedding { output: table.clone(), table, dense: dense.transpose()?, scale, padding })
    }

    /// The same with a table that the output shares ([`Head::tied`](super::Head::tied)). Before other weights are read: for a moment
    /// there are two tables.
    pub fn tied(self, builder: &Builder) -> Result<Embedding, Error> {
        Ok(Embedding { output: builder.tied_weights(&self.table)?, ..self })
    }

    /// `[tokens]` of `i32` to `[tokens, d_model]`.
    pub fn forward(&self, tape: &Tape, ids: &Tensor) -> Var {
        let rows = tape.embedding(&tape.parameter(&self.table), ids, self.scale, self.padding);
        self.dense.as_ref().map_or(rows.clone(), |dense| dense.forward(tape, &rows))
    }

    /// The table, `[vocab_size, d_emb]`, for the output.
    pub(super) fn output(&self) -> &Parameter {
        &self.output
    }
}

/// A table with zeros in one row.
fn without_row(backend: &dyn Backend, table: &Tensor, row: usize) -> Tensor {
    let (rows, cols) = (table.shape().rows(), table.shape().cols());
    let part = |start: usize, end: usize| Block {
        x: table,
        place: Rectangle { from: [start, 0], to: [start, 0], size: [end - start, cols] },
    };
    backend.assemble(table.shape(), &[part(0, row), part(row + 1, rows)], None)
}
