//! The constants of an ONNX file, by their names.
//!
//! An ONNX file is one protobuf message. Of it this reads the tensors in `Constant` nodes and initializers, which is where networks that
//! were exported from PaddlePaddle have their weights; the graph itself is written out in `network.rs`.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// `TensorProto.DataType.FLOAT`.
const FLOAT: u64 = 1;

/// An f32 tensor of the file.
pub struct Constant {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

/// The f32 tensors of a file.
pub struct Weights(HashMap<String, Constant>);

impl Weights {
    pub fn open(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&bytes).with_context(|| format!("{} is no ONNX file", path.display()))
    }

    fn parse(model: &[u8]) -> Result<Self> {
        let mut found = HashMap::new();
        for (_, graph) in messages(model, &[7])? {
            for (field, node) in messages(graph, &[1, 5])? {
                let named = if field == 1 { of_node(node)? } else { of_tensor(node)? };
                if let Some((name, constant)) = named {
                    found.insert(name, constant);
                }
            }
        }
        ensure!(!found.is_empty(), "there is no constant of floats in it");
        Ok(Self(found))
    }

    pub fn get(&self, name: &str) -> Result<&Constant> {
        self.0.get(name).with_context(|| format!("the file has no weights `{name}`: it is another network"))
    }
}

/// The tensor of a `Constant` node, by the name of the node's output.
fn of_node(node: &[u8]) -> Result<Option<(String, Constant)>> {
    let (mut name, mut tensor, mut is_constant) = (String::new(), None, false);
    for (field, value) in messages(node, &[2, 4, 5])? {
        match field {
            2 => name = text(value),
            4 => is_constant = value == b"Constant",
            _ => tensor = messages(value, &[5])?.pop().map(|(_, tensor)| tensor).or(tensor),
        }
    }
    let Some(tensor) = tensor.filter(|_| is_constant) else { return Ok(None) };
    Ok(of_tensor(tensor)?.map(|(_, constant)| (name, constant)))
}

/// A `TensorProto` and its own name; none of another element type than f32.
fn of_tensor(tensor: &[u8]) -> Result<Option<(String, Constant)>> {
    let (mut name, mut shape, mut values, mut element) = (String::new(), Vec::new(), Vec::new(), 0);
    for field in fields(tensor) {
        match field? {
            (1, Value::Number(length)) => shape.push(usize::try_from(length)?),
            (1, Value::Bytes(packed)) => shape.extend(packed_numbers(packed)?),
            (2, Value::Number(kind)) => element = kind,
            // Unpacked, packed and raw floats are the same bytes.
            (4 | 9, Value::Bytes(floats)) => {
                values.extend(
                    floats.chunks_exact(4).map(|float| f32::from_le_bytes(float.try_into().unwrap_or_default())),
                );
            }
            (8, Value::Bytes(own)) => name = text(own),
            _ => (),
        }
    }
    if element != FLOAT {
        return Ok(None);
    }
    ensure!(shape.iter().product::<usize>() == values.len(), "`{name}` has {} values for {shape:?}", values.len());
    Ok(Some((name, Constant { shape, values })))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A field's content: a number, or bytes, which also are messages, texts, packed numbers and floats of a fixed width.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of these numbers that are bytes.
fn messages<'a>(message: &'a [u8], wanted: &[u64]) -> Result<Vec<(u64, &'a [u8])>> {
    let mut found = Vec::new();
    for field in fields(message) {
        match field? {
            (number, Value::Bytes(bytes)) if wanted.contains(&number) => found.push((number, bytes)),
            _ => (),
        }
    }
    Ok(found)
}

/// All fields of a message, in their order, with their numbers.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = Result<(u64, Value<'_>)>> {
    std::iter::from_fn(move || (!rest.is_empty()).then(|| field(&mut rest).inspect_err(|_| rest = &[])))
}

fn field<'a>(rest: &mut &'a [u8]) -> Result<(u64, Value<'a>)> {
    let key = number(rest)?;
    let value = match key & 7 {
        0 => Value::Number(number(rest)?),
        1 => Value::Bytes(take(rest, 8)?),
        2 => {
            let length = number(rest)?;
            Value::Bytes(take(rest, usize::try_from(length)?)?)
        }
        5 => Value::Bytes(take(rest, 4)?),
        kind => bail!("protobuf has no wire type {kind}"),
    };
    Ok((key >> 3, value))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length).context("it ends within a field")?;
    *rest = left;
    Ok(taken)
}

/// A varint: seven bits a byte, the lowest first.
fn number(rest: &mut &[u8]) -> Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    bail!("a number is longer than ten bytes")
}

fn packed_numbers(mut packed: &[u8]) -> Result<Vec<usize>> {
    let mut numbers = Vec::new();
    while !packed.is_empty() {
        numbers.push(usize::try_from(number(&mut packed)?)?);
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of bytes.
    fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(content.len()).expect("short")], content].concat()
    }

    /// A model of one `Constant` node `w` of two floats.
    fn model(dims: u8) -> Vec<u8> {
        let floats = [1.5_f32.to_le_bytes(), (-2.0_f32).to_le_bytes()].concat();
        let tensor = [vec![1 << 3, dims, 2 << 3, 1], bytes(4, &floats)].concat();
        let attribute = [bytes(1, b"value"), bytes(5, &tensor)].concat();
        let node = [bytes(2, b"w"), bytes(4, b"Constant"), bytes(5, &attribute)].concat();
        bytes(7, &bytes(1, &node))
    }

    #[test]
    fn a_constant_is_found_by_the_name_of_its_output() {
        let weights = Weights::parse(&model(2)).expect("a model");
        let found = weights.get("w").expect("it is there");
        assert_eq!((found.shape.as_slice(), found.values.as_slice()), (&[2][..], &[1.5, -2.0][..]));
        assert!(weights.get("v").is_err_and(|error| error.to_string().contains("`v`")));
    }

    #[test]
    fn what_is_cut_off_or_does_not_fit_its_shape_is_refused() {
        let whole = model(2);
        for length in 1..whole.len() {
            assert!(Weights::parse(&whole[..length]).is_err(), "{length} bytes");
        }
        assert!(Weights::parse(&model(3)).is_err_and(|error| error.to_string().contains("2 values")));
    }
}
