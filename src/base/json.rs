//! JSON through one reader and one writer. serde compiles each type anew for every reader and writer it is
//! used with, which makes up a large part of this program's compile time.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::printable;

/// Reads JSON.
///
/// # Errors
/// If it is not JSON, or not of that type.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(bytes)
}

/// Reads JSON that others may have written: each string in it becomes one line, see [`printable::line`].
///
/// # Errors
/// As [`read`].
pub fn read_of_others<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    // serde refuses raw control characters, so these come as escapes or beyond ASCII; few files have either.
    if bytes.iter().all(|byte| *byte < 0x7f && *byte != b'\\') {
        return read(bytes);
    }
    let mut value: Value = read(bytes)?;
    if to_lines(&mut value) { read_value(&value) } else { read(bytes) }
}

/// Reads a part of other JSON as a type.
///
/// # Errors
/// If it is not of that type.
pub fn read_value<T: DeserializeOwned>(value: &Value) -> serde_json::Result<T> {
    read(&serde_json::to_vec(value)?)
}

/// A value as plain JSON, without its type.
pub fn value(of: &impl Serialize) -> Value {
    serde_json::to_vec(of).and_then(|bytes| read(&bytes)).unwrap_or_default()
}

/// A value as one line, with its line end.
///
/// # Errors
/// If it has something that JSON lacks, such as a map whose keys are not strings.
pub fn line(of: &impl Serialize) -> Result<Vec<u8>> {
    with_end(serde_json::to_vec(of))
}

/// A value on several lines, indented, with the last line's end.
///
/// # Errors
/// As [`line()`].
pub fn lines(of: &impl Serialize) -> Result<Vec<u8>> {
    with_end(serde_json::to_vec(of).map(|compact| indented(&compact)))
}

fn with_end(encoded: serde_json::Result<Vec<u8>>) -> Result<Vec<u8>> {
    let mut bytes = encoded.map_err(|error| Error::failed(format!("cannot encode JSON: {error}")))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Compact JSON in the form that `serde_json`'s own indenting writer gives it.
fn indented(compact: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(compact.len() * 2);
    let (mut depth, mut in_text, mut is_escaped) = (0, false, false);
    let new_line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.resize(out.len() + 2 * depth, b' ');
    };
    for (at, byte) in compact.iter().copied().enumerate() {
        if in_text {
            out.push(byte);
            in_text = is_escaped || byte != b'"';
            is_escaped = byte == b'\\' && !is_escaped;
            continue;
        }
        let is_empty = |next: Option<&u8>| matches!(next, Some(b'}' | b']'));
        match byte {
            b'{' | b'[' => {
                out.push(byte);
                depth += 1;
                if !is_empty(compact.get(at + 1)) {
                    new_line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth -= 1;
                if !matches!(compact[at - 1], b'{' | b'[') {
                    new_line(&mut out, depth);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                new_line(&mut out, depth);
            }
            b':' => out.extend(b": "),
            _ => {
                in_text = byte == b'"';
                out.push(byte);
            }
        }
    }
    out
}

/// Makes each string in the value one line; returns whether that changed any.
fn to_lines(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            let changes = !printable::is_line(text);
            if changes {
                *text = printable::line(text).into_owned();
            }
            changes
        }
        Value::Array(items) => items.iter_mut().map(to_lines).filter(|changed| *changed).count() > 0,
        Value::Object(map) => {
            let keys = !map.keys().all(|key| printable::is_line(key));
            if keys {
                let renamed = std::mem::take(map).into_iter();
                *map = renamed.map(|(key, value)| (printable::line(&key).into_owned(), value)).collect();
            }
            map.values_mut().fold(keys, |changed, item| to_lines(item) || changed)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_are_read_as_single_lines() {
        let read: Value =
            read_of_others(br#"{"a\u001b": {"b": ["x\ny", 0.1, 18446744073709551615, null]}}"#).unwrap();
        assert_eq!(read, serde_json::json!({ "a␛": { "b": ["x␊y", 0.1, u64::MAX, null] } }));
        assert_eq!(read_of_others::<String>("\"\u{202e}\"".as_bytes()).unwrap(), "\u{fffd}");
        assert_eq!(read_of_others::<String>(r#""a \"b\" µ""#.as_bytes()).unwrap(), "a \"b\" µ");
        assert!(read_of_others::<String>(b"\"\x1b\"").is_err() && read_of_others::<u64>(b"\"1\"").is_err());
    }

    #[test]
    fn lines_are_indented_as_serde_does() {
        let of = serde_json::json!({
            "a": [], "b": {}, "c": [{}, [[]], [1, -2.5e-9, null], { "d": { "e": true } }],
            "f{,:[": "{\"[,:]\\", "\\": "\\\"", "µ\n": "",
        });
        for of in [of, serde_json::json!("a: [1, 2]"), serde_json::json!([]), Value::Null] {
            let expected = serde_json::to_string_pretty(&of).unwrap() + "\n";
            assert_eq!(String::from_utf8(lines(&of).unwrap()).unwrap(), expected);
        }
    }
}
