//! Damaged files: both decoders go on alike, and neither takes a made-up image for a good one.

use super::tests::{file, folder, raw, skip, turbojpeg};
use super::*;

/// Numbers that look random, the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }
}

/// A file with something wrong in its scans.
fn damaged(file: &[u8], kind: usize, random: &mut Random) -> Vec<u8> {
    let scan = file.windows(2).position(|bytes| bytes == [0xff, 0xda]).expect("a scan") + 14;
    let at = scan + random.below(file.len() - 4 - scan);
    let mut bytes = file.to_vec();
    match kind {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => drop(bytes.drain(at..(at + 1 + random.below(40)).min(file.len() - 2))),
        2 => drop(bytes.splice(at..at, (0..1 + random.below(20)).map(|_| random.below(256) as u8).collect::<Vec<_>>())),
        3 => {
            bytes[at] = 0xff;
            bytes[at + 1] = [2, 1, 0xd0, 0xd1, 0xd3, 0xd7, 0xd9, 0xff][random.below(8)];
        }
        4 => bytes[at..(at + 30).min(file.len() - 2)].fill(0xff),
        _ => (0..4).for_each(|_| bytes[scan + random.below(file.len() - 2 - scan)] = random.below(256) as u8),
    }
    bytes
}

fn all_damaged(mut each: impl FnMut(&str, &[u8])) {
    let mut random = Random(7);
    let mut names: Vec<_> = std::fs::read_dir(folder())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jpg"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .filter(|name| !name.starts_with("size") && name != "arithmetic")
        .collect();
    names.sort_unstable();
    for name in names {
        let whole = file(&name);
        for kind in 0..6 {
            for _ in 0..4 {
                each(&format!("{name}, kind {kind}"), &damaged(&whole, kind, &mut random));
            }
        }
    }
}

#[test]
fn damage_is_recovered_as_libjpeg_turbo_does_or_refused() {
    let name = "damage_is_recovered_as_libjpeg_turbo_does_or_refused";
    let Ok(library) = turbo::library() else { return skip(name, "libjpeg-turbo is not installed") };
    let (mut same, mut other, mut unnoticed) = (0, Vec::new(), Vec::new());
    all_damaged(|name, bytes| {
        let Ok((rust, pixels)) = raw(bytes, 1, Chosen::Rust) else { return };
        let format = [Format::Grey, Format::Rgb, Format::Cmyk][rust.channels / 2];
        let mut theirs = vec![0; pixels.len()];
        let size = (rust.size.0 as u16, rust.size.1 as u16);
        match Turbo::new(library).expect("memory").decode(bytes, size, format, &mut theirs) {
            Outcome::Failed(reason) if !rust.damage.is_harmful() => unnoticed.push(format!("{name}: {reason}")),
            Outcome::Failed(_) => return,
            Outcome::Warned if rust.damage == (Damage { blocks: rust.damage.blocks, ..Damage::default() }) => {
                unnoticed.push(name.to_owned());
            }
            Outcome::Whole | Outcome::Warned => {}
        }
        let difference: u64 = pixels.iter().zip(&theirs).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
        if difference * 5 <= pixels.len() as u64 { same += 1 } else { other.push(name.to_owned()) }
    });
    assert_eq!(unnoticed, [""; 0], "damage that only libjpeg-turbo sees");
    // Values far out of range overflow differently.
    assert!(same > 500 && other.len() * 25 < same, "{same} alike, others: {other:?}");
}

#[test]
fn a_grey_picture_is_never_called_good() {
    let mut checked = 0;
    all_damaged(|name, bytes| {
        let Ok((decoded, pixels)) = raw(bytes, 1, Chosen::Rust) else { return };
        let grey = pixels.iter().filter(|value| value.abs_diff(128) <= 1).count();
        if grey * 3 > pixels.len() {
            assert!(decoded.damage.is_harmful(), "{name}: {} of {} values are grey", grey, pixels.len());
            checked += 1;
        }
    });
    assert!(checked > 20, "{checked}");
}

#[test]
fn a_strip_between_restart_markers_is_lost_and_the_rest_is_not() {
    let whole = file("restarts-every-row");
    let markers: Vec<_> =
        (0..whole.len() - 1).filter(|&at| whole[at] == 0xff && (0xd0..=0xd7).contains(&whole[at + 1])).collect();
    assert_eq!(markers.len(), 2);
    let mut bytes = whole.clone();
    bytes[markers[0] + 20..markers[0] + 22].copy_from_slice(b"\xff\x02");
    for chosen in [Some(Chosen::Rust), turbojpeg("a_strip_between_restart_markers_is_lost_and_the_rest_is_not")] {
        let Some(chosen) = chosen else { continue };
        let (before, after) = (raw(&whole, 1, chosen).expect("whole").1, raw(&bytes, 1, chosen).expect("recovered"));
        assert!(after.0.damage.is_harmful() && !after.0.damage.is_fatal(), "{}", after.0.damage);
        let row = 3 * 45;
        assert_eq!(before[..14 * row], after.1[..14 * row], "above");
        assert_eq!(before[34 * row..], after.1[34 * row..], "below");
    }
}

#[test]
fn an_image_of_which_most_is_made_up_is_fatally_damaged() {
    let whole = file("sampling-420");
    let scan = whole.windows(2).position(|bytes| bytes == [0xff, 0xda]).expect("a scan") + 14;
    let cut = [&whole[..scan + 60], b"\xff\xd9"].concat();
    let (decoded, _) = raw(&cut, 1, Chosen::Rust).expect("decoded");
    assert!(decoded.damage.is_fatal(), "{}", decoded.damage);
    assert!(decoded.damage.to_string().contains("1 stretches of data end early"), "{}", decoded.damage);
}
