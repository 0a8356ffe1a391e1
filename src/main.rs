//! The `blockyard` program. The only place that ends the process.

use blockyard::cli;
use blockyard::cli::Cli;
use clap::Parser;

/// Returns freed pages to the system and is quick with large buffers.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(clippy::print_stderr, reason = "the last word to the user")]
fn main() {
    let code = match cli::run(Cli::parse_from(cli::arguments(std::env::args_os()))) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{}", cli::complaint(&error));
            error.exit_code()
        }
    };
    // Threads that still block must not delay the end.
    std::process::exit(code);
}
