//! What a session says of how its statements are read.

/// What of a session's settings changes how its statements are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// `hive.default.nulls.last`: whether NULLs come last in ascending order.
    pub nulls_last: bool,
    /// `hive.exec.script.allow.partial.consumption`: whether a script may end before it has read all its rows.
    pub partial_scripts: bool,
}
