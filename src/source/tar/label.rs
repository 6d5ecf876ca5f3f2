//! The label in a member beside an image.

use std::fmt;

use serde::Deserializer;
use serde::de::{self, IgnoredAny, MapAccess, Visitor};

use super::options::TarLabels;

/// The suffix of members in JSON.
const JSON: &str = "json";

/// Where labels are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LabelRule {
    None,
    /// Members with this suffix hold an integer.
    Text(String),
    /// Members with the suffix `json` hold an integer under this key.
    Json(String),
}

impl LabelRule {
    /// The rule that was asked for, or `None` where it is to be found out.
    pub(super) fn asked(labels: &TarLabels) -> Option<Self> {
        match labels {
            TarLabels::Auto => None,
            TarLabels::None => Some(Self::None),
            TarLabels::Text { suffix } => Some(Self::Text(suffix.trim_start_matches('.').to_lowercase())),
            TarLabels::Json { key } => Some(Self::Json(key.clone())),
        }
    }

    /// The rule by which a member beside an image is found to be its label, better ones with a lower number.
    pub(super) fn found(suffix: &str, content: &[u8]) -> Option<(u8, Self)> {
        let json = |key: &str| Self::Json(key.to_owned());
        let rules = match suffix {
            "cls" => vec![(0, Self::Text(suffix.to_owned()))],
            JSON => vec![(1, json("label")), (2, json("cls"))],
            "txt" => vec![(3, Self::Text(suffix.to_owned()))],
            _ => Vec::new(),
        };
        // A class file is one whatever is in it.
        rules.into_iter().find(|(number, rule)| *number == 0 || rule.parse(content).is_some())
    }

    /// The suffix of the members with labels.
    pub(super) fn suffix(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Text(suffix) => Some(suffix),
            Self::Json(_) => Some(JSON),
        }
    }

    /// The label in such a member.
    pub(super) fn parse(&self, content: &[u8]) -> Option<i64> {
        match self {
            Self::None => None,
            Self::Text(_) => std::str::from_utf8(content).ok()?.trim_start_matches('\u{feff}').trim().parse().ok(),
            Self::Json(key) => serde_json::Deserializer::from_slice(content).deserialize_map(IntegerAt(key)).ok()?,
        }
    }
}

/// The integer under a key of a JSON object.
struct IntegerAt<'a>(&'a str);

impl<'de> Visitor<'de> for IntegerAt<'_> {
    type Value = Option<i64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with `{}`", self.0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if key == self.0 {
                found = Some(map.next_value::<i64>().map_err(de::Error::custom)?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_an_integer_and_nothing_else() {
        let text = LabelRule::Text("cls".to_owned());
        for (content, label) in [("3", 3), ("-7\n", -7), ("\u{feff}12\r\n", 12), (" 0 ", 0)] {
            assert_eq!(text.parse(content.as_bytes()), Some(label), "{content:?}");
        }
        for content in ["", "cat", "3.0", "3 4", "99999999999999999999", "\u{ff13}"] {
            assert_eq!(text.parse(content.as_bytes()), None, "{content:?}");
        }
        assert_eq!(text.parse(b"\xff"), None);
    }

    #[test]
    fn a_label_in_json_is_the_integer_under_its_key() {
        let json = LabelRule::Json("label".to_owned());
        assert_eq!(json.parse(br#"{"size": [1, {"label": 9}], "label": 3, "url": "a\"b"}"#), Some(3));
        for content in [r#"{"cls": 3}"#, r#"{"label": "3"}"#, r#"{"label": 3.5}"#, "3", r#"{"label": 3"#, "[]"] {
            assert_eq!(json.parse(content.as_bytes()), None, "{content}");
        }
    }

    #[test]
    fn what_holds_the_labels_is_found_by_suffix_and_content() {
        let found = |suffix, content: &str| LabelRule::found(suffix, content.as_bytes());
        assert_eq!(found("cls", "cat"), Some((0, LabelRule::Text("cls".to_owned()))));
        assert_eq!(found("json", r#"{"cls": 1, "label": 2}"#), Some((1, LabelRule::Json("label".to_owned()))));
        assert_eq!(found("json", r#"{"cls": 1}"#), Some((2, LabelRule::Json("cls".to_owned()))));
        assert_eq!(found("txt", "5"), Some((3, LabelRule::Text("txt".to_owned()))));
        assert_eq!(found("txt", "a photo of 5 cats"), None);
        assert_eq!(found("jpg", "5"), None);
    }
}
