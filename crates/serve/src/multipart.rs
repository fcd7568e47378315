//! Forms with files (`multipart/form-data`, RFC 7578), of which the body is there as a whole.
//!
//! ```text
//! --boundary CRLF headers CRLF CRLF bytes CRLF --boundary … CRLF --boundary--
//! ```

use axum::body::Bytes;

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// What the form calls it.
    pub name: String,
    /// Whether it is a file: whether it has a file name.
    pub is_file: bool,
    /// What is in it: a part of the body.
    pub bytes: Bytes,
}

/// The parameter of a header, such as `boundary` of a `Content-Type`: `value; name=text; name="text"`.
pub(crate) fn parameter(header: &str, name: &str) -> Option<String> {
    let mut rest = header;
    loop {
        rest = &rest[rest.find(';')? + 1..];
        let (found, value) = rest.split_once('=')?;
        let (value, behind) = match value.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let end = value.find(';').unwrap_or(value.len());
                (value[..end].trim().to_owned(), &value[end..])
            }
        };
        if found.trim().eq_ignore_ascii_case(name) {
            return Some(value);
        }
        rest = behind;
    }
}

/// A text up to its closing quotation mark, and what is behind it. A backslash takes the next character as it is.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    loop {
        match characters.next()? {
            (at, '"') => return Some((value, &text[at + 1..])),
            (_, '\\') => value.push(characters.next()?.1),
            (_, character) => value.push(character),
        }
    }
}

/// The fields of a body, in their order; or what is wrong with it.
pub(crate) fn parts(body: &Bytes, boundary: &str) -> Result<Vec<Part>, &'static str> {
    if boundary.is_empty() || boundary.len() > 70 {
        return Err("the `boundary` of its `Content-Type` must have from 1 to 70 characters");
    }
    let delimiter = [b"\r\n--", boundary.as_bytes()].concat();
    // The first one may be all that the body begins with.
    let mut at = match body.starts_with(&delimiter[2..]) {
        true => delimiter.len() - 2,
        false => {
            find(body, &delimiter, 0).ok_or("it does not have the `boundary` of its `Content-Type`")?
                + delimiter.len()
        }
    };
    let mut parts = Vec::new();
    loop {
        if body[at..].starts_with(b"--") {
            return Ok(parts);
        }
        let begin = at + padding(&body[at..])?;
        let end =
            find(body, &delimiter, begin - 2).ok_or("it is incomplete: its last boundary is missing")?;
        parts.push(part(body.slice(begin.min(end)..end))?);
        at = end + delimiter.len();
    }
}

/// How much there is between a boundary and the first header: spaces, and the end of the line.
fn padding(bytes: &[u8]) -> Result<usize, &'static str> {
    let spaces = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    if bytes[spaces..].starts_with(b"\r\n") {
        Ok(spaces + 2)
    } else {
        Err("behind a boundary there is no end of line")
    }
}

/// A field with its headers.
fn part(bytes: Bytes) -> Result<Part, &'static str> {
    let (head, body) = match bytes.starts_with(b"\r\n") {
        true => (0, 2),
        false => {
            let head = find(&bytes, b"\r\n\r\n", 0).ok_or("a field has no empty line behind its headers")?;
            (head, head + 4)
        }
    };
    let head = std::str::from_utf8(&bytes[..head]).map_err(|_| "the headers of a field are not UTF-8")?;
    let disposition = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    });
    let name = disposition.and_then(|value| parameter(value, "name"));
    Ok(Part {
        name: name.ok_or("a field has no name (`Content-Disposition: form-data; name=…`)")?,
        is_file: disposition.is_some_and(|value| parameter(value, "filename").is_some()),
        bytes: bytes.slice(body..),
    })
}

/// Where bytes are, from a place on.
fn find(bytes: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == wanted[0])?;
        if bytes[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Vec<(String, bool, String)>, &'static str> {
        let text = |part: Part| (part.name, part.is_file, String::from_utf8(part.bytes.to_vec()).unwrap());
        Ok(parts(&Bytes::from(body.to_owned()), "b")?.into_iter().map(text).collect())
    }

    #[test]
    fn fields_and_files_are_read_byte_by_byte() {
        let body = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nvit\r\n--b  \r\ncontent-type: image/png\r\n\
             content-disposition: form-data; name=image; filename=\"a \\\"b\\\";c.png\"\r\n\r\n\r\n-\r\n--c\r\n--b--\r\n";
        let field = |name: &str, is_file, text: &str| (name.to_owned(), is_file, text.to_owned());
        assert_eq!(read(body), Ok(vec![field("model", false, "vit"), field("image", true, "\r\n-\r\n--c")]));
        let preamble = "words\r\n--b\r\nContent-Disposition: form-data; name=x\r\n\r\n\r\n--b--";
        assert_eq!(read(preamble), Ok(vec![field("x", false, "")]));
        assert_eq!(read("--b--"), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_form_is_told() {
        let head = "Content-Disposition: form-data; name=x";
        for (body, expected) in [
            ("", "does not have the `boundary`"),
            ("--c\r\n", "does not have the `boundary`"),
            ("--b", "no end of line"),
            ("--bc\r\n", "no end of line"),
            ("--b\r\n", "incomplete"),
            ("--b\r\n--b", "empty line"),
            ("--b\r\n\r\n\r\n--b--", "no name"),
            (&format!("--b\r\n{head}\r\n\r\ntext"), "incomplete"),
            (&format!("--b\r\n{head}\r\ntext\r\n--b--"), "empty line"),
        ] {
            let problem = read(body).unwrap_err();
            assert!(problem.contains(expected), "{body:?}: {problem}");
        }
        assert!(parts(&Bytes::new(), "").is_err() && parts(&Bytes::new(), &"b".repeat(71)).is_err());
    }

    #[test]
    fn parameters_may_be_quoted() {
        let header = "multipart/form-data; charset=\"a;boundary=no\"; Boundary=\"x y\"";
        assert_eq!(parameter(header, "boundary").as_deref(), Some("x y"));
        assert_eq!(parameter("form-data; name=a;filename=b", "name").as_deref(), Some("a"));
        assert_eq!(parameter("form-data; name=a ; filename=b", "filename").as_deref(), Some("b"));
        for none in
            ["form-data", "form-data;", "form-data; name", "form-data; name=\"a", "form-data; other=a"]
        {
            assert_eq!(parameter(none, "name"), None, "{none}");
        }
    }
}
