//! The encoder: layers with disentangled attention over one table of distances.

use super::Disentangled;
use super::attention::{DisentangledAttention, Distances};
use super::convolution::Convolution;
use crate::builder::{Builder, Init};
use crate::error::Error;
use crate::layers::{EncoderLayer, LayerNorm, StackConfig};
use crate::sequences::Sequences;
use attentive_tensor::{Layout, Parameter, Tape, Var};

/// N layers, the table of distances, and the convolution of large models.
#[derive(Debug, Clone)]
pub(in crate::families) struct Encoder {
    layers: Vec<EncoderLayer<DisentangledAttention>>,
    table: Option<Table>,
    convolution: Option<Convolution>,
}

/// A row for each distance, or for each bucket of distances.
#[derive(Debug, Clone)]
struct Table {
    rows: Parameter,
    norm: Option<LayerNorm>,
    config: Disentangled,
}

impl Encoder {
    /// The whole stack.
    pub fn new(builder: &Builder, stack: &StackConfig, config: Disentangled) -> Result<Encoder, Error> {
        let d = stack.attention.d_model;
        let layer = |n| {
            let builder = builder.at(format_args!("layers.{n}"));
            let attention = DisentangledAttention::new(
                &builder.at("self_attn"),
                &stack.attention,
                config,
                stack.dropout,
            )?;
            EncoderLayer::with_attention(&builder, stack, attention)
        };
        let convolution = config.convolution.map(|(width, activation)| {
            Convolution::new(&builder.at("conv"), [d, width], activation, (stack.epsilon, stack.dropout))
        });
        Ok(Encoder {
            layers: (0..stack.layers).map(layer).collect::<Result<_, _>>()?,
            table: config.relative.then(|| Table::new(builder, d, stack.epsilon, config)).transpose()?,
            convolution: convolution.transpose()?,
        })
    }

    /// Hidden states to hidden states; `see` is shown those behind each layer.
    pub fn forward(
        &self,
        tape: &Tape,
        x: &Var,
        sequences: &Sequences,
        layout: &Layout,
        mut see: impl FnMut(&Var),
    ) -> Var {
        let distances = self.table.as_ref().map(|table| table.distances(tape, sequences));
        let mut y = x.clone();
        for (n, layer) in self.layers.iter().enumerate() {
            y = layer.forward_with(tape, &y, |attention, y| {
                attention.forward(tape, y, layout, distances.as_ref())
            });
            if let Some(convolution) = self.convolution.as_ref().filter(|_| n == 0) {
                y = tape.watch_state_again(convolution.forward(tape, x, &y, sequences));
            }
            see(&y);
        }
        y
    }
}

impl Table {
    fn new(builder: &Builder, d_model: usize, epsilon: f32, config: Disentangled) -> Result<Table, Error> {
        let norm = || LayerNorm::new(&builder.at("distance_norm"), d_model, epsilon);
        let init = Init::Normal((d_model as f32).powf(-0.5));
        Ok(Table {
            rows: builder.at("embed_distances").parameter("weight", [2 * config.span(), d_model], init)?,
            norm: config.normed.then(norm).transpose()?,
            config,
        })
    }

    /// The rows of the distances that there are in a batch.
    fn distances(&self, tape: &Tape, sequences: &Sequences) -> Distances {
        let longest = sequences.ranges().map(|rows| rows.len()).max().unwrap_or(0);
        let far = longest.saturating_sub(1) as i64;
        // The table counts from query to key. Its rows are taken in the order of distances from key to query, so that the buckets rise.
        let rows: Vec<usize> = (-far..=far).map(|distance| self.config.row(-distance)).collect();
        let (first, last) = (rows[0], rows[rows.len() - 1]);
        let ids: Vec<i32> = (last..=first).rev().map(|row| row as i32).collect();
        let buckets: Vec<i32> = rows.iter().map(|row| (first - row) as i32).collect();
        let backend = tape.backend();
        let rows = tape.embedding(&tape.parameter(&self.rows), &backend.upload_i32(&ids), 1.0, None);
        Distances {
            rows: self.norm.as_ref().map_or(rows.clone(), |norm| norm.forward(tape, &rows)),
            buckets: backend.upload_i32(&buckets),
        }
    }
}
