//! What `cargo xtask platforms` is asked for.

/// The arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Whether missing packages may be installed.
    pub install: bool,
    /// Only names the platforms.
    pub list: bool,
    /// Keys; empty for all that are chosen without asking.
    pub only: Vec<String>,
}

/// Reads the arguments, or says what is wrong with them.
pub fn parse(args: &[String]) -> Result<Options, String> {
    let mut options = Options { install: true, list: false, only: Vec::new() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--no-install" => options.install = false,
            "--list" => options.list = true,
            "--only" => {
                let keys = args.next().ok_or("--only needs names, as `--list` shows them")?;
                options.only.extend(keys.split(',').filter(|key| !key.is_empty()).map(str::to_owned));
            }
            other => return Err(format!("unknown argument `{other}`")),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn platforms_are_chosen_by_their_names() {
        let options = parsed("--only lavapipe,angle --no-install --only metal").expect("valid");
        assert_eq!(options.only, ["lavapipe", "angle", "metal"]);
        assert!(!options.install && !options.list);
        assert_eq!(parsed(""), Ok(Options { install: true, list: false, only: Vec::new() }));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        assert!(parsed("--only").is_err_and(|problem| problem.contains("--only")));
        assert!(parsed("--onyl x").is_err_and(|problem| problem.contains("--onyl")));
    }
}
