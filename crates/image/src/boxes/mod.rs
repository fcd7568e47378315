//! Bounding boxes: COCO's files of annotations and detections, and average precision.
//!
//! ```
//! use attentive_image::boxes::{Annotation, Detection, average_precision};
//!
//! let bbox = [10.0, 20.0, 50.0, 40.0]; // left, top, width, height
//! let annotations = [Annotation { image_id: 1, category_id: 3, bbox, area: None, iscrowd: 0 }];
//! let detections = [Detection { image_id: 1, category_id: 3, bbox, score: 0.9 }];
//! assert!((average_precision(&[1], &[3], &annotations, &detections).ap - 1.0).abs() < 1e-12);
//! ```

mod coco;
mod precision;

pub use coco::{Annotation, Category, Detection, Image, References, folder_of_images, read_detections};
pub use precision::{BoxScores, average_precision};

/// Left, top, width and height in pixels, as COCO's files have them.
pub type Bbox = [f64; 4];
