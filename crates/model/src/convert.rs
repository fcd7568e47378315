//! From one model folder to another, whatever the family: weights in another type, under their names of today.
//!
//! Weights go through memory one tensor at a time. In bf16 and int8 only matrices are stored so: norms and
//! biases are few and matter. Tables of learned positions, which are never multiplied, stay in f32 where
//! matrices become int8.

use crate::checkpoint::CONFIG;
use crate::checkpoint::{
    Checkpoint, Item, SCALE, Staged, Stored, StoredType, WEIGHTS, if_there, stage_items,
};
use crate::error::Error;
use attentive_tensor::Shape;
use half::bf16;
use serde_json::{Map, Value};
use std::path::Path;

/// What a conversion has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// How many tensors there are.
    pub tensors: usize,
    /// The bytes of the file that they came from.
    pub bytes_before: u64,
    /// The bytes of the new one.
    pub bytes: u64,
}

/// Files that belong to a model and are copied as they are.
const COPIED: [&str; 20] = [
    "generation_config.json",
    "source.spm",
    "target.spm",
    "vocab.json",
    "target_vocab.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "spm.model",
    "special_tokens_map.json",
    "vocab.txt",
    "merges.txt",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
    "preprocessor_config.json",
    "processor_config.json",
];

/// A tensor of the old file that is to be in the new one.
pub(crate) struct Old {
    /// Its name in the checkpoint.
    pub name: String,
    /// Its name in the new file.
    pub new_name: String,
    pub shape: Shape,
    /// Whether it is stored in another type if it is a matrix.
    pub converts: bool,
}

/// What a new folder has of an old one.
pub(crate) struct Plan {
    pub tensors: Vec<Old>,
    /// The fields of `config.json` that change, because heads of other tasks stay behind or names are others.
    pub fields: Vec<(&'static str, Value)>,
}

impl From<Vec<Old>> for Plan {
    fn from(tensors: Vec<Old>) -> Plan {
        Plan { tensors, fields: Vec::new() }
    }
}

/// Where weights come from and what becomes of them.
pub(crate) struct Work<'a> {
    pub checkpoint: &'a Checkpoint,
    /// What becomes of matrices.
    pub stored: StoredType,
    /// What becomes of the numbers of a tensor before that.
    pub change: &'a dyn Fn(&str, Stored) -> Stored,
}

/// A conversion that keeps every tensor in the layout of its files, as transformers reads it, and changes the type alone.
pub(crate) struct Plain {
    stored: StoredType,
}

impl Plain {
    /// A conversion to a type that transformers reads, too.
    pub(crate) fn new(stored: StoredType) -> Result<Plain, Error> {
        if stored == StoredType::Int8 {
            let problem = "int8 is not supported for this model type, only f32 and bf16; commands compute any of them in int8";
            return Err(Error::config("precision", problem));
        }
        Ok(Plain { stored })
    }

    /// Writes the folder `to` with what the plan takes of the files in `from`.
    pub(crate) fn write(&self, [from, to]: [&Path; 2], plan: Plan) -> Result<Converted, Error> {
        let dtype = if self.stored == StoredType::Bf16 { "bfloat16" } else { "float32" };
        let mut fields = fields_of(from)?;
        fields.extend(plan.fields.into_iter().map(|(name, value)| (name.to_owned(), value)));
        fields.insert("dtype".to_owned(), dtype.into());
        // The old name of `dtype`, which would contradict it.
        fields.shift_remove("torch_dtype");
        // The files are read under their own names: what they store as one tensor stays one.
        let checkpoint = Checkpoint::of_folder(from)?;
        let work = Work { checkpoint: &checkpoint, stored: self.stored, change: &|_, numbers| numbers };
        work.write([from, to], &plan.tensors, &fields)
    }
}

/// A tensor of the new file, and the one of the old file that it is made of.
struct Piece {
    item: Item,
    of: String,
    shape: Shape,
}

/// Refuses a folder that holds a model already.
pub(crate) fn must_be_free(to: &Path) -> Result<(), Error> {
    let config = to.join(CONFIG);
    if config.try_exists().map_err(|source| Error::File { path: config.clone(), source })? {
        let problem = "the folder already has a model: choose another folder, or remove the model first";
        return Err(Error::Format { path: to.to_owned(), problem: problem.to_owned() });
    }
    Ok(())
}

/// The fields of a `config.json`, in their order.
pub(crate) fn fields_of(folder: &Path) -> Result<Map<String, Value>, Error> {
    let path = folder.join(CONFIG);
    let text = std::fs::read_to_string(&path).map_err(|source| Error::File { path: path.clone(), source })?;
    serde_json::from_str(&text).map_err(|error| Error::Format { path, problem: error.to_string() })
}

impl Work<'_> {
    /// Writes the folder `to` with these tensors, this `config.json`, and all that belongs to the model in `from`. All files are on
    /// the disk before the first takes its place.
    pub(crate) fn write(
        &self,
        [from, to]: [&Path; 2],
        tensors: &[Old],
        config: &Map<String, Value>,
    ) -> Result<Converted, Error> {
        let mut pieces: Vec<Piece> = tensors.iter().flat_map(|old| self.pieces(old)).collect();
        // The widest numbers first, so that all of them lie at multiples of their size.
        pieces.sort_by_key(|piece| std::cmp::Reverse(piece.item.stored.dtype().bitsize()));

        let made = !to.exists();
        std::fs::create_dir_all(to).map_err(|source| Error::File { path: to.to_owned(), source })?;
        let converted = self.stage(from, to, &pieces, config).and_then(|()| {
            let bytes_before = self.checkpoint.files().map(length).sum::<Result<u64, Error>>()?;
            Ok(Converted { tensors: pieces.len(), bytes_before, bytes: length(&to.join(WEIGHTS))? })
        });
        if converted.is_err() {
            // Without it the folder is no model, and converting again is not refused.
            let _ = std::fs::remove_file(to.join(CONFIG));
            if made {
                // What was staged is gone. Files that have taken their places already stay, and their folders with them.
                let folders =
                    COPIED.iter().rev().filter_map(|name| to.join(name).parent().map(Path::to_owned));
                folders.for_each(|folder| drop(std::fs::remove_dir(folder)));
            }
        }
        converted
    }

    /// Nothing takes its place before all is on the disk.
    fn stage(
        &self,
        from: &Path,
        to: &Path,
        pieces: &[Piece],
        config: &Map<String, Value>,
    ) -> Result<(), Error> {
        let items: Vec<Item> = pieces.iter().map(|piece| piece.item.clone()).collect();
        let mut staged = vec![stage_items(&to.join(WEIGHTS), &items, None, |i| self.bytes(&pieces[i]))?];
        for name in COPIED {
            let path = from.join(name);
            let contents = if_there(std::fs::read(&path)).map_err(|source| Error::File { path, source })?;
            if let Some(contents) = contents {
                let new = to.join(name);
                if let Some(folder) = new.parent() {
                    std::fs::create_dir_all(folder)
                        .map_err(|source| Error::File { path: folder.to_owned(), source })?;
                }
                staged.push(Staged::new(&new, &contents)?);
            }
        }
        // Last, since with it the folder is a model.
        let config = serde_json::to_string_pretty(config).expect("a plain structure") + "\n";
        staged.push(Staged::new(&to.join(CONFIG), config.as_bytes())?);
        staged.into_iter().try_for_each(Staged::commit)
    }

    /// What a parameter becomes: itself, or in int8 its rows and their scales.
    fn pieces(&self, old: &Old) -> Vec<Piece> {
        let shape = old.shape;
        let stored = match self.stored {
            _ if shape[..].len() != 2 || !old.converts => StoredType::F32,
            StoredType::Int8 if old.name.ends_with("embed_positions.weight") => StoredType::F32,
            stored => stored,
        };
        let piece = |item| Piece { item, of: old.name.clone(), shape };
        let mut pieces = vec![piece(Item { name: old.new_name.clone(), shape, stored })];
        if stored == StoredType::Int8 {
            let name = format!("{}{SCALE}", old.new_name);
            pieces.push(piece(Item { name, shape: [shape.rows()].into(), stored: StoredType::F32 }));
        }
        pieces
    }

    /// The bytes of a piece.
    fn bytes(&self, piece: &Piece) -> Result<Vec<u8>, Error> {
        let scales = piece.item.name.ends_with(SCALE);
        let stored = if scales { StoredType::Int8 } else { piece.item.stored };
        let new = (self.change)(&piece.of, self.checkpoint.stored_as(&piece.of, piece.shape)?);
        match self.cast(new, stored, piece)? {
            Stored::Int8 { scales: numbers, .. } if scales => Ok(Stored::F32(numbers).to_bytes()),
            new => Ok(new.to_bytes()),
        }
    }

    /// The numbers in another type, which must be able to express them.
    fn cast(&self, old: Stored, stored: StoredType, piece: &Piece) -> Result<Stored, Error> {
        let fits = |x: &f32| x.abs() <= bf16::MAX.to_f32();
        if let Stored::F32(numbers) = &old
            && stored != StoredType::F32
            && let Some(number) = numbers.iter().find(|x| !fits(x))
        {
            let problem = format!("`{}` contains {number}, which {} cannot store", piece.of, name(stored));
            return Err(Error::Format { path: self.checkpoint.path().to_owned(), problem });
        }
        Ok(old.into_type(stored, piece.shape.cols()))
    }
}

fn name(stored: StoredType) -> &'static str {
    match stored {
        StoredType::F32 => "f32",
        StoredType::Bf16 => "bf16",
        StoredType::Int8 => "int8",
    }
}

fn length(path: &Path) -> Result<u64, Error> {
    let metadata = std::fs::metadata(path);
    Ok(metadata.map_err(|source| Error::File { path: path.to_owned(), source })?.len())
}
