//! What a header may say, and what it may not.

use std::io::Write;

use proptest::prelude::*;

use super::*;

const ALL: [Element; 4] = [Element::U8, Element::I32, Element::I64, Element::F32];

fn parse(bytes: &[u8]) -> Result<Header, NpyError> {
    Header::read(Path::new("a.npy"), &mut &bytes[..], &ALL, "these")
}

/// A file with this version and header text.
fn file(version: u8, text: &str) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend((text.len() as u16).to_le_bytes()),
        _ => bytes.extend((text.len() as u32).to_le_bytes()),
    }
    bytes.extend(text.bytes());
    bytes
}

fn plain(descr: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}   \n")
}

#[test]
fn the_elements_start_right_after_the_text_in_every_version() {
    let text = plain("<f4", "False", "(3, 4)");
    for (version, before) in [(1, 10), (2, 12), (3, 12)] {
        let header = parse(&file(version, &text)).expect("a header");
        assert_eq!((header.element, &header.shape[..]), (Element::F32, &[3, 4][..]));
        assert_eq!(header.offset, before + text.len() as u64);
    }
    let error = parse(&file(4, &text)).expect_err("unknown version").to_string();
    assert_eq!(error, "a.npy: unusable .npy header: version 4.0 is not known");
}

#[test]
fn each_refusal_says_what_is_wrong() {
    let say = |descr, fortran, shape| parse(&file(1, &plain(descr, fortran, shape))).expect_err("refused").to_string();
    assert!(say("<f8", "False", "(3,)").contains("elements of type `<f8`; supported are these"));
    assert!(say("|O", "False", "(3,)").contains("`|O`"));
    assert!(say("|u1", "True", "(3, 2)").contains("Fortran order"));
    assert!(say("|u1", "False", "()").contains("a single value"));
    assert!(say("|u1", "False", "(0, 2)").contains("no samples"));
    assert!(say("|u1", "False", "(-1, 2)").contains("`-1` is no usable dimension"));
    assert!(say("|u1", "False", "(3, 18446744073709551615)").contains("overflows"));
    assert!(say("|u1", "False", "3").contains("the shape is no tuple"));
    let structured = file(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }");
    assert!(parse(&structured).expect_err("refused").to_string().contains("structured"));
    assert!(parse(b"\x89PNG\r\n\x1a\n").expect_err("refused").to_string().contains("not a .npy file"));
    assert!(parse(b"\x93NUMPY\x01").expect_err("refused").to_string().contains("ends within the header"));
}

#[test]
fn what_both_orders_share_may_be_marked_as_fortran_order() {
    assert_eq!(parse(&file(1, &plain("<i8", "True", "(5,)"))).expect("a list").shape, [5]);
    assert_eq!(parse(&file(1, &plain("<i8", "True", "(5, 1)"))).expect("a column").shape, [5, 1]);
}

#[test]
fn a_header_that_claims_gigabytes_is_refused_unread() {
    let mut bytes = file(2, "");
    bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = parse(&bytes).expect_err("too long").to_string();
    assert!(error.contains("4294967295 bytes long"), "{error}");
}

#[test]
fn deep_nesting_is_refused_at_its_first_bracket() {
    for open in ["[", "(", "{"] {
        let error = parse(&file(1, &open.repeat(9000))).expect_err("nested").to_string();
        assert!(error.contains("expected") && error.len() < 300, "{error}");
    }
}

/// Texts near enough to headers to get past the first checks.
fn header_text() -> impl Strategy<Value = String> {
    let descr = prop_oneof![Just("|u1".to_owned()), Just("<f4".to_owned()), "[<>|=]?[a-zA-Z][0-9]{0,25}"];
    let dim = prop_oneof![any::<u64>().prop_map(|d| d.to_string()), "[-+0-9a-fxLe_. ]{0,30}", Just("2".into())];
    let shape = prop::collection::vec(dim, 0..8).prop_map(|dims| format!("({})", dims.join(", ")));
    let junk = prop_oneof![Just(String::new()), "[ -~\n]{0,20}"];
    (descr, "True|False", shape, junk).prop_map(|(d, f, s, junk)| plain(&d, &f, &s) + &junk)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_header_panics_or_reads_past_its_limit(version in 0u8..5, text in header_text()) {
        let mut bytes = file(version, &text);
        bytes.extend([0; 64]);
        if let Ok(header) = parse(&bytes) {
            prop_assert!(header.offset <= (12 + MAX_TEXT) as u64);
            prop_assert!(!header.shape.is_empty() && header.shape[0] > 0);
        }
    }

    #[test]
    fn no_bytes_after_the_magic_panic(tail in prop::collection::vec(any::<u8>(), 0..200), version in 1u8..4) {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        bytes.extend(tail);
        let _ = parse(&bytes);
    }

    #[test]
    fn a_damaged_header_never_opens_a_file_of_another_size(at in 0usize..80, value in any::<u8>()) {
        let mut bytes = file(1, &plain("|u1", "False", "(3, 4)"));
        let whole = bytes.len() as u64 + 12;
        let at = at.min(bytes.len() - 1);
        bytes[at] = value;
        bytes.extend([0; 12]);
        let mut temporary = tempfile::NamedTempFile::new().expect("a temporary file");
        temporary.write_all(&bytes).expect("written");
        if let Ok((_, header)) = open(temporary.path(), &ALL, "these") {
            prop_assert_eq!(header.file_bytes(), Some(whole));
        }
    }
}
