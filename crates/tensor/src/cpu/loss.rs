//! The best logits, and the losses.

use super::profile::Share;
use super::view::{by_type, data, data_mut, f32s, i32s, linear_shape, matrix, pack, packed, weights};
use super::{CpuBackend, filled, view_mut};
use crate::backend::{Learned, LossOps, MemoryOps, ProjectionLoss, ProjectionTarget};
use crate::shape::Shape;
use crate::tensor::Tensor;
use attentive_kernels::logits::top_logits;
use attentive_kernels::projection;
use attentive_kernels::soft;
use attentive_kernels::top::{Found, TokenLists, Wanted};

impl LossOps for CpuBackend {
    fn top_logits(
        &self,
        x: &Tensor,
        w: &Tensor,
        bias: Option<&Tensor>,
        wanted: Wanted,
        apart: TokenLists,
    ) -> Found {
        linear_shape("top_logits", x, w);
        let bias = bias.map(f32s);
        self.profile.time(
            Share::Product,
            || by_type!(x, T => top_logits(&self.cpu, matrix::<T>(x), weights(w), bias, wanted, apart)),
        )
    }

    fn projection_loss(
        &self,
        hidden: &Tensor,
        table: &Tensor,
        bias: Option<&Tensor>,
        target: &ProjectionTarget,
        learned: Learned,
    ) -> ProjectionLoss {
        let (h, t) = (hidden.shape(), table.shape());
        assert_eq!(h.cols(), t.cols(), "projection_loss: hidden {h} and table {t} do not fit");
        let rule = projection::Projection {
            d: h.cols(),
            classes: target.classes,
            bias: bias.map(f32s),
            smoothing: target.smoothing,
            scale: target.scale,
        };
        self.profile.time(Share::Loss, || {
            let gradient = learned != Learned::Nothing;
            let mut gradients = gradient.then(|| (self.room(hidden), self.room(table)));
            let bias = bias.filter(|_| learned == Learned::TableAndBias);
            let mut dbias = bias.map(|bias| self.room(bias));
            let sum = by_type!(hidden, T => {
                let into = gradients.as_mut().map(|(dh, dt)| projection::Gradients {
                    hidden: view_mut::<T>(dh),
                    table: view_mut(dt),
                    bias: dbias.as_mut().map(view_mut),
                });
                if gradient {
                    pack::<T>(&self.cpu, table);
                }
                let (hidden, table, tokens) = (data(hidden), (f32s(table), packed(table)), i32s(target.tokens));
                projection::projection_loss(&self.cpu, &rule, hidden, table, tokens, into)
            });
            let loss = self.build(Shape::SCALAR, |y| y[0] = sum);
            let gradients = gradients.map(|(dh, dt)| (filled(dh, hidden), filled(dt, table)));
            let dbias = dbias.zip(bias).map(|(dbias, bias)| filled(dbias, bias));
            ProjectionLoss { loss, gradients, dbias }
        })
    }

    fn softmax(&self, x: &Tensor, shift: &Tensor, factor: f32) -> Tensor {
        assert_eq!(
            x.shape().cols(),
            shift.shape().len(),
            "softmax: {} shifted by {}",
            x.shape(),
            shift.shape()
        );
        self.profile.time(Share::Loss, || {
            self.build(x.shape(), |y| {
                by_type!(x, T => soft::softmax(&self.cpu, data::<T>(x), f32s(shift), factor, y));
            })
        })
    }

    fn soft_loss(
        &self,
        logits: &Tensor,
        targets: &Tensor,
        factor: f32,
        scale: f32,
        learned: bool,
    ) -> (Tensor, Option<Tensor>) {
        let (shape, of) = (logits.shape(), targets.shape());
        assert_eq!(shape, of, "soft_loss: logits {shape} and targets {of} differ");
        self.profile.time(Share::Loss, || {
            let mut gradient = self.copy(logits);
            let mut losses = vec![0.0; shape.rows()];
            by_type!(logits, T => {
                let logits = data_mut::<T>(&mut gradient);
                soft::soft_cross_entropy(&self.cpu, logits, f32s(targets), factor, scale, &mut losses, learned);
            });
            let sum = losses.iter().map(|&loss| f64::from(loss)).sum::<f64>() as f32;
            (self.build(Shape::SCALAR, |y| y[0] = sum), learned.then_some(gradient))
        })
    }
}
