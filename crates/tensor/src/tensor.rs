//! A shape, a type and an opaque buffer.

use crate::shape::Shape;
use half::{bf16, f16};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The type of a tensor's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    /// 32-bit floating point.
    F32,
    /// The upper half of an `f32`: its range, 8 bits of precision.
    Bf16,
    /// 16-bit floating point of IEEE 754.
    F16,
    /// 8-bit integers.
    I8,
    /// 32-bit integers: token numbers, row numbers.
    I32,
}

/// Numbers in the host's memory, to be uploaded to a backend.
#[derive(Debug, Clone, Copy)]
pub enum Host<'a> {
    /// [`DType::F32`]
    F32(&'a [f32]),
    /// [`DType::Bf16`]
    Bf16(&'a [bf16]),
    /// [`DType::F16`]
    F16(&'a [f16]),
    /// [`DType::I8`]
    I8(&'a [i8]),
    /// [`DType::I32`]
    I32(&'a [i32]),
}

impl Host<'_> {
    /// The type of the numbers.
    pub fn dtype(&self) -> DType {
        match self {
            Host::F32(_) => DType::F32,
            Host::Bf16(_) => DType::Bf16,
            Host::F16(_) => DType::F16,
            Host::I8(_) => DType::I8,
            Host::I32(_) => DType::I32,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Host::F32(data) => data.len(),
            Host::Bf16(data) => data.len(),
            Host::F16(data) => data.len(),
            Host::I8(data) => data.len(),
            Host::I32(data) => data.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Numbers that were downloaded from a backend.
#[derive(Debug, Clone, PartialEq)]
pub enum HostVec {
    /// [`DType::F32`]
    F32(Vec<f32>),
    /// [`DType::Bf16`]
    Bf16(Vec<bf16>),
    /// [`DType::F16`]
    F16(Vec<f16>),
    /// [`DType::I8`]
    I8(Vec<i8>),
    /// [`DType::I32`]
    I32(Vec<i32>),
}

/// Memory of a backend. Only this backend knows its type. Clones share the memory.
#[derive(Clone)]
pub struct Buffer(Arc<dyn Any + Send + Sync>);

impl Buffer {
    /// Wraps a backend's memory.
    pub fn new<T: Any + Send + Sync>(memory: T) -> Buffer {
        Buffer(Arc::new(memory))
    }

    /// The memory, for the backend whose type it is.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }

    /// The memory, mutable: only if this is the only handle, and only for the backend whose type it is.
    pub fn get_mut<T: Any>(&mut self) -> Option<&mut T> {
        Arc::get_mut(&mut self.0)?.downcast_mut()
    }

    /// Whether this is the only handle.
    pub fn is_unique(&mut self) -> bool {
        Arc::get_mut(&mut self.0).is_some()
    }

    /// Whether both are the same memory.
    pub fn same(&self, other: &Buffer) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// An array of numbers in the memory of a backend. Clones share the memory, and shared memory is never written to.
#[derive(Clone)]
pub struct Tensor {
    buffer: Buffer,
    shape: Shape,
    dtype: DType,
}

impl Tensor {
    /// Used by backends.
    pub fn new(buffer: Buffer, shape: impl Into<Shape>, dtype: DType) -> Tensor {
        Tensor { buffer, shape: shape.into(), dtype }
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The type of its numbers.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Its memory.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Its memory, mutable.
    pub fn buffer_mut(&mut self) -> &mut Buffer {
        &mut self.buffer
    }

    /// The same numbers in another shape.
    pub fn reshape(&self, shape: impl Into<Shape>) -> Tensor {
        let shape = shape.into();
        assert_eq!(shape.len(), self.shape.len(), "reshape: {} to {shape} does not fit", self.shape);
        Tensor { shape, ..self.clone() }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{}", self.dtype, self.shape)
    }
}
