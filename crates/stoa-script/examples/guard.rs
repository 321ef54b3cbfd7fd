//! The guard by itself, for tests: in the server, it is the binary `stoa`.

use std::process::ExitCode;

fn main() -> ExitCode {
    stoa_script::guard(std::env::args_os().skip(2))
}
