//! Rows by number.

use super::CpuBackend;
use super::profile::Share;
use super::view::{by_type, data, data_mut, i32s, prepared_table};
use crate::backend::{Block, ElementwiseOps, MemoryOps, RowOps};
use crate::shape::Shape;
use crate::tensor::{DType, Tensor};
use attentive_kernels::embedding;
use attentive_kernels::rectangle::rectangle;
use half::bf16;

impl RowOps for CpuBackend {
    fn embedding(&self, table: &Tensor, ids: &Tensor, scale: f32) -> Tensor {
        let (d, ids) = (table.shape().cols(), i32s(ids));
        self.profile.time(Share::Embedding, || {
            let shape = [ids.len(), d];
            if let Some(table) = prepared_table(table) {
                return self.build(shape, |y| table.rows(&self.cpu, ids, scale, y));
            }
            by_type!(table, W => {
                let table = data::<W>(table);
                match self.precision.dtype() {
                    DType::Bf16 => self.build(shape, |y: &mut [bf16]| {
                        embedding::embedding(&self.cpu, table, d, ids, scale, y);
                    }),
                    _ => self.build(shape, |y: &mut [f32]| {
                        embedding::embedding(&self.cpu, table, d, ids, scale, y);
                    }),
                }
            })
        })
    }

    fn embedding_backward(
        &self,
        dtable: &mut Tensor,
        ids: &Tensor,
        scale: f32,
        padding: Option<i32>,
        dy: &Tensor,
    ) {
        let d = dtable.shape().cols();
        self.profile.time(Share::Embedding, || {
            by_type!(dy, T => {
                let dy = data::<T>(dy);
                embedding::embedding_backward(&self.cpu, i32s(ids), scale, padding, dy, d, data_mut(dtable));
            });
        });
    }

    fn assemble(&self, shape: Shape, blocks: &[Block], into: Option<Tensor>) -> Tensor {
        let dtype = blocks.first().expect("assemble: no blocks").x.dtype();
        let (add, len) =
            (into.is_some(), blocks.iter().map(|block| block.place.size.iter().product::<usize>()).sum());
        let mut y = match into {
            Some(into) => into,
            // Blocks that do not meet, and together are as large as the whole, leave nothing out.
            None if shape.len() == len => self.unwritten(shape, dtype),
            None => self.zeros(shape, dtype),
        };
        debug_assert!(add || are_apart(blocks), "assemble: blocks meet: {blocks:?}");
        assert_eq!(y.shape(), shape, "assemble: {shape} into {}", y.shape());
        for &Block { x, place } in blocks {
            // The gradient of a parameter is f32, whatever is added to it.
            let x = if add { self.cast(x, y.dtype()) } else { x.clone() };
            self.profile.time(Share::Embedding, || {
                by_type!(x, T => {
                    let to = (data_mut::<T>(&mut y), shape.cols());
                    rectangle(&self.cpu, place, (data(&x), x.shape().cols()), to, add);
                });
            });
        }
        y
    }
}

/// Whether no two blocks meet where they go.
fn are_apart(blocks: &[Block]) -> bool {
    let overlap = |a: &Block, b: &Block| {
        let meet = |i: usize| {
            let [a, b] = [a.place, b.place].map(|place| place.to[i]..place.to[i] + place.size[i]);
            a.start.max(b.start) < a.end.min(b.end)
        };
        meet(0) && meet(1)
    };
    blocks.iter().enumerate().all(|(i, a)| !blocks[..i].iter().any(|b| overlap(a, b)))
}
