//! How layers get their parameters: by name, fresh from a random generator or from a checkpoint.

use crate::checkpoint::{Checkpoint, Stored};
use crate::error::Error;
use attentive_tensor::{Backend, Buffer, DType, Parameter, Random, Shape, Tensor};
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

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

/// Makes the parameters of layers and keeps a list of them.
///
/// A layer asks for its parameters by their last name; [`Builder::at`] puts the names of the layers before it.
#[derive(Clone)]
pub struct Builder<'a> {
    backend: Arc<dyn Backend>,
    source: Source<'a>,
    prefix: String,
    form: Form,
    /// Which row of what is stored, or drawn, each row of a parameter is, if not the same.
    rows: Option<Rc<[usize]>>,
    /// The standard deviation of all random matrices, where it is not that of each layer.
    deviation: Option<f32>,
    made: Rc<RefCell<Vec<Parameter>>>,
}

/// What becomes of weights that nothing but products takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// They can be learned and saved.
    Plain,
    Packed,
    Int8,
}

#[derive(Clone, Copy)]
enum Source<'a> {
    Random(Random),
    Checkpoint(&'a Checkpoint),
    Shapes,
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

    fn new<'b>(backend: &Arc<dyn Backend>, source: Source<'b>) -> Builder<'b> {
        Builder {
            backend: Arc::clone(backend),
            source,
            prefix: String::new(),
            form: Form::Plain,
            rows: None,
            deviation: None,
            made: Rc::default(),
        }
    }

    /// The same builder with the weights of products as the backend multiplies with them ([`Backend::pack`]): for decoding, not
    /// to be trained or saved.
    pub fn packed(self) -> Builder<'a> {
        Builder { form: Form::Packed, ..self }
    }

    /// The same builder with the weights of products in int8: for decoding, not to be trained or saved.
    pub fn in_int8(self) -> Builder<'a> {
        Builder { form: Form::Int8, ..self }
    }

    /// Whether parameters can be learned and saved: they are neither packed nor in int8.
    pub(crate) fn is_plain(&self) -> bool {
        self.form == Form::Plain
    }

    /// Whether the weights of products are in int8.
    pub(crate) fn is_int8(&self) -> bool {
        self.form == Form::Int8
    }

    /// The same builder with rows of parameters in another order: which row of what is stored each one is. Not to be saved.
    pub(crate) fn reordered(&self, rows: impl Into<Rc<[usize]>>) -> Builder<'a> {
        assert!(!self.is_plain(), "rows in another order would be learned and saved so");
        Builder { rows: Some(rows.into()), ..self.clone() }
    }

    /// The same builder with random first values, whatever the checkpoint has: for parts that are to be learned anew.
    pub fn fresh(&self, seed: u64) -> Builder<'a> {
        Builder { source: Source::Random(Random::new(seed)), ..self.clone() }
    }

    /// The same builder whose random matrices are all drawn from N(0, deviation), as BERT has it.
    pub fn with_deviation(&self, deviation: f32) -> Builder<'a> {
        Builder { deviation: Some(deviation), ..self.clone() }
    }

    /// Whether the parameter called `name` here can be had: random ones always, those of a checkpoint if it has them.
    pub fn has(&self, name: &str) -> bool {
        match self.source {
            Source::Checkpoint(checkpoint) => checkpoint.has(&format!("{}{name}", self.prefix)),
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
            Source::Random(random) => {
                let random = random.split(number);
                match self.deviation.map_or(init, |deviation| init.with_deviation(deviation)) {
                    Init::Xavier => {
                        let bound = (6.0 / (shape.rows() + shape.cols()) as f32).sqrt();
                        self.backend.uniform(shape, bound, random)
                    }
                    Init::Normal(deviation) => self.backend.normal(shape, deviation, random),
                    Init::Zeros => self.backend.zeros(shape, DType::F32),
                    Init::Ones => self.backend.upload_f32(&vec![1.0; shape.len()], shape),
                }
            }
        };
        let value = match &self.rows {
            Some(_) if !matches!(self.source, Source::Shapes) => {
                self.backend.upload_f32(&self.in_order(&self.backend.download_f32(&value)), shape)
            }
            _ => value,
        };
        let parameter = Parameter::new(name, value);
        self.made.borrow_mut().push(parameter.clone());
        Ok(parameter)
    }

    /// Weights as products take them: `parameter` itself, or its weights packed or in int8 where that is asked for. A
    /// checkpoint that has them in int8 gives them as they are.
    pub fn product_weights(&self, parameter: Parameter) -> Result<Parameter, Error> {
        let value = parameter.value();
        let weights = match (self.source, self.form) {
            (Source::Shapes, _) | (_, Form::Plain) => return Ok(parameter),
            (_, Form::Packed) => self.backend.pack(&value),
            (_, Form::Int8) => {
                let stored = self.stored_int8(parameter.name(), value.shape())?;
                stored.unwrap_or_else(|| self.backend.quantise(&value))
            }
        };
        Ok(Parameter::new(parameter.name(), weights))
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
            Source::Checkpoint(checkpoint) if self.form == Form::Int8 && checkpoint.is_int8(name) => {
                let Stored::Int8 { rows, scales } = checkpoint.stored_as(name, shape)? else {
                    return Ok(None);
                };
                let (rows, scales) = (self.in_order(&rows), self.in_order(&scales));
                Ok(Some(self.backend.upload_int8(&rows, &scales, shape)))
            }
            _ => Ok(None),
        }
    }

    /// The rows of a matrix, or the numbers of a vector, in the order that is asked for.
    fn in_order<'n, T: Copy>(&self, numbers: &'n [T]) -> Cow<'n, [T]> {
        let Some(rows) = &self.rows else { return Cow::Borrowed(numbers) };
        let width = numbers.len() / rows.len().max(1);
        Cow::Owned(rows.iter().flat_map(|row| &numbers[row * width..][..width]).copied().collect())
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
