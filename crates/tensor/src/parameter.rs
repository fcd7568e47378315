//! What is learned, and its gradients.

use crate::backend::Backend;
use crate::tensor::{DType, Tensor};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// A tensor that training changes, with the name it has in a checkpoint. Clones are the same parameter.
#[derive(Debug, Clone)]
pub struct Parameter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    id: u64,
    value: RwLock<Tensor>,
}

impl Parameter {
    /// A parameter with its first value.
    pub fn new(name: impl Into<String>, value: Tensor) -> Parameter {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Parameter(Arc::new(Inner { name: name.into(), id, value: RwLock::new(value) }))
    }

    /// Its name in a checkpoint.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its present value.
    pub fn value(&self) -> Tensor {
        self.0.value.read().expect("no optimizer panicked").clone()
    }

    /// Changes its value. What read it before keeps the old one.
    pub fn update(&self, change: impl FnOnce(Tensor) -> Tensor) {
        let mut value = self.0.value.write().expect("no optimizer panicked");
        // `change` gets the only handle, so that it can work in place.
        let empty = Tensor::new(crate::tensor::Buffer::new(()), [0], value.dtype());
        let old = std::mem::replace(&mut *value, empty);
        let shape = old.shape();
        *value = change(old);
        assert_eq!(value.shape(), shape, "{}: an update may not change the shape", self.0.name);
    }

    /// Its own number, by which it is known among all parameters of this process.
    pub fn id(&self) -> u64 {
        self.0.id
    }
}

/// The gradients of parameters. Passing the same ones to several backward passes adds up. [`Gradients::add`] adds those of other
/// batches in an order that any number of processes can follow.
#[derive(Debug, Default)]
pub struct Gradients(pub(crate) BTreeMap<u64, Tensor>);

impl Gradients {
    /// The gradient of a parameter, if it took part in the loss. That of weights may be bf16 if activations are.
    pub fn get(&self, parameter: &Parameter) -> Option<&Tensor> {
        self.0.get(&parameter.id())
    }

    /// The gradients of these parameters, in their order.
    pub fn of<'a>(&'a self, parameters: &[Parameter]) -> Vec<&'a Tensor> {
        parameters.iter().filter_map(|parameter| self.get(parameter)).collect()
    }

    /// Adds the gradient of a parameter in another batch. A sum is f32, whatever its terms are.
    pub fn add(&mut self, backend: &dyn Backend, parameter: &Parameter, gradient: Tensor) {
        let sum = match self.take(parameter) {
            None => gradient,
            Some(sum) => {
                let wide = |x: Tensor| if x.dtype() == DType::F32 { x } else { backend.cast(&x, DType::F32) };
                let mut sum = backend.own(wide(sum));
                backend.add_assign(&mut sum, &wide(gradient), 1.0);
                sum
            }
        };
        self.put(parameter, sum);
    }

    /// Takes out the gradient of a parameter, if there is one.
    pub fn take(&mut self, parameter: &Parameter) -> Option<Tensor> {
        self.0.remove(&parameter.id())
    }

    pub(crate) fn put(&mut self, parameter: &Parameter, gradient: Tensor) {
        self.0.insert(parameter.id(), gradient);
    }
}
