//! A person at a terminal.

use std::path::PathBuf;

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use stoa_error::{Error, Result};
use stoa_hql::LineSource;

/// Lines that a person types; kept in `.stoa_hql_history` of the home directory.
///
/// What is typed or pasted ahead waits in the editor for the next line: that is what rustyline's feature
/// `buffer-redux` is for. Terminals that mark what is pasted give several lines as one, for the shell to
/// cut.
pub struct Editor {
    inner: DefaultEditor,
    history: Option<PathBuf>,
}

impl Editor {
    /// Starts on this process's terminal.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub fn new() -> Result<Self> {
        let mut inner = DefaultEditor::new().map_err(terminal_error)?;
        let history = std::env::home_dir().map(|home| home.join(".stoa_hql_history"));
        if let Some(file) = &history {
            // The first time there is none.
            let _ = inner.load_history(file);
        }
        Ok(Self { inner, history })
    }
}

impl LineSource for Editor {
    fn next_line(&mut self, prompt: &str) -> Result<Option<String>> {
        match self.inner.readline(prompt) {
            Ok(line) => {
                // History is a help, not a need: a home that cannot be written is no error.
                let added = self.inner.add_history_entry(line.as_str());
                if let (Ok(true), Some(file)) = (added, &self.history) {
                    let _ = self.inner.append_history(file);
                }
                Ok(Some(line))
            }
            // As in the shell's own words: forget what was typed.
            Err(ReadlineError::Interrupted) => Ok(Some("\\c".to_owned())),
            Err(ReadlineError::Eof) => Ok(None),
            Err(error) => Err(terminal_error(error)),
        }
    }
}

fn terminal_error(error: ReadlineError) -> Error {
    Error::unavailable("the terminal cannot be used").with_source(error)
}
