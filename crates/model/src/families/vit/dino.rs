//! DINO: a ViT that learns without labels (Caron et al. 2021). A student sees several parts of a picture, and is to answer what a teacher
//! answers that sees the others.
//!
//! ```text
//! loss = 1/n · Σ_{g global} Σ_{v ≠ g} H(p_t(x_g), p_s(x_v)),   H(a, b) = -Σ a·ln b
//! p_s = softmax(s / τ_s),   p_t = softmax((t - c) / τ_t)
//! ```
//!
//! `s` and `t` are logits of the [`ProjectionHead`], `c` is the centre, a moving mean of `t`, and `n` counts the pairs of views. Rows are view
//! by view: those of all pictures for the first view, then for the second, and so on; the first two are the global ones.

use super::{Batch, Vit};
use crate::builder::Builder;
use crate::error::Error;
use crate::layers::{ProjectionHead, ProjectionSizes};
use attentive_tensor::{Parameter, Tape, Tensor, Var};

/// A backbone with the head that it learns with.
#[derive(Debug, Clone)]
pub struct Dino {
    vit: Vit,
    head: ProjectionHead,
    parameters: Vec<Parameter>,
}

impl Dino {
    /// A backbone, and a head with the parameters that `builder` gives it.
    pub fn new(vit: Vit, builder: &Builder, sizes: &ProjectionSizes) -> Result<Dino, Error> {
        let head = builder.at("head");
        let made = builder.parameters().len();
        let head = ProjectionHead::new(&head, sizes)?;
        let of_head = builder.parameters().split_off(made);
        let parameters = vit.parameters().iter().cloned().chain(of_head).collect();
        Ok(Dino { vit, head, parameters })
    }

    /// The backbone.
    pub fn vit(&self) -> &Vit {
        &self.vit
    }

    /// Everything that is learned: that of the backbone, then that of the head.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The weights of the last layer of the head.
    pub fn last_layer(&self) -> &Parameter {
        self.head.last_layer()
    }

    /// The logits of each picture, `[pictures, out]` in f32. The last layer takes part in the backward pass if it `learns`.
    pub fn logits(&self, tape: &Tape, batch: &Batch, learns: bool) -> Var {
        let hidden = self.vit.encode(tape, batch);
        self.head.forward(tape, &self.vit.vectors(tape, &hidden, batch), learns)
    }
}

/// What some pictures add to the mean loss over `of` pictures: `student: [views · pictures, out]` are logits, `teacher: [2 · pictures,
/// out]` the probabilities that a teacher gives for the global views.
///
/// # Panics
/// If there are not two global views among as many views of each picture.
pub fn dino_loss(tape: &Tape, student: &Var, teacher: &Tensor, temperature: f32, of: usize) -> Var {
    let (pictures, rows) = (teacher.shape().rows() / 2, student.shape().rows());
    let views = rows / pictures.max(1);
    assert!(views >= 2 && views * pictures == rows, "dino_loss: {} for {}", student.shape(), teacher.shape());
    let targets = targets(&Tape::inference(tape.backend()), teacher, views);
    let pairs = 2 * (views - 1);
    tape.soft_loss(student, targets.value(), 1.0 / temperature, 1.0 / (pairs * of.max(1)) as f32)
}

/// The targets of each row of the student: what the teacher says of the other global view, or for a local view the sum of both.
fn targets(tape: &Tape, teacher: &Tensor, views: usize) -> Var {
    let (teacher, pictures) = (tape.constant(teacher.clone()), teacher.shape().rows() / 2);
    let first = tape.slice_rows(&teacher, 0..pictures);
    let second = tape.slice_rows(&teacher, pictures..2 * pictures);
    let both = tape.add(&first, &second);
    let parts: Vec<&Var> =
        [&second, &first].into_iter().chain(std::iter::repeat_n(&both, views - 2)).collect();
    tape.concat_rows(&parts)
}
