//! Stream encoders.
