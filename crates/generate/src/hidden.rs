//! The steps of a model whose hidden states can be looked at.

use crate::error::Error;
use serde::{Deserialize, Serialize};

/// A stack of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stack {
    /// The encoder.
    Encoder,
    /// The decoder, with an encoder or alone.
    Decoder,
}

/// A place in a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// Embedded tokens, with what is added to them before the first layer.
    Embedding,
    /// Behind the self-attention of a layer and its residual connection.
    Attention,
    /// Behind its attention to the encoder.
    Cross,
    /// Behind its feed-forward network: what the layer passes on.
    FeedForward,
    /// What leaves the stack, through its norm if there is one.
    Output,
}

/// A step of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// In which stack it is.
    pub stack: Stack,
    /// Where in it.
    pub point: Point,
    /// In which layer, counted from 0, if it is in one.
    #[serde(default)]
    pub layer: usize,
}

/// What a model has in its stacks; no layers mean no stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layers {
    pub encoder: usize,
    pub decoder: usize,
}

impl Step {
    /// All steps of a model of these sizes, in the order in which they are computed.
    pub fn all(encoder_layers: usize, decoder_layers: usize) -> Vec<Step> {
        let layers = Layers { encoder: encoder_layers, decoder: decoder_layers };
        [Stack::Encoder, Stack::Decoder].into_iter().flat_map(|stack| layers.steps(stack)).collect()
    }
}

impl Layers {
    /// The index of a step among all.
    pub fn index(self, step: Step) -> Result<usize, Error> {
        let all = Step::all(self.encoder, self.decoder);
        all.iter().position(|other| *other == step).ok_or_else(|| {
            let problem = match step.point {
                Point::Embedding | Point::Output => "the model has no such stack".to_owned(),
                _ => format!("there is no such step in layer {}, counted from 0", step.layer),
            };
            Error::option("hidden", problem)
        })
    }

    fn steps(self, stack: Stack) -> Vec<Step> {
        let (layers, points) = match stack {
            Stack::Encoder => (self.encoder, &[Point::Attention, Point::FeedForward][..]),
            Stack::Decoder if self.encoder == 0 => {
                (self.decoder, &[Point::Attention, Point::FeedForward][..])
            }
            Stack::Decoder => (self.decoder, &[Point::Attention, Point::Cross, Point::FeedForward][..]),
        };
        if layers == 0 {
            return Vec::new();
        }
        let step = |point, layer| Step { stack, point, layer };
        let inside = (0..layers).flat_map(|layer| points.iter().map(move |&point| step(point, layer)));
        [step(Point::Embedding, 0)].into_iter().chain(inside).chain([step(Point::Output, 0)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_has_its_place_and_others_are_refused() {
        let both = Layers { encoder: 2, decoder: 1 };
        for (place, step) in Step::all(2, 1).into_iter().enumerate() {
            assert_eq!(both.index(step).unwrap(), place);
        }
        assert_eq!((Step::all(2, 1).len(), Step::all(0, 3).len(), Step::all(3, 0).len()), (6 + 5, 8, 8));
        let refused = |layers: Layers, point, layer| {
            layers.index(Step { stack: Stack::Decoder, point, layer }).unwrap_err().to_string()
        };
        let alone = Layers { encoder: 0, decoder: 3 };
        assert_eq!(
            refused(alone, Point::Cross, 1),
            "hidden: there is no such step in layer 1, counted from 0"
        );
        assert_eq!(
            refused(alone, Point::Attention, 3),
            "hidden: there is no such step in layer 3, counted from 0"
        );
        let encoder = Layers { encoder: 3, decoder: 0 };
        assert_eq!(refused(encoder, Point::Output, 0), "hidden: the model has no such stack");
    }
}
