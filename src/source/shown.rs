//! Names and texts of others, fit for a message: a file's name may hold line breaks and escape sequences of terminals.

use std::fmt;
use std::path::Path;

/// The longest excerpt, in characters.
#[cfg(any(feature = "images", feature = "npy"))]
const EXCERPT: usize = 100;

/// A path with its control characters escaped. Unicode that is not valid is replaced.
pub(super) struct Shown<'a>(pub(super) &'a Path);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(&self.0.to_string_lossy(), f)
    }
}

/// A file, or what is called `member` in an archive: `a.tar: 0001.jpg`.
#[cfg(feature = "images")]
pub(super) fn shown_member(path: &Path, member: Option<&str>) -> String {
    member.map_or_else(|| Shown(path).to_string(), |member| format!("{}: {}", Shown(path), escaped(member)))
}

/// A text with its control characters escaped.
pub(super) fn escaped(text: &str) -> String {
    struct Escaped<'a>(&'a str);
    impl fmt::Display for Escaped<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write_escaped(self.0, f)
        }
    }
    Escaped(text).to_string()
}

/// The first hundred characters, escaped.
#[cfg(any(feature = "images", feature = "npy"))]
pub(super) fn excerpt(text: &str) -> String {
    let end = text.char_indices().nth(EXCERPT).map_or(text.len(), |(at, _)| at);
    escaped(text[..end].trim_end())
}

fn write_escaped(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    use fmt::Write;
    text.chars().try_for_each(|c| match c {
        // The marks that turn the direction of writing make one name look like another.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => write!(f, "{}", c.escape_unicode()),
        c if c.is_control() => write!(f, "{}", c.escape_default()),
        c => f.write_char(c),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_letters_are_not() {
        let shown = Shown(Path::new("a\n\u{1b}[31mb\u{7f}\u{202e}ü'\\")).to_string();
        assert_eq!(shown, "a\\n\\u{1b}[31mb\\u{7f}\\u{202e}ü'\\");
        assert_eq!(escaped("\r\t"), "\\r\\t");
    }
}
