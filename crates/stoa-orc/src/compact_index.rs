//! The compact copy of stripe footers and row-index positions in the file's user metadata.
