//! Reading and writing `preprocessor_config.json`, in the present and in earlier formats of transformers.
//!
//! Missing fields have the defaults of the class that the file names.

use super::{Processor, Size};
use crate::error::Error;
use crate::resize::Filter;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::path::Path;

/// The files in which a folder may have it. In the second one, it is the field `image_processor`.
const FILES: [&str; 2] = ["preprocessor_config.json", "processor_config.json"];

/// The longest side that a file may ask for.
const LONGEST: u64 = 1 << 14;

/// The mean and the standard deviation of the pictures that many models were trained with.
const HALVES: [[f32; 3]; 2] = [[0.5; 3]; 2];
const IMAGENET: [[f32; 3]; 2] = [[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]];
const CLIP: [[f32; 3]; 2] =
    [[0.481_454_66, 0.457_827_5, 0.408_210_73], [0.268_629_54, 0.261_302_6, 0.275_777_1]];

/// The default processor of a class of transformers.
fn defaults(class: &str) -> Option<Processor> {
    let square = |side| Size::Exact { height: side, width: side };
    let plain = Processor::plain(224, 224);
    Some(match class {
        "ViT" => Processor { normalise: Some(HALVES), ..plain },
        "DeiT" => Processor { resize: Some((square(256), Filter::Bicubic)), crop: Some([224; 2]), ..plain },
        "Bit" => Processor {
            resize: Some((Size::Shortest(224), Filter::Bicubic)),
            crop: Some([224; 2]),
            normalise: Some(CLIP),
            ..plain
        },
        "Detr" => Processor {
            resize: Some((Size::ShortestWithin(800, 1333), Filter::Bilinear)),
            normalise: Some(IMAGENET),
            ..plain
        },
        _ => return None,
    })
}

/// The fields. `null` is the same as a missing field.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fields {
    image_processor_type: Option<String>,
    feature_extractor_type: Option<String>,
    do_resize: Option<bool>,
    size: Option<Value>,
    max_size: Option<u64>,
    resample: Option<u64>,
    do_center_crop: Option<bool>,
    crop_size: Option<Value>,
    do_rescale: Option<bool>,
    rescale_factor: Option<f64>,
    do_normalize: Option<bool>,
    image_mean: Option<Value>,
    image_std: Option<Value>,
    do_pad: Option<bool>,
    pad_size: Option<Value>,
}

pub(super) fn read(folder: &Path) -> Result<Processor, Error> {
    for name in FILES {
        let path = folder.join(name);
        let wrong = |problem: String| Error::Format { path: path.clone(), problem };
        let value: Value = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::file(&path, error)),
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?,
        };
        let value = value.get("image_processor").cloned().unwrap_or(value);
        let fields: Fields = serde_json::from_value(value).map_err(|error| wrong(error.to_string()))?;
        return fields.read().map_err(wrong);
    }
    let problem = "no such file; it says how pictures are made ready for the model: copy it from where the model comes from";
    Err(Error::Format { path: folder.join(FILES[0]), problem: problem.to_owned() })
}

impl Fields {
    fn read(&self) -> Result<Processor, String> {
        let named = self.image_processor_type.as_deref().or(self.feature_extractor_type.as_deref());
        let class = named.unwrap_or("ViTImageProcessor");
        let stem = ["ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor"]
            .iter()
            .find_map(|end| class.strip_suffix(end));
        let unknown = || {
            format!(
                "`{class}` is not supported; supported are ViTImageProcessor, DeiTImageProcessor, BitImageProcessor and \
                 DetrImageProcessor"
            )
        };
        let before = stem.and_then(defaults).ok_or_else(unknown)?;
        Ok(Processor {
            resize: self.resize(&before, stem)?,
            crop: self.crop(&before)?,
            rescale: match self.do_rescale {
                Some(false) => None,
                _ => Some(finite("rescale_factor", self.rescale_factor.unwrap_or(1.0 / 255.0))?),
            },
            normalise: self.normalise(&before)?,
            pad: match (&self.pad_size, self.do_pad) {
                (None, _) | (_, Some(false)) => None,
                (Some(size), _) => Some(height_and_width("pad_size", size)?),
            },
        })
    }

    fn resize(&self, before: &Processor, stem: Option<&str>) -> Result<Option<(Size, Filter)>, String> {
        let Some((size, filter)) = before.resize.filter(|_| self.do_resize != Some(false)) else {
            return Ok(None);
        };
        let size = match &self.size {
            Some(size) => self.size(size, stem)?,
            None => size,
        };
        let filter = match self.resample {
            Some(number) => Filter::numbered(number)
                .ok_or_else(|| format!("resample: must be a filter of Pillow from 0 to 5, not {number}"))?,
            None => filter,
        };
        Ok(Some((size, filter)))
    }

    fn size(&self, size: &Value, stem: Option<&str>) -> Result<Size, String> {
        let side =
            |key: &str| size.get(key).filter(|side| !side.is_null()).map(|value| length("size", value));
        let side = |key: &str| side(key).transpose();
        if size.is_number() {
            let side = length("size", size)?;
            // Old files may have one number for both sides, which only some classes read as a square. Those of DETR may lack the limit.
            let is_square = matches!(stem, Some("ViT" | "DeiT"));
            let most = self.max_size.or((stem == Some("Detr")).then_some(1333));
            return Ok(match (is_square, most) {
                (true, _) => Size::Exact { height: side, width: side },
                (false, None) => Size::Shortest(side),
                (false, Some(most)) => Size::ShortestWithin(side, length("max_size", &most.into())?),
            });
        }
        let both = |one: &str, other: &str| Ok::<_, String>(side(one)?.zip(side(other)?));
        if let Some((shortest, longest)) = both("shortest_edge", "longest_edge")? {
            return Ok(Size::ShortestWithin(shortest, longest));
        }
        if let Some(shortest) = side("shortest_edge")? {
            return Ok(Size::Shortest(shortest));
        }
        if let Some((height, width)) = both("max_height", "max_width")? {
            return Ok(Size::Within { height, width });
        }
        let exact = both("height", "width")?.map(|(height, width)| Size::Exact { height, width });
        exact.ok_or_else(|| {
            format!(
                "size: must have height and width, shortest_edge, or max_height and max_width, and is {size}"
            )
        })
    }

    fn crop(&self, before: &Processor) -> Result<Option<[usize; 2]>, String> {
        if !self.do_center_crop.unwrap_or(before.crop.is_some()) {
            return Ok(None);
        }
        match &self.crop_size {
            Some(size) if size.is_number() => Ok(Some([length("crop_size", size)?; 2])),
            Some(size) => Ok(Some(height_and_width("crop_size", size)?)),
            None => Ok(Some(before.crop.unwrap_or([224; 2]))),
        }
    }

    fn normalise(&self, before: &Processor) -> Result<Option<[[f32; 3]; 2]>, String> {
        let Some([mean, deviation]) = before.normalise.filter(|_| self.do_normalize != Some(false)) else {
            return Ok(None);
        };
        let read = |field, value: &Option<Value>, before| {
            value.as_ref().map_or(Ok(before), |value| three(field, value))
        };
        let [mean, deviation] =
            [read("image_mean", &self.image_mean, mean)?, read("image_std", &self.image_std, deviation)?];
        if deviation.contains(&0.0) {
            return Err("image_std: must not be 0".to_owned());
        }
        Ok(Some([mean, deviation]))
    }
}

fn length(field: &str, value: &Value) -> Result<usize, String> {
    let wrong = || format!("{field}: a side must be a whole number from 1 to {LONGEST}, not {value}");
    value.as_u64().filter(|side| (1..=LONGEST).contains(side)).map(|side| side as usize).ok_or_else(wrong)
}

fn height_and_width(field: &str, size: &Value) -> Result<[usize; 2], String> {
    let side = |key: &str| {
        let missing = || format!("{field}: must have height and width, and is {size}");
        length(field, size.get(key).ok_or_else(missing)?)
    };
    Ok([side("height")?, side("width")?])
}

fn finite(field: &str, number: f64) -> Result<f64, String> {
    if number.is_finite() { Ok(number) } else { Err(format!("{field}: must be a number, not {number}")) }
}

/// A number for each channel, or one for all.
fn three(field: &str, value: &Value) -> Result<[f32; 3], String> {
    let wrong = || format!("{field}: must be three numbers, for red, green and blue, not {value}");
    let number = |value: &Value| {
        value.as_f64().map(|number| number as f32).filter(|number| number.is_finite()).ok_or_else(wrong)
    };
    match value.as_array().map(Vec::as_slice) {
        Some([red, green, blue]) => Ok([number(red)?, number(green)?, number(blue)?]),
        Some(_) => Err(wrong()),
        None => Ok([number(value)?; 3]),
    }
}

/// The class of transformers that makes pictures ready so.
pub(super) fn class_of(processor: &Processor) -> &'static str {
    let is_exact = matches!(processor.resize, None | Some((Size::Exact { .. }, _)));
    if is_exact && processor.crop.is_none() { "ViTImageProcessor" } else { "BitImageProcessor" }
}

/// The file of a processor, for a class of transformers.
pub(super) fn text(processor: &Processor, class: &str) -> String {
    let sides = |[height, width]: [usize; 2]| json!({"height": height, "width": width});
    let size = |size: Size| match size {
        Size::Exact { height, width } => sides([height, width]),
        Size::Shortest(side) => json!({"shortest_edge": side}),
        Size::ShortestWithin(side, most) => json!({"shortest_edge": side, "longest_edge": most}),
        Size::Within { height, width } => json!({"max_height": height, "max_width": width}),
    };
    // Nothing is left to the defaults of the class.
    let file = json!({
        "image_processor_type": class,
        "do_resize": processor.resize.is_some(),
        "size": processor.resize.map(|(before, _)| size(before)),
        "resample": processor.resize.map(|(_, filter)| filter.number()),
        "do_center_crop": processor.crop.is_some(),
        "crop_size": processor.crop.map(sides),
        "do_rescale": processor.rescale.is_some(),
        "rescale_factor": processor.rescale,
        "do_normalize": processor.normalise.is_some(),
        "image_mean": processor.normalise.map(|[mean, _]| mean),
        "image_std": processor.normalise.map(|[_, deviation]| deviation),
        "do_pad": processor.pad.is_some(),
        "pad_size": processor.pad.map(sides),
    });
    serde_json::to_string_pretty(&file).expect("plain values") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Processor, String> {
        serde_json::from_str::<Fields>(text).expect("an object").read()
    }

    #[test]
    fn files_old_and_new_are_understood() {
        let vit = Processor::plain(224, 224);
        for text in [
            r#"{"feature_extractor_type": "ViTFeatureExtractor", "size": 224, "image_std": 0.5}"#,
            r#"{"image_processor_type": "ViTImageProcessorFast", "size": {"height": 224, "width": 224}, "resample": 2}"#,
            r#"{"do_resize": true, "do_normalize": true}"#,
        ] {
            assert_eq!(parse(text), Ok(vit.clone()), "{text}");
        }
        let detr =
            parse(r#"{"feature_extractor_type": "DetrFeatureExtractor", "size": 800, "max_size": 1333}"#);
        assert_eq!(detr.unwrap().resize, Some((Size::ShortestWithin(800, 1333), Filter::Bilinear)));
        let detr = parse(r#"{"feature_extractor_type": "DetrFeatureExtractor", "size": 600}"#);
        assert_eq!(detr.unwrap().resize, Some((Size::ShortestWithin(600, 1333), Filter::Bilinear)));
        let bit = parse(
            r#"{"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 256}, "crop_size": 200}"#,
        );
        let bit = bit.unwrap();
        assert_eq!(bit.resize, Some((Size::Shortest(256), Filter::Bicubic)));
        assert_eq!((bit.crop, bit.normalise), (Some([200; 2]), Some(CLIP)));
    }

    #[test]
    fn what_was_written_is_read_again() {
        let processor = Processor {
            resize: Some((Size::Shortest(30), Filter::Bicubic)),
            crop: Some([20, 24]),
            rescale: None,
            normalise: Some(IMAGENET),
            pad: Some([40, 48]),
        };
        let plain = Processor { resize: None, ..Processor::plain(1, 1) };
        for (processor, class) in [(processor, "BitImageProcessor"), (plain, "ViTImageProcessor")] {
            let text = processor.to_json();
            assert!(text.contains(class), "{text}");
            assert_eq!(parse(&text).unwrap(), processor);
        }
    }

    #[test]
    fn impossible_values_are_refused_by_name() {
        for (text, field) in [
            (r#"{"image_processor_type": "CLIPImageProcessor"}"#, "`CLIPImageProcessor`"),
            (r#"{"size": {"height": 0, "width": 1}}"#, "size"),
            (r#"{"size": {"height": 3}}"#, "size"),
            (r#"{"size": 1e9}"#, "size"),
            (r#"{"resample": 6}"#, "resample"),
            (r#"{"image_mean": [1, 2]}"#, "image_mean"),
            (r#"{"image_std": 0}"#, "image_std"),
            (r#"{"do_center_crop": true, "crop_size": {"height": "x", "width": 1}}"#, "crop_size"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(field), "{text}: {problem}");
        }
    }
}
