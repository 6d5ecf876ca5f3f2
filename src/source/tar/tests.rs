//! Shards: what is found in them, and what is told of what is not.

use std::fs;
use std::io::Cursor;

use image::{Rgb, RgbImage};
use tempfile::TempDir;

use super::*;
use crate::source::{DecodeOptions, Decoder, FolderSource, ImageError, ImageOptions, LeftOutReason};
use crate::staging::SampleBuffer;

/// A PNG of one pixel.
fn png(red: u8) -> Vec<u8> {
    let mut file = Vec::new();
    let pixel = RgbImage::from_pixel(1, 1, Rgb([red, 0, 0]));
    pixel.write_to(&mut Cursor::new(&mut file), image::ImageFormat::Png).expect("encoded");
    file
}

/// An archive with these members.
fn archive<C: AsRef<[u8]>>(members: &[(&str, C)]) -> Vec<u8> {
    let mut builder = ::tar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = ::tar::Header::new_gnu();
        header.set_size(content.as_ref().len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, content.as_ref()).expect("added");
    }
    builder.into_inner().expect("ended")
}

/// Archives as files, called `0.tar` and so on.
fn written(archives: &[Vec<u8>]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (number, bytes) in archives.iter().enumerate() {
        fs::write(folder.path().join(format!("{number}.tar")), bytes).expect("written");
    }
    folder
}

fn options() -> TarOptions {
    ImageOptions { height: 1, width: 1, ..ImageOptions::default() }.into()
}

/// A source of one archive.
fn one(archive: Vec<u8>, options: TarOptions) -> Result<(TempDir, TarSource), TarError> {
    let folder = written(&[archive]);
    let source = TarSource::open(folder.path().join("0.tar"), options)?;
    Ok((folder, source))
}

/// A sample, or its error.
fn read(source: &dyn Source, index: u64) -> Result<SampleBuffer, SourceError> {
    let mut sample = SampleBuffer::new(source.layout()).expect("a few bytes");
    source.read(&SampleContext::of(index), &mut sample.writer()).map(|()| sample)
}

/// A sample's first byte, or its error.
fn red(source: &TarSource, index: u64) -> Result<u8, String> {
    let sample = read(source, index).map_err(|error| error.to_string())?;
    assert_eq!(sample.label(), source.label(index));
    Ok(sample.bytes("image").expect("an image")[0])
}

/// All samples with their names and labels.
fn samples(source: &TarSource) -> Vec<(String, u8, Option<i64>)> {
    let sample =
        |index| (source.key(index).expect("a name"), red(source, index).expect("an image"), source.label(index));
    (0..source.len()).map(sample).collect()
}

fn left_out(source: &TarSource) -> Vec<(LeftOutReason, String, u64, String)> {
    let entry = |entry: crate::source::LeftOut| {
        let first = entry.first.rsplit_once('/').map_or(entry.first.clone(), |(_, name)| name.to_owned());
        (entry.reason, entry.kind, entry.count, first)
    };
    source.summary().left_out.into_iter().map(entry).collect()
}

/// An archive that a real writer made.
fn made(name: &str) -> Result<TarSource, TarError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tar");
    TarSource::open(folder.join(name), options())
}

#[test]
fn what_real_writers_write_is_read_with_long_names_and_line_breaks() {
    let long = ["a-folder-with-a-rather-long-name"; 5].join("/");
    for (name, first, second) in [
        ("v7.tar", "short/1".to_owned(), "b/2"),
        ("ustar.tar", format!("{}/1", &long[..131]), "b/2"),
        ("gnu.tar", format!("{long}/1"), "b/ü\n2"),
        ("posix.tar", format!("{long}/1"), "b/ü\n2"),
        ("python-gnu.tar", format!("{long}/1"), "b/ü\n2"),
        ("python-pax.tar", format!("{long}/1"), "b/ü\n2"),
    ] {
        let source = made(name).expect(name);
        assert_eq!(samples(&source), [(first, 1, Some(1)), (second.to_owned(), 2, Some(2))], "{name}");
        assert_eq!(left_out(&source), [], "{name}");
    }
}

#[test]
fn sparse_files_and_links_are_bad_samples_and_the_others_arrive() {
    for name in ["sparse-gnu.tar", "sparse-posix.tar"] {
        let source = made(name).expect(name);
        assert_eq!((red(&source, 0), red(&source, 2), source.len()), (Ok(1), Ok(3), 3), "{name}");
        let error = red(&source, 1).expect_err("sparse");
        assert!(
            error.ends_with(
                ".tar: 2: the member .png is a sparse file, which is not supported: archive it without `--sparse`"
            ),
            "{error}"
        );
    }
    let source = made("links.tar").expect("four samples");
    assert_eq!((red(&source, 0), red(&source, 3), source.len()), (Ok(1), Ok(4), 4));
    for index in [1, 2] {
        let error = red(&source, index).expect_err("a link");
        assert!(error.contains(&format!(".tar: {}: the member .png is a link", index + 1)), "{error}");
    }
}

#[test]
fn samples_are_members_that_follow_each_other_with_one_name() {
    let members = [
        ("a/1.jpg", png(1)),
        ("a/1.cls", b"7\n".to_vec()),
        ("a/1.txt", b"a photo of 9 cats".to_vec()),
        ("a/2.cls", b"8".to_vec()),
        ("a/2.mask.png", png(99)),
        ("a/2.PNG", png(2)),
        ("._a", Vec::new()),
        ("__info__", Vec::new()),
        ("README", Vec::new()),
        ("b/2.jpeg", png(3)),
        ("b/2.png", png(98)),
        ("b/2.cls", b" -1 ".to_vec()),
    ];
    let (_folder, source) = one(archive(&members), options()).expect("three samples");
    let expected = [("a/1", 1, 7), ("a/2", 2, 8), ("b/2", 3, -1)];
    assert_eq!(samples(&source), expected.map(|(key, red, label)| (key.to_owned(), red, Some(label))));
    assert_eq!(source.classes(), [], "-1 is no number of a class");
    let expected = [
        (LeftOutReason::NoImage, ".mask.png", 1, "2.mask.png"),
        (LeftOutReason::NoImage, ".txt", 1, "1.txt"),
        (LeftOutReason::NoImage, "extensionless", 1, "0.tar: README"),
        (LeftOutReason::Hidden, "", 2, "0.tar: ._a"),
        (LeftOutReason::SecondImage, ".png", 1, "2.png"),
    ];
    assert_eq!(
        left_out(&source),
        expected.map(|(reason, kind, count, first)| (reason, kind.into(), count, first.into()))
    );
    let other = TarOptions { image: Some("mask.png".to_owned()), ..options() };
    let (_folder, source) = one(archive(&members), other).expect("one sample");
    assert_eq!(red(&source, 1), Ok(99));
    assert!(red(&source, 0).expect_err("no mask").contains("0.tar: a/1: no image beside its label"));
}

#[test]
fn labels_are_found_beside_the_images_or_where_they_are_asked_for() {
    let members = [
        ("1.jpg", png(1)),
        ("1.json", br#"{"width": 1, "cls": 3}"#.to_vec()),
        ("1.txt", b"5".to_vec()),
        ("2.json", br#"{"cls": 0, "id": 12}"#.to_vec()),
        ("2.txt", b"6".to_vec()),
        ("2.jpg", png(2)),
    ];
    let labels = |members: &[(&str, Vec<u8>)], labels: &str| {
        let options = TarOptions { labels: labels.parse().expect("never fails"), ..options() };
        let (_folder, source) = one(archive(members), options).expect("two samples");
        ([0, 1].map(|index| source.label(index)), source.classes().len())
    };
    assert_eq!(labels(&members, "auto"), ([Some(3), Some(0)], 4));
    assert_eq!(labels(&members, "json:cls"), ([Some(3), Some(0)], 4));
    assert_eq!(labels(&members, ".txt"), ([Some(5), Some(6)], 7));
    assert_eq!(labels(&members, "none"), ([None, None], 0));
    let with_cls: Vec<_> = members.iter().cloned().chain([("2.cls", b"1".to_vec())]).collect();
    assert_eq!(labels(&with_cls, "auto").0, [Some(3), Some(0)], "what is beside the first image");
    let without: Vec<_> = members.iter().filter(|(name, _)| name.ends_with("jpg")).cloned().collect();
    assert_eq!(labels(&without, "auto"), ([None, None], 0));
}

#[test]
fn a_sample_without_image_or_with_a_wrong_label_keeps_its_index() {
    let members = [
        ("1.jpg", png(1)),
        ("1.cls", b"0".to_vec()),
        ("2.cls", b"1".to_vec()),
        ("3.jpg", png(3)),
        ("4.jpg", png(4)),
        ("4.cls", b"c\x1bt".to_vec()),
        ("5.jpg", png(5)),
        ("5.jpg", png(5)),
        ("5.cls", b"2".to_vec()),
        ("6.jpg", b"junk".to_vec()),
        ("6.cls", b"2".to_vec()),
        ("7.jpg", png(7)),
        ("7.cls", b"9".to_vec()),
        ("classes.cls", b"cat dog".to_vec()),
    ];
    let names = Some(["cat", "cow", "dog"].map(str::to_owned).to_vec());
    let (_folder, source) = one(archive(&members), TarOptions { classes: names, ..options() }).expect("seven samples");
    assert_eq!((source.len(), red(&source, 0)), (7, Ok(1)));
    let says = |index, text: &str| {
        let error = red(&source, index).expect_err("a bad sample");
        assert!(error.contains(&format!("0.tar: {}", index + 1)) && error.contains(text), "{error}");
    };
    says(1, "no image beside its label");
    says(2, "no label beside its image: there is no member .cls");
    says(3, "its label is no integer: c\\u{1b}t");
    says(4, "two members .jpg");
    says(5, "6.jpg: neither JPEG, PNG nor WebP");
    says(6, "its label is 9, and the list has 3 classes");
    assert!((0..7).all(|index| source.label(index).is_some()));
    let classes: Vec<_> = source.classes().iter().map(|class| (class.name.as_str(), class.samples)).collect();
    assert_eq!(classes, [("cat", 1), ("cow", 0), ("dog", 1)]);
    assert_eq!(left_out(&source), [(LeftOutReason::NoImage, ".cls".into(), 1, "0.tar: classes.cls".into())]);
    let error = read(&source, 5).expect_err("junk");
    assert_eq!(error.downcast_ref::<ImageError>().expect("of the image").member.as_deref(), Some("6.jpg"));
    let error = read(&source, 7).expect_err("never there");
    assert!(error.is::<OutOfRange>(), "{error}");
}

#[test]
fn shards_follow_each_other_in_the_order_of_their_pattern() {
    let shard = |number: u8| {
        let members: Vec<_> = (0..number).map(|at| (format!("{at}.png"), png(10 * number + at))).collect();
        let members: Vec<_> = members.iter().map(|(name, bytes)| (name.as_str(), bytes)).collect();
        archive(&members)
    };
    let folder = written(&[shard(3), shard(0), shard(2), shard(1)]);
    let pattern = folder.path().join("{2..0}.tar");
    let source = TarSource::open(&pattern, options()).expect("five images");
    let reds: Vec<_> = (0..source.len()).map(|index| red(&source, index).expect("an image")).collect();
    assert_eq!(reds, [20, 21, 30, 31, 32]);
    assert_eq!(source.file(1), Some(folder.path().join("2.tar")));
    assert_eq!((source.file(2), source.file(5)), (Some(folder.path().join("0.tar")), None));
    fs::rename(folder.path().join("3.tar"), &pattern).expect("renamed");
    assert_eq!(TarSource::open(&pattern, options()).expect("one image").len(), 1, "a file of the pattern's own name");
    let twice = TarSource::open(folder.path().join("{0,0}.tar"), options()).expect_err("twice").to_string();
    assert!(twice.contains("0.tar: this shard is named twice"), "{twice}");
    let missing = TarSource::open(folder.path().join("{0..5}.tar"), options()).expect_err("missing").to_string();
    assert!(missing.contains("3.tar: cannot be opened"), "{missing}");
    assert!(matches!(TarSource::open_shards::<PathBuf>([], options()), Err(TarError::NoShards)));
}

#[test]
fn the_same_files_in_a_folder_and_in_shards_are_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let photo = |seed: u32| RgbImage::from_fn(90, 70, |x, y| Rgb([(x * seed) as u8, (y * 3) as u8, (x + y) as u8]));
    let names: Vec<String> = (0..9).map(|at| format!("{at:03}.{}", ["jpg", "png", "webp"][at % 3])).collect();
    for (at, name) in names.iter().enumerate() {
        photo(at as u32 + 1).save(folder.path().join(name)).expect("saved");
    }
    let members: Vec<_> =
        names.iter().map(|name| (name.as_str(), fs::read(folder.path().join(name)).expect("read"))).collect();
    let shards = written(&[archive(&members[..4]), archive(&members[4..])]);
    for decoder in [Decoder::Auto, Decoder::Rust] {
        let decode = DecodeOptions { decoder, ..DecodeOptions::default() };
        let images = ImageOptions { height: 32, width: 48, decode, ..ImageOptions::default() };
        let files = FolderSource::open(folder.path(), images.clone().into()).expect("nine images");
        let shards = TarSource::open(shards.path().join("{0..1}.tar"), images.into()).expect("nine images");
        assert_eq!(files.decoder_id(), shards.decoder_id());
        let sample = |source: &dyn Source, index| {
            read(source, index).expect("a sample").bytes("image").expect("an image").to_vec()
        };
        assert!((0..9).all(|index| sample(&files, index) == sample(&shards, index)));
    }
}

#[test]
fn a_file_that_is_no_archive_is_named_with_what_it_is() {
    let say = |bytes: &[u8]| one(bytes.to_vec(), options()).expect_err("no archive").to_string();
    assert!(say(&b"\x1f\x8b\x08".repeat(300)).ends_with("0.tar: not a tar archive but compressed by gzip; unpack it: samples are read at any position, which compression prevents"));
    assert!(say(&[7; 2000]).ends_with("0.tar: not a tar archive"));
    assert!(say(b"short").ends_with("0.tar: not a tar archive"));
    assert!(say(&[0; 1024]).contains("0.tar: no images (JPEG, PNG or WebP) in this shard"));
    assert!(say(b"").contains("no images"), "{}", say(b""));
    assert!(say(&archive(&[("a.txt", "x")])).contains("in this shard; there is 1 .txt file: "));
}

#[test]
fn a_damaged_or_cut_archive_is_an_error_that_says_where() {
    let whole = archive(&[("1.png", png(1)), ("2.png", png(2)), ("3.png", png(3))]);
    let say = |bytes: Vec<u8>| one(bytes, options()).expect_err("damaged").to_string();
    let mut flipped = whole.clone();
    flipped[1024 + 5] ^= 1;
    assert!(say(flipped).ends_with("0.tar: damaged at byte 1024: no tar header (its checksum is wrong)"));
    let cut = say(whole[..1024 + 512 + 9].to_vec());
    assert!(cut.contains("damaged at byte 1024: the archive ends within this member (`2.png`, "), "{cut}");
    assert!(say(whole[..1024 + 100].to_vec()).ends_with("at byte 1024: the archive ends within this header"));
    let mut lying = whole.clone();
    let mut header = ::tar::Header::from_byte_slice(&whole[1024..1536]).clone();
    header.set_size(1 << 60);
    header.set_cksum();
    lying[1024..1536].copy_from_slice(header.as_bytes());
    assert!(
        say(lying)
            .contains("damaged at byte 1024: the archive ends within this member (`2.png`, 1152921504606846976 bytes)")
    );
    for end in (0..whole.len()).step_by(97) {
        // Every cut is an error, or there is something to be told.
        if let Ok((_folder, source)) = one(whole[..end].to_vec(), options()) {
            assert!(!source.summary().left_out.is_empty() || end >= whole.len() - 512, "cut at {end}");
        }
    }
}

#[test]
fn an_archive_without_its_end_or_with_more_after_it_is_told() {
    let whole = archive(&[("1.png", png(1))]);
    let ends = |bytes: Vec<u8>| {
        let (_folder, source) = one(bytes, options()).expect("an image");
        assert_eq!(red(&source, 0), Ok(1));
        left_out(&source).into_iter().map(|(reason, ..)| reason).collect::<Vec<_>>()
    };
    assert_eq!(ends(whole.clone()), []);
    assert_eq!(ends([&whole[..], &[0; 9000]].concat()), []);
    assert_eq!(ends(whole[..1024].to_vec()), [LeftOutReason::NoArchiveEnd]);
    assert_eq!(ends([&whole[..], &archive(&[("2.png", png(2))])].concat()), [LeftOutReason::AfterArchiveEnd]);
}

#[test]
fn a_digest_is_that_of_names_labels_and_content() {
    let digest =
        |members: &[(&str, Vec<u8>)]| one(archive(members), options()).expect("images").1.digest().expect("a digest");
    let members = [("1.png", png(1)), ("1.cls", b"1".to_vec()), ("2.png", png(2)), ("2.cls", b"2".to_vec())];
    let with = |at: usize, name: &'static str, content: Vec<u8>| {
        let mut other = members.clone();
        other[at] = (name, content);
        digest(&other)
    };
    assert_eq!(digest(&members), digest(&members));
    assert_eq!(digest(&members), digest(&[&members[..], &[("notes.md", Vec::new())]].concat()));
    assert_ne!(digest(&members), with(0, "0.png", png(1)));
    assert_ne!(digest(&members), with(1, "1.cls", b"3".to_vec()));
    assert_ne!(digest(&members), with(2, "2.png", png(3)));
}

#[test]
fn a_shard_that_changes_is_named_also_where_it_is_not_held_open() {
    let folder = written(&[archive(&[("1.png", png(1))])]);
    let path = folder.path().join("0.tar");
    let touch = || {
        let file = fs::File::options().write(true).open(&path).expect("writable");
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(9)).expect("its time is set");
    };
    let mut source = TarSource::open(&path, options()).expect("an image");
    touch();
    assert!(red(&source, 0).expect_err("changed").contains("0.tar: the file was changed"));
    source = TarSource::open(&path, options()).expect("an image");
    source.shards[0].close();
    assert_eq!(red(&source, 0), Ok(1));
    fs::write(&path, archive(&[("1.png", png(9))])).expect("written");
    assert!(red(&source, 0).expect_err("changed").contains("0.tar: the file was changed"));
}

#[test]
fn a_sample_takes_eighteen_bytes() {
    let members: Vec<_> = (0..2000).map(|at| (format!("a/rather/long/folder/{at:08}"), png(1))).collect();
    let members = members
        .iter()
        .flat_map(|(key, png)| [(format!("{key}.png"), png.clone()), (format!("{key}.cls"), b"1".to_vec())]);
    let members: Vec<_> = members.collect();
    let members: Vec<_> = members.iter().map(|(name, bytes)| (name.as_str(), bytes)).collect();
    let (_folder, source) = one(archive(&members), options()).expect("images");
    assert_eq!(source.shards[0].entries.heap_bytes(), 18 * 2000);
}
