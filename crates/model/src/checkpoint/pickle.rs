//! The tensors that a Python pickle speaks of, read without running anything.
//!
//! A pickle is a program for a machine with a stack and a memo. Its opcodes make numbers, texts and
//! containers, and name Python objects to be called, which is how a pickle can do whatever it likes to those
//! who load it. This machine knows the opcodes that `torch.save` writes and the few objects that a state dict
//! needs, for which it has meanings of its own; everything else is refused by name.
//!
//! Values live in one list and refer to each other by number, so that nothing here recurses however deep they
//! are nested; every opcode makes at most one of them, of bounded size, and texts stay where they are in the
//! pickle, so that its length bounds the memory.

use super::bytes::Bytes;
use safetensors::tensor::Dtype;
use std::collections::HashMap;

/// The longest pickle that is read: the names and shapes of some 20,000 tensors.
pub(super) const LONGEST: u64 = 1 << 22;
/// No tensor of a model has more.
const MOST_DIMENSIONS: usize = 8;

/// A tensor: where it lies in a storage of its numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tensor<'a> {
    /// The name of the storage.
    pub storage: &'a str,
    pub dtype: Dtype,
    /// How many numbers the storage has.
    pub numbers: u64,
    /// The first number of the tensor.
    pub offset: u64,
    pub shape: Vec<u64>,
    /// How many numbers lie between neighbours in each dimension.
    pub strides: Vec<u64>,
}

/// Tensors by name.
pub(super) type Named<'a> = Vec<(&'a str, Tensor<'a>)>;

/// The tensors of a pickled state dict by name, and the length of the pickle. What has a name and is no tensor is left out.
pub(super) fn tensors(pickle: &[u8]) -> Result<(Named<'_>, usize), String> {
    let mut machine = Machine::new(pickle);
    let top = machine.run()?;
    let Value::Dict(entries) = &machine.values[top] else {
        return Err(
            "it does not contain a state dict (weights by name): save `model.state_dict()`".to_owned()
        );
    };
    let entry = |(key, value): &(usize, usize)| match (&machine.values[*key], &machine.values[*value]) {
        (Value::Text(name), Value::Tensor(tensor)) => Some((*name, tensor.clone())),
        _ => None,
    };
    let tensors: Vec<_> = entries.iter().filter_map(entry).collect();
    if tensors.is_empty() {
        return Err(
            "its state dict has no tensors at the top level: save only `model.state_dict()`".to_owned()
        );
    }
    Ok((tensors, machine.input.at()))
}

/// The texts of a pickled list, and the length of the pickle.
pub(super) fn texts(pickle: &[u8]) -> Result<(Vec<&str>, usize), String> {
    let mut machine = Machine::new(pickle);
    let top = machine.run()?;
    let texts = match &machine.values[top] {
        Value::List(items) => items.iter().map(|&item| machine.text(item)).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    Ok((texts.ok_or("its list of storages is damaged")?, machine.input.at()))
}

/// Whether `name` is true in a pickled dict, if it is there, and the length of the pickle.
pub(super) fn flag(pickle: &[u8], name: &str) -> Result<(Option<bool>, usize), String> {
    let mut machine = Machine::new(pickle);
    let top = machine.run()?;
    let Value::Dict(entries) = &machine.values[top] else {
        return Err("its description of the machine is damaged".to_owned());
    };
    let found = entries.iter().find_map(|&(key, value)| match machine.values[value] {
        Value::Bool(flag) if machine.text(key) == Some(name) => Some(flag),
        _ => None,
    });
    Ok((found, machine.input.at()))
}

/// A value; others are known by their numbers in the machine's list.
#[derive(Debug)]
enum Value<'a> {
    None,
    Bool(bool),
    /// What only stands beside tensors.
    Float,
    Int(i64),
    Text(&'a str),
    Tuple(Vec<usize>),
    List(Vec<usize>),
    Dict(Vec<(usize, usize)>),
    Object(Object),
    Storage {
        key: &'a str,
        dtype: Dtype,
        numbers: u64,
    },
    Tensor(Tensor<'a>),
}

/// The Python objects that a state dict needs.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Object {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    Storage(Dtype),
}

const OBJECTS: [(&str, Object); 13] = [
    ("collections.OrderedDict", Object::OrderedDict),
    ("torch._utils._rebuild_tensor_v2", Object::RebuildTensor),
    ("torch._utils._rebuild_parameter", Object::RebuildParameter),
    ("torch.FloatStorage", Object::Storage(Dtype::F32)),
    ("torch.DoubleStorage", Object::Storage(Dtype::F64)),
    ("torch.HalfStorage", Object::Storage(Dtype::F16)),
    ("torch.BFloat16Storage", Object::Storage(Dtype::BF16)),
    ("torch.LongStorage", Object::Storage(Dtype::I64)),
    ("torch.IntStorage", Object::Storage(Dtype::I32)),
    ("torch.ShortStorage", Object::Storage(Dtype::I16)),
    ("torch.CharStorage", Object::Storage(Dtype::I8)),
    ("torch.ByteStorage", Object::Storage(Dtype::U8)),
    ("torch.BoolStorage", Object::Storage(Dtype::BOOL)),
];

struct Machine<'a> {
    input: Bytes<'a>,
    values: Vec<Value<'a>>,
    stack: Vec<usize>,
    /// The heights of the stack at which marks were set.
    marks: Vec<usize>,
    memo: HashMap<u64, usize>,
}

impl<'a> Machine<'a> {
    fn new(pickle: &'a [u8]) -> Machine<'a> {
        Machine {
            input: Bytes::new(pickle),
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        }
    }

    /// Runs the program to its end and gives the value that is left.
    fn run(&mut self) -> Result<usize, String> {
        loop {
            let at = self.input.at();
            let wrong = || format!("its pickle is damaged at byte {at}");
            let opcode = self.input.u8().ok_or("its pickle is incomplete")?;
            match opcode {
                b'.' => return self.stack.pop().ok_or_else(wrong),
                b'c' => {
                    let names = [self.input.line(), self.input.line()].map(|line| line.and_then(text));
                    let [Some(module), Some(name)] = names else { return Err(wrong()) };
                    self.object(module, name)?;
                }
                0x93 => {
                    let names =
                        [self.pop(), self.pop()].map(|value| value.and_then(|value| self.text(value)));
                    let [Some(name), Some(module)] = names else { return Err(wrong()) };
                    self.object(module, name)?;
                }
                _ => match self.step(opcode) {
                    Some(Step::Done) => {}
                    Some(Step::Unknown) => {
                        return Err(format!(
                            "its pickle has an opcode at byte {at} that no state dict needs \
                             (0x{opcode:02x}); reading stopped there"
                        ));
                    }
                    None => return Err(wrong()),
                },
            }
        }
    }

    /// Carries out one opcode; none if it finds nothing that it can be done to.
    fn step(&mut self, opcode: u8) -> Option<Step> {
        match opcode {
            // The protocol, and the length of what follows.
            0x80 => drop(self.input.u8()?),
            0x95 => drop(self.input.u64()?),
            // Constants.
            b'N' => self.push(Value::None),
            0x88 | 0x89 => self.push(Value::Bool(opcode == 0x88)),
            b'K' => self.int(1)?,
            b'M' => self.int(2)?,
            b'J' => {
                let int = self.input.u32()? as i32;
                self.push(Value::Int(int.into()));
            }
            0x8a => {
                let length = self.input.u8()?;
                self.long(length.into())?;
            }
            b'G' => {
                self.input.u64()?;
                self.push(Value::Float);
            }
            0x8c => {
                let length = self.input.u8()?;
                self.push_text(length.into())?;
            }
            b'X' => {
                let length = self.input.u32()?;
                self.push_text(length.try_into().ok()?)?;
            }
            // Containers.
            b'(' => self.marks.push(self.stack.len()),
            b')' => self.push(Value::Tuple(Vec::new())),
            0x85..=0x87 => {
                let start = self.stack.len().checked_sub(usize::from(opcode - 0x84))?;
                self.tuple(start)?;
            }
            b't' => {
                let start = self.marks.pop()?;
                self.tuple(start)?;
            }
            b']' => self.push(Value::List(Vec::new())),
            b'}' => self.push(Value::Dict(Vec::new())),
            b'a' => self.append(self.stack.len().checked_sub(1)?)?,
            b'e' => {
                let start = self.marks.pop()?;
                self.append(start)?;
            }
            b's' => self.set_items(self.stack.len().checked_sub(2)?)?,
            b'u' => {
                let start = self.marks.pop()?;
                self.set_items(start)?;
            }
            // The memo.
            b'q' => {
                let key = self.input.u8()?;
                self.remember(key.into())?;
            }
            b'r' => {
                let key = self.input.u32()?;
                self.remember(key.into())?;
            }
            0x94 => self.remember(self.memo.len() as u64)?,
            b'h' => {
                let key = self.input.u8()?;
                self.recall(key.into())?;
            }
            b'j' => {
                let key = self.input.u32()?;
                self.recall(key.into())?;
            }
            // Objects.
            b'Q' => self.storage()?,
            b'R' => self.call()?,
            // Attributes that are set on a dict, such as the versions of the modules, say nothing about its
            // tensors.
            b'b' => {
                self.pop()?;
                matches!(self.values[*self.stack.last()?], Value::Dict(_)).then_some(())?;
            }
            _ => return Some(Step::Unknown),
        }
        Some(Step::Done)
    }

    fn push(&mut self, value: Value<'a>) {
        self.stack.push(self.values.len());
        self.values.push(value);
    }

    /// Takes the uppermost value, which must not lie below a mark.
    fn pop(&mut self) -> Option<usize> {
        if self.stack.len() == self.marks.last().copied().unwrap_or(0) {
            return None;
        }
        self.stack.pop()
    }

    /// Takes the values from `start` on.
    fn take(&mut self, start: usize) -> Option<Vec<usize>> {
        let below = start > self.stack.len() || self.marks.last().is_some_and(|&mark| start < mark);
        (!below).then(|| self.stack.split_off(start))
    }

    /// A whole number of `length` bytes, not negative.
    fn int(&mut self, length: usize) -> Option<()> {
        let int = self.input.take(length)?.iter().rev().fold(0, |int, &byte| int << 8 | i64::from(byte));
        self.push(Value::Int(int));
        Some(())
    }

    /// A whole number in two's complement, of at most eight bytes.
    fn long(&mut self, length: usize) -> Option<()> {
        let bytes = self.input.take(length)?;
        let mut all = [if bytes.last()? & 0x80 == 0 { 0 } else { 0xFF }; 8];
        all.get_mut(..length)?.copy_from_slice(bytes);
        self.push(Value::Int(i64::from_le_bytes(all)));
        Some(())
    }

    fn push_text(&mut self, length: usize) -> Option<()> {
        let text = text(self.input.take(length)?)?;
        self.push(Value::Text(text));
        Some(())
    }

    fn tuple(&mut self, start: usize) -> Option<()> {
        let items = self.take(start)?;
        self.push(Value::Tuple(items));
        Some(())
    }

    /// Puts values into the list below them.
    fn append(&mut self, start: usize) -> Option<()> {
        let items = self.take(start)?;
        let Value::List(list) = &mut self.values[*self.stack.last()?] else { return None };
        list.extend(items);
        Some(())
    }

    /// Puts keys and values into the dict below them.
    fn set_items(&mut self, start: usize) -> Option<()> {
        let items = self.take(start)?;
        let Value::Dict(entries) = &mut self.values[*self.stack.last()?] else { return None };
        let pairs = items.chunks_exact(2);
        pairs.remainder().is_empty().then_some(())?;
        entries.extend(pairs.map(|pair| (pair[0], pair[1])));
        Some(())
    }

    fn remember(&mut self, key: u64) -> Option<()> {
        self.memo.insert(key, *self.stack.last()?);
        Some(())
    }

    fn recall(&mut self, key: u64) -> Option<()> {
        self.stack.push(*self.memo.get(&key)?);
        Some(())
    }

    /// A Python object by name, of which only a few are known.
    fn object(&mut self, module: &str, name: &str) -> Result<(), String> {
        let name = format!("{module}.{name}");
        let found = OBJECTS.iter().find(|(known, _)| *known == name);
        let (_, object) = found.ok_or_else(|| {
            format!(
                "its pickle asks for the Python object `{name}`, which no state dict needs; nothing was run"
            )
        })?;
        self.push(Value::Object(*object));
        Ok(())
    }

    /// A storage by its description: `("storage", type, key, device, numbers)`, behind which files before PyTorch 1.6 have the part of
    /// another storage that it is, or none.
    fn storage(&mut self) -> Option<()> {
        let description = self.pop()?;
        let &[word, dtype, key, _, numbers, ref part @ ..] = self.items(description)? else { return None };
        let is_whole = match part {
            [] => true,
            [part] => matches!(self.values[*part], Value::None),
            _ => false,
        };
        is_whole.then_some(())?;
        (self.text(word)? == "storage").then_some(())?;
        let Value::Object(Object::Storage(dtype)) = self.values[dtype] else { return None };
        let (key, numbers) = (self.text(key)?, self.size(numbers)?);
        self.push(Value::Storage { key, dtype, numbers });
        Some(())
    }

    /// Calls the object below the arguments.
    fn call(&mut self) -> Option<()> {
        let (arguments, object) = (self.pop()?, self.pop()?);
        let Value::Object(object) = self.values[object] else { return None };
        match (object, self.items(arguments)?) {
            (Object::OrderedDict, []) => self.push(Value::Dict(Vec::new())),
            (Object::RebuildTensor, &[storage, offset, shape, strides, ..]) => {
                let Value::Storage { key, dtype, numbers } = self.values[storage] else { return None };
                let (shape, strides) = (self.sizes(shape)?, self.sizes(strides)?);
                let offset = self.size(offset)?;
                self.push(Value::Tensor(Tensor { storage: key, dtype, numbers, offset, shape, strides }));
            }
            // A parameter is the tensor that it holds.
            (Object::RebuildParameter, &[tensor, ..]) => self.stack.push(tensor),
            _ => return None,
        }
        Some(())
    }

    fn items(&self, value: usize) -> Option<&[usize]> {
        match &self.values[value] {
            Value::Tuple(items) => Some(items),
            _ => None,
        }
    }

    fn text(&self, value: usize) -> Option<&'a str> {
        match self.values[value] {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn size(&self, value: usize) -> Option<u64> {
        match self.values[value] {
            Value::Int(int) => int.try_into().ok(),
            _ => None,
        }
    }

    fn sizes(&self, value: usize) -> Option<Vec<u64>> {
        let sizes = self.items(value).filter(|sizes| sizes.len() <= MOST_DIMENSIONS)?;
        sizes.iter().map(|&size| self.size(size)).collect()
    }
}

/// What became of an opcode.
enum Step {
    Done,
    Unknown,
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use attentive_tensor::Random;

    /// `{"w": …}` with a tensor of two numbers, as protocol 2 and as protocol 4 have it.
    const OLD: &[u8] = b"\x80\x02}(X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n\
((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ\
K\x00K\x02\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtRu.";
    const NEW: &[u8] = b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00}(\x8c\x01w\x8c\x0ctorch._utils\x94\
\x8c\x12_rebuild_tensor_v2\x93((\x8c\x07storage\x8c\x05torch\x8c\x0cFloatStorage\x93\x8c\x010\x8c\x03cpuK\x02tQ\
K\x00K\x02\x85K\x01\x85\x89NtRu.";

    #[test]
    fn a_state_dict_is_read_in_old_and_new_protocols() {
        let w = Tensor {
            storage: "0",
            dtype: Dtype::F32,
            numbers: 2,
            offset: 0,
            shape: vec![2],
            strides: vec![1],
        };
        assert_eq!(tensors(OLD), Ok((vec![("w", w.clone())], OLD.len())));
        assert_eq!(tensors(NEW), Ok((vec![("w", w)], NEW.len())));
    }

    #[test]
    fn what_is_no_state_dict_is_told() {
        assert!(tensors(b"\x80\x02).").unwrap_err().contains("does not contain a state dict"));
        assert!(tensors(b"\x80\x02}.").unwrap_err().contains("no tensors at the top level"));
        assert!(tensors(b"\x80\x02}").unwrap_err().contains("incomplete"));
        assert!(tensors(b"cos\nsystem\n.").unwrap_err().contains("`os.system`"));
        assert!(tensors(b"\x80\x02i").unwrap_err().contains("(0x69)"));
    }

    #[test]
    fn nesting_is_no_matter_of_the_stack() {
        let nested = [&b"N"[..], &vec![0x85; 1 << 20], b"."].concat();
        assert!(tensors(&nested).unwrap_err().contains("does not contain a state dict"));
        let marks = [&vec![b'('; 1 << 20][..], b"t."].concat();
        assert!(tensors(&marks).unwrap_err().contains("does not contain a state dict"));
        // A dict inside itself.
        assert!(
            tensors(b"}q\x00(X\x01\x00\x00\x00ah\x00u.").unwrap_err().contains("no tensors at the top level")
        );
    }

    /// Programs of opcodes and arguments as they come, and state dicts with some bytes replaced by such.
    #[test]
    fn no_program_makes_it_panic() {
        const WORDS: &[u8] =
            b".(NKMJGX)tue]}asqrhjQRbc0\x80\x88\x8a\x8c\x85\x86\x87\x93\x94\x95\n\x00\x01\x02\xff";
        let random = Random::new(1);
        let word = |i: u32| WORDS[random.bits(i) as usize % WORDS.len()];
        for i in 0..40_000u32 {
            let soup: Vec<u8> = (0..i % 40).map(|j| word(40 * i + j)).collect();
            drop(tensors(&soup));
            let mut program = if i % 2 == 0 { OLD.to_vec() } else { NEW.to_vec() };
            for j in 0..1 + i % 3 {
                let at = random.bits((1 << 30) | (4 * i + j)) as usize % program.len();
                program[at] = word(i + j);
            }
            drop(tensors(&program));
        }
    }
}
