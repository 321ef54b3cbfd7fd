//! Tells the linker to keep one copy of functions that are alike, which generic code makes many
//! of: a smaller release binary for nothing.

#[expect(clippy::disallowed_methods, reason = "cargo tells build scripts through the environment")]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    // The toolchain's own linker, the default for this target, knows the option; others may not.
    if is("TARGET", "x86_64-unknown-linux-gnu") && is("PROFILE", "release") {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
}
