//! DINO: a ViT that learns without labels (Caron et al. 2021). The student sees global and local views of a picture, the teacher only the
//! global ones. For each view, the student learns to predict the output of the teacher for the other views.
//!
//! ```text
//! loss = 1/n · Σ_{g global} Σ_{v ≠ g} H(p_t(x_g), p_s(x_v)),   H(a, b) = -Σ a·ln b
//! p_s = softmax(s / τ_s),   p_t = softmax((t - c) / τ_t)
//! ```
//!
//! `s` and `t` are the logits of the student's and of the teacher's [`ProjectionHead`], `c` is the centre, a moving mean of `t`, and `n` is
//! the number of pairs of views. Rows are in the order of views: the first view of all pictures, then the second, and so on. The first two
//! views are the global ones.

use super::{Batch, Vit};
use crate::builder::Builder;
use crate::error::Error;
use crate::layers::{ProjectionHead, ProjectionSizes};
use attentive_tensor::{Parameter, Tape, Tensor, Var};

/// A backbone with its projection head.
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

    /// The parameters of the backbone, then those of the head.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The weights of the last layer of the head.
    pub fn last_layer(&self) -> &Parameter {
        self.head.last_layer()
    }

    /// The logits of each picture, `[pictures, out]` in f32. The last layer of the head gets gradients if `learns` is true.
    pub fn logits(&self, tape: &Tape, batch: &Batch, learns: bool) -> Var {
        let hidden = self.vit.encode(tape, batch);
        self.head.forward(tape, &self.vit.vectors(tape, &hidden, batch), learns)
    }
}

/// The contribution of a batch to the mean loss over `of` pictures. `student: [views · pictures, out]` are logits, `teacher: [2 · pictures,
/// out]` are the teacher's probabilities for the global views.
///
/// # Panics
/// If pictures have fewer than two views, or not all the same number of them.
pub fn dino_loss(tape: &Tape, student: &Var, teacher: &Tensor, temperature: f32, of: usize) -> Var {
    let (pictures, rows) = (teacher.shape().rows() / 2, student.shape().rows());
    let views = rows / pictures.max(1);
    assert!(views >= 2 && views * pictures == rows, "dino_loss: {} for {}", student.shape(), teacher.shape());
    let targets = targets(&Tape::inference(tape.backend()), teacher, views);
    let pairs = 2 * (views - 1);
    tape.soft_loss(student, targets.value(), 1.0 / temperature, 1.0 / (pairs * of.max(1)) as f32)
}

/// The target of each row of the student: the teacher's probabilities for the other global view, or for a local view the sum of both.
fn targets(tape: &Tape, teacher: &Tensor, views: usize) -> Var {
    let (teacher, pictures) = (tape.constant(teacher.clone()), teacher.shape().rows() / 2);
    let first = tape.slice_rows(&teacher, 0..pictures);
    let second = tape.slice_rows(&teacher, pictures..2 * pictures);
    let both = tape.add(&first, &second);
    let parts: Vec<&Var> =
        [&second, &first].into_iter().chain(std::iter::repeat_n(&both, views - 2)).collect();
    tape.concat_rows(&parts)
}
