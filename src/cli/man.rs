//! `blockyard man`: the manual pages, which packages contain. The command is hidden, since only the
//! makers of packages need it.

use std::path::PathBuf;

use clap::Command;

use crate::env::make_folder;

use super::error::CliError;

/// Arguments of `man`.
#[derive(clap::Args, Debug)]
pub struct ManArgs {
    /// The directory for the pages, made if missing
    pub directory: PathBuf,
}

/// Writes a page for the program, of which this is the `command`, and one for each of its commands.
///
/// # Errors
/// [`CliError::System`] when a page cannot be written.
pub(super) fn run(args: &ManArgs, command: Command) -> Result<(), CliError> {
    let failed = |error| CliError::system("the manual pages", &error);
    make_folder(&args.directory).map_err(failed)?;
    clap_mangen::generate_to(command, &args.directory).map_err(failed)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::args::Cli;

    #[test]
    fn each_command_has_a_page_and_the_page_names_flags_and_variables() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("man1");
        run(&ManArgs { directory: directory.clone() }, Cli::command()).unwrap();
        let page = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
        assert!(page("blockyard.1").contains("blockyard\\-serve(1)"));
        assert!(page("blockyard-account-create.1").contains("blockyard account create"));
        let serve = page("blockyard-serve.1");
        assert!(serve.contains("master\\-key\\-file"), "{serve}");
        assert!(serve.contains("BLOCKYARD_MASTER_KEY_FILE"), "{serve}");
        assert!(!directory.join("blockyard-man.1").exists(), "hidden commands have no page");
    }
}
