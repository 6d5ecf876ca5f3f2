use super::*;
use crate::layout::{Element, Field, SampleLayout};
use crate::staging::SampleBuffer;
use std::io::Write;

#[test]
fn bytes_that_do_not_fit_are_refused_whole() {
    let mut memory = [9; 4];
    let mut writer = SampleWriter::over(&mut memory);
    writer.write(&[1, 2]).expect("fits");
    assert_eq!(writer.write(&[3, 4, 5]).expect_err("too long").kind(), io::ErrorKind::WriteZero);
    assert_eq!((writer.written(), writer.remaining()), (2, 2));
    assert_eq!(memory, [1, 2, 9, 9]);
}

#[test]
fn as_an_io_writer_it_takes_what_fits() {
    let mut memory = [9; 4];
    let mut writer = SampleWriter::over(&mut memory);
    assert_eq!(io::copy(&mut &[1u8, 2, 3][..], &mut writer).expect("it fits"), 3);
    assert_eq!(Write::write(&mut writer, &[4, 5]).expect("one fits"), 1);
    assert_eq!(writer.write_all(&[6]).expect_err("it is full").kind(), io::ErrorKind::WriteZero);
    assert_eq!(memory, [1, 2, 3, 4]);
}

#[test]
#[cfg_attr(miri, ignore = "files")]
fn a_file_is_read_from_its_offset_and_its_end_is_an_error() {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(&(0..100).collect::<Vec<u8>>()).expect("written");
    let mut memory = [0; 40];
    let mut writer = SampleWriter::over(&mut memory);
    writer.read_file(&file, 50, 30).expect("within the file");
    let error = writer.read_file(&file, 95, 10).expect_err("past the end");
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    assert!(error.to_string().contains("5 bytes early"), "{error}");
    assert_eq!(memory[..30], (50..80).collect::<Vec<u8>>());
}

#[test]
fn memory_that_is_cheap_to_read_is_lent_and_counted() {
    let mut memory = [9; 4];
    let mut writer = SampleWriter::over(&mut memory);
    writer.write(&[1]).expect("it fits");
    let rest = writer.lend().expect("ordinary memory");
    assert_eq!(rest, [9; 3]);
    rest[..2].copy_from_slice(&[2, 3]);
    assert_eq!(writer.advance(4).expect_err("only three are left").kind(), io::ErrorKind::WriteZero);
    writer.advance(2).expect("as many are left");
    assert_eq!(writer.finish().map_err(|short| (short.written, short.expected)), Err((3, 4)));
    writer.write(&[4]).expect("it fits");
    assert_eq!((writer.finish(), memory), (Ok(()), [1, 2, 3, 4]));
}

#[test]
fn every_field_has_a_writer_that_goes_on_where_it_stopped() {
    let layout = SampleLayout::image(1, 2, 1).and_then(|layout| layout.with_label(Element::I64));
    let layout = layout.and_then(|layout| layout.with_host("boxes", Element::F32, &[2, 2])).expect("a layout");
    let mut sample = SampleBuffer::new(layout).expect("a few bytes");
    let mut writer = sample.writer();
    writer.write(&[7]).expect("it fits");
    writer.label(-3i64).expect("an i64");
    writer.field("boxes").expect("there").values(&[1.0f32, 2.0]).expect("they fit");
    writer.field(0).expect("there").write(&[8]).expect("it fits");
    let short = writer.finish().expect_err("two floats are missing");
    assert_eq!((short.name.as_str(), short.written, short.expected), ("boxes", 8, 16));
    writer.field(2).expect("there").value(3.0f32).expect("it fits");
    assert!(writer.field("boxes").expect("there").value(4.0f32).is_ok());
    assert_eq!(writer.finish(), Ok(()));
    for wrong in [writer.field("boxes").expect("there").value(1i32), writer.label(1i32)] {
        assert_eq!(wrong.expect_err("another type").kind(), io::ErrorKind::InvalidInput);
    }
    assert_eq!(writer.field("mask").expect_err("no such field").kind(), io::ErrorKind::NotFound);
    assert_eq!(sample.bytes(0), Some(&[7, 8][..]));
    assert_eq!(sample.values::<i64>(LABEL), Some(&[-3][..]));
    assert_eq!(sample.values::<f32>("boxes"), Some(&[1.0, 2.0, 3.0, 4.0][..]));
    assert_eq!(sample.values::<i32>(LABEL), None);
}

/// Tokens and boxes of any number, on the device and on the host.
fn ragged() -> SampleLayout {
    let tokens = Field::ragged("tokens", Element::I64, 3, &[]).expect("a field");
    let boxes = Field::ragged("boxes", Element::U8, 2, &[4]).expect("a field").on_host();
    SampleLayout::new([tokens, boxes]).expect("a sample")
}

#[test]
fn a_ragged_field_has_the_rows_that_are_written_and_zeros_behind_them() {
    let layout = BatchLayout::new(ragged(), 2).expect("a batch");
    let (mut slot, mut host) = (vec![0xEE; layout.slot_bytes()], vec![0xEE; layout.host_bytes()]);
    for (position, tokens) in [&[5i64, 6][..], &[]].into_iter().enumerate() {
        let base = NonNull::new(slot.as_mut_ptr()).expect("not null");
        // SAFETY: the slot holds a whole batch, and lives as long as the writer does.
        let mut writer = unsafe { SampleWriter::new(&layout, base, Access::HOST, &mut host, position) };
        writer.field("tokens").and_then(|mut field| field.values(tokens)).expect("they fit");
        writer.field("boxes").and_then(|mut field| field.write(&vec![7; 4 * position])).expect("they fit");
        assert_eq!(writer.finish(), Ok(()));
    }
    let tokens: &[i64] = bytemuck::cast_slice(&slot[..48]);
    assert_eq!(tokens, [5, 6, 0, 0, 0, 0]);
    let lengths: &[i32] = bytemuck::cast_slice(&slot[256..264]);
    assert_eq!(lengths, [2, 0], "the lengths are on the device too");
    let counts = layout.ragged().iter().map(|ragged| bytemuck::cast_slice(&host[ragged.counts(&(0..2))]).to_vec());
    assert_eq!(counts.collect::<Vec<Vec<i32>>>(), [[2, 0], [0, 1]]);
}

#[test]
fn part_of_a_row_and_more_rows_than_the_maximum_are_errors_by_name() {
    let mut sample = SampleBuffer::new(ragged()).expect("a few bytes");
    let mut writer = sample.writer();
    let error = writer.field("tokens").expect("there").values(&[1i64; 4]).expect_err("a row too many");
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (io::ErrorKind::WriteZero, "field `tokens`: 32 bytes do not fit the 24 left of 24, at most 3 rows of 8 bytes")
    );
    writer.field("boxes").expect("there").write(&[1; 6]).expect("they fit");
    let short = writer.finish().expect_err("half a box");
    assert_eq!((short.name.as_str(), short.written, short.expected), ("boxes", 6, 8));
    let counted = writer.field("tokens.lengths").expect_err("they are counted");
    assert_eq!(counted.kind(), io::ErrorKind::Unsupported);
    assert_eq!((sample.bytes("boxes"), sample.bytes("tokens")), (Some(&[1; 4][..]), Some(&[][..])));
    sample.writer();
    assert_eq!(sample.bytes("boxes"), Some(&[][..]), "a sample is written from its beginning");
}
