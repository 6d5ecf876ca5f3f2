//! Which sub-folders are classes, and what their labels are.

use std::collections::HashMap;
use std::path::Path;

use super::error::FolderError;
use super::paths::PathList;
use super::walk::Walk;
use crate::source::{Class, LeftOutReason, SourceSummary};

/// The images of a folder with their labels, and what else was found.
pub(super) fn find(root: &Path, given: Option<Vec<String>>) -> Result<(PathList, SourceSummary), FolderError> {
    let mut classes = Classes::new(given)?;
    let mut walk = Walk::new(root);
    let listed = walk.root(&mut |walk, name| classes.sub_folder(walk, name));
    listed.map_err(|source| FolderError::Io { path: root.into(), source })?;
    let Walk { mut found, left_out, .. } = walk;
    found.finish();
    let left_out = left_out.finish();
    if found.len() == 0 {
        let listed: Vec<String> = left_out.iter().map(ToString::to_string).collect();
        let left_out = if listed.is_empty() { String::new() } else { format!("; there is {}", listed.join("; ")) };
        return Err(FolderError::NoImages { path: root.into(), left_out });
    }
    let classes = classes.finish(&found)?;
    Ok((found, SourceSummary { classes, left_out, ..SourceSummary::default() }))
}

/// The classes found so far, or those that were given.
struct Classes {
    classes: Vec<Class>,
    /// The labels of a list that was given.
    given: Option<HashMap<String, usize>>,
    found: bool,
}

impl Classes {
    fn new(given: Option<Vec<String>>) -> Result<Self, FolderError> {
        let Some(names) = given else { return Ok(Self { classes: Vec::new(), given: None, found: false }) };
        let mut labels = HashMap::with_capacity(names.len());
        for (label, name) in names.iter().enumerate() {
            if labels.insert(name.clone(), label).is_some() {
                return Err(FolderError::ClassTwice { name: name.clone() });
            }
        }
        let classes = names.into_iter().map(|name| Class { name, samples: 0 }).collect();
        Ok(Self { classes, given: Some(labels), found: false })
    }

    /// Looks into a folder that is a class if there are images in it.
    fn sub_folder(&mut self, walk: &mut Walk, name: &[u8]) {
        let mark = walk.found.mark();
        walk.folder(name);
        let images = walk.found.since(&mark) as u64;
        let text = String::from_utf8_lossy(name).into_owned();
        if images == 0 {
            return walk.left_out.add(LeftOutReason::NoImages, text, 1, name);
        }
        let label = match &self.given {
            None => {
                self.classes.push(Class { name: text, samples: 0 });
                self.classes.len() - 1
            }
            Some(labels) => match labels.get(&text) {
                Some(&label) => label,
                None => {
                    walk.found.go_back(&mark);
                    return walk.left_out.add(LeftOutReason::NotInClassList, text, images, name);
                }
            },
        };
        self.found = true;
        self.classes[label].samples += images;
        // A folder takes a hundred bytes here, so that there are fewer than 4 billion.
        walk.found.label_since(&mark, label as u32);
    }

    /// The classes; none where all images lie directly in the root.
    fn finish(self, found: &PathList) -> Result<Vec<Class>, FolderError> {
        match found.first_unlabelled() {
            Some(outside) if self.found || self.given.is_some() => {
                Err(FolderError::Mixed { path: found.path(outside).unwrap_or_default() })
            }
            Some(_) => Ok(Vec::new()),
            None => Ok(self.classes),
        }
    }
}
