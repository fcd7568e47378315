//! Adam and AdamW with clipping by the global norm.
