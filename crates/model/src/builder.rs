//! How layers get their parameters: by name, fresh from a random generator or from a checkpoint.

use crate::checkpoint::{Checkpoint, Stored};
use crate::error::Error;
use attentive_tensor::{
    Backend, Buffer, DType, Distribution, Form, Parameter, Random, Raw, Role, Shape, Tensor,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// The bytes from which on a table is not kept twice.
const LARGE_TABLE: usize = 1 << 26;

/// The first values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init {
    /// Uniform in ±√(6 / (in + out)), after Glorot and Bengio.
    Xavier,
    /// Normally distributed with this standard deviation.
    Normal(f32),
    /// All zero.
    Zeros,
    /// All one.
    Ones,
}

impl Init {
    /// The same for numbers that are not random, N(0, deviation) for those that are.
    fn with_deviation(self, deviation: f32) -> Init {
        match self {
            Init::Xavier | Init::Normal(_) => Init::Normal(deviation),
            Init::Zeros | Init::Ones => self,
        }
    }
}

/// The names of parts, and the standard deviation of their random matrices.
pub type DeviationOf = (&'static [&'static str], f32);

/// Makes the parameters of layers and keeps a list of them.
///
/// A layer asks for its parameters by their last name; [`Builder::at`] puts the names of the layers before it.
#[derive(Clone)]
pub struct Builder<'a> {
    backend: Arc<dyn Backend>,
    source: Source<'a>,
    prefix: String,
    /// What weights of products are prepared for; none lets them be learned and saved.
    form: Option<Form>,
    role: Role,
    /// The standard deviation of all random matrices, where it is not that of each layer.
    deviation: Option<f32>,
    /// Parts whose matrices have another one.
    parts: Rc<[DeviationOf]>,
    made: Rc<RefCell<Vec<Parameter>>>,
}

#[derive(Clone, Copy)]
enum Source<'a> {
    Random(Random),
    Checkpoint(&'a Checkpoint),
    Shapes,
    ShapesOf(&'a Checkpoint),
}

impl<'a> Builder<'a> {
    /// Parameters with random first values.
    pub fn random(backend: &Arc<dyn Backend>, seed: u64) -> Builder<'static> {
        Builder::new(backend, Source::Random(Random::new(seed)))
    }

    /// Parameters with the values of a checkpoint.
    pub fn checkpoint(backend: &Arc<dyn Backend>, checkpoint: &'a Checkpoint) -> Builder<'a> {
        Builder::new(backend, Source::Checkpoint(checkpoint))
    }

    /// Parameters without memory: what is made of them can be counted and listed, whatever its size, but not run.
    pub fn shapes(backend: &Arc<dyn Backend>) -> Builder<'static> {
        Builder::new(backend, Source::Shapes)
    }

    /// The same for those of a checkpoint, whose shapes must fit.
    pub fn shapes_of(backend: &Arc<dyn Backend>, checkpoint: &'a Checkpoint) -> Builder<'a> {
        Builder::new(backend, Source::ShapesOf(checkpoint))
    }

    fn new<'b>(backend: &Arc<dyn Backend>, source: Source<'b>) -> Builder<'b> {
        Builder {
            backend: Arc::clone(backend),
            source,
            prefix: String::new(),
            form: None,
            role: Role::Product,
            deviation: None,
            parts: Rc::default(),
            made: Rc::default(),
        }
    }

    /// The same builder with the weights of products as the backend likes to multiply with them (its `prepare`), in its
    /// precision: for decoding, not to be trained or saved.
    pub fn packed(self) -> Builder<'a> {
        Builder { form: Some(Form::Precise), ..self }
    }

    /// The same builder with the weights of products in int8: for decoding, not to be trained or saved.
    pub fn in_int8(self) -> Builder<'a> {
        Builder { form: Some(Form::Int8), ..self }
    }

    /// The same builder with the weights of products as they are.
    pub(crate) fn unprepared(&self) -> Builder<'a> {
        Builder { form: None, ..self.clone() }
    }

    /// Whether weights are only to be computed with: not to be learned or saved.
    pub fn is_packed(&self) -> bool {
        self.form.is_some()
    }

    /// The same builder for weights of products that are not to be rounded to int8.
    pub(crate) fn precise(&self) -> Builder<'a> {
        Builder { form: self.form.map(|_| Form::Precise), ..self.clone() }
    }

    /// The same builder for weights whose products go to a cache.
    pub(crate) fn in_role(self, role: Role) -> Builder<'a> {
        Builder { role, ..self }
    }

    /// The same builder with random first values, whatever the checkpoint has: for parts that are to be learned anew.
    pub fn fresh(&self, seed: u64) -> Builder<'a> {
        Builder { source: Source::Random(Random::new(seed)), ..self.clone() }
    }

    /// The same builder whose random matrices are all drawn from N(0, deviation), as BERT has it.
    pub fn with_deviation(&self, deviation: f32) -> Builder<'a> {
        Builder { deviation: Some(deviation), ..self.clone() }
    }

    /// The same builder that draws the random matrices of the parts with these names from N(0, deviation): GPT-2 has another deviation
    /// for projections whose results are added to the residual, T5 one for each kind of matrix.
    pub fn with_deviations_of(&self, parts: &[DeviationOf]) -> Builder<'a> {
        Builder { parts: parts.into(), ..self.clone() }
    }

    /// The standard deviation of the random matrix of this whole name, where it is not that of its layer.
    fn deviation_of(&self, name: &str) -> Option<f32> {
        let part = name.rsplit('.').nth(1).unwrap_or_default();
        let own = self.parts.iter().find(|(parts, _)| parts.contains(&part));
        own.map(|(_, deviation)| *deviation).or(self.deviation)
    }

    /// Whether the parameter called `name` here can be had: random ones always, those of a checkpoint if it has them.
    pub fn has(&self, name: &str) -> bool {
        match self.source {
            Source::Checkpoint(checkpoint) | Source::ShapesOf(checkpoint) => {
                checkpoint.has(&format!("{}{name}", self.prefix))
            }
            Source::Random(_) | Source::Shapes => true,
        }
    }

    /// The backend of the parameters.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// The same builder inside the part called `name`.
    pub fn at(&self, name: impl std::fmt::Display) -> Builder<'a> {
        Builder { prefix: format!("{}{name}.", self.prefix), ..self.clone() }
    }

    /// The parameter called `name` here, of this shape.
    pub fn parameter(&self, name: &str, shape: impl Into<Shape>, init: Init) -> Result<Parameter, Error> {
        let (name, shape) = (format!("{}{name}", self.prefix), shape.into());
        let number = self.made.borrow().len() as u64;
        let value = match self.source {
            Source::Checkpoint(checkpoint) => checkpoint.tensor(&*self.backend, &name, shape)?,
            Source::Shapes => without_memory(shape),
            Source::ShapesOf(checkpoint) => {
                checkpoint.check(&name, shape)?;
                without_memory(shape)
            }
            Source::Random(random) => {
                let random = random.split(number);
                match self.deviation_of(&name).map_or(init, |deviation| init.with_deviation(deviation)) {
                    Init::Xavier => {
                        let bound = (6.0 / (shape.rows() + shape.cols()) as f32).sqrt();
                        self.backend.random(shape, Distribution::Uniform { bound }, random)
                    }
                    Init::Normal(deviation) => {
                        self.backend.random(shape, Distribution::Normal { deviation }, random)
                    }
                    Init::Zeros => self.backend.zeros(shape, DType::F32),
                    Init::Ones => self.backend.upload_f32(&vec![1.0; shape.len()], shape),
                }
            }
        };
        let parameter = Parameter::new(name, value);
        self.made.borrow_mut().push(parameter.clone());
        Ok(parameter)
    }

    /// Weights as products take them: `parameter` itself, or what the backend prepares of it where that is asked for. A
    /// checkpoint that has them in int8 gives them as they are.
    pub fn product_weights(&self, parameter: Parameter) -> Result<Parameter, Error> {
        let Some(form) = self.form.filter(|_| !matches!(self.source, Source::Shapes | Source::ShapesOf(_)))
        else {
            return Ok(parameter);
        };
        let value = parameter.value();
        let stored = self.stored_int8(parameter.name(), value.shape())?;
        let prepare = || self.backend.prepare(Raw::Tensor(&value), form, self.role);
        Ok(Parameter::new(parameter.name(), stored.unwrap_or_else(prepare)))
    }

    /// [`Builder::product_weights`] of a table that is looked up, too. A large one is not kept twice: prepared weights take its place where
    /// rows of them can be looked up. Rows of others are found faster, and small tables are kept.
    pub fn tied_weights(&self, table: &Parameter) -> Result<Parameter, Error> {
        let prepared = self.product_weights(table.clone())?;
        let value = prepared.value();
        let is_large = value.shape().len() * size_of::<f32>() >= LARGE_TABLE;
        if self.is_packed() && is_large && value.dtype() == DType::F32 {
            table.update(|_| value);
            return Ok(table.clone());
        }
        Ok(prepared)
    }

    /// Whether weights of products are prepared, so that `value` may stand for `parameter` in them: then it is prepared and takes its
    /// place; else there is none.
    pub(crate) fn prepared_as(
        &self,
        parameter: &Parameter,
        value: impl FnOnce() -> Tensor,
    ) -> Option<Parameter> {
        let form = self.form.filter(|_| !matches!(self.source, Source::Shapes | Source::ShapesOf(_)))?;
        let prepared = self.backend.prepare(Raw::Tensor(&value()), form, self.role);
        let prepared = Parameter::new(parameter.name(), prepared);
        let mut made = self.made.borrow_mut();
        if let Some(old) = made.iter_mut().find(|made| made.name() == parameter.name()) {
            // So that the weights before that are not kept.
            *old = prepared.clone();
        }
        Some(prepared)
    }

    /// [`Builder::parameter`] for weights that nothing but products takes.
    pub fn product_parameter(
        &self,
        name: &str,
        shape: impl Into<Shape>,
        init: Init,
    ) -> Result<Parameter, Error> {
        let (whole, shape) = (format!("{}{name}", self.prefix), shape.into());
        if let Some(weights) = self.stored_int8(&whole, shape)? {
            let weights = Parameter::new(whole, weights);
            self.made.borrow_mut().push(weights.clone());
            return Ok(weights);
        }
        let weights = self.product_weights(self.parameter(name, shape, init)?)?;
        if let Some(last) = self.made.borrow_mut().last_mut() {
            // So that the weights before that are not kept.
            *last = weights.clone();
        }
        Ok(weights)
    }

    /// Weights in int8, where they are asked for and the checkpoint has them: nothing is made of them but their order.
    fn stored_int8(&self, name: &str, shape: Shape) -> Result<Option<Tensor>, Error> {
        match self.source {
            Source::Checkpoint(checkpoint)
                if self.form == Some(Form::Int8) && shape[..].len() == 2 && checkpoint.is_int8(name) =>
            {
                let Stored::Int8 { rows, scales } = checkpoint.stored_as(name, shape)? else {
                    return Ok(None);
                };
                let raw = Raw::Int8 { rows: &rows, scales: &scales, shape };
                Ok(Some(self.backend.prepare(raw, Form::Int8, self.role)))
            }
            _ => Ok(None),
        }
    }

    /// Whether first values are random: then a layer may put its own in place.
    pub fn is_random(&self) -> bool {
        matches!(self.source, Source::Random(_))
    }

    /// All parameters made so far, in order.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.made.borrow().clone()
    }
}

fn without_memory(shape: Shape) -> Tensor {
    Tensor::new(Buffer::new(()), shape, DType::F32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_parts_are_drawn_with_a_deviation_of_their_own() {
        let backend = attentive_tensor::check::backend();
        let builder =
            Builder::random(&backend, 1).with_deviation(0.02).with_deviations_of(&[(&["out_proj"], 0.5)]);
        let deviation = |name: &str| {
            let parameter = builder.at(name).parameter("weight", [100, 100], Init::Xavier).unwrap();
            let numbers = backend.download_f32(&parameter.value());
            (numbers.iter().map(|x| x * x).sum::<f32>() / numbers.len() as f32).sqrt()
        };
        let (own, other) = (deviation("layers.0.out_proj"), deviation("layers.0.out_proj.fc1"));
        assert!((own - 0.5).abs() < 0.02 && (other - 0.02).abs() < 0.001, "{own} {other}");
    }
}
