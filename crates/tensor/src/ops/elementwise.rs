//! Sums, products, scaling, dropout, reshaping.

use crate::backend::Binary;
use crate::shape::Shape;
use crate::tape::{Tape, Var};
use crate::tensor::DType;

impl Tape {
    /// `a + b`; `b` may be one row that is added to each of `a`.
    pub fn add(&self, a: &Var, b: &Var) -> Var {
        let y = self.backend().binary(Binary::Add, a.value(), b.value());
        let (da, db) = (a.clone(), b.clone());
        self.record(y, &[a, b], move |back, dy| {
            if db.shape() == dy.shape() {
                back.add(&db, dy.clone());
            } else {
                back.accumulate(&db, |backend, into| backend.sum_rows(&dy, into));
            }
            back.add(&da, dy);
        })
    }

    /// `a · b`, number by number.
    pub fn mul(&self, a: &Var, b: &Var) -> Var {
        assert_eq!(a.shape(), b.shape(), "mul: {} and {} differ", a.shape(), b.shape());
        let y = self.backend().binary(Binary::Mul, a.value(), b.value());
        let (da, db) = (a.clone(), b.clone());
        self.record(y, &[a, b], move |back, dy| {
            let (from_b, from_a) = (
                back.backend.binary(Binary::Mul, &dy, db.value()),
                back.backend.binary(Binary::Mul, &dy, da.value()),
            );
            back.add(&da, from_b);
            back.add(&db, from_a);
        })
    }

    /// `factor · x`.
    pub fn scale(&self, x: &Var, factor: f32) -> Var {
        let y = self.backend().scale(x.value(), factor);
        let dx = x.clone();
        self.record(y, &[x], move |back, dy| {
            let scaled = back.backend.scale(&dy, factor);
            back.add(&dx, scaled);
        })
    }

    /// The sum of all numbers, a scalar; its gradient is the same for each of them.
    pub fn sum(&self, x: &Var) -> Var {
        // All numbers are rows of one column.
        let column = [x.shape().len(), 1];
        let y = self.backend().sum_rows(&x.value().reshape(column), None).reshape(Shape::SCALAR);
        let dx = x.clone();
        self.record(y, &[x], move |back, dy| {
            let (shape, dtype) = (dx.shape(), dx.value().dtype());
            let zeros = back.backend.zeros(column.into(), dtype);
            let all = back.backend.binary(Binary::Add, &zeros, &dy.reshape([1]));
            back.add(&dx, all.reshape(shape));
        })
    }

    /// Dropout with probability `p`; nothing happens in inference.
    pub fn dropout(&self, x: &Var, p: f32) -> Var {
        let Some(dropout) = self.draw(p) else { return x.clone() };
        let y = self.backend().dropout(x.value(), dropout);
        let dx = x.clone();
        self.record(y, &[x], move |back, dy| {
            let dropped = back.backend.dropout(&dy, dropout);
            back.add(&dx, dropped);
        })
    }

    /// `x + dropout(r)`: the residual connection around a sublayer whose output is `r`.
    pub fn residual(&self, x: &Var, r: &Var, p: f32) -> Var {
        let dropout = self.draw(p);
        let y = self.backend().residual(x.value(), r.value(), dropout);
        let (dx, dr) = (x.clone(), r.clone());
        self.record(y, &[x, r], move |back, dy| {
            let dropped = dropout.map_or_else(|| dy.clone(), |dropout| back.backend.dropout(&dy, dropout));
            back.add(&dr, dropped);
            back.add(&dx, dy);
        })
    }

    /// The same numbers in f32 or bf16, rounded to the nearest; the gradient of an activation has its type.
    pub fn cast(&self, x: &Var, to: DType) -> Var {
        if x.value().dtype() == to {
            return x.clone();
        }
        let y = self.backend().cast(x.value(), to);
        let dx = x.without_numbers();
        self.record(y, &[x], move |back, dy| {
            let narrow = back.backend.cast(&dy, dx.value().dtype());
            back.add(&dx, narrow);
        })
    }

    /// The same numbers in another shape.
    pub fn reshape(&self, x: &Var, shape: impl Into<Shape>) -> Var {
        let y = x.value().reshape(shape);
        let dx = x.clone();
        self.record(y, &[x], move |back, dy| back.add(&dx, dy.reshape(dx.shape())))
    }
}

#[cfg(test)]
mod tests {
    use crate::check::check_gradients;

    #[test]
    fn gradients_match_differences() {
        check_gradients("add", &[&[4, 6], &[4, 6]], |tape, v| tape.add(&v[0], &v[1]));
        check_gradients("add row", &[&[4, 6], &[6]], |tape, v| tape.add(&v[0], &v[1]));
        check_gradients("add itself", &[&[4, 6]], |tape, v| tape.add(&v[0], &v[0]));
        check_gradients("mul", &[&[4, 6], &[4, 6]], |tape, v| tape.mul(&v[0], &v[1]));
        check_gradients("scale", &[&[3, 5]], |tape, v| tape.scale(&v[0], -1.5));
        check_gradients("sum", &[&[9, 5]], |tape, v| tape.sum(&v[0]));
        check_gradients("dropout", &[&[9, 5]], |tape, v| tape.dropout(&v[0], 0.4));
        check_gradients("residual", &[&[3, 5], &[3, 5]], |tape, v| tape.residual(&v[0], &v[1], 0.0));
        check_gradients("residual dropout", &[&[3, 5], &[3, 5]], |tape, v| tape.residual(&v[0], &v[1], 0.5));
        check_gradients("reshape", &[&[6, 4]], |tape, v| tape.reshape(&v[0], [2, 3, 4]));
    }
}
