//! The text of a `.npy` header: a Python dictionary of three entries, as NumPy writes it and as it reads it.
//!
//! The grammar is fixed, so nothing recurses: a value is a string, a boolean or a tuple of whole numbers. Anything
//! else is refused with what was found in its place.

use crate::source::shown::excerpt;

/// More dimensions than any NumPy allows; the text's length bounds them too.
const MAX_DIMS: usize = 64;

/// The three entries of a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Literal {
    /// NumPy's name of the element type.
    pub(super) descr: String,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<u64>,
}

impl Literal {
    /// Parses a whole header text.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut rest = Rest(text);
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        rest.expect('{')?;
        while !rest.take('}') {
            let key = rest.string("a key")?;
            rest.expect(':')?;
            let twice = match key {
                "descr" => descr.replace(rest.descr()?).is_some(),
                "fortran_order" => fortran_order.replace(rest.boolean()?).is_some(),
                "shape" => shape.replace(rest.shape()?).is_some(),
                other => return Err(format!("`{}` is no key of a header", excerpt(other))),
            };
            if twice {
                return Err(format!("`{key}` is there twice"));
            }
            if !rest.take(',') {
                rest.expect('}')?;
                break;
            }
        }
        rest.end()?;
        Ok(Self {
            descr: descr.ok_or("it has no `descr`")?,
            fortran_order: fortran_order.ok_or("it has no `fortran_order`")?,
            shape: shape.ok_or("it has no shape")?,
        })
    }
}

/// What has not been parsed yet.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn skip_blanks(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
    }

    /// Takes a character if it comes next.
    fn take(&mut self, wanted: char) -> bool {
        self.skip_blanks();
        let rest = self.0.strip_prefix(wanted);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.take(wanted) { Ok(()) } else { Err(format!("expected `{wanted}`, found {}", self.found())) }
    }

    /// Nothing but blanks may follow the dictionary. NumPy pads with spaces, some writers with zero bytes.
    fn end(&mut self) -> Result<(), String> {
        self.0 = self.0.trim_matches(['\0', ' ', '\t', '\n', '\r', '\x0c']);
        if self.0.is_empty() { Ok(()) } else { Err(format!("{} after its end", self.found())) }
    }

    /// What comes next, for messages.
    fn found(&self) -> String {
        if self.0.is_empty() { "its end".to_owned() } else { format!("`{}`", excerpt(self.0)) }
    }

    /// A string in either kind of quotes; `u'...'` is what Python 2 writes. Escapes do not occur in headers.
    fn string(&mut self, what: &str) -> Result<&'a str, String> {
        self.skip_blanks();
        let open = self.0.strip_prefix(['u', 'U']).unwrap_or(self.0);
        let quote = open.chars().next().filter(|quote| matches!(quote, '\'' | '"'));
        let quote = quote.ok_or_else(|| format!("expected {what} in quotes, found {}", self.found()))?;
        let (text, rest) = open[1..].split_once(quote).ok_or_else(|| format!("{what} has no closing quote"))?;
        if text.contains(['\\', '\n']) {
            return Err(format!("{what} holds a backslash or a line break: `{}`", excerpt(text)));
        }
        self.0 = rest;
        Ok(text)
    }

    fn descr(&mut self) -> Result<String, String> {
        self.skip_blanks();
        if self.0.starts_with(['[', '(']) {
            return Err("not a plain array (structured element types are not supported)".to_owned());
        }
        self.string("the element type").map(str::to_owned)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        self.skip_blanks();
        for (name, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.0.strip_prefix(name) {
                self.0 = rest;
                return Ok(value);
            }
        }
        Err(format!("expected True or False, found {}", self.found()))
    }

    /// A tuple of whole numbers. One number in parentheses without a comma is no tuple, in Python as here.
    fn shape(&mut self) -> Result<Vec<u64>, String> {
        if !self.take('(') {
            return Err(format!("the shape is no tuple but {}", self.found()));
        }
        let mut shape = Vec::new();
        let mut comma = false;
        while !self.take(')') {
            if shape.len() == MAX_DIMS {
                return Err(format!("more than {MAX_DIMS} dimensions"));
            }
            shape.push(self.dimension()?);
            comma = self.take(',');
            if !comma {
                self.expect(')')?;
                break;
            }
        }
        if shape.len() == 1 && !comma {
            return Err(format!("the shape is no tuple but `({})`", shape[0]));
        }
        Ok(shape)
    }

    /// Digits, with the `L` that Python 2 wrote after long integers.
    fn dimension(&mut self) -> Result<u64, String> {
        self.skip_blanks();
        let end = self.0.find([',', ')']).unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(end);
        let text = text.trim_end();
        let digits = text.strip_suffix(['L', 'l']).unwrap_or(text);
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let value = digits.parse().ok().filter(|_| plain);
        self.0 = rest;
        value.ok_or_else(|| format!("`{}` is no usable dimension", excerpt(text)))
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<(String, bool, Vec<u64>), String> {
        Literal::parse(text).map(|literal| (literal.descr, literal.fortran_order, literal.shape))
    }

    fn is(descr: &str, fortran: bool, shape: &[u64]) -> Result<(String, bool, Vec<u64>), String> {
        Ok((descr.to_owned(), fortran, shape.to_vec()))
    }

    #[test]
    fn what_any_numpy_has_written_is_read() {
        for (text, expected) in [
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  \n", is("<f4", false, &[3, 4])),
            ("{'descr': '|u1', 'fortran_order': True, 'shape': (), }\n", is("|u1", true, &[])),
            ("{'shape': (6L, 4L), 'fortran_order': False, 'descr': '<f4'}", is("<f4", false, &[6, 4])),
            ("{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(3,)}", is("<f4", false, &[3])),
            ("{u'descr': u'<i8', 'fortran_order' : False ,\n\t'shape' : ( 7 , ) , }", is("<i8", false, &[7])),
            (" {'descr':'<f4','fortran_order':False,'shape':(3,4)}\0\0\0", is("<f4", false, &[3, 4])),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_header_is_refused_with_what_was_found() {
        let header = |shape: &str| format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
        for (text, part) in [
            (String::new(), "expected `{`, found its end"),
            ("{".into(), "expected a key in quotes, found its end"),
            ("{'descr".into(), "a key has no closing quote"),
            ("{'descr': '<f4', 'descr': '<f4'}".into(), "`descr` is there twice"),
            ("{'descr': 3}".into(), "expected the element type in quotes, found `3}`"),
            ("{'descr': [('a', '<f4')]}".into(), "structured"),
            ("{'dtype': '<f4'}".into(), "`dtype` is no key"),
            ("{'fortran_order': 0}".into(), "expected True or False, found `0}`"),
            ("{'descr': '<f4', 'shape': (3,)}".into(), "no `fortran_order`"),
            (header("3"), "no tuple but `3}`"),
            (header("(3)"), "no tuple but `(3)`"),
            (header("[3, 4]"), "no tuple but `[3, 4]}`"),
            (header("(3, (4,))"), "`(4` is no usable dimension"),
            (header("(-1, 2)"), "`-1` is no usable dimension"),
            (header("(L,)"), "`L` is no usable dimension"),
            (header("(18446744073709551616,)"), "is no usable dimension"),
            (header(&format!("({})", "1,".repeat(65))), "more than 64 dimensions"),
            (header("(3,)") + " 7", "`7` after its end"),
        ] {
            let error = parse(&text).expect_err(&text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_text_panics(text in "\\PC{0,80}|[{}()\\[\\]'\":,uLdescrhapfotn_ TrueFalse0-9\\\\\n-]{0,80}") {
            let _ = parse(&text);
        }

        #[test]
        fn spaces_order_and_quotes_do_not_matter(
            shape in prop::collection::vec(any::<u64>(), 0..6),
            fortran in any::<bool>(),
            blank in "[ \t\n]{0,3}",
            order in Just([0usize, 1, 2]).prop_shuffle(),
            double in any::<bool>(),
            long in any::<bool>(),
        ) {
            let quote = if double { '"' } else { '\'' };
            let dims: String = shape.iter().map(|dim| format!("{dim}{}{blank},{blank}", if long { "L" } else { "" })).collect();
            let entries = [
                format!("{quote}descr{quote}{blank}:{blank}{quote}<i4{quote}"),
                format!("{quote}fortran_order{quote}:{blank}{}", if fortran { "True" } else { "False" }),
                format!("{quote}shape{quote}:{blank}({blank}{dims})"),
            ];
            let entries: String = order.iter().map(|&at| format!("{}{blank},{blank}", entries[at])).collect();
            prop_assert_eq!(parse(&format!("{{{blank}{entries}}}\n")), is("<i4", fortran, &shape));
        }
    }
}
