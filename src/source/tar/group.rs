//! Members to samples, by the rules of WebDataset: members that follow each other and have all in common up to the first dot
//! of their names are a sample.

use super::entries::{Entries, Place};
use super::error::TarProblem;
use super::fault::Broken;
use super::label::LabelRule;
use super::members::{Kind, Member};
use crate::source::LeftOutReason;
use crate::source::decode::EXTENSIONS;
use crate::source::left_out::Tally;

/// What the members of a sample mean.
#[derive(Debug)]
pub(super) struct Rules {
    /// The suffix of images; those of [`EXTENSIONS`] where there is none.
    pub(super) image: Option<String>,
    pub(super) label: LabelRule,
    /// The number of classes, where they are listed.
    pub(super) classes: Option<usize>,
}

/// How good an image of this suffix is: 0 is the best. `None` if it is no image.
pub(super) fn image_rank(image: Option<&str>, suffix: &str) -> Option<usize> {
    match image {
        Some(image) => (image == suffix).then_some(0),
        None => EXTENSIONS.iter().position(|&extension| extension == suffix),
    }
}

/// A member's name.
#[derive(Debug, PartialEq)]
pub(super) enum Name<'a> {
    /// What it has in common with the other members of its sample, and the rest in lower case.
    Part(&'a [u8], String),
    /// It starts with a dot, or is WebDataset's own (`__meta__`).
    Hidden,
    /// There is no dot in it.
    NoSuffix,
}

impl<'a> Name<'a> {
    pub(super) fn of(name: &'a [u8]) -> Self {
        let start = name.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        let base = &name[start..];
        if base.starts_with(b".") || base.starts_with(b"__") && base.ends_with(b"__") {
            return Self::Hidden;
        }
        match base.iter().position(|&byte| byte == b'.') {
            None => Self::NoSuffix,
            Some(dot) => {
                let suffix = String::from_utf8_lossy(&base[dot + 1..]).to_lowercase();
                Self::Part(&name[..start + dot], suffix)
            }
        }
    }
}

/// A member of the sample that is being put together.
#[derive(Debug)]
struct Part {
    suffix: String,
    place: Place,
}

/// The members of a sample so far.
#[derive(Debug, Default)]
struct Current {
    key: Vec<u8>,
    image: Option<(usize, Part)>,
    /// The label, or what is in its place.
    label: Option<(Result<i64, TarProblem>, Part)>,
    problem: Option<TarProblem>,
}

/// Puts samples together.
pub(super) struct Grouper<'a> {
    rules: &'a Rules,
    current: Current,
    pub(super) entries: Entries,
    pub(super) left_out: Tally,
}

impl<'a> Grouper<'a> {
    pub(super) fn new(rules: &'a Rules) -> Self {
        let (current, left_out) = (Current::default(), Tally::default());
        Self { rules, current, entries: Entries::new(rules.label != LabelRule::None), left_out }
    }

    /// Takes the next member. `content` reads it.
    pub(super) fn add(
        &mut self,
        member: &Member,
        content: impl FnOnce() -> Result<Vec<u8>, Broken>,
    ) -> Result<(), Broken> {
        let reason = match (member.kind, Name::of(&member.name)) {
            (Kind::Folder, _) => return Ok(()),
            (Kind::Other, _) => LeftOutReason::NoFile,
            (_, Name::Part(key, suffix)) => return self.part(member, key, suffix, content),
            (_, Name::Hidden) => LeftOutReason::Hidden,
            (_, Name::NoSuffix) => LeftOutReason::NoImage,
        };
        let kind = if reason == LeftOutReason::NoImage { "extensionless" } else { "" };
        self.left_out.add(reason, kind.to_owned(), 1, &member.name);
        Ok(())
    }

    fn part(
        &mut self,
        member: &Member,
        key: &[u8],
        suffix: String,
        content: impl FnOnce() -> Result<Vec<u8>, Broken>,
    ) -> Result<(), Broken> {
        if key != self.current.key {
            self.finish_sample()?;
            self.current.key = key.to_owned();
        }
        let part = Part { place: Place::of(member)?, suffix };
        if let Some(rank) = image_rank(self.rules.image.as_deref(), &part.suffix) {
            self.note_kind(member.kind, &part.suffix);
            self.add_image(rank, part);
        } else if self.rules.label.suffix() == Some(&part.suffix) {
            self.note_kind(member.kind, &part.suffix);
            self.add_label(part, &content()?);
        } else {
            self.leave_out(LeftOutReason::NoImage, &part.suffix);
        }
        Ok(())
    }

    /// Notes a member that is no file.
    fn note_kind(&mut self, kind: Kind, suffix: &str) {
        let suffix = suffix.to_owned();
        let problem = match kind {
            Kind::Link => TarProblem::Link { suffix },
            Kind::Sparse => TarProblem::Sparse { suffix },
            _ => return,
        };
        self.current.problem.get_or_insert(problem);
    }

    fn add_image(&mut self, rank: usize, part: Part) {
        let other = match self.current.image.take() {
            Some((there, _)) if there == rank => {
                self.current.problem.get_or_insert(TarProblem::Twice { suffix: part.suffix.clone() });
                self.current.image = Some((rank, part));
                return;
            }
            Some((better, image)) if better < rank => {
                self.current.image = Some((better, image));
                Some(part)
            }
            worse => {
                self.current.image = Some((rank, part));
                worse.map(|(_, image)| image)
            }
        };
        if let Some(other) = other {
            self.leave_out(LeftOutReason::SecondImage, &other.suffix);
        }
    }

    fn add_label(&mut self, part: Part, content: &[u8]) {
        if self.current.label.is_some() {
            self.current.problem.get_or_insert(TarProblem::Twice { suffix: part.suffix.clone() });
        }
        let text = || String::from_utf8_lossy(&content[..content.len().min(200)]).into_owned();
        let label = self.rules.label.parse(content).ok_or_else(|| TarProblem::NotInteger { text: text() });
        self.current.label = Some((label.and_then(|label| self.in_list(label)), part));
    }

    fn in_list(&self, label: i64) -> Result<i64, TarProblem> {
        match self.rules.classes {
            Some(classes) if usize::try_from(label).is_ok_and(|label| label < classes) => Ok(label),
            Some(classes) => Err(TarProblem::NotInClassList { label, classes }),
            None => Ok(label),
        }
    }

    /// Ends the sample that is being put together.
    pub(super) fn finish_sample(&mut self) -> Result<(), Broken> {
        let Current { key, image, label, mut problem } = std::mem::take(&mut self.current);
        let place = match (&image, &label) {
            (Some((_, image)), _) => image.place,
            // A label and no image: the image is lost. Of other things in a file like that nobody misses one.
            (None, Some((Ok(_), label))) => label.place,
            (None, Some((Err(_), label))) => {
                self.current.key = key;
                self.leave_out(LeftOutReason::NoImage, &label.suffix);
                self.current = Current::default();
                return Ok(());
            }
            (None, None) => return Ok(()),
        };
        if image.is_none() {
            problem.get_or_insert(TarProblem::NoImage);
        }
        let label = match (label, self.rules.label.suffix()) {
            (Some((Ok(label), _)), _) => label,
            (Some((Err(wrong), _)), _) => {
                problem.get_or_insert(wrong);
                0
            }
            (None, Some(suffix)) => {
                problem.get_or_insert_with(|| TarProblem::NoLabel { suffix: suffix.to_owned() });
                0
            }
            (None, None) => 0,
        };
        self.entries.push(&key, place, label, problem)
    }

    /// Counts a member of the current sample that is not used.
    fn leave_out(&mut self, reason: LeftOutReason, suffix: &str) {
        let name = [&self.current.key, &b"."[..], suffix.as_bytes()].concat();
        self.left_out.add(reason, format!(".{suffix}"), 1, &name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_samples_name_ends_at_the_first_dot_of_its_last_part() {
        let part = |key: &'static str, suffix: &str| Name::Part(key.as_bytes(), suffix.to_owned());
        assert_eq!(Name::of(b"0001.jpg"), part("0001", "jpg"));
        assert_eq!(Name::of(b"v1.2/0001.Left.PNG"), part("v1.2/0001", "left.png"));
        assert_eq!(Name::of(b"./a/b."), part("./a/b", ""));
        assert_eq!(Name::of(b"a.b/c"), Name::NoSuffix);
        for hidden in [&b".jpg"[..], b"a/._0001.jpg", b"__info__", b"a/__info__"] {
            assert_eq!(Name::of(hidden), Name::Hidden);
        }
    }

    #[test]
    fn the_suffixes_of_images_are_ordered_or_the_one_that_was_asked_for() {
        assert_eq!((image_rank(None, "jpg"), image_rank(None, "left.jpg")), (Some(0), None));
        assert!(image_rank(None, "png") > image_rank(None, "jpeg"));
        assert_eq!((image_rank(Some("left.jpg"), "left.jpg"), image_rank(Some("left.jpg"), "jpg")), (Some(0), None));
    }
}
