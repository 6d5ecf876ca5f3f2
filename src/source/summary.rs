//! What a source found where it looked for samples: classes, and what it left out.

use std::fmt;

use serde::Serialize;

use super::shown::escaped;

/// What a source found where it looked for samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SourceSummary {
    /// The classes by label; empty where labels have no names.
    pub classes: Vec<Class>,
    /// What was left out, by reason and kind; empty if all was taken.
    pub left_out: Vec<LeftOut>,
    /// What decodes the samples, with its version and its options, where they are part of what fixes their bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decoder: Option<String>,
    /// Samples delivered so far from files that are damaged inside.
    pub damaged: u64,
}

/// A class of samples. Its label is its position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Class {
    /// Its name. Characters that are not Unicode are replaced.
    pub name: String,
    /// How many samples have its label.
    pub samples: u64,
}

/// Something that a source left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// Why.
    pub reason: LeftOutReason,
    /// Of which kind, where the reason alone does not say: an extension, or the name of a folder.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// How many files, links or folders.
    pub count: u64,
    /// The first of them, as seen from the folder that was opened.
    pub first: String,
}

/// Why something was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LeftOutReason {
    /// A folder beside the classes without an image in or below it: it is no class.
    NoImages,
    /// Images of a class that the list of classes does not have.
    NotInClassList,
    /// A folder that systems keep for themselves: `lost+found`, `@eaDir` and the like.
    SystemFolder,
    /// A folder that cannot be listed.
    UnreadableFolder,
    /// A file whose first bytes would have to say what it is, and cannot be read.
    UnreadableFile,
    /// A link that leads nowhere and is not named like an image.
    BrokenLink,
    /// A link that leads back to a folder it lies in.
    LinkLoop,
    /// A file that is no JPEG, PNG or WebP image, by its extension and, where that may be wrong, its first bytes.
    NoImage,
    /// A pipe, a socket or a device.
    NoFile,
    /// A name that starts with a dot.
    Hidden,
    /// A name that is no Unicode, on a system whose paths are.
    Name,
    /// An image of a sample that has another one.
    SecondImage,
    /// What follows the end of an archive, as where archives were put together by `cat`.
    AfterArchiveEnd,
    /// Nothing that is known: an archive without the blocks of zeros at its end may have been cut.
    NoArchiveEnd,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use LeftOutReason as Reason;
        let Self { reason, kind, count, first } = self;
        let (kind, first) = (escaped(kind), escaped(first));
        let many = |one: &'static str, more: &'static str| if *count == 1 { one } else { more };
        match reason {
            Reason::NoImages => return write!(f, "`{first}` holds no images and is no class"),
            Reason::NotInClassList => {
                return write!(
                    f,
                    "{count} {} of `{kind}`, which is not in the list of classes",
                    many("image", "images")
                );
            }
            Reason::SystemFolder => write!(f, "{count} {} `{kind}`", many("system folder", "system folders")),
            Reason::UnreadableFolder => {
                write!(f, "{count} {} that cannot be listed ({kind})", many("folder", "folders"))
            }
            Reason::UnreadableFile => write!(f, "{count} {} that cannot be read", many("file", "files")),
            Reason::BrokenLink => write!(f, "{count} {}", many("broken link", "broken links")),
            Reason::LinkLoop => write!(f, "{count} {} to a folder around it", many("link", "links")),
            Reason::NoImage => write!(f, "{count} {kind} {}", many("file", "files")),
            Reason::NoFile => write!(f, "{count} that {} no file", many("is", "are")),
            Reason::Hidden => write!(f, "{count} hidden"),
            Reason::Name => write!(f, "{count} whose {} no Unicode", many("name is", "names are")),
            Reason::SecondImage => {
                write!(f, "{count} {kind} {} of samples with another image", many("file", "files"))
            }
            Reason::AfterArchiveEnd => {
                write!(f, "what follows the end of {count} {}", many("archive", "archives"))
            }
            Reason::NoArchiveEnd => {
                write!(f, "perhaps the rest of {count} {} without an end mark", many("archive", "archives"))
            }
        }?;
        write!(f, ": {}{first}", many("", "the first is "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_said_with_its_number_kind_and_first() {
        let say = |reason, kind: &str, count, first: &str| {
            LeftOut { reason, kind: kind.into(), count, first: first.into() }.to_string()
        };
        assert_eq!(say(LeftOutReason::NoImage, ".bmp", 2, "a.bmp"), "2 .bmp files: the first is a.bmp");
        assert_eq!(say(LeftOutReason::Hidden, "", 1, ".x\n"), "1 hidden: .x\\n");
        assert_eq!(say(LeftOutReason::NoImages, "", 1, "notes"), "`notes` holds no images and is no class");
        let listed = say(LeftOutReason::NotInClassList, "cow", 3, "cow/1.png");
        assert_eq!(listed, "3 images of `cow`, which is not in the list of classes");
    }
}
