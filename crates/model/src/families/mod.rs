//! Models composed from the layers. A family is a configuration, wiring and a map of weight names.

pub mod transformer;
