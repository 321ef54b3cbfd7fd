//! Two things that only building can do.
//!
//! Tells the linker to keep one copy of functions that are alike, which generic code makes many of: a smaller
//! release binary for nothing. Puts the commit into `stoa --version`: of release builds in a checkout, or
//! what `STOA_COMMIT` says where there is no git. Other builds have none, or each commit would link them anew.

use std::process::Command;

#[expect(clippy::disallowed_methods, reason = "cargo tells build scripts through the environment")]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=STOA_COMMIT");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let is_release = is("PROFILE", "release");
    // The toolchain's own linker, the default for this target, knows the option; others may not.
    if is("TARGET", "x86_64-unknown-linux-gnu") && is_release {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
    let given = std::env::var("STOA_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(|| is_release.then(commit_here).flatten());
    let commit = commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    println!("cargo:rustc-env=STOA_VERSION={}{commit}", env!("CARGO_PKG_VERSION"));
}

/// The commit that is checked out, shortened; the script runs again when another one is.
fn commit_here() -> Option<String> {
    println!("cargo:rerun-if-changed={}", git(&["rev-parse", "--git-path", "logs/HEAD"])?);
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
