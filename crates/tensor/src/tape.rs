//! The tape: what was computed, in order, and how gradients flow back through it.

use crate::backend::Backend;
use crate::parameter::{Gradients, Parameter};
use crate::shape::Shape;
use crate::tensor::{Buffer, DType, Tensor};
use crate::watched::Watched;
use attentive_kernels::{Dropout, Random};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A tensor on a tape.
#[derive(Debug, Clone)]
pub struct Var {
    value: Tensor,
    /// Its place on a tape, if a gradient is to reach it.
    node: Option<Node>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    tape: u64,
    number: usize,
    /// Whether no operation made it.
    leaf: bool,
}

impl Var {
    /// The numbers.
    pub fn value(&self) -> &Tensor {
        &self.value
    }

    /// Their shape.
    pub fn shape(&self) -> Shape {
        self.value.shape()
    }

    /// The same variable without its numbers, for operations whose gradient needs none of them.
    pub(crate) fn without_numbers(&self) -> Var {
        let value = Tensor::new(Buffer::new(()), self.value.shape(), self.value.dtype());
        Var { value, node: self.node }
    }

    /// Whether a gradient is to reach it.
    pub(crate) fn wants_gradient(&self) -> bool {
        self.node.is_some()
    }
}

/// Takes the gradient of an operation's output and passes gradients on to its inputs.
type BackwardFn = Box<dyn FnOnce(&mut Backward, Tensor)>;

/// A recording of operations (`ops/`), for one forward and one backward pass.
pub struct Tape {
    /// Its own number, by which it knows its variables.
    id: u64,
    backend: Arc<dyn Backend>,
    /// The source of dropout; none means inference: nothing is dropped and nothing recorded.
    random: Option<Random>,
    draws: Cell<u64>,
    /// The backward function of each node. Leaves have none.
    nodes: RefCell<Vec<Option<BackwardFn>>>,
    /// The parameters that were asked for, by their numbers.
    leaves: RefCell<HashMap<u64, (Parameter, Var)>>,
    /// The attentions seen so far, if anybody is watching.
    pub(crate) watched: Option<RefCell<Watched>>,
    /// The hidden states seen so far, if anybody wants them.
    pub(crate) states: Option<RefCell<Vec<Tensor>>>,
}

impl Tape {
    /// A tape for training: it records, and dropout draws from `seed`.
    pub fn training(backend: &Arc<dyn Backend>, seed: u64) -> Tape {
        Tape { random: Some(Random::new(seed)), ..Tape::inference(backend) }
    }

    /// A tape that only computes.
    pub fn inference(backend: &Arc<dyn Backend>) -> Tape {
        static TAPES: AtomicU64 = AtomicU64::new(0);
        Tape {
            id: TAPES.fetch_add(1, Ordering::Relaxed),
            backend: Arc::clone(backend),
            random: None,
            draws: Cell::new(0),
            nodes: RefCell::default(),
            leaves: RefCell::default(),
            watched: None,
            states: None,
        }
    }

    /// The device that computes.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Whether the tape records and drops out.
    pub fn is_training(&self) -> bool {
        self.random.is_some()
    }

    /// A tensor that needs no gradient.
    pub fn constant(&self, value: Tensor) -> Var {
        Var { value, node: None }
    }

    /// A parameter as it is now. Asking twice gives the same variable.
    pub fn parameter(&self, parameter: &Parameter) -> Var {
        if self.random.is_none() {
            return self.constant(parameter.value());
        }
        let mut leaves = self.leaves.borrow_mut();
        let leaf = || (parameter.clone(), self.leaf(parameter.value()));
        leaves.entry(parameter.id()).or_insert_with(leaf).1.clone()
    }

    /// A tensor whose gradient is wanted; see [`Tape::backward_from`].
    pub(crate) fn leaf(&self, value: Tensor) -> Var {
        self.node(value, None)
    }

    fn node(&self, value: Tensor, backward: Option<BackwardFn>) -> Var {
        let (leaf, mut nodes) = (backward.is_none(), self.nodes.borrow_mut());
        nodes.push(backward);
        Var { value, node: Some(Node { tape: self.id, number: nodes.len() - 1, leaf }) }
    }

    /// The number of a variable on this tape, if a gradient is to reach it.
    ///
    /// # Panics
    /// If it is on another tape, where its number belongs to something else.
    fn number(&self, var: &Var) -> Option<usize> {
        var.node.map(|node| {
            assert_eq!(node.tape, self.id, "a variable {:?} of one tape is used on another", var.value);
            node.number
        })
    }

    /// Puts the result of an operation on the tape. `backward` is kept if a gradient is to reach any of `inputs`.
    ///
    /// # Panics
    /// If one of them is a variable of another tape.
    pub(crate) fn record(
        &self,
        value: Tensor,
        inputs: &[&Var],
        backward: impl FnOnce(&mut Backward, Tensor) + 'static,
    ) -> Var {
        let wanted = inputs.iter().filter(|input| self.number(input).is_some()).count();
        if wanted == 0 { self.constant(value) } else { self.node(value, Some(Box::new(backward))) }
    }

    /// The result of an operation that has no gradient.
    ///
    /// # Panics
    /// If a gradient is to reach any of `inputs`: it would vanish without a word.
    pub(crate) fn without_gradient(&self, op: &str, value: Tensor, inputs: &[&Var]) -> Var {
        assert!(
            !inputs.iter().any(|input| input.wants_gradient()),
            "{op}: there is no gradient of it, but one is to reach an input; use an inference tape"
        );
        self.constant(value)
    }

    /// Random numbers for whatever is drawn next in this pass, other ones at each call; none in inference.
    pub fn chance(&self) -> Option<Random> {
        let random = self.random?;
        Some(random.split(self.draws.replace(self.draws.get() + 1)))
    }

    /// The next dropout of this pass, or none where nothing is to be dropped.
    pub(crate) fn draw(&self, p: f32) -> Option<Dropout> {
        if p > 0.0 { self.chance().map(|random| Dropout { p, random }) } else { None }
    }

    /// Adds the gradient of `loss`, a scalar, to `gradients`, for every parameter on the tape.
    pub fn backward(self, loss: &Var, gradients: &mut Gradients) {
        let mut so_far = std::mem::take(gradients);
        self.backward_onto(loss, &mut so_far, &mut |parameter, gradient| gradients.put(parameter, gradient));
        gradients.0.append(&mut so_far.0);
    }

    /// Computes the gradient of `loss`, a scalar, and hands over that of each parameter as soon as it is finished: first of those that
    /// the forward pass came to last. A parameter on which the loss does not depend has none.
    pub fn backward_each(self, loss: &Var, finished: &mut dyn FnMut(&Parameter, Tensor)) {
        self.backward_onto(loss, &mut Gradients::default(), finished);
    }

    /// The same, which adds to the gradients `so_far`.
    fn backward_onto(self, loss: &Var, so_far: &mut Gradients, finished: &mut dyn FnMut(&Parameter, Tensor)) {
        assert_eq!(loss.shape(), Shape::SCALAR, "backward: the loss must be a scalar, not {}", loss.shape());
        let one = self.backend.upload_f32(&[1.0], Shape::SCALAR);
        let leaves = std::mem::take(&mut *self.leaves.borrow_mut());
        let leaf =
            |(parameter, var): (Parameter, Var)| (self.number(&var).expect("a leaf is a node"), parameter);
        let parameters: HashMap<usize, Parameter> = leaves.into_values().map(leaf).collect();
        let mut slots = vec![None; self.nodes.borrow().len()];
        for (&node, parameter) in &parameters {
            slots[node] = so_far.take(parameter);
        }
        self.backward_into(loss, one.clone(), Some(one), slots, &mut |node, gradient| {
            if let Some(parameter) = parameters.get(&node) {
                finished(parameter, gradient);
            }
        });
    }

    /// The gradients of `leaves` when that of `y` is `dy`.
    pub(crate) fn backward_from(self, y: &Var, dy: Tensor, leaves: &[Var]) -> Vec<Option<Tensor>> {
        let slots = vec![None; self.nodes.borrow().len()];
        let numbers: Vec<_> =
            leaves.iter().map(|leaf| self.number(leaf).expect("a leaf is a node")).collect();
        let mut found = HashMap::new();
        self.backward_into(y, dy, None, slots, &mut |node, gradient| drop(found.insert(node, gradient)));
        numbers.into_iter().map(|number| found.remove(&number)).collect()
    }

    /// Goes through the tape backwards from `y`. Each operation, and what it kept, is dropped as soon as it has run. When a leaf is
    /// reached, all that used it has run: its gradient is handed to `finished`.
    fn backward_into(
        self,
        y: &Var,
        dy: Tensor,
        one: Option<Tensor>,
        slots: Vec<Option<Tensor>>,
        finished: &mut dyn FnMut(usize, Tensor),
    ) {
        let mut backward = Backward { backend: Arc::clone(&self.backend), slots, one };
        if self.number(y).is_some() {
            backward.add(y, dy);
        }
        let mut nodes = self.nodes.into_inner();
        while let Some(operation) = nodes.pop() {
            let node = nodes.len();
            match (operation, backward.slots[node].take()) {
                (Some(operation), Some(gradient)) => operation(&mut backward, gradient),
                (None, Some(gradient)) => finished(node, gradient),
                (_, None) => {}
            }
        }
    }
}

/// The gradients during a backward pass.
pub(crate) struct Backward {
    pub(crate) backend: Arc<dyn Backend>,
    slots: Vec<Option<Tensor>>,
    /// The gradient of the loss by itself, where the pass started from one.
    one: Option<Tensor>,
}

impl Backward {
    /// Adds a gradient to what `var` already has.
    pub(crate) fn add(&mut self, var: &Var, gradient: Tensor) {
        let gradient = match self.take(var) {
            None => gradient,
            Some(mut sum) => {
                self.backend.add_assign(&mut sum, &gradient, 1.0);
                sum
            }
        };
        self.put(var, gradient);
    }

    /// Lets `f` add to the gradient that `var` has so far, if any, in the same memory. It is not called where no
    /// gradient is wanted.
    pub(crate) fn accumulate(&mut self, var: &Var, f: impl FnOnce(&dyn Backend, Option<Tensor>) -> Tensor) {
        if var.wants_gradient() {
            let so_far = self.take(var);
            let gradient = f(&*self.backend, so_far);
            self.put(var, gradient);
        }
    }

    /// The gradient that `var` has so far, to be added to in place and given back with [`Backward::put`].
    ///
    /// That of a leaf in f32 may be bf16, like the activations that it was computed from, as long as it is the only one: more are
    /// added to it in f32.
    pub(crate) fn take(&mut self, var: &Var) -> Option<Tensor> {
        let so_far = var.node.and_then(|node| self.slots[node.number].take());
        so_far.map(|sum| {
            if is_narrow(var, &sum) { self.backend.cast(&sum, DType::F32) } else { self.backend.own(sum) }
        })
    }

    /// [`Backward::take`], or zeros.
    pub(crate) fn take_or_zeros(&mut self, var: &Var) -> Tensor {
        self.take(var).unwrap_or_else(|| self.backend.zeros(var.shape(), DType::F32))
    }

    /// Puts back what [`Backward::take`] gave, or a first contribution. What an operation made has a gradient of its own type, which
    /// that operation goes on with.
    pub(crate) fn put(&mut self, var: &Var, gradient: Tensor) {
        assert_eq!(gradient.shape(), var.shape(), "a gradient must have the shape of its variable");
        if let Some(node) = var.node {
            let widened = !node.leaf && is_narrow(var, &gradient);
            let gradient = if widened { self.backend.cast(&gradient, DType::F32) } else { gradient };
            self.slots[node.number] = Some(gradient);
        }
    }

    /// Whether `dy` is known to be one, without looking at it: then it need not be multiplied with.
    pub(crate) fn is_one(&self, dy: &Tensor) -> bool {
        self.one.as_ref().is_some_and(|one| dy.buffer().same(one.buffer()))
    }
}

/// Whether a gradient is stored in fewer bits than its variable.
fn is_narrow(var: &Var, gradient: &Tensor) -> bool {
    gradient.dtype() == DType::Bf16 && var.value().dtype() == DType::F32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::backend;

    #[test]
    fn the_gradient_of_a_parameter_that_is_the_loss_adds_up() {
        let backend = backend();
        let w = Parameter::new("w", backend.upload_f32(&[3.0], Shape::SCALAR));
        let mut gradients = Gradients::default();
        for passes in [1.0, 2.0, 3.0] {
            let tape = Tape::training(&backend, 1);
            let loss = tape.parameter(&w);
            tape.backward(&loss, &mut gradients);
            assert_eq!(backend.download_f32(gradients.get(&w).unwrap()), [passes]);
        }
    }

    #[test]
    fn a_gradient_is_finished_when_all_that_uses_its_parameter_has_run() {
        let backend = backend();
        let [a, b, c, unused] = ["a", "b", "c", "unused"]
            .map(|name| Parameter::new(name, backend.upload_f32(&[2.0, 3.0], [1, 2])));
        let tape = Tape::training(&backend, 1);
        let _ = tape.parameter(&unused);
        // `a` is used first and last, and so finished last.
        let x = tape.add(&tape.parameter(&a), &tape.parameter(&b));
        let x = tape.add(&x, &tape.parameter(&c));
        let loss = tape.sum(&tape.add(&x, &tape.parameter(&a)));
        drop(x);
        let mut finished = Vec::new();
        tape.backward_each(&loss, &mut |parameter, gradient| {
            finished.push((parameter.name().to_owned(), backend.download_f32(&gradient)));
        });
        let expected = [("c", 1.0), ("b", 1.0), ("a", 2.0)];
        assert_eq!(finished, expected.map(|(name, dx)| (name.to_owned(), vec![dx; 2])));
    }

    #[test]
    #[should_panic(expected = "of one tape is used on another")]
    fn a_variable_stays_on_its_tape() {
        let backend = backend();
        let (one, other) = (Tape::training(&backend, 1), Tape::training(&backend, 1));
        let x = one.leaf(backend.upload_f32(&[1.0, 2.0], [1, 2]));
        other.sum(&x);
    }

    #[test]
    #[should_panic(expected = "of one tape is used on another")]
    fn a_loss_goes_back_on_its_own_tape() {
        let backend = backend();
        let (one, other) = (Tape::training(&backend, 1), Tape::training(&backend, 1));
        let loss = one.sum(&one.leaf(backend.upload_f32(&[1.0, 2.0], [1, 2])));
        other.backward(&loss, &mut Gradients::default());
    }
}
