//! Headers that describe the member after them: pax records and GNU's long names.

use super::fault::Broken;

/// What was said of the next member in front of it.
#[derive(Default)]
pub(super) struct Extensions {
    /// GNU's long name, which counts before that of pax.
    pub(super) long_name: Option<Vec<u8>>,
    pub(super) path: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    /// Whether the member is a sparse file in one of the forms that pax records describe.
    pub(super) sparse: bool,
}

impl Extensions {
    /// Takes GNU's long name, which ends at its first zero.
    pub(super) fn add_long_name(&mut self, mut name: Vec<u8>) {
        name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
        self.long_name = Some(name);
    }

    /// Takes pax records: `LENGTH KEY=VALUE\n`, where the length is that of the whole record, so that a value may hold anything.
    pub(super) fn add_pax(&mut self, mut records: &[u8]) -> Result<(), Broken> {
        // Some writers fill up with zeros.
        while records.first().is_some_and(|&byte| byte != 0) {
            let (record, rest) = split_record(records).ok_or(Broken::Pax)?;
            records = rest;
            let equals = record.iter().position(|&byte| byte == b'=').ok_or(Broken::Pax)?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            match key {
                b"path" => self.path = Some(value.to_owned()),
                b"size" => self.size = Some(number(value).ok_or(Broken::Pax)?),
                b"GNU.sparse.name" => (self.path, self.sparse) = (Some(value.to_owned()), true),
                _ if key.starts_with(b"GNU.sparse.") => self.sparse = true,
                _ => {}
            }
        }
        Ok(())
    }

    /// The member's name, where the extensions have it.
    pub(super) fn name(&mut self) -> Option<Vec<u8>> {
        self.long_name.take().or_else(|| self.path.take())
    }
}

/// The first record's key and value, and what comes after the record.
fn split_record(records: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = records.iter().position(|&byte| byte == b' ')?;
    let len = usize::try_from(number(&records[..space])?).ok()?;
    let record = records.get(space + 1..len)?.strip_suffix(b"\n")?;
    Some((record, &records[len..]))
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_hold_line_breaks_and_equal_signs() {
        let mut extensions = Extensions::default();
        extensions.add_pax(b"14 path=a\nb=c\n20 size=00000000009\n\0\0").expect("two records");
        assert_eq!(extensions.size, Some(9));
        assert_eq!(extensions.name(), Some(b"a\nb=c".to_vec()));
    }

    #[test]
    fn the_name_of_a_sparse_file_is_its_own() {
        let mut extensions = Extensions::default();
        extensions.add_pax(b"25 GNU.sparse.name=a.jpg\n").expect("a record");
        assert!(extensions.sparse);
        assert_eq!(extensions.name(), Some(b"a.jpg".to_vec()));
    }

    #[test]
    fn records_that_are_none_are_refused() {
        for broken in
            [&b"8 path=a\n"[..], b"99 path=a\n", b"x path=a\n", b"path", b"7 path\n", b"3 \n", b"11 size=x y\n"]
        {
            let taken = Extensions::default().add_pax(broken);
            assert!(taken.is_err(), "{}", String::from_utf8_lossy(broken));
        }
    }
}
