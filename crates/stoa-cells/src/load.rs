//! Loads: many cells at once, straight into files ([`FileLoad`]) or through the log ([`LogLoad`]).

mod files;
mod log;

pub(crate) use files::FileLoad;
pub(crate) use log::LogLoad;
