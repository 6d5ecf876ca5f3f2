//! The format of a report's JSON.

/// The version of the format: the field `schema` of a report.
pub const SCHEMA: &str = "gpufeed-compare/2";

/// The JSON Schema of a [`Report`](super::Report).
pub const JSON_SCHEMA: &str = include_str!("../compare.schema.json");

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::measure::report::{COLUMNS, Report};
    use crate::measure::testing::report;

    fn schema() -> Value {
        serde_json::from_str(JSON_SCHEMA).expect("the schema is JSON")
    }

    fn problems(json: &Value) -> Vec<String> {
        let validator = jsonschema::validator_for(&schema()).expect("the schema is a schema");
        validator.iter_errors(json).map(|error| error.to_string()).collect()
    }

    #[test]
    fn the_schema_has_every_column() {
        let mut figures = Map::new();
        for column in COLUMNS {
            for figure in column.figures {
                let described = json!({ "type": ["number", "null"], "minimum": 0, "description": column.explanation });
                assert!(figures.insert(figure.key.to_owned(), described).is_none(), "{} is there twice", figure.key);
            }
        }
        let keys: Vec<&String> = figures.keys().collect();
        let expected = json!({ "type": "object", "required": keys, "properties": figures });
        let mut schema = schema();
        if std::env::var_os("GPUFEED_UPDATE_SNAPSHOTS").is_some() {
            schema["$defs"]["figures"] = expected;
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/measure/compare.schema.json");
            let text = serde_json::to_string_pretty(&schema).expect("it serialises") + "\n";
            return std::fs::write(path, text).expect("the schema can be written");
        }
        assert_eq!(schema["$defs"]["figures"], expected, "GPUFEED_UPDATE_SNAPSHOTS=1 writes it anew");
    }

    #[test]
    fn a_report_follows_its_schema_and_comes_back_from_json() {
        let report = report();
        let json = serde_json::to_value(&report).expect("serialises");
        assert_eq!(problems(&json), Vec::<String>::new());
        assert_eq!(serde_json::from_value::<Report>(json).expect("deserialises"), report);
    }

    #[test]
    fn the_schema_refuses_numbers_without_verification_and_other_versions() {
        let json = serde_json::to_value(report()).expect("serialises");
        let mut unverified = json.clone();
        unverified["devices"][0]["configurations"][0]["verified"] = Value::Null;
        assert!(!problems(&unverified).is_empty());
        let mut failed = json.clone();
        failed["devices"][0]["configurations"][0]["status"] =
            json!({ "state": "failed", "message": "", "wrong_data": true });
        assert!(!problems(&failed).is_empty());
        let mut other = json;
        other["schema"] = "gpufeed-compare/1".into();
        assert!(!problems(&other).is_empty());
    }
}
